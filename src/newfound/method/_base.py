"""What a method is: how a tail learns, and how a category is read off a feature."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn

from newfound.errors import SettingsError


@dataclass(frozen=True)
class Settings:
    """What every method has; methods add their own. A preset is a set of values for these.

    Learning
        epochs, batch_size, lr, weight_decay: AdamW's.
        warmup_epochs, warmup_lr, final_lr: linear warm-up, then a cosine down to `final_lr`.
        cached: learn from `views` stored views of each image instead of new ones every epoch.
    Views
        min_scale, flip, jitter: random resized crop, horizontal flip, colour jitter.
    Discovery
        share: how much of what the tail has learnt is kept when training is over: 1 keeps the learnt weights, 0 the
            pretrained ones, between lies their mean. "rehearsed": chosen together with a rehearsed threshold, and 1
            where the threshold is not rehearsed.
        threshold: "adaptive" (the value learnt while training), "rehearsed" (chosen by rehearsing discovery on held-out
            known classes) or a number.
        centre: see features from the labelled set's mean, which takes away what all images share.
        update: "fixed" prototypes as in the paper, or "running" means of what a discovered category has seen.
        merge_every: merge nearly equal discovered prototypes every so many samples, as the released code does.
    """

    epochs: int = 100
    batch_size: int = 128
    lr: float = 1e-4
    weight_decay: float = 0.05
    warmup_epochs: int = 5
    warmup_lr: float = 1e-4
    final_lr: float = 1e-5
    cached: bool = False
    views: int = 8
    min_scale: float = 0.6
    flip: bool = True
    jitter: float = 0.2
    share: float | Literal["rehearsed"] = 1.0
    threshold: float | Literal["adaptive", "rehearsed"] = "rehearsed"
    centre: bool = False
    update: Literal["fixed", "running"] = "running"
    merge_every: int | None = None

    def __post_init__(self) -> None:
        for name in ("epochs", "warmup_epochs", "weight_decay", "warmup_lr", "final_lr"):
            if getattr(self, name) < 0:
                raise SettingsError(f"{name}={getattr(self, name)}: it cannot be negative.")
        if not 0 < self.min_scale <= 1:
            raise SettingsError(f"min_scale={self.min_scale}: a share of the image's area lies in (0, 1].")
        if not 0 <= self.jitter < 1:
            raise SettingsError(f"jitter={self.jitter}: it must lie in [0, 1).")
        for name in ("batch_size", "views", "lr"):
            if getattr(self, name) <= 0:
                raise SettingsError(f"{name}={getattr(self, name)}: it must be above zero.")
        if self.cached and self.views < 2:
            raise SettingsError(f"views={self.views}: learning from cached views needs at least 2 an image.")
        if self.update not in ("fixed", "running"):
            raise SettingsError(f'update={self.update!r}: choose "fixed" or "running".')
        if self.merge_every is not None and self.merge_every < 1:
            raise SettingsError(f"merge_every={self.merge_every}: a number of samples from 1 up, or None for never.")
        if self.centre and self.threshold == "adaptive":
            raise SettingsError(
                'centre=True with threshold="adaptive": that threshold is learnt on plain cosines. Take centre=False, '
                'or threshold="rehearsed" or a number.'
            )
        if isinstance(self.share, str):
            if self.share != "rehearsed":
                raise SettingsError(f'share={self.share!r}: choose "rehearsed" or a number.')
        elif not 0 <= self.share <= 1:
            raise SettingsError(f"share={self.share}: it must lie in [0, 1].")
        if isinstance(self.threshold, str):
            if self.threshold not in ("adaptive", "rehearsed"):
                raise SettingsError(f'threshold={self.threshold!r}: choose "adaptive", "rehearsed" or a number.')
        elif not -1 <= self.threshold <= 1:
            raise SettingsError(f"threshold={self.threshold}: a cosine lies in [-1, 1].")


@dataclass(frozen=True)
class Batch:
    """A batch of labelled samples in two views."""

    first: Tensor  # inputs of the first view, in the space that creation works in
    second: Tensor
    targets: Tensor
    encode: Callable[[Tensor], Tensor]  # inputs to unit features
    epoch: int  # from 0
    rng: np.random.Generator  # the step's own randomness


class Method(nn.Module):
    """The base of all methods.

    Class attributes say what it is; `loss` says what it minimises. A method that keeps state between steps updates it
    in `after_step`, so that a step uses what was true before it.
    """

    name: ClassVar[str]
    about: ClassVar[str]
    settings_class: ClassVar[type[Settings]] = Settings
    creates: ClassVar[bool] = False  # whether it takes a creator
    discovers: ClassVar[bool] = True  # whether it may found categories

    def __init__(self, dim: int, classes: int, settings: Settings) -> None:
        super().__init__()
        self.dim, self.classes, self.settings = dim, classes, settings

    def start(self, features: Tensor, targets: Tensor) -> None:
        """Before the first epoch, with the centre-view features of the labelled set."""

    def begin_epoch(self, epoch: int) -> None:
        """At the start of every epoch."""

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        """The value to minimise under "loss", and its parts by name."""
        raise SettingsError(f"{self.name} has nothing to learn: train it with epochs=0.")

    def after_step(self) -> None:
        """After the optimiser has moved."""

    @property
    def tau(self) -> float | None:
        """The threshold as learnt so far; None if the method learns none."""
        return None

    def scalars(self) -> dict[str, float]:
        """State that is not a tensor, for checkpoints."""
        return {}

    def load_scalars(self, values: dict[str, float]) -> None:
        """The opposite of `scalars`."""


def class_means(features: Tensor, targets: Tensor, classes: int) -> Tensor:
    """P_k: the unit-length mean of the features of class k (Eq. 4)."""
    sums = torch.zeros(classes, features.shape[1], dtype=features.dtype, device=features.device)
    sums.index_add_(0, targets, features)
    return nn.functional.normalize(sums, dim=1)
