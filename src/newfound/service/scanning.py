"""What there is to tell of many sightings, as columns: a first look at a million takes seconds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import func, select

from newfound.journal.journal import Journal
from newfound.journal.rows import SightingRow
from newfound.journal.schema import places, sightings

_TOGETHER = 5_000  # sightings in one transaction, so that none lasts long
_NONE = float("nan")  # a score that is near no other


@dataclass(frozen=True)
class Facts:
    """What is known of sightings, by number, without those that were forgotten.

    Attributes:
        part: where each is now.
        created: whether it founded a category.
        doubtful, borderline: as `newfound.service.doubting` has it.
    """

    number: NDArray[np.int64]
    part: NDArray[np.int64]
    time: NDArray[np.float64]
    created: NDArray[np.bool_]
    doubtful: NDArray[np.bool_]
    borderline: NDArray[np.bool_]

    def by_part(self) -> Iterator[tuple[int, Facts]]:
        """The facts of each part that has any."""
        order = np.argsort(self.part, kind="stable")
        parts, starts = np.unique(self.part[order], return_index=True)
        for part, start, stop in zip(parts.tolist(), starts, [*starts[1:], len(order)], strict=False):
            yield part, self._some(order[start:stop])

    def known(self, there: NDArray[np.bool_]) -> Facts:
        """Those of which `there` is true."""
        return self if there.all() else self._some(there)

    def _some(self, which: NDArray[Any]) -> Facts:
        return Facts(*(column[which] for column in vars(self).values()))


def joined(some: Sequence[Facts]) -> Facts:
    """All facts one after the other."""
    return Facts(*(np.concatenate(columns) for columns in zip(*(vars(one).values() for one in some), strict=True)))


def scan(journal: Journal, start: int, stop: int, margin: float) -> Iterator[tuple[Facts, int]]:
    """The facts of the sightings from number `start` to before `stop`, in their order, some thousands at a time.

    Each comes with the number that it ends before.
    """
    s = sightings.c
    query = select(
        s.number, func.coalesce(places.c.part, s.part), s.time, s.created, s.score, s.cut, s.runners_up
    ).join_from(sightings, places, places.c.sighting == s.number, isouter=True)  # fmt: skip
    for at in range(start, stop, _TOGETHER):
        end = min(at + _TOGETHER, stop)
        some = query.where(s.number >= at, s.number < end).order_by(s.number)
        with journal._reading() as connection:  # columns of tables, for which the journal has no question
            rows: Sequence[Any] = connection.execute(some).cursor.fetchall()  # without SQLAlchemy's work on every row
        *columns, runners_up = list(zip(*rows, strict=True)) or [()] * 7
        yield _facts(columns, map(_second, runners_up), margin), end


def of_rows(rows: Sequence[SightingRow], part: int, margin: float) -> Facts:
    """The facts of sightings that are all in one part, one at least."""
    told = [(row.number, part, row.time, row.created, row.score, row.cut) for row in rows]
    seconds = (row.runners_up[0][1] if row.runners_up else _NONE for row in rows)
    return _facts(list(zip(*told, strict=True)), seconds, margin)


def _second(runners_up: str | None) -> float:
    """The score of the first of the runners-up, out of their JSON; reading all of it would take most of the time."""
    first, found, _ = (runners_up or "").partition("]")
    return float(first.split(",", 2)[1]) if found and "," in first else _NONE


def _facts(columns: Sequence[Sequence[Any]], seconds: Iterable[float], margin: float) -> Facts:
    """Facts of columns from the number to the cut, and of the scores of the first runners-up."""
    kinds = (np.int64, np.int64, np.float64, np.bool_, np.float64, np.float64)
    arrays: list[Any] = [np.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    number, part, time, created, score, cut = arrays  # a score that was forgotten is None, here NaN
    with np.errstate(invalid="ignore"):  # between infinite scores there is no distance that could be small
        doubtful = ~created & (score < cut)
        between = ~created & (score - np.fromiter(seconds, np.float64, len(number)) < margin)
        borderline = doubtful | between | (np.abs(score - cut) < margin)
    return Facts(number, part, time, created, doubtful, borderline).known(~np.isnan(score))
