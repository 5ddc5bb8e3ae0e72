"""Methods that read a category off the nearest prototype: LTC and all that share its dictionary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from newfound.discovery import Dictionary, PrototypeDictionary
from newfound.errors import SettingsError
from newfound.features import seen_from
from newfound.method._base import Known, Method, Settings, class_means

_GRID = np.round(np.arange(0.10, 0.96, 0.02), 2)
_UNLEARNT, _UNLEARNT_CENTRED = 0.7, 0.4  # the paper's tau_init; what rehearsals come to on centred features


@dataclass(frozen=True)
class PrototypeSettings(Settings):
    """threshold: "adaptive" (the value learnt while training), "rehearsed" (chosen by rehearsing discovery on held-out
        known classes) or a number.
    share: how much of what the tail has learnt is kept when training is over: 1 keeps the learnt weights, 0 the
        pretrained ones, between lies their mean. "rehearsed": chosen together with a rehearsed threshold, and 1
        where the threshold is not rehearsed.
    centre: see features from the labelled set's mean, which takes away what all images share.
    update: "fixed" prototypes as in the paper, or "running" means of what a discovered category has seen.
    merge_every: merge nearly equal discovered prototypes every so many samples, as the released code does.
    """

    threshold: float | Literal["adaptive", "rehearsed"] = "rehearsed"
    share: float | Literal["rehearsed"] = 1.0
    centre: bool = False
    update: Literal["fixed", "running"] = "running"
    merge_every: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.update not in ("fixed", "running"):
            raise SettingsError(f'update={self.update!r}: choose "fixed" or "running".')
        if self.merge_every is not None and self.merge_every < 1:
            raise SettingsError(f"merge_every={self.merge_every}: a number of samples from 1 up, or None for never.")
        if self.centre and self.threshold == "adaptive":
            raise SettingsError(
                'centre=True with threshold="adaptive": that threshold is learnt on plain cosines. Take centre=False, '
                'or threshold="rehearsed" or a number.'
            )
        if isinstance(self.threshold, str) and self.threshold not in ("adaptive", "rehearsed"):
            raise SettingsError(f'threshold={self.threshold!r}: choose "adaptive", "rehearsed" or a number.')
        if isinstance(self.share, str):
            if self.share != "rehearsed":
                raise SettingsError(f'share={self.share!r}: choose "rehearsed" or a number.')
        elif not 0 <= self.share <= 1:
            raise SettingsError(f"share={self.share}: it must lie in [0, 1].")


class PrototypeMethod(Method):
    """One prototype a known class, and a dynamic dictionary of them at test time (Sec. 3.1)."""

    settings_class = PrototypeSettings
    settings: PrototypeSettings

    def teach(self, features: Tensor, targets: Tensor) -> dict[str, np.ndarray]:
        known = {}
        if self.settings.centre:
            centre = features.mean(dim=0)
            known["centre"], features = centre.cpu().numpy(), seen_from(centre, features)
        classes = int(targets.max()) + 1
        return known | {"prototypes": class_means(features, targets, classes).cpu().numpy()}

    def read(self, features: Tensor, known: Known) -> Tensor:
        if "centre" not in known:
            return features
        return seen_from(torch.from_numpy(known["centre"]).to(features), features)

    def dictionary(self, known: Known, threshold: float) -> Dictionary:
        return PrototypeDictionary(
            known["prototypes"], threshold=threshold, update=self.settings.update, merge_every=self.settings.merge_every
        )

    def cuts(self) -> np.ndarray:
        return _GRID

    def own_cut(self) -> tuple[float, str]:
        if self.settings.centre:
            return _UNLEARNT_CENTRED, "fixed: what rehearsals come to on centred features"
        if self.tau is None:
            return _UNLEARNT, "fixed: this method learns no threshold, so the paper's tau_init is taken"
        if getattr(self, "creator", None) is None:
            return self.tau, "fixed: nothing is created, so the threshold stays at tau_init"
        return self.tau, "adaptive: learnt while training (Eq. 11 and 12)"
