"""A block of the stream against the evidence: the best category, a new one, or doubt, as if one by one.

Most readings of a stream have nothing to do with each other: what one changes is far from the next. So a run of them
is surveyed as if nothing changed on the way. Those that an earlier one of the run may disturb, and those that need a
closer look, are then decided on one by one; the stretches between them are decided on at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from newfound.discovery import _compiled
from newfound.discovery._answers import LEADING, Answers, Odds
from newfound.discovery._compiled_weighing import Met, weigh
from newfound.discovery._evidence import Evidence, Grown
from newfound.discovery._exact import Float32s, Ints
from newfound.discovery._ledger import Ledger
from newfound.discovery._products import Products, Readings, at_most
from newfound.discovery._survey import Survey
from newfound.discovery.decisions import Decisions

_RUN = 64  # readings surveyed together at most: it changes the speed and nothing else
_WORTH = 8  # nor does this: for fewer, a survey costs more than looking at them one by one

_NOBODY = np.empty(0, np.int64), np.empty(0, np.float32)


@dataclass
class _View:
    """What may matter to a reading: rows of categories and of candidates, and what the products say of the best."""

    rows: Ints
    rivals: Ints
    new: float  # the prior's share of a new category
    best: tuple[float, int] | None  # the score and row of the best category by its product, if there is one
    contenders: tuple[Ints, Ints] | None  # categories and candidates that may be the best; None: it is clear


@dataclass
class _Run:
    """A few readings, as they would be decided on if nothing changed on the way."""

    survey: Survey
    size: int  # how many to go through before the next survey
    changes: NDArray[np.bool_]  # whether the reading would change a category, or wait
    grown: Grown  # what it would make of it, a row for each that would


class Weighing:
    """A block of readings that is decided on one after the other.

    A candidate or a founder that a reading leads to counts from the next reading on.
    """

    def __init__(self, readings: Float32s, ledger: Ledger, threshold: float, alone: float | None, odds: Odds,
                 *, grow: bool) -> None:  # fmt: skip
        self._readings, self._ledger = readings, ledger
        self._threshold, self._alone, self._odds = threshold, alone, odds
        self._block = Readings(readings, ledger.evidence.model)
        room, unsettled = (len(readings), min(len(readings), _RUN)) if grow else (0, 0)
        first = ledger.categories.next_id
        self._ids = np.concatenate([ledger.categories.ids.view, np.arange(first, first + room), [-1]])
        self._kernels = self._compiled() if grow else None
        if self._kernels is not None:
            return
        self._categories = Products(self._block, ledger.evidence, room, unsettled)
        doubts = (room, unsettled) if alone is not None else (0, 0)
        self._candidates = Products(self._block, ledger.candidates.evidence, *doubts)
        prior = ledger.evidence.prior
        self._steady = prior.concentration is None or prior.discount == 0.0  # else every founder changes all odds

    def predict(self, into: Decisions, start: int) -> None:
        """Writes what each reading alone would be told into the rows from ``start`` on."""
        answers = self._answers(into, start)
        for begin in range(0, len(self._readings), _RUN):
            survey = self._survey(begin, _RUN, answers.k)
            survey.rank(_RUN)
            survey.write(answers, np.where(survey.founds, -1, survey.best))
            for i in (begin + np.flatnonzero(survey.hard)).tolist():
                view, row, created, _, _ = self._judge(i, answers.k)
                answers.put(i, -1 if created else row, created, view.new, view.rows, view.rivals)
        answers.write()

    def observe(self, into: Decisions, start: int, seen: int) -> None:
        """Decides on each reading in turn; the ledger follows. ``seen``: how many were observed before the block."""
        ledger, answers = self._ledger, self._answers(into, start)
        if self._kernels is None:
            rows, met = self._stream(answers, seen)
        else:
            cuts = self._threshold, self._alone, self._odds
            rows, met = weigh(self._kernels, self._block, ledger, cuts, answers, self._ids, seen)
        answers.write()
        block = slice(start, start + len(rows))
        ledger.categories.enter(rows, into.created[block])
        ledger.memory.append(self._readings, into.category[block], np.zeros(len(rows), bool))
        self._settle_candidates(met, seen + len(rows))

    def _stream(self, answers: Answers, seen: int) -> tuple[Ints, Met]:
        """Where the readings belong, and the candidates that met their like."""
        rows = np.empty(len(self._readings), np.int64)
        met: Met = []
        begin, size, alike = 0, _RUN, self._steady  # alike: whether it pays to survey the next run
        while begin < len(rows):
            run = self._run(begin, size, answers.k) if alike else None
            alike = run is not None
            part = rows[begin : begin + (run.size if run else _RUN)]
            if run:
                self._go_through(run, part, answers, seen, met)
                run.survey.write(answers, part)
                size = min(_RUN, 2 * run.size)
            else:
                for i in range(len(part)):
                    part[i], _, _ = self._decide(answers, begin + i, seen, met)
            begin += len(part)
            self._categories.settle(begin)
            self._candidates.settle(begin)
        return rows, met

    def _compiled(self) -> Any:
        """The compiled loops, if they are loaded and there is no prior, which they do not know."""
        evidence = self._ledger.evidence
        kernels = _compiled.kernels(4 * len(self._readings) * (len(evidence) + evidence.model.dimension))
        return kernels if evidence.prior.concentration is None else None

    def _go_through(self, run: _Run, rows: Ints, answers: Answers, seen: int, met: Met) -> None:
        """Decides on the readings of a run in turn, the easy ones in stretches; ``rows`` is where they belong."""
        survey, i = run.survey, 0
        while i < len(rows):
            left = survey.hard[i : len(rows)]
            stop = i + int(left.argmax())
            stop = stop if survey.hard[stop] else len(rows)
            if i < stop:
                rows[i:stop] = self._take(run, i, stop, answers, seen)
            if stop < len(rows):
                known = len(met)
                rows[stop], changed, waits = self._decide(answers, survey.start + stop, seen, met)
                if changed >= 0:
                    survey.disturb(stop, changed, waits=waits)
                for candidate, _, _ in met[known:]:
                    survey.miss(stop, candidate)
            i = stop + 1

    def _survey(self, begin: int, size: int, k: int) -> Survey:
        part = slice(begin, begin + size)
        cuts = self._threshold, self._alone
        return Survey(self._block[part], self._categories, self._candidates, part, cuts, self._odds, k)

    def _run(self, begin: int, size: int, k: int) -> _Run | None:
        """The readings from ``begin`` on that are better decided on together, at most ``size``; None: hardly any."""
        ledger, survey = self._ledger, self._survey(begin, size, k)
        if not _easy(survey.hard):
            return None
        learning = ledger.learns(survey.best) | survey.founds
        changes = ~survey.hard & (learning | survey.doubtful | (ledger.evidence.prior.concentration is not None))
        rows = np.where(survey.founds | survey.doubtful, -1, survey.best)[changes]
        grown = ledger.evidence.grown(rows, survey.block.rows[changes], learning[changes])
        survey.interfere(np.flatnonzero(changes), rows, grown)
        size = _easy(survey.hard)
        if not size:
            return None
        survey.rank(size)
        return _Run(survey, size, changes, grown)

    def _take(self, run: _Run, start: int, stop: int, answers: Answers, seen: int) -> Ints:
        """Decides on a stretch of the run as surveyed, and returns the rows that its readings belong to."""
        ledger, survey, part = self._ledger, run.survey, slice(start, stop)
        evidence, changes = ledger.evidence, run.changes[part]
        founds, doubtful = survey.founds[part], survey.doubtful[part]
        rows = np.where(founds, len(evidence) + np.cumsum(founds) - 1, survey.best[part])
        if not changes.all():
            np.add.at(evidence.members, rows[~changes], 1)
        first = int(np.count_nonzero(run.changes[:start]))
        grown = run.grown[first : first + int(np.count_nonzero(changes))]
        last = survey.start + stop - 1
        waits = doubtful[changes]
        if waits.any():
            places = survey.start + start + np.flatnonzero(doubtful)
            waiting = ledger.candidates.extend(grown[waits], seen + places, self._ids[rows[doubtful]])
            self._candidates.renew_all(waiting, grown[waits], last)
            grown, changes = grown[~waits], changes & ~doubtful
        if len(grown):
            changing = rows[changes]
            answers.keep(changing.tolist())
            evidence.grow(changing, grown)
            self._categories.renew_all(changing, grown, last)
        return rows

    def _decide(self, answers: Answers, i: int, seen: int, met: Met) -> tuple[int, int, bool]:
        """Decides on reading ``i`` by itself: the row it belongs to, the row that changes (-1: none), and whether that
        is one of the candidates."""
        ledger, reading = self._ledger, self._readings[i]
        view, row, created, joins, partner = self._judge(i, answers.k)
        row = len(ledger.evidence) if created else row
        answers.put(i, row, created, view.new, view.rows, view.rivals)  # before anything changes
        if created:
            total, count = reading.astype(np.float64), 1
            if partner is not None:
                total, count = ledger.candidates.evidence.sums[partner] + total, 2
                self._candidates.withdraw(partner, i)
                met.append((partner, row, seen + i + 1))
            self._categories.renew(ledger.evidence.append(total, count), i)
        elif not joins:
            waiting = ledger.candidates.append(reading, seen + i, self._ids.item(row))
            self._candidates.renew(waiting, i)
            return row, waiting, True
        else:
            if not ledger.learns(row) and ledger.evidence.prior.concentration is None:
                ledger.evidence.members[row] += 1
                return row, -1, False
            answers.keep([row])
            ledger.evidence.join(row, reading, learns=bool(ledger.learns(row)))
            self._categories.renew(row, i)
        return row, row, False

    def _settle_candidates(self, met: Met, seen: int) -> None:
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
        sides = self._ledger.evidence, self._ledger.candidates.evidence
        return Answers(into, start, self._readings, sides, self._ids, self._odds)

    def _judge(self, i: int, k: int) -> tuple[_View, int, bool, bool, int | None]:
        """What reading ``i`` sees, its best category (a row or -1), whether it founds one, whether it joins the best
        one, and the candidate to found one with. If it does neither, it is doubtful."""
        view = self._look(i, k)
        best, rival = view.best, None
        if view.contenders is not None:
            best = self._best(i, self._ledger.evidence, view.contenders[0], view.new)
            rival = self._best(i, self._ledger.candidates.evidence, view.contenders[1], view.new)
        if best is None:
            return view, -1, True, False, None
        score, row = best
        if rival is not None and rival[0] > score and rival[0] >= self._threshold:
            return view, row, True, False, rival[1]
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
        peak, other_peak = _peak(values), _peak(others)
        lowest = min(self._threshold, self._odds.even) + new
        floor = max(peak, other_peak, lowest) - self._odds.reach - 2 * error
        kth = peak
        if k > 1:
            kth = float(np.partition(values, -k)[-k]) if len(values) >= k else -np.inf
        rows, near = categories.pool(values, min(floor, kth - 2 * error), max(k, LEADING), error)
        rivals, close = candidates.pool(others, floor, LEADING, error) if other_peak >= at_most(floor) else _NOBODY
        if not len(rows):
            return _View(rows, rivals, new, None, None)
        may = rows[near >= at_most(peak - 2 * error)]
        clear = (
            len(may) == 1
            and abs(peak - new - self._threshold) > error
            and (self._alone is None or abs(peak - new - self._alone) > error)
            and (other_peak + error < self._threshold + new or other_peak + 2 * error < peak)
        )
        contenders = None if clear else (may, rivals[close >= at_most(other_peak - 2 * error)])
        return _View(rows, rivals, new, (peak - new, may.item(0)), contenders)

    def _best(self, i: int, evidence: Evidence, rows: Ints, new: float) -> tuple[float, int] | None:
        """The best score among these rows, and the row, of equal ones the lowest."""
        if not len(rows):
            return None
        scores = evidence.scores(self._readings, np.full(len(rows), i), rows) - new
        worst, row = min(zip((-scores).tolist(), rows.tolist(), strict=True))
        return -worst, row


def _peak(values: Float32s) -> float:
    return float(values.item(values.argmax())) if len(values) else -np.inf


def _easy(hard: NDArray[np.bool_]) -> int:
    """How many of the first readings are better decided on together: no more than a third of them is hard."""
    sizes = np.flatnonzero(3 * np.cumsum(hard) <= np.arange(1, len(hard) + 1)) + 1
    return int(sizes[-1]) if len(sizes) and sizes[-1] >= min(_WORTH, len(hard)) else 0
