"""The losses of the paper, each a function of unit features."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


def supervised_contrastive(features: Tensor, targets: Tensor, temperature: float = 0.07) -> Tensor:
    """Eq. 1: pull each sample towards those of its class, in contrast with all others, averaged over the batch.

    Args:
        features: unit rows [n, d]; the views of an image are rows with the same target.
        targets: class indices [n].

    A sample without a positive has no term; with no positive in the whole batch the loss is zero.
    """
    n = len(features)
    others = ~torch.eye(n, dtype=torch.bool, device=features.device)
    positives = (targets[:, None] == targets[None, :]) & others
    similarity = features @ features.T / temperature
    log_share = similarity - torch.logsumexp(similarity.masked_fill(~others, -torch.inf), dim=1, keepdim=True)
    count = positives.sum(1)
    per_sample = -(log_share.masked_fill(~positives, 0.0).sum(1) / count.clamp(min=1))
    return per_sample[count > 0].mean() if bool((count > 0).any()) else features.sum() * 0.0


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Eq. 2."""
    return F.cross_entropy(logits, targets)


def max_similarity(features: Tensor, prototypes: Tensor) -> Tensor:
    """s_max(x): the cosine of the nearest known prototype, for unit rows."""
    return (features @ prototypes.T).amax(dim=1)


def positive_margin(s_known: Tensor, tau: float, margin: float) -> Tensor:
    """Eq. 10, first line: known samples shall score above tau + m_pos."""
    return (tau + margin - s_known).clamp(min=0).mean()


def negative_margin(s_pseudo: Tensor, tau: float, margin: float) -> Tensor:
    """Eq. 10, second line: pseudo-novel samples shall score below tau - m_neg."""
    return (s_pseudo - (tau - margin)).clamp(min=0).mean()
