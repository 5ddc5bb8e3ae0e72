"""Between: features of classes that there might be, drawn from how the known ones differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from newfound.creation._base import Model


@dataclass(frozen=True)
class Between:
    """Every feature is of a new class of its own: a class mean from N(mean, B), a sample around it with spread W.

    This is "a category never seen" of the two-covariance model (docs/discovery.md), with B and W as the batch shows
    them. Neither is written down as a matrix: a sum of K class means, seen from their mean and weighted by independent
    normal numbers over sqrt(K - 1), has their covariance, and residuals give W in the same way. So a drawn feature is
    a function of the known ones, and what is learnt from it reaches the encoder through them.
    """

    spaces: ClassVar[tuple[str, ...]] = ("features",)

    def ready(self) -> None:
        """Nothing to fetch."""

    def __call__(
        self, inputs: Tensor, targets: Tensor, model: Model, reference: Tensor, rng: np.random.Generator
    ) -> Tensor:
        """As many unit features as `reference` has, with its gradient; [0, d] if that is of one class.

        Args:
            inputs, model: not looked at.
            targets: the classes of `reference`.
        """
        known = reference.to(torch.promote_types(reference.dtype, torch.float32))
        n, (classes, positions) = len(known), targets.unique(return_inverse=True)
        k = len(classes)
        if k < 2:
            return reference[:0]
        counts = torch.bincount(positions).to(known)
        means = torch.zeros(k, known.shape[1]).to(known).index_add(0, positions, known) / counts[:, None]
        mean = means.mean(dim=0)
        # Means of few samples scatter by W / n_k besides B; that part of W need not be drawn again.
        missing = float((1 - 1 / counts).mean())
        a = torch.from_numpy(rng.standard_normal((n, k)) / np.sqrt(k - 1)).to(known)
        e = torch.from_numpy(rng.standard_normal((n, n)) * np.sqrt(missing / max(n - k, 1))).to(known)
        with torch.autocast(known.device.type, enabled=False):
            drawn = mean + a @ (means - mean) + e @ (known - means[positions])
        return F.normalize(drawn, dim=1).to(reference.dtype)
