"""Writing answers down: canonical scores of what mattered to each reading, and the probabilities they amount to."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from newfound.discovery._evidence import Evidence
from newfound.discovery._exact import Float32s, Float64s, Ints
from newfound.discovery.decisions import Decisions

NOTHING = -1e30  # the score where there is nothing to compare with, below every log ratio of readings that are taken
REACH = 16.0  # in units of the temperature: e^-16 is nothing beside the probability of the best
LEADING = 32  # categories that a probability is shared among
_PAIRS = 4096  # canonical values computed at a time


@dataclass(frozen=True)
class Pairs:
    """Questions (0, 1, ...), rows and their scores: by question, best first, of equal ones the lowest row first."""

    at: Ints
    rows: Ints
    scores: Float64s

    @classmethod
    def ranked(cls, at: Ints, rows: Ints, scores: Float64s) -> Pairs:
        """These pairs, put in order."""
        order = np.lexsort((rows, -scores, at))
        return cls(at[order], rows[order], scores[order])

    @classmethod
    def joined(cls, parts: Sequence[Pairs], questions: Sequence[int]) -> Pairs:
        """Pairs of so many questions each, one after the other."""
        firsts = np.cumsum([0, *questions[:-1]]).tolist()
        return cls(
            np.concatenate([part.at + first for part, first in zip(parts, firsts, strict=True)]),
            np.concatenate([part.rows for part in parts]),
            np.concatenate([part.scores for part in parts]),
        )

    def only(self, which: NDArray[np.bool_]) -> Pairs:
        """The pairs of the questions that are marked, numbered anew; questions beyond the marks have none."""
        number = np.cumsum(which) - 1
        mine = which[self.at]
        return Pairs(number[self.at[mine]], self.rows[mine], self.scores[mine])

    def firsts(self) -> Ints:
        """Where the pairs of each question that has any begin."""
        return np.flatnonzero(np.diff(self.at, prepend=-1))

    def bounds(self, questions: int) -> Ints:
        """Where the pairs of each question begin, and where the last ones end."""
        return np.searchsorted(self.at, np.arange(questions + 1))


@dataclass(frozen=True)
class Odds:
    """How log ratios become probabilities."""

    even: float  # the log ratio at which a category and one never seen are equally probable
    temperature: float
    slope: float = 1.0  # of the log odds of a new category: what they are multiplied by
    shift: float = 0.0  # and what is then added to them

    @property
    def plain(self) -> bool:
        """Whether a new category has what the softmax gives it."""
        return self.slope == 1.0 and self.shift == 0.0

    def new(self, fresh: float, known: float) -> tuple[float, float]:
        """The probabilities of a new category and of one there is.

        Args:
            fresh, known: the sums of e^(fit - top) over what is new and over categories; not both are 0, which stands
                for out of reach. Beyond it all log odds are one.
        """
        odds = math.log(fresh) - math.log(known) if fresh and known else REACH if fresh else -REACH
        odds = self.slope * min(max(odds, -REACH), REACH) + self.shift
        rare = math.exp(-abs(odds))  # the logistic function, without taking a probability near 1 from 1
        often, seldom = 1.0 / (1.0 + rare), rare / (1.0 + rare)
        return (often, seldom) if odds >= 0 else (seldom, often)

    @property
    def reach(self) -> float:
        """How far below the best a log ratio can be and count; more than what dividing by the temperature rounds."""
        return REACH * self.temperature * (1 + 1e-9)


class Answers:
    """The answers to a block, written into the rows of ``into`` from ``start`` on.

    They are written down many at a time. Those that are put here, one by one, are scored then, with the evidence as it
    was when they were put.
    """

    def __init__(self, into: Decisions, start: int, readings: Float32s, evidence: tuple[Evidence, Evidence], ids: Ints,
                 odds: Odds) -> None:  # fmt: skip
        self._into, self._start, self._readings, self._ids = into, start, readings, ids
        self._categories, self._candidates = evidence
        self._odds = odds
        self.k = into.runners_up_category.shape[1] + 1
        self._rows = np.empty((2, _PAIRS), np.int64)  # of categories, and the same or, if they have changed, ~former
        self._added: list[tuple[Ints, Ints, NDArray[np.bool_], Pairs, Pairs]] = []
        self._clear()

    def _clear(self) -> None:
        self._waiting: list[tuple[int, int, bool, float, int, int]] = []
        self._end = 0
        self._named: set[int] = set()
        self._former: list[tuple[Float64s, int, float]] = []
        self._rivals: list[Ints] = []

    def put(self, i: int, row: int, created: bool, new: float, rows: Ints, rivals: Ints) -> None:
        """Answers reading ``i`` with a row (``created``: it founds it), to which these rows and candidates mattered.

        ``new`` is the prior's share of a new category.
        """
        self._waiting.append((i, row, created, new, len(rows), len(rivals)))
        end = self._end + len(rows)
        if end > self._rows.shape[1]:
            self._rows = np.concatenate([self._rows, np.empty((2, end), np.int64)], axis=1)
        self._rows[:, self._end : end] = rows
        self._named.update(rows.tolist())
        self._rivals.append(rivals)
        self._end = end
        if end + LEADING * len(self._rivals) >= 2 * _PAIRS:
            self.write()

    def add(self, i: Ints, rows: Ints, created: NDArray[np.bool_], pairs: Pairs, rivals: Pairs) -> None:
        """Answers the readings ``i`` with rows (``created``: they found them), and the scores of what mattered to
        each: the pairs' questions are numbered as ``i`` is."""
        self._added.append((i, rows, created, pairs, rivals))

    def keep(self, rows: Iterable[int]) -> None:
        """Keeps what answers that are not scored yet need of categories that are about to change."""
        for row in self._named.intersection(rows):
            sources, evidence = self._rows[1, : self._end], self._categories
            sources[sources == row] = ~len(self._former)
            self._former.append((evidence.weights[row].copy(), evidence.counts.item(row), evidence.odds.item(row)))
            self._named.discard(row)

    def write(self) -> None:
        """Writes down all answers so far."""
        if self._waiting:
            self._add_waiting()
        if self._added:
            i, rows, created, pairs, rivals = zip(*self._added, strict=True)
            sizes = [len(part) for part in i]
            self._write_down(
                np.concatenate(i), np.concatenate(rows), np.concatenate(created),
                Pairs.joined(pairs, sizes), Pairs.joined(rivals, sizes),
            )  # fmt: skip
            self._added.clear()

    def _add_waiting(self) -> None:
        """Scores what was put here one by one."""
        i, rows, created, new, sizes, rivals = (np.array(column) for column in zip(*self._waiting, strict=True))
        each = np.arange(len(i))
        at, others = np.repeat(each, sizes), np.repeat(each, rivals)
        waiting = np.concatenate(self._rivals)
        scores = self._candidates.scores(self._readings, i[others], waiting)
        self.add(
            i, rows, created,
            Pairs.ranked(at, self._rows[0, : self._end], self._scores(i[at]) - new[at]),
            Pairs.ranked(others, waiting, scores - new[others]),
        )  # fmt: skip
        self._clear()

    def _scores(self, at: Ints) -> Float64s:
        """The canonical scores of readings with the categories put beside them, without the share of a new one."""
        sources, model = self._rows[1, : self._end], self._categories.model
        if not self._former:
            return self._categories.scores(self._readings, at, sources)
        scores, same = np.empty(self._end), sources >= 0
        scores[same] = self._categories.scores(self._readings, at[same], sources[same])
        weights, counts, odds = (np.array(column) for column in zip(*self._former, strict=True))
        which = ~sources[~same]
        ratios = model.log_ratios(self._readings, at[~same], weights, which, model.levels(counts[which]))
        scores[~same] = ratios + odds[which]
        return scores

    def _write_down(self, i: Ints, rows: Ints, created: NDArray[np.bool_], pairs: Pairs, rivals: Pairs) -> None:
        """Writes the answers to the readings ``i`` down, with the scores of what mattered to them."""
        into, places = self._into, self._start + i
        assert into.probability is not None
        assert into.new_probability is not None
        assert into.runners_up_probability is not None
        shares, new = self._probabilities(pairs, rivals, len(i))
        firsts = pairs.firsts()
        into.category[places] = self._ids[rows]
        into.created[places] = created
        into.new_probability[places] = into.probability[places] = new
        into.score[places] = NOTHING
        into.score[places[pairs.at[firsts]]] = pairs.scores[firsts]
        joined = firsts[~created[pairs.at[firsts]]]
        into.probability[places[pairs.at[joined]]] = shares[joined]
        if self.k > 1:
            ranks = np.arange(len(shares)) - pairs.bounds(len(i))[pairs.at]
            columns = ranks - ~created[pairs.at]
            other = (columns >= 0) & (columns < self.k - 1)
            cells = places[pairs.at[other]], columns[other]
            into.runners_up_category[places], into.runners_up_category[cells] = -1, self._ids[pairs.rows[other]]
            into.runners_up_score[places], into.runners_up_score[cells] = NOTHING, pairs.scores[other]
            into.runners_up_probability[places], into.runners_up_probability[cells] = 0.0, shares[other]

    def _probabilities(self, pairs: Pairs, rivals: Pairs, questions: int) -> tuple[Float64s, Float64s]:
        """The probability of each category in a pair, and of a new one for each question.

        The softmax of (score - even) / temperature and of 0, which stands for a category never seen. What fits
        a candidate is new too. What is out of reach of the best, or not among the leading ones, has 0. Then the log
        odds of what is new are straightened (:class:`Odds`), and categories share the rest as they shared it before.
        The sums are exact before they are rounded, so their order does not matter.
        """
        tops = np.zeros(questions)
        sides = [(side, (side.scores - self._odds.even) / self._odds.temperature) for side in (pairs, rivals)]
        for side, fits in sides:
            firsts = side.firsts()
            best = side.at[firsts]
            tops[best] = np.maximum(tops[best], fits[firsts])
        shares, others = (self._shares(side, fits, tops) for side, fits in sides)
        unseen = _powers(-tops, tops <= REACH)
        ends, other_ends = pairs.bounds(questions), rivals.bounds(questions)
        if not self._odds.plain:
            return self._straightened(shares, others, unseen, (ends, other_ends), pairs.at)
        new, totals = unseen.copy(), unseen.copy()
        single = (np.diff(ends) == 1) & (np.diff(other_ends) == 0)
        totals[single] += shares[ends[:-1][single]]  # of two numbers, this is their sum as rounded by fsum
        many, seldom, never = shares.tolist(), others.tolist(), unseen.tolist()
        for j in np.flatnonzero(~single).tolist():
            fresh = [never[j], *seldom[other_ends[j] : other_ends[j + 1]]]
            new[j] = math.fsum(fresh)
            totals[j] = math.fsum(many[ends[j] : ends[j + 1]] + fresh)
        return shares / totals[pairs.at], new / totals

    def _straightened(
        self, shares: Float64s, others: Float64s, unseen: Float64s, bounds: tuple[Ints, Ints], at: Ints
    ) -> tuple[Float64s, Float64s]:
        """The probabilities, from the weights that the softmax divides by their sum."""
        ends, other_ends = (side.tolist() for side in bounds)
        many, seldom, never = shares.tolist(), others.tolist(), unseen.tolist()
        questions = len(never)
        scale, new = np.zeros(questions), np.ones(questions)
        for j in range(questions):
            first, end = ends[j], ends[j + 1]
            if first == end:
                continue  # there is no category
            mine = math.fsum(many[first:end])
            new[j], rest = self._odds.new(math.fsum([never[j], *seldom[other_ends[j] : other_ends[j + 1]]]), mine)
            if not mine:  # all are out of reach: what is left is the nearest one's
                shares[first] = mine = 1.0
            scale[j] = rest / mine
        return shares * scale[at], new

    def _shares(self, pairs: Pairs, fits: Float64s, tops: Float64s) -> Float64s:
        ranks = np.arange(len(fits)) - pairs.bounds(len(tops))[pairs.at]
        below = fits - tops[pairs.at]
        return _powers(below, (fits >= tops[pairs.at] - REACH) & (ranks < LEADING))


def _powers(exponents: Float64s, where: NDArray[np.bool_]) -> Float64s:
    # The C library's: numpy's own may differ in the last bit from one machine to the next.
    result = np.zeros(len(exponents))
    result[where] = list(map(math.exp, exponents[where].tolist()))
    return result
