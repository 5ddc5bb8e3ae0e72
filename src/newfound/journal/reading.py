"""Questions to a journal."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from typing import NamedTuple, TypeVar

from sqlalchemy import Connection, Select, func, literal_column, select, union_all

from newfound.errors import JournalError
from newfound.journal.rows import (
    NEWFOUND,
    EventRow,
    Model,
    Position,
    SightingRow,
    Snapshot,
    as_text,
    unpack_event,
    unpack_sighting,
)
from newfound.journal.schema import events, models, places, sightings, snapshots

_MANY = 5000  # values in one IN: SQLite takes 32,766, PostgreSQL 65,535

T = TypeVar("T")


class Fact(NamedTuple):
    """What there is to tell of a sighting without its image and its feature; `part` is where it is now."""

    number: int
    part: int
    created: bool
    score: float | None
    cut: float | None
    runners_up: tuple[tuple[int, float], ...]
    time: float


class Reader(ABC):
    """What can be asked, in one transaction a question."""

    name: str

    @abstractmethod
    def _reading(self) -> AbstractContextManager[Connection]:
        """A connection for one question: of a transaction of its own, or of the one that writes."""

    def position(self) -> Position:
        """How much there is."""
        with self._reading() as connection:
            return position(connection)

    def tail(self, since: Position, *, derived: bool = True) -> tuple[list[SightingRow], list[EventRow]]:
        """Everything after a position, of one moment.

        Args:
            derived: with the events that say what the dictionary did by itself.
        """
        later = select(events).where(events.c.number >= since.events).order_by(events.c.number)
        if not derived:
            later = later.where(events.c.actor != NEWFOUND)
        with self._reading() as connection:
            seen = _sightings(connection, _columns().where(sightings.c.number >= since.sightings))
            return seen, [unpack_event(row) for row in connection.execute(later)]

    def model(self) -> Model:
        """The newest. Raises JournalError if the journal is empty."""
        with self._reading() as connection:
            row = connection.execute(select(models).order_by(models.c.id.desc()).limit(1)).first()
        if row is None:
            raise JournalError(f"{self.name} is empty: no model has written to it.")
        return Model(row.id, row.fingerprint, json.loads(row.about), row.time)

    def models(self) -> list[tuple[Model, bytes]]:
        """All that have answered, oldest first, each with what it knew before it saw anything."""
        with self._reading() as connection:
            rows = connection.execute(select(models).order_by(models.c.id)).all()
        return [(Model(row.id, row.fingerprint, json.loads(row.about), row.time), row.taught) for row in rows]

    def taught(self) -> bytes:
        """What the newest model knew before it saw anything. Raises JournalError if the journal is empty."""
        with self._reading() as connection:
            state = connection.scalar(select(models.c.taught).order_by(models.c.id.desc()).limit(1))
        if state is None:
            raise JournalError(f"{self.name} is empty: no model has written to it.")
        return state

    def snapshot_position(self) -> Position:
        """Where the newest snapshot was taken."""
        query = select(snapshots.c.sightings, snapshots.c.events).order_by(snapshots.c.id.desc()).limit(1)
        with self._reading() as connection:
            row = connection.execute(query).first()
        return Position(0, 0) if row is None else Position(row.sightings, row.events)

    def latest_snapshot(self) -> Snapshot:
        """The newest. Raises JournalError if the journal is empty."""
        return self._snapshot(select(snapshots))

    def genesis(self) -> Snapshot:
        """Where the fold starts. Raises JournalError if the journal is empty."""
        return self._snapshot(select(snapshots).where(snapshots.c.genesis))

    def find(self, contents: Iterable[bytes]) -> dict[bytes, SightingRow]:
        """The first sighting of each content that was seen."""
        with self._reading() as connection:
            first = [number for some in chunks(contents) for number in _first(connection, some)]
            queries = [_columns().where(sightings.c.number.in_(some)) for some in chunks(first)]
            rows = [row for query in queries for row in _sightings(connection, query)]
        return {row.content: row for row in rows if row.content is not None}

    def alike(self, contents: Iterable[bytes]) -> list[SightingRow]:
        """All sightings of these contents, by number."""
        with self._reading() as connection:
            queries = [_columns().where(sightings.c.content.in_(some)) for some in chunks(set(contents))]
            return [row for query in queries for row in _sightings(connection, query)]

    def named(self, images: Iterable[str]) -> list[SightingRow]:
        """The sightings of images of these names, by number."""
        with self._reading() as connection:
            queries = [_columns().where(sightings.c.image.in_(some)) for some in chunks(map(as_text, images))]
            return [row for query in queries for row in _sightings(connection, query)]

    def sightings(self, numbers: Iterable[int]) -> list[SightingRow]:
        """Those with these numbers, by number; a number that is not there is left out."""
        with self._reading() as connection:
            queries = [_columns().where(sightings.c.number.in_(some)) for some in chunks(sorted(set(numbers)))]
            return [row for query in queries for row in _sightings(connection, query)]

    def stream(
        self, start: int = 0, stop: int | None = None, chunk: int = 1000, *, features: bool = True
    ) -> Iterator[list[SightingRow]]:
        """The sightings from `start` to before `stop`, in lists of `chunk`; a transaction each, so none lasts long."""
        while stop is None or start < stop:
            size = chunk if stop is None else min(chunk, stop - start)
            with self._reading() as connection:
                rows = _sightings(connection, _columns(features).where(sightings.c.number >= start).limit(size))
            if not rows:
                return
            yield rows
            start = rows[-1].number + 1

    def members(
        self, parts: Collection[int], *, limit: int | None = None, offset: int = 0, newest_first: bool = False,
        features: bool = False,
    ) -> list[SightingRow]:  # fmt: skip
        """The sightings that are in one of these parts now, by number."""
        query = _columns(features, newest_first).where(sightings.c.number.in_(_numbers_in(parts)))
        with self._reading() as connection:
            return _sightings(connection, query.limit(limit).offset(offset))

    def count_members(self, parts: Collection[int], *, since: int = 0) -> int:
        """How many sightings, from number `since` on, are in one of these parts now."""
        members = _numbers_in(parts).subquery()
        query = select(func.count()).select_from(members).where(members.c.number >= since)
        with self._reading() as connection:
            return connection.scalar(query) or 0

    def page(
        self, parts: Collection[int], *, after: int | None = None, limit: int = 50, newest_first: bool = False
    ) -> list[SightingRow]:
        """The sightings that are in one of these parts now, by number, from beyond the number `after`.

        It takes as long for the last page of a large category as for the first.

        Args:
            limit: how many, 5000 at the most.
        """
        with self._reading() as connection:
            found = [
                number
                for query in _searches(parts, after, newest_first)
                for number in connection.scalars(query.limit(limit))
            ]
            chosen = sorted(found, reverse=newest_first)[:limit]
            return _sightings(connection, _columns(False, newest_first).where(sightings.c.number.in_(chosen)))

    def facts(self, start: int = 0, stop: int | None = None, chunk: int = 5000) -> Iterator[list[Fact]]:
        """What is known of the sightings from `start` to before `stop`, by number, in lists; a transaction each."""
        s, now = sightings.c, func.coalesce(places.c.part, sightings.c.part)
        query = select(s.number, now, s.created, s.score, s.cut, s.runners_up, s.time).order_by(s.number)
        query = query.join_from(sightings, places, places.c.sighting == s.number, isouter=True)
        while stop is None or start < stop:
            size = chunk if stop is None else min(chunk, stop - start)
            with self._reading() as connection:
                rows = connection.execute(query.where(s.number >= start).limit(size)).all()
            if not rows:
                return
            yield [
                Fact(number, part, bool(created), score, cut, tuple(map(tuple, json.loads(others or "[]"))), time)
                for number, part, created, score, cut, others, time in rows
            ]
            start = rows[-1][0] + 1

    def place(self, numbers: Iterable[int]) -> dict[int, int]:
        """The part each sighting is in now: that of its answer unless it was moved."""
        now = func.coalesce(places.c.part, sightings.c.part)
        query = select(sightings.c.number, now).join_from(
            sightings, places, places.c.sighting == sightings.c.number, isouter=True
        )
        with self._reading() as connection:
            queries = [query.where(sightings.c.number.in_(some)) for some in chunks(numbers)]
            return {number: part for query in queries for number, part in connection.execute(query)}

    def pinned(self, numbers: Iterable[int]) -> set[int]:
        """Those of the sightings that a person has put where they are."""
        query = select(places.c.sighting).where(places.c.pinned)
        with self._reading() as connection:
            queries = [query.where(places.c.sighting.in_(some)) for some in chunks(numbers)]
            return {number for query in queries for number in connection.scalars(query)}

    def events(
        self, *, since: int = 0, limit: int | None = None, kinds: Collection[str] | None = None,
        actor: str | None = None, newest_first: bool = False, derived: bool = True,
    ) -> list[EventRow]:  # fmt: skip
        """The events from number `since` on, of these kinds and this actor, by number; `derived` as in `tail`."""
        query = select(events).where(events.c.number >= since).limit(limit)
        if kinds is not None:
            query = query.where(events.c.kind.in_(kinds))
        if actor is not None:
            query = query.where(events.c.actor == actor)
        if not derived:
            query = query.where(events.c.actor != NEWFOUND)
        query = query.order_by(events.c.number.desc() if newest_first else events.c.number)
        with self._reading() as connection:
            return [unpack_event(row) for row in connection.execute(query)]

    def _snapshot(self, query: Select) -> Snapshot:
        with self._reading() as connection:
            row = connection.execute(query.order_by(snapshots.c.id.desc()).limit(1)).first()
        if row is None:
            raise JournalError(f"{self.name} is empty: it has no genesis.")
        return Snapshot(Position(row.sightings, row.events), row.state, row.genesis)


def position(connection: Connection) -> Position:
    """How much there is; numbers have no gaps, so the last one tells."""
    last = [select(func.max(table.c.number)).scalar_subquery() for table in (sightings, events)]
    seen, happened = connection.execute(select(*last)).one()
    return Position(0 if seen is None else seen + 1, 0 if happened is None else happened + 1)


def marks(connection: Connection, count: int) -> str:
    """Places for so many values in a statement that goes straight to the driver."""
    return ", ".join(["?" if connection.dialect.name == "sqlite" else "%s"] * count)


def _first(connection: Connection, contents: Sequence[bytes]) -> Sequence[int]:
    """Asked for every block of images, most of which are new: without SQLAlchemy's work on every value."""
    known = f"content IN ({marks(connection, len(contents))})"
    query = f"SELECT min(number) FROM sightings WHERE {known} GROUP BY content"
    return connection.exec_driver_sql(query, tuple(contents)).scalars().all()


