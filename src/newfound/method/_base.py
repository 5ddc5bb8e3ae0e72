"""What a method is: how a tail learns, and how a category is read off a feature."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from newfound.errors import SettingsError

if TYPE_CHECKING:
    from newfound.creation import PixelScale
    from newfound.discovery import Dictionary
    from newfound.features import Encoder

Known = Mapping[str, np.ndarray]  # what the online stage starts from, as arrays that a run stores


@dataclass(frozen=True)
class Settings:
    """What every method has; methods add their own. A preset is a set of values for these.

    Learning
        epochs, batch_size.
        optimizer: "adamw" or "sgd" (with `momentum`).
        lr, weight_decay: of the backbone's tail; head_lr, head_weight_decay: of the method's own weights, None for the
            same.
        warmup_epochs, warmup_lr, final_lr: linear warm-up, then a cosine down to `final_lr`. They are rates of the
            tail; a head's rate follows the same curve in proportion.
        cached: learn from `views` stored views of each image instead of new ones every epoch.
    Views
        min_scale, flip, jitter: random resized crop, horizontal flip, colour jitter.
    Discovery
        threshold: how the cut is found below which a sample is new; each family of methods says what it can be.
    """

    epochs: int = 100
    batch_size: int = 128
    optimizer: Literal["adamw", "sgd"] = "adamw"
    momentum: float = 0.9
    lr: float = 1e-4
    weight_decay: float = 0.05
    head_lr: float | None = None
    head_weight_decay: float | None = None
    warmup_epochs: int = 5
    warmup_lr: float = 1e-4
    final_lr: float = 1e-5
    cached: bool = False
    views: int = 8
    min_scale: float = 0.6
    flip: bool = True
    jitter: float = 0.2
    threshold: float | str = "rehearsed"

    def __post_init__(self) -> None:
        for name in ("epochs", "warmup_epochs", "weight_decay", "head_weight_decay", "warmup_lr", "final_lr"):
            if (getattr(self, name) or 0) < 0:
                raise SettingsError(f"{name}={getattr(self, name)}: it cannot be negative.")
        if not 0 < self.min_scale <= 1:
            raise SettingsError(f"min_scale={self.min_scale}: a share of the image's area lies in (0, 1].")
        for name in ("jitter", "momentum"):
            if not 0 <= getattr(self, name) < 1:
                raise SettingsError(f"{name}={getattr(self, name)}: it must lie in [0, 1).")
        for name in ("batch_size", "views", "lr", "head_lr"):
            if getattr(self, name) is not None and getattr(self, name) <= 0:
                raise SettingsError(f"{name}={getattr(self, name)}: it must be above zero.")
        if self.cached and self.views < 2:
            raise SettingsError(f"views={self.views}: learning from cached views needs at least 2 an image.")
        self._check_threshold()

    def _check_threshold(self) -> None:
        if not isinstance(self.threshold, str) and not -1 <= self.threshold <= 1:
            raise SettingsError(f"threshold={self.threshold}: a similarity lies in [-1, 1].")


class Encode(Protocol):
    """Inputs to unit features, differentiable; with the weights as they are or, for meta-learning, with others."""

    def __call__(self, inputs: Tensor) -> Tensor: ...

    def parameters(self) -> dict[str, Tensor]:
        """The weights that learn, by name."""

    def at(self, parameters: dict[str, Tensor]) -> Callable[[Tensor], Tensor]:
        """The same encoder with other values for these weights."""


@dataclass(frozen=True)
class Batch:
    """A batch of labelled samples in two views."""

    first: Tensor  # inputs of the first view, in the space that creation works in
    second: Tensor
    targets: Tensor
    encode: Encode
    epoch: int  # from 0
    rng: np.random.Generator  # the step's own randomness
    pixels: PixelScale | None = None  # how the inputs were normalised if they are pixels; None for tokens


class Method(nn.Module, ABC):
    """The base of all methods.

    Class attributes say what it is; `loss` says what it minimises. A method that keeps state between steps updates it
    in `after_step`, so that a step uses what was true before it. `teach`, `read` and `dictionary` are its online side.
    """

    name: ClassVar[str]
    about: ClassVar[str]
    settings_class: ClassVar[type[Settings]] = Settings
    presets: ClassVar[dict[str, dict[str, Any]]] = {}  # what differs for this method, by preset
    fixed: ClassVar[dict[str, Any]] = {}  # settings that no preset changes
    creates: ClassVar[bool] = False  # whether it takes a creator
    discovers: ClassVar[bool] = True  # whether it may found categories
    smooth_cuts: ClassVar[bool] = True  # whether neighbouring cuts decide alike, so that rehearsals smooth over them
    miscount: float = 0.0  # what a rehearsal takes off the score for each factor e of categories too many or too few
    shares_batches: ClassVar[bool] = True  # whether several processes can learn a batch together
    smallest_batch: ClassVar[int] = 1  # samples; a smaller last batch of an epoch is shared out among the others

    def __init__(self, dim: int, classes: int, settings: Settings) -> None:
        super().__init__()
        self.dim, self.classes, self.settings = dim, classes, settings

    # Learning

    @classmethod
    def more_images(
        cls, encoder: Encoder, items: Sequence, targets: np.ndarray, settings: Settings, *, seed: int,
        folder: Path | None = None,
    ) -> tuple[list, np.ndarray]:  # fmt: skip
        """Images to learn from besides the labelled ones, and their classes; classes beyond the known are virtual."""
        return [], np.zeros(0, np.int64)

    def start(self, features: Tensor, targets: Tensor) -> None:
        """Before the first epoch, with the centre-view features of all that is learnt from."""

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

    # Discovery

    freedom: int | None = None  # samples less classes of the labelled set, where a part of it plays the whole

    @abstractmethod
    def teach(self, features: Tensor, targets: Tensor) -> dict[str, np.ndarray]:
        """What the dictionary shall know, from the labelled set's unit features and classes 0 .. K-1."""

    def read(self, features: Tensor, known: Known) -> Tensor:
        """What the dictionary is given for unit features: they themselves, or what a head makes of them."""
        return features

    @abstractmethod
    def dictionary(self, known: Known, threshold: float) -> Dictionary:
        """A fresh dictionary that knows what was taught.

        Raises:
            NewfoundError: or KeyError, if `known` is not what `teach` gives.
        """

    @abstractmethod
    def cuts(self) -> np.ndarray:
        """The thresholds that a rehearsal tries, ascending."""

    def measured(self, taught: Tensor, targets: Tensor, held_out: Tensor, classes: np.ndarray) -> dict[str, float]:
        """Settings that a rehearsal measures on features of images it learnt and of others of the same classes."""
        return {}

    def trials(self) -> dict[str, tuple[float, ...]]:
        """Settings besides the threshold that a rehearsal chooses, with their values; it starts from the first."""
        return {}

    @abstractmethod
    def own_cut(self, features: Tensor | None = None, targets: Tensor | None = None) -> tuple[float, str]:
        """The threshold by the method's own rule, and the rule in words.

        Args:
            features, targets: of the labelled set, for a rule that goes by them.
        """


def class_means(features: Tensor, targets: Tensor, classes: int) -> Tensor:
    """P_k: the unit-length mean of the features of class k (Eq. 4)."""
    sums = torch.zeros(classes, features.shape[1], dtype=features.dtype, device=features.device)
    sums.index_add_(0, targets, features)
    return nn.functional.normalize(sums, dim=1)
