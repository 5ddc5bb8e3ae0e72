"""Where categories and sightings lie: vectors that can be compared, whatever a dictionary is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from newfound.discovery import BayesianDictionary, CodeDictionary, LeaderDictionary
from newfound.discovery.dictionary import Dictionary

if TYPE_CHECKING:
    from newfound.service.shelf import Shelf

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class Space:
    """The vectors of the dictionary's rows.

    A row of a dictionary that weighs evidence is the mean of a category in a space where all categories spread alike,
    so that distances tell; of the others it is a unit vector (a code as +1 and -1), so that cosines do.

    Attributes:
        vectors: ``[n, d]``.
        parts: ``[n]``, the part that each row belongs to; one may own several.
        evidence: how many samples each row is the mean of, where the dictionary weighs them.
        spread: the variances of category means, where the dictionary has them.
    """

    vectors: Vectors
    parts: NDArray[np.int64]
    evidence: NDArray[np.int64] | None = None
    spread: NDArray[np.float64] | None = None
    coding: object | None = None

    def place(self, readings: Vectors) -> Vectors:
        """Readings as vectors of this space."""
        if self.coding is not None:
            return _signs(self.coding.bits(readings))  # type: ignore[attr-defined]
        return readings if self.spread is not None else _unit(readings)

    def scores(self, rows: Sequence[int]) -> NDArray[np.float64]:
        """How well each of these rows fits each row, ``[rows, n]``: a cosine, or a log ratio.

        The log ratio is that of a sample x at the row's mean: with m samples of mean y in a category, x is normal
        around m s y / (1 + m s) with variance 1 + s / (1 + m s), for category means of variance s; if it is of none,
        it is normal around 0 with variance 1 + s.
        """
        samples = self.vectors[list(rows)].astype(np.float64)
        if self.spread is None or self.evidence is None:
            return samples @ self.vectors.T.astype(np.float64)
        s, m = self.spread, self.evidence[:, None]
        centre, variance = m * s * self.vectors / (1 + m * s), 1 + s / (1 + m * s)
        alone = ((samples**2 / (1 + s)) + np.log(1 + s)).sum(axis=1)
        given = [(((x - centre) ** 2 / variance) + np.log(variance)).sum(axis=1) for x in samples]
        return 0.5 * (alone[:, None] - np.array(given))


def space_of(dictionary: Dictionary) -> Space:
    """The space of a dictionary as it stands; copies, so that the dictionary may go on."""
    if isinstance(dictionary, BayesianDictionary):
        state = dictionary.state()
        samples = np.maximum(state["evidence"], 1)
        vectors = (state["sums"] / samples[:, None]).astype(np.float32)
        return Space(vectors, dictionary.ids.copy(), np.minimum(samples, state["cap"]), state["spread"])
    if isinstance(dictionary, CodeDictionary):
        return Space(_signs(dictionary.codes), dictionary.owners.copy(), coding=dictionary.coding)
    if isinstance(dictionary, LeaderDictionary):
        return Space(_unit(dictionary.leaders.copy()), dictionary.owners.copy())
    return Space(_unit(dictionary.prototypes.copy()), dictionary.ids.copy())  # type: ignore[attr-defined]


def nearest(space: Space, category: int, shelf: Shelf, count: int) -> list[tuple[int, float]]:
    """The categories that a category is most like, and how much, the best first: by their most alike rows."""
    owners = np.array([shelf.owner[part] if part < len(shelf.owner) else -1 for part in space.parts.tolist()], np.int64)
    own = np.flatnonzero(owners == category)
    if not own.size:
        return []
    scores = space.scores(own[:_ROWS].tolist()).max(axis=0)
    best: dict[int, float] = {}
    for row in np.argsort(-scores, kind="stable").tolist():
        other = int(owners[row])
        if other not in (category, -1):
            best.setdefault(other, float(scores[row]))
        if len(best) == count:
            break
    return list(best.items())


def distances(space: Space, parts: Sequence[int], readings: Vectors) -> NDArray[np.float64]:
    """How far readings are from the nearest row of these parts."""
    rows = space.vectors[np.isin(space.parts, list(parts))][:_ROWS].astype(np.float64)
    samples = space.place(readings).astype(np.float64)
    if not len(rows):  # the category has no row of its own any more
        rows = samples.mean(axis=0, keepdims=True)
    squares = (samples**2).sum(axis=1)[:, None] - 2 * samples @ rows.T + (rows**2).sum(axis=1)
    return np.sqrt(np.maximum(squares.min(axis=1), 0.0))


_ROWS = 64  # of a category that are compared; a merged one may have very many


def _unit(rows: Vectors) -> Vectors:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


def _signs(bits: NDArray[np.bool_]) -> Vectors:
    return _unit(bits.astype(np.float32) * 2 - 1)
