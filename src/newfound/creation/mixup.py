"""Mixup as a creator: a blend of two known samples of different classes lies between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from newfound.creation._base import Model, draw_partners
from newfound.errors import SettingsError


@dataclass(frozen=True)
class Mixup:
    """x_mix = lambda x_i + (1 - lambda) x_j, lambda ~ Beta(eta, eta) (Eq. 6).

    Args:
        eta: the shape of lambda's distribution; below 1 it favours the ends.
        across_classes: only blend samples of different classes, as the paper does; the released code blends any.
        per_sample: a lambda for each sample; the released code draws one a batch.
        min_lambda: keep lambda in [min_lambda, 1 - min_lambda], away from the samples themselves.
    """

    spaces: ClassVar[tuple[str, ...]] = ("pixels", "tokens")
    eta: float = 0.4
    across_classes: bool = True
    per_sample: bool = True
    min_lambda: float = 0.0

    def __post_init__(self) -> None:
        if not self.eta > 0:
            raise SettingsError(f"eta={self.eta}: it must be above zero.")
        if not 0 <= self.min_lambda <= 0.5:
            raise SettingsError(f"min_lambda={self.min_lambda}: it must lie in [0, 0.5].")

    def ready(self) -> None:
        """Nothing to fetch."""

    def __call__(
        self, inputs: Tensor, targets: Tensor, model: Model, reference: Tensor, rng: np.random.Generator
    ) -> Tensor:
        return self.blend(inputs, targets, rng)

    def blend(self, inputs: Tensor, targets: Tensor, rng: np.random.Generator) -> Tensor:
        first, second, shares = self.draw(targets, rng)
        lam = torch.from_numpy(shares).to(inputs).reshape(-1, *[1] * (inputs.ndim - 1))
        return (lam * inputs[first] + (1 - lam) * inputs[second]).detach()  # Eq. 6

    def draw(self, targets: Tensor, rng: np.random.Generator) -> tuple[Tensor, Tensor, np.ndarray]:
        """Pairs (i, j) and lambda, the share of i, for each."""
        first, second = draw_partners(targets, rng, across_classes=self.across_classes)
        draws = rng.beta(self.eta, self.eta, size=len(first) if self.per_sample else 1)
        shares = self.min_lambda + (1 - 2 * self.min_lambda) * draws
        return first, second, np.broadcast_to(shares, len(first)).copy()
