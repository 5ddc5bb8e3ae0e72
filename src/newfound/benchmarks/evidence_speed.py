"""The evidence rows of `newfound bench speed`: a dictionary that weighs evidence against the bare matrix products."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from newfound.benchmarks._timing import SpeedRow, in_turn, spread, timed
from newfound.discovery import BayesianDictionary

_KNOWN, _LABELLED = 100, 20
_VARIANCE = 9.0  # of class means in whitened readings, whose spread within a class is 1
_BLOCK = 256
_CAP = 30  # members beyond which a category's precisions stay the same
_AT_RANDOM = -1550.0  # readings at random found about 6,000 categories at this cut
_TARGET = "at least 0.6 of the two full matrix products of the densities"


@dataclass(frozen=True)
class Case:
    """What a dictionary is taught, how it decides, and a stream for it."""

    sums: NDArray[np.float64]
    readings: NDArray[np.float32]
    threshold: float
    settings: dict[str, Any]

    def dictionary(self, **settings: Any) -> BayesianDictionary:
        """A fresh one; without second thoughts unless ``settings`` ask for them."""
        spread_of_means = np.full(self.readings.shape[1], _VARIANCE)
        counts = np.full(len(self.sums), _LABELLED)
        return BayesianDictionary(spread_of_means, self.sums, counts, self.threshold, **(self.settings | settings))


def at_random(samples: int, dimension: int, threshold: float = _AT_RANDOM) -> Case:
    """Readings that have nothing in common, at a cut where some pass for members of a category."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((_KNOWN, dimension)) * np.sqrt(_VARIANCE)
    readings = rng.standard_normal((samples, dimension), dtype=np.float32) * np.float32(np.sqrt(_VARIANCE + 1))
    return Case(centres * _LABELLED, readings, threshold, {})


def clustered(samples: int, dimension: int, clusters: int) -> Case:
    """Readings of so many classes, of which the first are known, at the cuts of a default run."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((clusters, dimension), dtype=np.float32) * np.float32(np.sqrt(_VARIANCE))
    readings = centres[rng.integers(0, clusters, samples)]
    readings += rng.standard_normal(readings.shape, dtype=np.float32)
    known = centres[: min(_KNOWN, clusters // 2)].astype(np.float64)
    return Case(known * _LABELLED, readings, 10.0, {"alone": -20.0})


def evidence(samples: int = 20_000, dimension: int = 512, repeats: int = 3, threshold: float = _AT_RANDOM) -> SpeedRow:
    """Readings at random, 100 categories growing to about 6,000."""
    return _row("evidence", at_random(samples, dimension, threshold), repeats)


def evidence_clustered(
    samples: int = 20_000, dimension: int = 512, clusters: int = 2_000, repeats: int = 3
) -> SpeedRow:
    """Readings of 2,000 classes, most of which join a category."""
    return _row("evidence-clustered", clustered(samples, dimension, clusters), repeats)


def _row(stage: str, case: Case, repeats: int, part: int = 1_000) -> SpeedRow:
    """Deciding, updates included, against :func:`full_products`; second thoughts are timed apart, once."""
    answers = case.dictionary().observe(case.readings)
    full, own = full_products(case, answers.created), own_products(case, answers.created)
    fast, slow, ratios = in_turn(lambda: case.dictionary().observe(case.readings), full, repeats)
    least = min(timed(own)[1] for _ in range(repeats))
    again = timed(lambda: case.dictionary(reconsider_every=250).observe(case.readings))[1]
    samples, founded, doubtful = len(answers), int(answers.created.sum()), int(answers.doubtful.sum())
    same = answers.category[:part].tolist() == plain_loop(case, part)
    return SpeedRow(
        stage, samples / fast, samples / slow, "samples/s", *spread(ratios), _TARGET,
        f"{samples:,} readings of {case.readings.shape[1]} dimensions, {len(case.sums):,} known categories growing to "
        f"{len(case.sums) + founded:,}: {samples - founded - doubtful:,} joined, {founded:,} founded, {doubtful:,} "
        f"doubtful; the first {part:,} ids equal to the plain loop: {same}; the baseline multiplies readings "
        "with the categories' vectors and squared readings with their precisions, block by block, with as many "
        f"categories as there were by then, and does nothing else; {least / fast:.2f} of the smaller products that "
        f"newfound itself multiplies, with {1 + _CAP} precisions; second thoughts over 5,000 every 250 add "
        f"{1e6 * (again - fast) / samples:.0f} us to {1e6 * fast / samples:.0f} us a reading",
    )  # fmt: skip


def full_products(case: Case, created: NDArray[np.bool_]) -> Callable[[], None]:
    """The two matrix products that the densities of all categories are made of, as one writes them down.

    Readings with a vector a category, and squared readings with its precisions; nothing is added, compared or kept.
    """
    return _products(case, created, None)


def own_products(case: Case, created: NDArray[np.bool_]) -> Callable[[], None]:
    """What the dictionary itself multiplies: precisions depend on the number of members alone, 0 to the cap."""
    return _products(case, created, 1 + _CAP)


def _products(case: Case, created: NDArray[np.bool_], precisions: int | None) -> Callable[[], None]:
    """Products block by block, with as many categories as there were by then, and as many precisions or so many."""
    vectors = np.concatenate([case.sums.astype(np.float32) / _LABELLED, case.readings[created]])
    squares = np.square(vectors) if precisions is None else np.ones((precisions, vectors.shape[1]), np.float32)
    sizes = (len(case.sums) + np.concatenate([[0], np.cumsum(created)]))[:-1:_BLOCK].tolist()

    def multiply() -> None:
        for number, size in enumerate(sizes):
            block = case.readings[number * _BLOCK : (number + 1) * _BLOCK]
            _ = block @ vectors[:size].T
            _ = np.square(block) @ squares[: precisions or size].T

    return multiply


def plain_loop(case: Case, part: int) -> list[int]:
    """The ids of the first readings by the densities as one writes them down, one reading at a time.

    It knows no doubt: a reading that only a dictionary with candidates could answer has -1.
    """
    sums, counts, ids = case.sums.copy(), np.full(len(case.sums), float(_LABELLED)), []
    for reading in case.readings[:part].astype(np.float64):
        n = np.minimum(counts, _CAP)[:, None]
        means = _VARIANCE * sums * (n / counts[:, None]) / (n * _VARIANCE + 1)
        variances = 1 + _VARIANCE / (n * _VARIANCE + 1)
        fits = -np.log(variances) - (reading - means) ** 2 / variances
        never = -np.log(1 + _VARIANCE) - reading**2 / (1 + _VARIANCE)
        ratios = 0.5 * (fits - never).sum(axis=1)
        best = int(ratios.argmax())
        if ratios[best] < case.settings.get("alone", case.threshold):
            best = len(sums)
            sums, counts = np.concatenate([sums, reading[None]]), np.append(counts, 1.0)
        elif ratios[best] < case.threshold:
            best = -1
        elif best >= len(case.sums):  # known categories do not learn
            sums[best] += reading
            counts[best] += 1
        ids.append(best)
    return ids
