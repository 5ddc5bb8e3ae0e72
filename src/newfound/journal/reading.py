"""Questions to a journal."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from typing import TypeVar

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


class Reader:
    """What can be asked, in one transaction a question."""

    name: str

    def _reading(self) -> AbstractContextManager[Connection]:
        raise NotImplementedError

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

    def count_members(self, parts: Collection[int]) -> int:
        """How many sightings are in one of these parts now."""
        with self._reading() as connection:
            return connection.scalar(select(func.count()).select_from(_numbers_in(parts).subquery())) or 0

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
        actor: str | None = None, newest_first: bool = False,
    ) -> list[EventRow]:  # fmt: skip
        """The events from number `since` on, of these kinds and this actor, by number."""
        query = select(events).where(events.c.number >= since).limit(limit)
        if kinds is not None:
            query = query.where(events.c.kind.in_(kinds))
        if actor is not None:
            query = query.where(events.c.actor == actor)
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


def chunks(values: Iterable[T]) -> Iterator[Sequence[T]]:
    """The values in lists that fit into one IN."""
    rest = iter(values)
    while some := list(islice(rest, _MANY)):
        yield some
