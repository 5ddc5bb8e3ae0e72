"""The ways to read a category off a feature: what each one is taught, what it is given, and what a rehearsal tries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
import torch
from torch import Tensor

from newfound.discovery import (
    BayesianDictionary,
    Dictionary,
    GaussianExpansion,
    OnlinePrototypes,
    PrototypeDictionary,
    RuleDictionary,
    ThreeWay,
    TwoCovariance,
    class_sums,
    scatter,
    typical_spread,
)
from newfound.discovery.two_covariance import check_model
from newfound.features import seen_from
from newfound.method._base import Known, class_means

if TYPE_CHECKING:
    from newfound.method._prototypes import PrototypeSettings

DictionaryName = Literal["bayesian", "prototypes", "online", "three-way", "gaussian"]
_COSINES = np.round(np.arange(0.10, 0.96, 0.02), 2)
_LOG_RATIOS = np.arange(-10.0, 31.0, 5.0)
# What a rehearsal tries for its score; where there is none, the first value is taken.
_REHEARSED: dict[str, tuple[float, ...]] = {"between": (0.15, 0.1, 0.25), "reconsider_at": (0.0, -30.0, -10.0, 5.0)}
_DIRECTIONS = 50  # for a degree of temperature where nothing is rehearsed: with 512, what rehearsals come to
MISCOUNT = 0.05  # off a rehearsal's score for each factor e of categories
_LOG_RATIO = 10.0  # what rehearsals come to
_COSINE = 0.7  # the paper's tau_init
_REACH, _CENTRED_COSINE = 0.6, 0.3  # of cosines seen from the mean: see `ByCosine.own_cut`
_HELD_OUT = 100  # images that tell how close those of a class are


class Deciding(Protocol):
    """One way to read a category off a feature."""

    def teach(self, features: Tensor, targets: Tensor, freedom: int | None = None) -> dict[str, np.ndarray]:
        """What the dictionary shall know, from the labelled set's unit features and classes.

        Args:
            freedom: samples less classes of the labelled set, where these are a part of it that plays the whole.
        """

    def read(self, features: Tensor, known: Known) -> Tensor:
        """What the dictionary is given for unit features."""

    def dictionary(self, known: Known, threshold: float) -> Dictionary:
        """A fresh dictionary that knows what was taught."""

    def cuts(self) -> np.ndarray:
        """The thresholds that a rehearsal tries, ascending."""

    def own_cut(self, features: Tensor | None = None, targets: Tensor | None = None) -> tuple[float, str]:
        """The threshold where nothing is rehearsed or learnt, and why; the labelled set's features may say more."""

    @property
    def miscount(self) -> float:
        """What a rehearsal takes off the score for each factor e of categories too many or too few."""

    def measured(self, taught: Tensor, targets: Tensor, held_out: Tensor, classes: np.ndarray) -> dict[str, float]:
        """Settings that a rehearsal measures on features of images it learnt and of others of the same classes."""

    def trials(self) -> dict[str, tuple[float, ...]]:
        """Settings besides the threshold that a rehearsal chooses, with their values; it starts from the first."""


@dataclass(frozen=True)
class ByCosine:
    """The nearest prototype by cosine: LTC's dictionary, and the rules of its later peers on the same prototypes."""

    settings: PrototypeSettings

    def teach(self, features: Tensor, targets: Tensor, freedom: int | None = None) -> dict[str, np.ndarray]:
        known = {}
        if self.settings.centre:
            centre = float(self.settings.centre) * features.mean(dim=0)
            known["centre"], features = centre.cpu().numpy(), seen_from(centre, features)
        if self.settings.dictionary == "gaussian":
            known["spread"] = np.array(typical_spread(features.cpu().numpy(), targets.cpu().numpy()))
        classes = int(targets.max()) + 1
        return known | {"prototypes": class_means(features, targets, classes).cpu().numpy()}

    def read(self, features: Tensor, known: Known) -> Tensor:
        if "centre" not in known:
            return features
        return seen_from(torch.from_numpy(known["centre"]).to(features), features)

    def dictionary(self, known: Known, threshold: float) -> Dictionary:
        s, rows = self.settings, known["prototypes"]
        if s.dictionary == "prototypes":
            return PrototypeDictionary(rows, threshold=threshold, update=s.update, merge_every=s.merge_every)
        if s.dictionary == "gaussian":
            return RuleDictionary(rows, GaussianExpansion(float(known["spread"])), threshold)
        return RuleDictionary(rows, OnlinePrototypes() if s.dictionary == "online" else ThreeWay(), threshold)

    def cuts(self) -> np.ndarray:
        return _COSINES

    def own_cut(self, features: Tensor | None = None, targets: Tensor | None = None) -> tuple[float, str]:
        """Seen from the mean, a share of how close images are to others of their class: how close that is differs."""
        if self.settings.centre and features is not None and targets is not None:
            close = _closeness(features.float().cpu(), targets.cpu(), float(self.settings.centre))
            if close is not None:
                why = f"{_REACH:g} of the cosine of labelled images with others of their class"
                return max(0.0, _REACH * close), why
        if self.settings.centre:
            return _CENTRED_COSINE, "fixed: what is usually good on centred features"
        return _COSINE, "fixed: this method learns no threshold, so the paper's tau_init is taken"

    @property
    def miscount(self) -> float:
        return 0.0

    def measured(self, taught: Tensor, targets: Tensor, held_out: Tensor, classes: np.ndarray) -> dict[str, float]:
        return {}

    def trials(self) -> dict[str, tuple[float, ...]]:
        return {}


