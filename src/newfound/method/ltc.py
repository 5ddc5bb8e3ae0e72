"""LTC, Learning through Creation (Sec. 3.2, 3.3 and Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from newfound import losses
from newfound.creation import Model
from newfound.errors import SettingsError
from newfound.method._base import Batch, class_means
from newfound.method._creating import CreatorSettings
from newfound.method._evidence_loss import EvidenceMargin
from newfound.method.baseline import Baseline, BaselineSettings, CosineHead
from newfound.threshold import AdaptiveThreshold


@dataclass(frozen=True)
class LTCSettings(CreatorSettings, BaselineSettings):
    """The symbols are the paper's.

    Creation: p_gen (chance that a batch creates), creation_from_epoch (warm-up), creator, space ("pixels" or "tokens"),
        eta, across_classes, per_sample, min_lambda (mixup), eps, relative_step, sigma_0, lambda_rho (MKEE), pipeline,
        prompt, strength, steps, guidance (diffusion).
    Margins: gamma_mm, m_pos, m_neg, hinge_from_epoch. margin: in the "cosine" (Eq. 10), or in the "evidence" for a
        known category against a new one, which has no use for m_pos, m_neg and the threshold.
    Threshold: tau_init, beta, q_pos, q_neg, margins_in_target (the released code moves the quantiles by the margins).
    prototypes_start: what stands for a class not yet seen in an epoch: its "means" so far, or the "head"'s weights.
    """

    p_gen: float = 0.3
    creation_from_epoch: int = 1
    gamma_mm: float = 0.05
    m_pos: float = 0.05
    m_neg: float = 0.05
    hinge_from_epoch: int = 0
    margin: Literal["cosine", "evidence"] = "cosine"
    tau_init: float = 0.7
    beta: float = 0.001
    q_pos: float = 0.8
    q_neg: float = 0.2
    margins_in_target: bool = False
    prototypes_start: Literal["means", "head"] = "means"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("p_gen", "beta", "q_pos", "q_neg"):
            if not 0 <= getattr(self, name) <= 1:
                raise SettingsError(f"{name}={getattr(self, name)}: it must lie in [0, 1].")
        if not -1 <= self.tau_init <= 1:
            raise SettingsError(f"tau_init={self.tau_init}: a cosine lies in [-1, 1].")
        if self.margin not in ("cosine", "evidence"):
            raise SettingsError(f'margin={self.margin!r}: choose "cosine" or "evidence".')
        self.check_creation(cached=self.cached)


class LTC(Baseline):
    """L_ce + alpha L_sup + gamma_mm L_mm (Eq. 13), with samples created from the current model."""

    name = "ltc"
    about = "Learning through Creation: the baseline with created pseudo-novel samples and a dual max-margin loss"
    settings_class = LTCSettings
    settings: LTCSettings
    creates = True
    sums: Tensor  # of features by class since the epoch's start
    means: Tensor  # unit prototypes as they were at its start

    def __init__(self, dim: int, classes: int, settings: LTCSettings) -> None:
        super().__init__(dim, classes, settings)
        s = settings
        self.creator = s.make_creator()
        margins = (s.m_pos, s.m_neg) if s.margins_in_target else (0.0, 0.0)
        self.threshold = AdaptiveThreshold(s.tau_init, s.beta, s.q_pos, s.q_neg, *margins)
        self.register_buffer("sums", torch.zeros(classes, dim))
        self.register_buffer("means", torch.zeros(classes, dim))
        self.evidence = EvidenceMargin(dim, classes) if s.margin == "evidence" else None
        self._pending: tuple[Tensor, Tensor, Tensor, Tensor | None] | None = None

    @property
    def tau(self) -> float:
        return self.threshold.tau

    def scalars(self) -> dict[str, float]:
        return {"tau": self.threshold.tau}

    def load_scalars(self, values: dict[str, float]) -> None:
        self.threshold.tau = values["tau"]

    @torch.no_grad()
    def start(self, features: Tensor, targets: Tensor) -> None:
        super().start(features, targets)
        self.means.copy_(class_means(features, targets, self.classes))  # Alg. 1, Init
        if self.evidence is not None:
            self.evidence.follow(features, targets, self.means, rate=1.0)

    @torch.no_grad()
    def begin_epoch(self, epoch: int) -> None:
        self.means.copy_(self.prototypes())
        self.sums.zero_()

    def prototypes(self) -> Tensor:
        """P_k while training: the mean of what was seen of a class since the epoch's start, detached."""
        fallback = self.means
        if self.settings.prototypes_start == "head" and isinstance(self.head, CosineHead):
            fallback = nn.functional.normalize(self.head.weight.detach(), dim=1)
        seen = self.sums.norm(dim=1, keepdim=True) > 0
        return torch.where(seen, nn.functional.normalize(self.sums, dim=1), fallback)

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        s, n = self.settings, len(batch.targets)
        features = batch.encode(torch.cat([batch.first, batch.second]))  # Alg. 1, step 1
        out = self.representation_loss(features, batch.targets)
        known = features[:n] if s.first_view_only else features
        created = self._create(batch, features[:n])  # steps 2 and 3
        prototypes = self.prototypes()
        s_known = losses.max_similarity(known, prototypes)  # step 4
        s_pseudo = losses.max_similarity(created, prototypes) if len(created) else None
        if self.evidence is not None:
            pos, neg = self.evidence(known, created, prototypes)
        else:
            pos = losses.positive_margin(s_known, self.tau, s.m_pos)
            neg = losses.negative_margin(s_pseudo, self.tau, s.m_neg) if s_pseudo is not None else pos.new_zeros(())
        if batch.epoch >= s.hinge_from_epoch:
            out["loss"] = out["loss"] + s.gamma_mm * (pos + neg)  # Eq. 10 and 13
        self._pending = (features[:n].detach(), batch.targets, s_known, s_pseudo)
        return out | {"pos": pos.detach(), "neg": neg.detach(), "created": pos.new_tensor(len(created))}

    def _create(self, batch: Batch, known: Tensor) -> Tensor:
        """Features of created samples, from a batch and its first view's features."""
        none = known[:0]
        # Drawn even when nothing is created, so that runs with and without creation see the same other randomness.
        triggered = batch.rng.random() < self.settings.p_gen
        if self.creator is None or not triggered or batch.epoch < self.settings.creation_from_epoch:
            return none
        rng = np.random.default_rng(batch.rng.integers(2**63))
        model = Model(encode=batch.encode, classify=self.head, pixels=batch.pixels)
        if "features" in self.creator.spaces:
            return self.creator(batch.first, batch.targets, model, known, rng)
        created = self.creator(batch.first, batch.targets, model, known.detach(), rng)
        return batch.encode(created) if len(created) else none

    @torch.no_grad()
    def after_step(self) -> None:
        assert self._pending is not None, "after_step follows loss"
        features, targets, s_known, s_pseudo = self._pending
        if self.evidence is not None:
            self.evidence.follow(features, targets, self.prototypes())  # those from before this batch
        self.sums.index_add_(0, targets, features.to(self.sums.dtype))  # step 5
        if s_pseudo is not None:
            self.threshold.update(s_known, s_pseudo)  # only if the batch created
        self._pending = None
