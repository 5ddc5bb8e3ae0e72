"""Rehearsal on features that somebody brings along: the draws of `newfound.rehearsal` without an encoder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from newfound._arguments import is_whole, whole
from newfound._few_images import by_cosines
from newfound._scenes import Cast, Scene, judged, shown_classes
from newfound.discovery import Dictionary
from newfound.errors import SettingsError
from newfound.method._deciding import MISCOUNT, DictionaryName
from newfound.method.frozen import Frozen, FrozenSettings
from newfound.rehearsal import MIN_CLASSES, MIN_IMAGES, WORTH, Rehearsal, choose

# In few dimensions log ratios are small, and those of embeddings lie far from zero: the steps are finer around it.
_LOG_RATIOS = np.array([-10.0, -5.0, -2.5, 0.0, 2.5, 5.0, 7.5, 10.0, 15.0, 20.0, 30.0])
_COSINES = np.round(np.arange(0.10, 0.96, 0.04), 2)
_DICTIONARIES: dict[str, DictionaryName] = {"prototypes": "prototypes", "evidence": "bayesian"}
_BETWEEN = (None, 1.0)  # by the number of classes; all the way, for which few dimensions and classes are better


class _Player(Frozen):
    """The frozen method as it is played on any features."""

    def cuts(self) -> NDArray[np.float64]:
        return _LOG_RATIOS if self.settings.dictionary == "bayesian" else _COSINES


class _Scene(Scene):
    """A draw that is scored twice: as rows are decided, and as the same rows are predicted when all have come.

    Categories founded out of odd rows of a known class win more and more of it, which only the second score sees.
    """

    def curve(self, settings: Mapping[str, Any], grid: NDArray[np.float64]) -> NDArray[np.float64]:
        method, known, readings = self.reading(settings)
        return np.array([self._score(method.dictionary(known, cut), readings) for cut in grid.tolist()])

    def _score(self, dictionary: Dictionary, readings: NDArray[np.float32]) -> float:
        decided = dictionary.observe(readings).category
        after = dictionary.predict(readings).category
        after = np.where(after < 0, max(dictionary.ids) + 1, after)  # what fits none is together
        scores = [judged(ids, self.cast.names, self.cast.labels, MISCOUNT) for ids in (decided, after)]
        return sum(scores) / 2


def chosen_method(
    features: NDArray[np.float32], targets: NDArray[np.int64], *, draws: int, random_state: Any, **asked: Any
) -> tuple[Frozen, Rehearsal | None]:
    """The method with its settings, rehearsed if no threshold is given and there is enough to hide.

    Args:
        features, targets, draws: as in `rehearse_features`.
        random_state: draws classes, in any form that scikit-learn takes.
        asked: the other settings of `newfound.sklearn.OnTheFlyClassifier`.

    Raises:
        SettingsError: there is no such dictionary, or a setting that it cannot have.
    """
    if not is_whole(draws) or draws < 1:
        raise SettingsError(f"draws={draws!r}: classes are hidden a whole number of times, 1 or more.")
    whole(asked["dimensions"], "dimensions", 1)
    choices, classes = _choices(**asked), int(targets.max()) + 1
    settings, rehearsal = choices[0], None
    if asked["threshold"] is None:
        seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
        chosen = rehearse_features(features, targets, choices, draws=draws, seed=seed)
        if chosen is not None:
            settings, rehearsal = chosen
            settings = replace(settings, **rehearsal.settings)
        elif settings.dictionary == "prototypes":
            few = by_cosines(settings, classes)
            settings = few if settings.centre else replace(few, centre=False)
    return Frozen(features.shape[1], classes, settings), rehearsal


def _choices(dictionary: str, threshold: float | None, between: Any, **others: Any) -> list[FrozenSettings]:
    """What a rehearsal chooses from; the first is taken where there is none."""
    if dictionary not in ("auto", *_DICTIONARIES):
        raise SettingsError(f"dictionary={dictionary!r}: choose one of auto, {', '.join(_DICTIONARIES)}.")
    if dictionary == "auto" and threshold is not None:
        raise SettingsError(
            f"threshold={threshold} is a log ratio with dictionary='evidence' and a cosine with "
            "dictionary='prototypes': say which."
        )
    cut: Any = "rehearsed" if threshold is None else threshold
    plain = FrozenSettings(within=None, between=None, power=None, reconsider_at=0.0, even_at=0.0, **others)
    names = list(_DICTIONARIES) if dictionary == "auto" else [dictionary]
    spreads = _BETWEEN if between == "rehearsed" else (between,)
    return [
        replace(plain, dictionary=_DICTIONARIES[name], between=spread, threshold=cut)
        for name in names
        for spread in (spreads if name == "evidence" else (None,))
    ]


def rehearse_features(
    features: NDArray[np.float32],
    targets: NDArray[np.int64],
    choices: Sequence[FrozenSettings],
    *,
    draws: int,
    seed: int,
) -> tuple[FrozenSettings, Rehearsal] | None:
    """Which settings discover hidden classes best, and with which threshold; None if there are too few to hide some, or
    too many copies of rows to learn from those that are left.

    Args:
        features: ``[n, D]`` unit rows.
        targets: ``[n]``, the class of each, 0 .. K-1.
        choices: settings to choose from, all on the same draws; a later one has to be clearly better.
        draws: how often half of the classes are hidden.
    """
    classes = int(targets.max()) + 1
    if classes < MIN_CLASSES or len(targets) < MIN_IMAGES * classes:
        return None
    casts = [_cast(features, targets, np.random.default_rng((seed, draw))) for draw in range(draws)]
    best: tuple[FrozenSettings, Rehearsal] | None = None
    for settings in choices:
        try:
            found = choose({1.0: [_scene(cast, settings) for cast in casts]}, {})
        except SettingsError:  # the rows taught in a draw cannot show this one how rows of a class differ
            continue
        if best is None or max(found.scores) >= max(best[1].scores) + WORTH:
            best = settings, found
    return best


def _cast(features: NDArray[np.float32], targets: NDArray[np.int64], rng: np.random.Generator) -> Cast:
    """Half of the classes are taught with half of their rows; the other half of every class is streamed.

    So as many rows of a known as of an unknown class come, and a threshold that loses known ones pays for it.
    """
    names = np.array(shown_classes(targets, rng))
    order = rng.permutation(len(targets))
    order = order[np.argsort(targets[order], kind="stable")]  # class by class, each in random order
    counts = np.bincount(targets)
    place = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    first = np.empty(len(order), bool)
    first[order] = place < np.repeat((counts + 1) // 2, counts)
    taught = np.flatnonzero(first & np.isin(targets, names))
    stream = rng.permutation(np.flatnonzero(~first))
    local = np.searchsorted(names, targets[taught])
    freedom = len(targets) - len(counts)
    return Cast(list(features[taught]), local, names, list(features[stream]), targets[stream], freedom)


def _scene(cast: Cast, settings: FrozenSettings) -> _Scene:
    taught, stream = (torch.from_numpy(np.stack(rows)) for rows in (cast.taught, cast.stream))
    return _Scene(_Player(taught.shape[1], len(cast.names), settings), cast, taught, stream)
