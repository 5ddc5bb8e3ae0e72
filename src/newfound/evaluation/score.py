"""Score the predictions for a labelled stream: Strict, Greedy and Named accuracy, NMI, ARI and AUROC."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from newfound.errors import DataError, SettingsError
from newfound.evaluation.clustering import (
    Counts,
    Mask,
    Table,
    adjusted_rand_index,
    area_under_roc,
    match,
    normalised_mutual_information,
)
from newfound.evaluation.codes import Codes, as_array, distinct_values, factorise, known_classes, members, own_class


@dataclass(frozen=True)
class Accuracy:
    """Fractions of samples that are right: of all, of known classes (old), of unknown ones (new).

    NaN where there are no such samples.
    """

    all: float
    old: float
    new: float


@dataclass(frozen=True)
class Scores:
    """What :func:`score` found; its docstring defines each figure."""

    samples: int
    categories: int
    discovered: int
    strict: Accuracy
    greedy: Accuracy
    named: Accuracy | None
    nmi: float
    ari: float
    auroc: float | None

    def as_dict(self) -> dict[str, Any]:
        """The figures as nested dicts, ready for JSON: None instead of NaN."""
        figures: dict[str, Any] = _without_nan(asdict(self))
        return figures


def score(
    labels: Iterable[Hashable],
    predictions: Iterable[Hashable],
    known: Iterable[Hashable],
    discovered: ArrayLike | None = None,
    max_clusters: int | None = None,
    novelty: ArrayLike | None = None,
) -> Scores:
    """Compare the predictions for a stream with its labels.

    >>> r = score(["cat", "cat", "owl", "owl"], ["cat", "cat", 7, 7], known=["cat"])
    >>> r.named.old, r.named.new, r.categories
    (1.0, 1.0, 2)

    Labels and predictions may be of any hashable kind but None and NaN, which name nothing. Samples with equal
    predictions are a cluster. A sample is old if its label is in `known`, else new.

    discovered
        Booleans that mark the predictions which name a discovered category. A marked prediction never means
        the label of the same value: the two are different clusters. Without it, every prediction that is not
        a known label is discovered.
    max_clusters
        Keep only this many clusters for Strict and Greedy: the largest of the whole stream, of equal ones the
        first seen. Samples in the others count as wrong. Classes are never cut, and no other figure uses it.
    novelty
        A number for each sample, higher for more novel. Only the AUROC uses it.

    The protocols, each read for all, old and new samples:

    strict
        One Hungarian matching of clusters and classes over all samples; a sample is right if its cluster is
        matched with its class. Of several best matchings, the one that is right on the most old samples. So
        no figure depends on the order of the stream or on the values of the ids, but for the clusters that
        `max_clusters` keeps of equal ones.
    greedy
        One matching over the old samples and another over the new ones: a cluster may serve in both.
    named
        An old sample is right if its prediction is its own label, not marked as discovered. A new sample is
        right if it is in a discovered category that a Hungarian matching of discovered categories and unknown
        classes, over the new samples, gives to its class. So whatever discovers nothing has 0 for new. None
        if the predictions do not use labels: `discovered` is not given, there are old samples, and no
        prediction is a known label.

    Further figures: `categories`, the number of clusters, and `discovered`, how many of them are discovered,
    both with those of a single sample; `nmi` and `ari`, how clusters and classes agree; `auroc`, how well
    `novelty` tells new samples from old ones (None without it, or without samples of both kinds).

    Raises :class:`DataError` for arrays that are empty, of different lengths, of the wrong kind or with None
    or NaN, or if all of `known` is of another type than the labels, and :class:`SettingsError` for a
    `max_clusters` that is not a positive integer.
    """
    class_codes, classes = factorise(labels, "labels")
    prediction_codes, values = factorise(predictions, "predictions")
    samples = len(class_codes)
    _check_length(prediction_codes, "predictions", samples)
    if not samples:
        raise DataError("There is nothing to score: labels and predictions are empty.")
    known_labels = distinct_values(known, "known")

    if discovered is None:
        cluster_codes = prediction_codes
        is_discovered = ~members(values, known_labels)
    else:
        marks = _check_marks(discovered, samples)
        cluster_codes, pairs = factorise(2 * prediction_codes + marks, "predictions")
        values = [values[pair // 2] for pair in pairs]
        is_discovered = np.array([pair % 2 == 1 for pair in pairs])

    table = Table.of(cluster_codes, class_codes, len(values), len(classes))
    is_old = known_classes(classes, known_labels)
    old_samples = int(table.class_sizes()[is_old].sum())
    sizes = (old_samples, samples - old_samples)
    kept = table if max_clusters is None else _keep_largest(table, cluster_codes, max_clusters)

    named = None
    if discovered is not None or not old_samples or not is_discovered.all():
        named = _named(table, is_old, is_discovered, own_class(values, classes), sizes)
    auroc = None
    if novelty is not None:
        auroc = area_under_roc(_check_novelty(novelty, samples), ~is_old[class_codes])
    return Scores(
        samples=samples,
        categories=len(values),
        discovered=int(is_discovered.sum()),
        strict=_strict(kept, is_old, sizes),
        greedy=_greedy(kept, is_old, sizes),
        named=named,
        nmi=normalised_mutual_information(table),
        ari=adjusted_rand_index(table),
        auroc=auroc,
    )


def _strict(table: Table, is_old: Mask, sizes: tuple[int, int]) -> Accuracy:
    old = is_old[table.klass]
    # One sample more outweighs all preference for old ones: the total stays the best there is.
    right = match(table, table.count * (sum(sizes) + 1) + table.count * old)
    return _accuracy(table.count[right & old], table.count[right & ~old], sizes)


def _greedy(table: Table, is_old: Mask, sizes: tuple[int, int]) -> Accuracy:
    old = is_old[table.klass]
    return _accuracy(_matched(table.where(old)), _matched(table.where(~old)), sizes)


def _named(table: Table, is_old: Mask, is_discovered: Mask, own_class: Codes, sizes: tuple[int, int]) -> Accuracy:
    old, found = is_old[table.klass], is_discovered[table.cluster]
    called_by_name = old & ~found & (own_class[table.cluster] == table.klass)
    return _accuracy(table.count[called_by_name], _matched(table.where(~old & found)), sizes)


def _matched(table: Table) -> Counts:
    return table.count[match(table, table.count)]


def _accuracy(right_old: Counts, right_new: Counts, sizes: tuple[int, int]) -> Accuracy:
    old, new = int(right_old.sum()), int(right_new.sum())
    return Accuracy(
        all=(old + new) / sum(sizes),
        old=old / sizes[0] if sizes[0] else math.nan,
        new=new / sizes[1] if sizes[1] else math.nan,
    )


def _keep_largest(table: Table, cluster_codes: Codes, max_clusters: int) -> Table:
    if isinstance(max_clusters, bool) or not isinstance(max_clusters, int | np.integer) or max_clusters < 1:
        raise SettingsError(f"max_clusters is {max_clusters!r}; give a positive integer, or None for all.")
    first_seen = np.empty(table.clusters, dtype=np.int64)
    # Written from the end of the stream, so that the earliest position is the one that stays.
    first_seen[cluster_codes[::-1]] = np.arange(len(cluster_codes))[::-1]
    keep = np.zeros(table.clusters, dtype=bool)
    keep[np.lexsort((first_seen, -table.cluster_sizes()))[:max_clusters]] = True
    return table.where(keep[table.cluster])


def _check_length(array: NDArray[Any], what: str, samples: int) -> None:
    if len(array) != samples:
        raise DataError(f"{what} has {len(array)} values for {samples} labels; each sample needs one.")


def _check_marks(discovered: ArrayLike, samples: int) -> Mask:
    marks = as_array(discovered)
    if marks.dtype != np.bool_ or marks.ndim != 1:
        found = f"shape {marks.shape} and type {marks.dtype}"
        raise DataError(f"discovered has {found}; it needs one True or False for each sample.")
    _check_length(marks, "discovered", samples)
    return marks


def _check_novelty(novelty: ArrayLike, samples: int) -> NDArray[Any]:
    scores = as_array(novelty)
    if scores.dtype.kind not in "biuf" or scores.ndim != 1:
        found = f"shape {scores.shape} and type {scores.dtype}"
        raise DataError(f"novelty has {found}; it needs one number for each sample.")
    _check_length(scores, "novelty", samples)
    missing = np.flatnonzero(np.isnan(scores))
    if missing.size:
        raise DataError(f"novelty[{missing[0]}] is NaN; a sample without a score cannot be ranked.")
    return scores


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nan(part) for name, part in value.items()}
    return None if isinstance(value, float) and math.isnan(value) else value
