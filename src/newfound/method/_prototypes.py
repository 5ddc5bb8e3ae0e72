"""Methods that read a category off a feature by a dictionary of prototypes or Gaussians: LTC and all that share it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from torch import Tensor

from newfound.discovery import Dictionary
from newfound.errors import SettingsError
from newfound.method._base import Known, Method, Settings
from newfound.method._deciding import DECIDING, ByEvidence, Deciding, DictionaryName

_COSINE_ONLY = "adaptive"  # a threshold that is learnt as a cosine


@dataclass(frozen=True)
class PrototypeSettings(Settings):
    """threshold: "adaptive" (the value learnt while training, a cosine), "rehearsed" (chosen by rehearsing discovery on
        held-out known classes) or a number: a cosine, or with dictionary="bayesian" a log ratio.
    share: how much of what the tail has learnt is kept when training is over: 1 keeps the learnt weights, 0 the
        pretrained ones, between lies their mean. "rehearsed": chosen together with a rehearsed threshold, and 1
        where the threshold is not rehearsed.
    dictionary: "bayesian" weighs evidence (`newfound.discovery.BayesianDictionary`), "prototypes" compares cosines with
        one threshold, as the paper does. "online", "three-way" and "gaussian" are rules of later peers on the same
        prototypes (`newfound.discovery.RuleDictionary`).

    With cosines
        centre: see features from the labelled set's mean, which takes away what all images share; a number: from that
            share of it, as the mean of few classes has much of what tells those from others.
        update: "fixed" prototypes as in the paper, or "running" means of what a discovered category has seen.
        merge_every: merge nearly equal discovered prototypes every so many samples, as the released code does.
    With dictionary="bayesian"
        dimensions, within, between, inflate, power: of the model (`newfound.discovery.TwoCovariance`); `between` can
            be "rehearsed". None for it or `within` goes by the number of classes and images. A rehearsal of a method
            that learns measures `inflate` too. With `power` None features without negative numbers are rooted.
        alone, reconsider_every, reconsider_at, memory, merge_at, learn_known, concentration, discount: of the
            dictionary; `reconsider_at` can be "rehearsed".
        evidence_temperature: of the dictionary's probabilities (losses have temperatures of their own).
        even_at: of the dictionary: the log ratio at which a new category is as probable as the best one.
        new_slope, new_shift: of the dictionary: how the log odds of a new category are straightened. "rehearsed" is 1
            and 0 where nothing is rehearsed.
    """

    threshold: float | Literal["adaptive", "rehearsed"] = "rehearsed"
    share: float | Literal["rehearsed"] = 1.0
    dictionary: DictionaryName = "prototypes"
    centre: bool | float = False
    update: Literal["fixed", "running"] = "running"
    merge_every: int | None = None
    dimensions: int = 512
    within: float | None = 0.5
    between: float | Literal["rehearsed"] | None = "rehearsed"
    inflate: float = 1.0
    power: float | None = 1.0
    alone: float | None = -20.0
    reconsider_every: int | None = 250
    reconsider_at: float | Literal["rehearsed"] = "rehearsed"
    memory: int = 5000
    merge_at: float | None = None
    learn_known: bool = False
    evidence_temperature: float | Literal["rehearsed"] = "rehearsed"
    even_at: float | None = None
    new_slope: float | Literal["rehearsed"] = "rehearsed"
    new_shift: float | Literal["rehearsed"] = "rehearsed"
    concentration: float | None = None
    discount: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dictionary not in get_args(DictionaryName):
            names = ", ".join(get_args(DictionaryName))
            raise SettingsError(f"dictionary={self.dictionary!r}: choose one of {names}.")
        if self.dictionary == "bayesian" and self.threshold == _COSINE_ONLY:
            raise SettingsError(
                'dictionary="bayesian" with threshold="adaptive": that threshold is learnt on cosines. Take '
                'dictionary="prototypes", or threshold="rehearsed" or a number.'
            )
        if self.update not in ("fixed", "running"):
            raise SettingsError(f'update={self.update!r}: choose "fixed" or "running".')
        if self.merge_every is not None and self.merge_every < 1:
            raise SettingsError(f"merge_every={self.merge_every}: a number of samples from 1 up, or None for never.")
        if self.centre and self.threshold == _COSINE_ONLY:
            raise SettingsError(
                'centre=True with threshold="adaptive": that threshold is learnt on plain cosines. Take centre=False, '
                'or threshold="rehearsed" or a number.'
            )
        if isinstance(self.threshold, str) and self.threshold not in ("adaptive", "rehearsed"):
            raise SettingsError(f'threshold={self.threshold!r}: choose "adaptive", "rehearsed" or a number.')
        for name in ("share", "between", "reconsider_at", "evidence_temperature", "new_slope", "new_shift"):
            value = getattr(self, name)
            if isinstance(value, str) and value != "rehearsed":
                raise SettingsError(f'{name}={value!r}: choose "rehearsed" or a number.')
        if not 0 <= self.centre <= 1:
            raise SettingsError(f"centre={self.centre}: true, false, or a share of the mean in [0, 1].")
        if not isinstance(self.share, str) and not 0 <= self.share <= 1:
            raise SettingsError(f"share={self.share}: it must lie in [0, 1].")
        if not isinstance(self.evidence_temperature, str) and not self.evidence_temperature > 0:
            raise SettingsError(f"evidence_temperature={self.evidence_temperature}: it must be above zero.")
        ByEvidence(self).check()

    def _check_threshold(self) -> None:
        if self.dictionary != "bayesian":
            super()._check_threshold()
        elif not isinstance(self.threshold, str) and not np.isfinite(self.threshold):
            raise SettingsError(f"threshold={self.threshold}: a log ratio is a finite number.")


class PrototypeMethod(Method):
    """What a known class looks like on average, and a dictionary that grows from it at test time (Sec. 3.1)."""

    settings_class = PrototypeSettings
    settings: PrototypeSettings

    @property
    def deciding(self) -> Deciding:
        return DECIDING[self.settings.dictionary](self.settings)

    def teach(self, features: Tensor, targets: Tensor) -> dict[str, np.ndarray]:
        return self.deciding.teach(features, targets, self.freedom)

    def read(self, features: Tensor, known: Known) -> Tensor:
        return self.deciding.read(features, known)

    def dictionary(self, known: Known, threshold: float) -> Dictionary:
        return self.deciding.dictionary(known, threshold)

    def cuts(self) -> np.ndarray:
        return self.deciding.cuts()

    @property
    def miscount(self) -> float:  # type: ignore[override]
        return self.deciding.miscount

    def measured(self, taught: Tensor, targets: Tensor, held_out: Tensor, classes: np.ndarray) -> dict[str, float]:
        return self.deciding.measured(taught, targets, held_out, classes) if self.settings.epochs else {}

    def trials(self) -> dict[str, tuple[float, ...]]:
        return self.deciding.trials()

    def own_cut(self, features: Tensor | None = None, targets: Tensor | None = None) -> tuple[float, str]:
        if self.tau is None or self.settings.centre or self.settings.dictionary == "bayesian":
            return self.deciding.own_cut(features, targets)
        if getattr(self, "creator", None) is None:
            return self.tau, "fixed: nothing is created, so the threshold stays at tau_init"
        return self.tau, "adaptive: learnt while training (Eq. 11 and 12)"
