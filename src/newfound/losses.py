"""The losses of the paper, and those of the hash methods that it compares with."""

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
    # In half precision cosines are rounded too coarsely to be divided by the temperature.
    features = features.to(torch.promote_types(features.dtype, torch.float32))
    others = ~torch.eye(n, dtype=torch.bool, device=features.device)
    positives = (targets[:, None] == targets[None, :]) & others
    with torch.autocast(features.device.type, enabled=False):
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


def quantisation(signs: Tensor) -> Tensor:
    """mean(1 - |s|): values in [-1, 1] shall be -1 or 1 (SMILE's regulariser, PHE's quantisation of hash centres)."""
    return (1 - signs.abs()).mean()


def centre_separation(signs: Tensor, distance: float, slack: float = 0.95) -> Tensor:
    """PHE: every two hash centres shall differ in at least `distance` bits.

    Args:
        signs: the centres [K, L] with values in [-1, 1]; for true signs (L - c_i c_j) / 2 is the Hamming distance.
        slack: takes the place of L with `slack` L, as soft signs never reach their full length.

    Returns:
        What is missing of it, summed over the other classes and averaged over all.
    """
    between = (slack * signs.shape[1] - signs @ signs.T) / 2
    missing = (distance - between).clamp(min=0)
    return (missing.sum() - missing.diagonal().sum()) / len(signs)


def feature_to_centre(hashes: Tensor, centres: Tensor, targets: Tensor, temperature: float = 1.0) -> Tensor:
    """PHE: cross-entropy over the cosines of each hash output [n, L] to all hash centres [K, L]."""
    cosines = F.normalize(hashes, dim=1) @ F.normalize(centres, dim=1).T
    return cross_entropy(cosines / temperature, targets)
