"""A margin in evidence: LTC's margin loss (Eq. 10) on the log ratio of the two-covariance model, not on a cosine."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

_RATE = 0.1  # of the running spreads, by step
_WITHIN, _BETWEEN = 0.5, 0.15  # how far spreads are drawn towards their mean over dimensions, as in the dictionary
_SMALLEST = 1e-8  # a spread; that of copies would be zero


class EvidenceMargin(nn.Module):
    """Known samples shall be explained better by a known category than by one never seen, pseudo-novel ones worse.

    A category is N(P_k, W) around its prototype, one never seen N(mean of P, W + B); W and B are diagonal, follow the
    training as running means, and are constants to the loss. There is no threshold to learn: the cut is at zero.

    Dimensions of a feature are far from independent, so their sum overstates the evidence. The log ratio is taken by
    dimension and counts as often as known classes have directions to vary in, K - 1. The loss is the logistic one of
    that evidence over K - 1, so that its weight means the same for few classes and for many: where the evidence is
    clear, its slope by the mean log ratio is 0 or 1, as a hinge's is.
    """

    within: Tensor  # the diagonal of W [d]
    between: Tensor  # of B

    def __init__(self, dim: int, classes: int) -> None:
        super().__init__()
        self.directions = max(classes - 1, 1)
        self.register_buffer("within", torch.ones(dim))
        self.register_buffer("between", torch.ones(dim))

    def forward(self, known: Tensor, created: Tensor, prototypes: Tensor) -> tuple[Tensor, Tensor]:
        """What known samples [n, d] and created ones [m, d] cost on average; the second is 0 without any."""
        pos = F.softplus(-self.log_ratio(known, prototypes), beta=self.directions).mean()
        if not len(created):
            return pos, pos.new_zeros(())
        return pos, F.softplus(self.log_ratio(created, prototypes), beta=self.directions).mean()

    @torch.no_grad()
    def follow(self, features: Tensor, targets: Tensor, prototypes: Tensor, rate: float = _RATE) -> None:
        """Move the running spreads towards those of a batch [n, d] around the prototypes [K, d], and of these."""
        within = (features.to(prototypes) - prototypes[targets]).square().mean(dim=0)
        between = prototypes.var(dim=0, correction=min(1, len(prototypes) - 1))
        self.within.lerp_(within, rate)
        self.between.lerp_(between, rate)

    def log_ratio(self, features: Tensor, prototypes: Tensor) -> Tensor:
        """log p(x | best category) - log p(x | one never seen) of each row, by dimension [n]."""
        x = features.to(torch.promote_types(features.dtype, torch.float32))
        inner = _drawn(self.within, _WITHIN)
        total = inner + _drawn(self.between, _BETWEEN)
        with torch.autocast(x.device.type, enabled=False):
            crossed = (x / inner) @ prototypes.T
        square = (x.square() / inner).sum(1, keepdim=True) - 2 * crossed + (prototypes.square() / inner).sum(1)
        unseen = ((x - prototypes.mean(dim=0)).square() / total).sum(1)
        return (unseen - square.amin(dim=1) + (total / inner).log().sum()) / (2 * x.shape[1])


def _drawn(spread: Tensor, share: float) -> Tensor:
    return torch.lerp(spread, spread.mean(), share).clamp(min=_SMALLEST)
