"""What a creator is given and what it promises."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class PixelScale:
    """How pixels were normalised, for creators that need to see them as images with values in [0, 1]."""

    mean: tuple[float, ...]
    std: tuple[float, ...]

    def to_images(self, inputs: Tensor) -> Tensor:
        """Model inputs [n, 3, h, w] as images in [0, 1]."""
        mean, std = self._like(inputs)
        return (inputs * std + mean).clamp(0, 1)

    def to_inputs(self, images: Tensor) -> Tensor:
        """The opposite of `to_images`."""
        mean, std = self._like(images)
        return (images - mean) / std

    def _like(self, values: Tensor) -> tuple[Tensor, Tensor]:
        shape = (1, len(self.mean), 1, 1)
        return values.new_tensor(self.mean).reshape(shape), values.new_tensor(self.std).reshape(shape)


@dataclass(frozen=True)
class Model:
    """The current model as a creator sees it."""

    encode: Callable[[Tensor], Tensor]  # inputs (pixels or tokens) to unit features, differentiable
    classify: Callable[[Tensor], Tensor]  # unit features to logits of the known classes
    pixels: PixelScale | None = None  # how the inputs were normalised if they are pixels; None for tokens


class Creator(Protocol):
    """Makes pseudo-novel inputs from a batch of known ones."""

    # "pixels", "tokens" or both: what inputs it can work on. Or "features": it takes none, makes features in the place
    # of inputs, and makes them of `reference`, which then need not be detached.
    spaces: ClassVar[tuple[str, ...]]

    def ready(self) -> None:
        """Fetch what it needs besides the model; raises SettingsError or WeightsError if that cannot be had."""

    def __call__(
        self, inputs: Tensor, targets: Tensor, model: Model, reference: Tensor, rng: np.random.Generator
    ) -> Tensor:
        """Returns new inputs of the same space, detached; [0, ...] if the batch offers no pair to blend.

        Args:
            inputs: a batch in pixel or token space [n, ...].
            targets: its classes [n].
            model: the current encoder and head.
            reference: unit features of known samples [r, d], detached.
            rng: the only source of randomness.
        """


def draw_partners(targets: Tensor, rng: np.random.Generator, *, across_classes: bool) -> tuple[Tensor, Tensor]:
    """Pairs (i, j) for blending: every i with a random j, of another class if asked (i without one are left out)."""
    n = len(targets)
    if not across_classes:
        return torch.arange(n), torch.from_numpy(rng.permutation(n))
    labels = targets.cpu().numpy()
    keys = np.where(labels[:, None] != labels[None, :], rng.random((n, n)), -1.0)
    partner = keys.argmax(axis=1)
    usable = keys[np.arange(n), partner] >= 0
    return torch.from_numpy(np.flatnonzero(usable)), torch.from_numpy(partner[usable])
