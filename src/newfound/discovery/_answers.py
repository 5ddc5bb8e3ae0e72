"""Writing answers down: canonical scores of what mattered to each reading, and the probabilities they amount to."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from newfound.discovery._evidence import Evidence
from newfound.discovery._exact import Float32s, Float64s, Ints
from newfound.discovery.decisions import Decisions

NOTHING = -1e30  # the score where there is nothing to compare with, below every log ratio of readings that are taken
REACH = 16.0  # in units of the temperature: e^-16 is nothing beside the probability of the best
LEADING = 32  # categories that a probability is shared among
_PAIRS = 1024  # canonical values computed at a time

Ranking = list[tuple[float, int]]  # scores and rows, best first, of equal ones the lowest row first


def ranked(scores: Float64s, rows: Ints) -> Ranking:
    """The rows by their scores."""
    return sorted(zip(scores.tolist(), rows.tolist(), strict=True), key=lambda pair: (-pair[0], pair[1]))


@dataclass
class _Answer:
    i: int
    row: int
    created: bool
    new: float
    rows: Ints
    rivals: Ints


class Answers:
    """The answers to a block, written into the rows of ``into`` from ``start`` on.

    Each keeps the evidence as it was when it was put here; the scores of many are then worked out together.
    """

    def __init__(self, into: Decisions, start: int, readings: Float32s, ids: Ints, threshold: float,
                 temperature: float) -> None:  # fmt: skip
        self._into, self._start, self._readings, self._ids = into, start, readings, ids
        self._threshold, self._temperature = threshold, temperature
        self.k = into.runners_up_category.shape[1] + 1
        self._clear()

    def _clear(self) -> None:
        self._waiting: list[_Answer] = []
        self._pairs = 0
        self._sides: list[tuple[Evidence, Float64s, Ints, Float64s]] = []

    def put(self, i: int, row: int, created: bool, new: float, categories: tuple[Evidence, Ints],
            candidates: tuple[Evidence, Ints]) -> None:  # fmt: skip
        """Answers reading ``i`` with a row (``created``: it founds it); the rows beside the evidence mattered to it.

        ``new`` is the prior's share of a new category.
        """
        for evidence, rows in (categories, candidates):
            if len(rows):
                self._sides.append((evidence, evidence.weights[rows], evidence.counts[rows], evidence.odds[rows]))
                self._pairs += len(rows)
        self._waiting.append(_Answer(i, row, created, new, categories[1], candidates[1]))
        if self._pairs >= _PAIRS:
            self.write()

    def write(self) -> None:
        """Writes down all that was put here so far."""
        scores, at = self._scores(), 0
        for answer in self._waiting:
            middle, end = at + len(answer.rows), at + len(answer.rows) + len(answer.rivals)
            ranking = ranked(scores[at:middle] - answer.new, answer.rows)
            rivals = ranked(scores[middle:end] - answer.new, answer.rivals)
            self._write(answer, ranking, rivals[:LEADING])
            at = end
        self._clear()

    def _scores(self) -> Float64s:
        """The canonical scores of all pairs of readings and rows, in order, without the prior's share of a new one."""
        if not self._sides:
            return np.empty(0)
        model = self._sides[0][0].model
        readings = np.repeat([a.i for a in self._waiting], [len(a.rows) + len(a.rivals) for a in self._waiting])
        weights, counts, odds = (np.concatenate([side[part] for side in self._sides]) for part in (1, 2, 3))
        return model.log_ratios(self._readings[readings], weights, model.levels(counts)) + odds

    def _write(self, answer: _Answer, ranking: Ranking, rivals: Ranking) -> None:
        into, at = self._into, self._start + answer.i
        assert into.probability is not None
        assert into.new_probability is not None
        assert into.runners_up_probability is not None
        shares, new = self._probabilities(ranking, rivals)
        into.category[at] = self._ids[answer.row]
        into.score[at] = ranking[0][0] if ranking else NOTHING
        into.created[at] = answer.created
        into.probability[at] = new if answer.created else shares[0]
        into.new_probability[at] = new
        if self.k > 1:
            others = slice(0, self.k - 1) if answer.created else slice(1, self.k)
            blank = self.k - 1 - len(ranking[others])
            into.runners_up_category[at] = [self._ids[row] for _, row in ranking[others]] + [-1] * blank
            into.runners_up_score[at] = [score for score, _ in ranking[others]] + [NOTHING] * blank
            into.runners_up_probability[at] = shares[others] + [0.0] * blank

    def _probabilities(self, ranking: Ranking, rivals: Ranking) -> tuple[list[float], float]:
        """The probabilities of the ranked categories, and of a new one.

        The softmax of (score - threshold) / temperature and of 0, which stands for a category never seen. What fits
        a candidate is new too. What is out of reach of the best, or not among the leading ones, has 0. The sums are
        exact before they are rounded, so their order does not matter.
        """
        fits = [(score - self._threshold) / self._temperature for score, _ in ranking]
        also_new = [(score - self._threshold) / self._temperature for score, _ in rivals]
        top = max([0.0, *fits[:1], *also_new[:1]])
        shares = [math.exp(fit - top) if fit >= top - REACH else 0.0 for fit in fits[:LEADING]]
        new = [math.exp(fit - top) for fit in [0.0, *also_new] if fit >= top - REACH]
        total = math.fsum(shares + new)
        shares += [0.0] * (len(fits) - len(shares))
        return [share / total for share in shares], math.fsum(new) / total