def _columns(features: bool = True, newest_first: bool = False) -> Select:
    columns = [literal_column("NULL") if c.name == "feature" and not features else c for c in sightings.c]
    return select(*columns).order_by(sightings.c.number.desc() if newest_first else sightings.c.number)


def _sightings(connection: Connection, query: Select) -> list[SightingRow]:
    return [unpack_sighting(row) for row in connection.execute(query)]


def _numbers_in(parts: Collection[int]) -> Select:
    """Two searches by index, which a join over coalesce(place, part) would not be."""
    moved = select(places.c.sighting).where(places.c.sighting == sightings.c.number).exists()
    return union_all(
        select(sightings.c.number).where(sightings.c.part.in_(parts), ~moved),
        select(places.c.sighting).where(places.c.part.in_(parts)),
    )  # type: ignore[return-value]


def _searches(parts: Collection[int], after: int | None, newest_first: bool) -> Iterator[Select]:
    """The numbers of the sightings in each part: one search by index for those it was answered with, one for those
    that came later. A single query over all parts would sort every member before it gives the first."""
    moved = select(places.c.sighting).where(places.c.sighting == sightings.c.number).exists()
    for part in parts:
        for number, here in (
            (sightings.c.number, (sightings.c.part == part) & ~moved),
            (places.c.sighting, places.c.part == part),
        ):
            query = select(number).where(here).order_by(number.desc() if newest_first else number)
            yield query if after is None else query.where(number < after if newest_first else number > after)


def chunks(values: Iterable[T]) -> Iterator[Sequence[T]]:
    """The values in lists that fit into one IN."""
    rest = iter(values)
    while some := list(islice(rest, _MANY)):
        yield some