@dataclass(frozen=True)
class ByEvidence:
    """The category that explains a feature best under the two-covariance model (docs/discovery.md)."""

    settings: PrototypeSettings

    def check(self) -> None:
        """Raise SettingsError for what the model or the dictionary would refuse when all is learnt."""
        s = self.settings
        check_model(s.dimensions, s.within, self._number("between"), s.inflate, s.power)
        self.dictionary({"spread": np.ones(1), "sums": np.empty((0, 1)), "counts": np.empty(0, np.int64)}, 0.0)

    def teach(self, features: Tensor, targets: Tensor, freedom: int | None = None) -> dict[str, np.ndarray]:
        s, rows, classes = self.settings, features.float().cpu().numpy(), targets.cpu().numpy()
        model = TwoCovariance.fit(
            rows, classes, dimensions=s.dimensions, within=s.within, between=self._number("between"), inflate=s.inflate,
            power=s.power, freedom=freedom,
        )  # fmt: skip
        sums, counts = class_sums(model.read(rows), classes)
        return model.arrays() | {"sums": sums, "counts": counts}

    def read(self, features: Tensor, known: Known) -> Tensor:
        # On the CPU: a reading shall not depend on the device that encoded the image.
        return torch.from_numpy(TwoCovariance.from_arrays(known).read(features.float().cpu().numpy()))

    def dictionary(self, known: Known, threshold: float) -> Dictionary:
        s = self.settings
        return BayesianDictionary(
            known["spread"], known["sums"], known["counts"], threshold,
            learn_known=s.learn_known, alone=s.alone,
            temperature=self._temperature(len(known["spread"])), even_at=s.even_at,
            new_slope=1.0 if isinstance(s.new_slope, str) else s.new_slope,
            new_shift=0.0 if isinstance(s.new_shift, str) else s.new_shift,
            concentration=s.concentration, discount=s.discount,
            reconsider_every=s.reconsider_every, reconsider_at=min(self._number("reconsider_at"), threshold),
            memory=s.memory, merge_at=s.merge_at,
        )  # fmt: skip

    def cuts(self) -> np.ndarray:
        return _LOG_RATIOS

    def own_cut(self, features: Tensor | None = None, targets: Tensor | None = None) -> tuple[float, str]:
        return _LOG_RATIO, "fixed: what rehearsals come to"

    @property
    def miscount(self) -> float:
        return MISCOUNT

    def measured(self, taught: Tensor, targets: Tensor, held_out: Tensor, classes: np.ndarray) -> dict[str, float]:
        """`inflate`: how much wider than the images that were learnt those lie that were not."""
        if self.settings.inflate != 1.0:
            return {}  # it was given
        s, rows, labels = self.settings, taught.float().cpu().numpy(), targets.cpu().numpy()
        model = TwoCovariance.fit(rows, labels, dimensions=s.dimensions, within=s.within, power=s.power)
        readings = model.read(rows)
        sums, counts = class_sums(readings, labels)
        learnt = scatter(readings, labels, sums, counts, held_out=False)
        other = scatter(model.read(held_out), classes, sums, counts, held_out=True) if len(classes) else learnt
        return {"inflate": max(1.0, other / learnt)} if learnt > 0 else {}

    def trials(self) -> dict[str, tuple[float, ...]]:
        choices = {name: values for name, values in _REHEARSED.items() if getattr(self.settings, name) == "rehearsed"}
        if self.settings.reconsider_every is None:
            choices.pop("reconsider_at", None)
        return choices

    def _temperature(self, directions: int) -> float:
        value = self.settings.evidence_temperature
        return max(1.0, directions / _DIRECTIONS) if isinstance(value, str) else value

    def _number(self, name: str) -> Any:
        value = getattr(self.settings, name)
        return _REHEARSED[name][0] if value == "rehearsed" else value


DECIDING: dict[DictionaryName, Callable[[PrototypeSettings], Deciding]] = {
    "bayesian": ByEvidence, "prototypes": ByCosine, "online": ByCosine, "three-way": ByCosine, "gaussian": ByCosine,
}  # fmt: skip


def _closeness(features: Tensor, targets: Tensor, share: float) -> float | None:
    """The mean cosine of an image with the mean of others of its class, seen from a share of the mean without it.

    None where no class has two images.
    """
    several = torch.nonzero(torch.bincount(targets)[targets] > 1)[:, 0]
    held_out = several[torch.linspace(0, len(several) - 1, min(_HELD_OUT, len(several))).long()]
    found = []
    for one in held_out.tolist():
        others = torch.arange(len(features)) != one
        centre = share * features[others].mean(dim=0)
        like = seen_from(centre, features[others & (targets == targets[one])]).mean(dim=0)
        found.append(torch.cosine_similarity(like, features[one] - centre, dim=0).item())
    return float(np.mean(found)) if found else None
