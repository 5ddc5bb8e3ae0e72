"""The threshold that sets itself while training."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class AdaptiveThreshold:
    """Quantiles of known and pseudo-novel scores set a target (Eq. 11); the threshold follows it slowly (Eq. 12).

    The paper takes q_pos = 0.8, q_neg = 0.2 and their midpoint. The released code takes q_pos = 0.2, q_neg = 0.8 and
    moves each by its margin first (`m_pos`, `m_neg`), clamping the target to [-1, 1].
    """

    tau: float = 0.7
    beta: float = 0.001
    q_pos: float = 0.8
    q_neg: float = 0.2
    m_pos: float = 0.0
    m_neg: float = 0.0

    def target(self, s_known: Tensor, s_pseudo: Tensor) -> float:
        u_pos = torch.quantile(s_known.detach().float(), self.q_pos)  # Eq. 11
        u_neg = torch.quantile(s_pseudo.detach().float(), self.q_neg)
        middle = ((u_pos - self.m_pos) + (u_neg + self.m_neg)) / 2
        return min(1.0, max(-1.0, float(middle)))

    def update(self, s_known: Tensor, s_pseudo: Tensor) -> float:
        """One step; returns the new threshold."""
        self.tau = (1 - self.beta) * self.tau + self.beta * self.target(s_known, s_pseudo)  # Eq. 12
        return self.tau
