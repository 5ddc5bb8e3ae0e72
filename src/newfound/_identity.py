"""What a run keeps of its backbone: one list, for writing it, reading it back and comparing processes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Identity:
    """What the tail's tensors and the settings of views do not say of where features come from."""

    name: str
    tune_blocks: int
    weights: str  # where they came from
    image_size: int | None  # None, as in runs of before: the model's own
    crop_pct: float | None
    trunk_hash: str
    split: str
