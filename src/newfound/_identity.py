"""What a backbone is: the one list of what its features depend on, from which all that keeps or compares them takes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Identity:
    """As a run keeps it. Tensors apart, which have hashes of their own, no feature depends on anything else."""

    name: str
    tune_blocks: int
    weights: str  # where they came from
    image_size: int | None  # None, as in runs of before: the model's own
    crop_pct: float | None
    trunk_hash: str
    split: str
