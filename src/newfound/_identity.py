"""What a backbone is: the one list of what its features depend on, from which all that keeps or compares them takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Identity:
    """As a run keeps it. Tensors apart, which have hashes of their own, no feature depends on anything else."""

    name: str
    tune_blocks: int
    weights: str  # where they came from
    image_size: int | None  # None, as in runs of before: the model's own
    crop_pct: float | None
    pooling: float
    trunk_hash: str
    split: str

    def of_tokens(self) -> tuple[Any, ...]:
        """What the trunk's outputs depend on, views apart. Pooling comes later: what is cached serves every power."""
        return self.name, self.trunk_hash, self.tune_blocks, self.split

    def of_features(self) -> tuple[Any, ...]:
        """What features depend on that neither tensors nor views tell; nothing for what there was before a choice.

        So hashes of before stay what they are, and with them journals and exports.
        """
        return () if self.pooling == 1 else (("pooling", self.pooling),)
