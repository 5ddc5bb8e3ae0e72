"""A block of the stream against the evidence: the best category, a new one, or doubt, as if one by one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from newfound.discovery._answers import LEADING, REACH, Answers, Ranking, ranked
from newfound.discovery._evidence import Evidence
from newfound.discovery._exact import Float32s, Ints
from newfound.discovery._ledger import Ledger
from newfound.discovery._products import Products, Readings
from newfound.discovery.decisions import Decisions


@dataclass
class _View:
    """What may matter to a reading: rows of categories and of candidates, and what the products say of the best."""

    rows: Ints
    rivals: Ints
    new: float  # the prior's share of a new category
    best: Ranking  # the best category by its product, if there is one
    clear: bool  # whether that settles the decision: no other category or candidate comes close, nor does a cut


class Weighing:
    """A block of readings that is decided on one after the other.

    A candidate or a founder that a reading leads to counts from the next reading on.
    """

    def __init__(self, readings: Float32s, ledger: Ledger, threshold: float, alone: float | None, temperature: float,
                 *, grow: bool) -> None:  # fmt: skip
        self._readings, self._ledger = readings, ledger
        self._threshold, self._alone, self._temperature = threshold, alone, temperature
        self._reach = REACH * temperature * (1 + 1e-9)  # more than what dividing by the temperature rounds
        self._block = Readings(readings, ledger.evidence.model)
        room = len(readings) if grow else 0
        self._categories = Products(self._block, ledger.evidence, room)
        self._candidates = Products(self._block, ledger.candidates.evidence, room if alone is not None else 0)
        first = ledger.categories.next_id
        self._ids = np.concatenate([ledger.categories.ids.view, np.arange(first, first + room), [-1]])

    def predict(self, into: Decisions, start: int) -> None:
        """Writes what each reading alone would be told into the rows from ``start`` on."""
        answers = self._answers(into, start)
        for i in range(len(self._readings)):
            view, row, created, _, _ = self._judge(i, answers.k)
            self._put(answers, i, view, -1 if created else row, created)
        answers.write()

    def observe(self, into: Decisions, start: int, seen: int) -> None:
        """Decides on each reading in turn; the ledger follows. ``seen``: how many were observed before the block."""
        ledger, answers = self._ledger, self._answers(into, start)
        rows = np.empty(len(self._readings), np.int64)
        met: list[tuple[int, int, int]] = []  # candidates, what they founded, and when
        for i, reading in enumerate(self._readings):
            view, row, created, joins, partner = self._judge(i, answers.k)
            rows[i] = len(ledger.evidence) if created else row
            self._put(answers, i, view, int(rows[i]), created)  # before anything changes
            if created:
                total, count = reading.astype(np.float64), 1
                if partner is not None:
                    total, count = ledger.candidates.evidence.sums[partner] + total, 2
                    self._candidates.withdraw(partner, i)
                    met.append((partner, int(rows[i]), seen + i + 1))
                self._categories.renew(ledger.evidence.append(total, count), i)
            elif not joins:
                self._candidates.renew(ledger.candidates.append(reading, seen + i, self._ids.item(row)), i)
            else:
                ledger.shift(row, reading, 1)
                if ledger.learns(row) or ledger.evidence.prior.concentration is not None:
                    ledger.evidence.refresh_row(row)
                    self._categories.renew(row, i)
        answers.write()
        part = slice(start, start + len(rows))
        ledger.categories.enter(rows, into.created[part])
        ledger.memory.append(self._readings, into.category[part], np.zeros(len(rows), bool))
        self._settle_candidates(met, seen + len(rows))

    def _settle_candidates(self, met: list[tuple[int, int, int]], seen: int) -> None:
        """Moves the candidates that have met their like to the categories they founded with them."""
        candidates = self._ledger.candidates
        homes = self._ledger.categories.resolve(candidates.homes.view)
        left = np.ones(len(homes), bool)
        for candidate, row, at in met:
            sighting = int(candidates.sightings.view[candidate])
            self._ledger.record_move(sighting, int(homes[candidate]), self._ids.item(row), at, seen)
            left[candidate] = False
        candidates.keep(left)

    def _answers(self, into: Decisions, start: int) -> Answers:
        return Answers(into, start, self._readings, self._ids, self._threshold, self._temperature)

    def _put(self, answers: Answers, i: int, view: _View, row: int, created: bool) -> None:
        sides = (self._ledger.evidence, view.rows), (self._ledger.candidates.evidence, view.rivals)
        answers.put(i, row, created, view.new, *sides)

    def _judge(self, i: int, k: int) -> tuple[_View, int, bool, bool, int | None]:
        """What reading ``i`` sees, its best category (a row or -1), whether it founds one, whether it joins the best
        one, and the candidate to found one with. If it does neither, it is doubtful."""
        view = self._look(i, k)
        best, rival = view.best, []
        if not view.clear:
            best = self._rank(i, self._ledger.evidence, view.rows, view.new)
            rival = self._rank(i, self._ledger.candidates.evidence, view.rivals, view.new)
        if not best:
            return view, -1, True, False, None
        score, row = best[0]
        if rival and rival[0][0] > score and rival[0][0] >= self._threshold:
            return view, row, True, False, rival[0][1]
        joins = score >= self._threshold
        return view, row, not joins and (self._alone is None or score < self._alone), joins, None

    def _look(self, i: int, k: int) -> _View:
        """The k best categories and all within reach of the best, and the candidates within reach."""
        categories, candidates, evidence = self._categories, self._candidates, self._ledger.evidence
        new = evidence.prior.of_new(len(evidence))
        values, others = categories.of(i), candidates.of(i)
        error = evidence.model.error(
            self._block.lengths.item(i), self._block.largest_bends.item(i),
            max(categories.longest, candidates.longest), max(categories.highest, candidates.highest),
        )  # fmt: skip
        peak = float(values.max(initial=-np.inf))
        other_peak = float(others.max(initial=-np.inf)) if len(others) else -np.inf
        floor = max(peak, other_peak, self._threshold + new) - self._reach - 2 * error
        kth = peak
        if k > 1:
            kth = float(np.partition(values, -k)[-k]) if len(values) >= k else -np.inf
        rows, near = categories.pool(values, min(floor, kth - 2 * error), max(k, LEADING), error)
        rivals = candidates.pool(others, floor, LEADING, error)[0] if len(others) else rows[:0]
        first = int(near.argmax()) if len(rows) else 0
        cuts = [self._threshold] if self._alone is None else [self._threshold, self._alone]
        clear = (
            (len(near) <= 1 or np.count_nonzero(near >= peak - 2 * error) == 1)
            and all(abs(peak - new - cut) > error for cut in cuts)
            and (other_peak + error < self._threshold + new or other_peak + 2 * error < peak)
        )
        best = [(peak - new, int(rows[first]))] if len(rows) else []
        return _View(rows, rivals, new, best, clear)

    def _rank(self, i: int, evidence: Evidence, rows: Ints, new: float) -> Ranking:
        return ranked(evidence.scores(self._readings[i].astype(np.float64), rows) - new, rows)
