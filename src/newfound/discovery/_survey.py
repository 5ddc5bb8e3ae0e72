"""A run of readings against all that is settled, as if nothing changed on the way: which are easy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from newfound.discovery import _filter
from newfound.discovery._answers import LEADING, Answers, Odds, Pairs
from newfound.discovery._evidence import Evidence, Grown
from newfound.discovery._exact import Float32s, Float64s, Ints
from newfound.discovery._products import Products, Readings, all_at_most

_FEW = 8  # as many maxima are found one after the other sooner than by a partition


class Survey:
    """What each reading of a run would be told by itself, as far as the products settle it.

    Attributes:
        hard: Which readings must be looked at one by one: the products leave open what becomes of them, or
            (:meth:`interfere`, :meth:`disturb`) an earlier one may matter.
        best, founds, doubtful: Of the others, the best category, whether they found one, and whether they wait.
    """

    def __init__(self, block: Readings, categories: Products, candidates: Products, part: slice,
                 cuts: tuple[float, float | None], odds: Odds, k: int) -> None:  # fmt: skip
        self._evidence, self._waiting = categories.evidence, candidates.evidence
        self.block, self.start = block, part.start
        self._new = new = categories.evidence.prior.of_new(len(categories.evidence))
        self._longest = max(categories.longest, candidates.longest)
        self._highest = max(categories.highest, candidates.highest)
        self._errors = errors = block.errors(self._longest, self._highest)
        values, others = categories.settled(part), candidates.settled(part)
        peaks, last = _largest(values, k)
        rivals = others.max(axis=1, initial=-np.inf).astype(np.float64)
        floors = np.maximum(np.maximum(peaks, rivals), min(cuts[0], odds.even) + new) - odds.reach - 2 * errors
        self._rival_floors, self._rivals = _leading(others, floors, LEADING, errors)
        self._floors, self._near = _leading(values, np.minimum(floors, last - 2 * errors), max(k, LEADING), errors)
        self._limits = all_at_most(np.stack([self._floors, self._rival_floors], axis=1))
        at, rows = self._near
        close = values[at, rows] >= all_at_most(peaks - 2 * errors)[at]
        clear = np.bincount(at[close], minlength=len(block)) == 1
        for cut in cuts:
            clear &= cut is None or np.abs(peaks - new - cut) > errors
        self.hard = ~(clear & ((rivals + errors < cuts[0] + new) | (rivals + 2 * errors < peaks)))
        self.best = np.full(len(block), -1)
        self.best[at[close]] = rows[close]  # the only one, where it is clear
        self.founds = ~self.hard & (peaks - new < (cuts[0] if cuts[1] is None else cuts[1]))
        self.doubtful = ~self.hard & ~self.founds & (peaks - new < cuts[0])

    def interfere(self, changing: Ints, rows: Ints, grown: Grown) -> None:
        """Marks the readings to which it may matter what earlier ones (``changing``) make of the rows (-1: new)."""
        at, near = self._near
        first = np.full(near.max(initial=-1) + 1, len(self.block))
        np.minimum.at(first, rows[rows >= 0], changing[rows >= 0])
        self.hard[at[first[near] < at]] = True
        _, offsets, lengths = grown.scalars.T
        limits = self._limits_for(lengths.max(initial=0.0), np.abs(offsets).max(initial=0.0))
        values = self.block.values(grown.fast)
        matter = values >= limits[:, self.doubtful[changing].astype(np.int64)]
        self.hard |= (matter & (changing < np.arange(len(self.block))[:, None])).any(axis=1)

    def disturb(self, i: int, row: int, *, waits: bool) -> None:
        """Marks the readings after ``i`` to which it may matter that a category is now as it is, or (``waits``) that
        this candidate is there."""
        vector, offset, length = (self._waiting if waits else self._evidence).fast_row(row)
        values = self.block.wide[i + 1 :].dot(vector)
        self.hard[i + 1 :] |= values >= self._limits_for(length, abs(offset))[i + 1 :, int(waits)]
        if not waits:
            self._mark(self._near, i, row)

    def _limits_for(self, length: float, offset: float) -> Float32s:
        """What the values of a category, or of a candidate, that is at most so long and high must reach to matter.

        A floor allows for the error of the surveyed values twice: of the best one's, and of the one that is compared.
        """
        if length <= self._longest and offset <= self._highest:
            return self._limits
        more = self.block.errors(length, offset) - self._errors
        return all_at_most(np.stack([self._floors - more, self._rival_floors - more], axis=1))

    def miss(self, i: int, candidate: int) -> None:
        """Marks the readings after ``i`` to which a candidate matters that waits no longer."""
        self._mark(self._rivals, i, candidate)

    def _mark(self, pairs: tuple[Ints, ...], i: int, row: int) -> None:
        at, rows = pairs
        self.hard[at[(rows == row) & (at > i)]] = True

    def rank(self, size: int) -> None:
        """Finds the canonical scores of what matters to the easy ones of the first readings."""
        easy = ~self.hard
        easy[size:] = False
        self._pairs = self._ranked(self._evidence, self._near, easy)
        self._rival_pairs = self._ranked(self._waiting, self._rivals, easy)

    def _ranked(self, evidence: Evidence, pairs: tuple[Ints, ...], easy: NDArray[np.bool_]) -> Pairs:
        at, rows = (column[easy[pairs[0]]] for column in pairs)
        return Pairs.ranked(at, rows, evidence.scores(self.block.rows, at, rows) - self._new)

    def write(self, answers: Answers, rows: Ints) -> None:
        """Answers the easy ones of the first readings: ``rows``, where the readings belong."""
        easy = ~self.hard[: len(rows)]
        answers.add(
            self.start + np.flatnonzero(easy), rows[easy], self.founds[: len(rows)][easy],
            self._pairs.only(easy), self._rival_pairs.only(easy),
        )  # fmt: skip


def _leading(values: Float32s, floors: Float64s, most: int, errors: Float64s) -> tuple[Float64s, tuple[Ints, Ints]]:
    """Floors above which about the ``most`` largest values of every row are left, and no fewer; and where these are."""
    at, columns = _filter.reaching(values, all_at_most(floors))
    many = np.flatnonzero(np.bincount(at, minlength=len(values)) > most)
    if not len(many):
        return floors, (at, columns)
    raised = floors.copy()
    last = np.partition(values[many], -most, axis=1)[:, -most]
    raised[many] = np.maximum(floors[many], last - 2 * errors[many])
    left = values[at, columns] >= all_at_most(raised)[at]
    return raised, (at[left], columns[left])


def _largest(values: Float32s, k: int) -> tuple[Float64s, Float64s]:
    """The largest and the k-th largest value of every row; -inf where there are not so many."""
    if not values.shape[1]:
        return np.full(len(values), -np.inf), np.full(len(values), -np.inf)
    peaks = values.max(axis=1).astype(np.float64)
    if k == 1:
        return peaks, peaks
    if values.shape[1] < k:
        return peaks, np.full(len(values), -np.inf)
    if k > _FEW:
        return peaks, np.partition(values, -k, axis=1)[:, -k].astype(np.float64)
    each = np.arange(len(values))
    hidden: list[tuple[Ints, Float32s]] = []
    for _ in range(k - 1):
        places = values.argmax(axis=1)
        hidden.append((places, values[each, places]))
        values[each, places] = -np.inf
    last = values.max(axis=1).astype(np.float64)
    for places, kept in reversed(hidden):
        values[each, places] = kept
    return peaks, last
