"""Do probabilities mean what they say? Which answers are right, what was new, and how often it comes true."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from newfound.errors import DataError, SettingsError
from newfound.evaluation.clustering import Mask, Table, match
from newfound.evaluation.codes import Codes, distinct_values, factorise, known_classes, own_class


@dataclass(frozen=True)
class Reliability:
    """The reliability curve of some probabilities: for each bin of equal width, from 0 up, NaN where it is empty."""

    count: NDArray[np.int64]
    confidence: NDArray[np.float64]  # the mean probability in the bin
    accuracy: NDArray[np.float64]  # the share that is right
    ece: float  # expected calibration error: the mean distance of the two, weighted by count
    brier: float  # mean square of probability minus outcome


def reliability(probability: ArrayLike, right: ArrayLike, bins: int = 10) -> Reliability:
    """How often answers of a given probability are right.

    Raises:
        DataError: no samples, arrays of different lengths, or a probability outside [0, 1].
        SettingsError: fewer than one bin.
    """
    p, hit = np.asarray(probability, np.float64), np.asarray(right, bool)
    if bins < 1:
        raise SettingsError(f"bins is {bins}; a curve needs at least one.")
    if p.shape != hit.shape or p.ndim != 1 or not p.size:
        raise DataError(f"{p.shape} probabilities and {hit.shape} outcomes: each sample needs one of both.")
    if not ((p >= 0) & (p <= 1)).all():
        raise DataError(f"a probability lies in [0, 1]; these go from {p.min()} to {p.max()}.")
    at = np.minimum((p * bins).astype(np.int64), bins - 1)
    count = np.bincount(at, minlength=bins)
    with np.errstate(invalid="ignore"):
        confidence = np.bincount(at, p, bins) / count
        accuracy = np.bincount(at, hit, bins) / count
    gaps = np.abs(np.bincount(at, p - hit, bins))
    return Reliability(count, confidence, accuracy, float(gaps.sum() / len(p)), float(np.square(p - hit).mean()))


def named_right(
    labels: Iterable[Hashable], predictions: Iterable[Hashable], known: Iterable[Hashable], discovered: ArrayLike
) -> Mask:
    """Which samples the Named protocol of :func:`newfound.evaluation.score` counts as right; arguments are its own.

    Raises:
        DataError: arrays of different lengths, or labels that `score` would refuse.
    """
    class_codes, classes, cluster_codes, values, marked = _numbered(labels, predictions, discovered)
    old = known_classes(classes, distinct_values(known, "known"))[class_codes]
    right: Mask = old & ~marked & (own_class(values, classes)[cluster_codes] == class_codes)
    new = np.flatnonzero(~old & marked)
    if new.size:
        table = Table.of(cluster_codes[new], class_codes[new], len(values), len(classes))
        chosen = np.full(len(values), -1, np.int64)
        cells = match(table, table.count)
        chosen[table.cluster[cells]] = table.klass[cells]
        right[new] = chosen[cluster_codes[new]] == class_codes[new]
    return right


def unheard_of(
    labels: Iterable[Hashable], predictions: Iterable[Hashable], known: Iterable[Hashable], discovered: ArrayLike
) -> Mask:
    """Which samples were of a class that no category stood for when they came; arguments as in :func:`named_right`.

    Samples are in the order of the stream. A discovered category stands for the class that most of its samples have,
    from the one after its founder on; known ones stand for their own.

    Raises:
        DataError: arrays of different lengths, or labels that `score` would refuse.
    """
    class_codes, classes, cluster_codes, values, marked = _numbered(labels, predictions, discovered)
    places, found = np.arange(len(class_codes)), np.flatnonzero(marked)
    since = np.full(len(classes), len(places))  # the sample that founded the first category of a class
    since[known_classes(classes, distinct_values(known, "known"))] = -1
    if found.size:
        table = Table.of(cluster_codes[found], class_codes[found], len(values), len(classes))
        order = np.lexsort((table.klass, -table.count, table.cluster))
        clusters, first = np.unique(table.cluster[order], return_index=True)
        founders = np.full(len(values), len(places))
        np.minimum.at(founders, cluster_codes[found], found)
        np.minimum.at(since, table.klass[order[first]], founders[clusters])
    new: Mask = places <= since[class_codes]
    return new


def _numbered(
    labels: Iterable[Hashable], predictions: Iterable[Hashable], discovered: ArrayLike
) -> tuple[Codes, list[Any], Codes, list[Any], Mask]:
    """The code of each label and the classes, the code of each prediction and what is predicted, and the marks."""
    class_codes, classes = factorise(labels, "labels")
    cluster_codes, values = factorise(predictions, "predictions")
    marked = np.asarray(discovered, bool)
    if not len(class_codes) == len(cluster_codes) == len(marked):
        raise DataError("labels, predictions and discovered need one value for each sample.")
    return class_codes, classes, cluster_codes, values, marked
