"""Questions to a journal."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator
from contextlib import AbstractContextManager

from sqlalchemy import Connection, Select, func, select

from newfound.errors import JournalError
from newfound.journal.queries import all_of, chunks, fetch, first_of, numbers_in, position, searches
from newfound.journal.rows import (
    NEWFOUND,
    EventRow,
    Model,
    Position,
    SightingRow,
    Snapshot,
    as_text,
    unpack_event,
)
from newfound.journal.schema import events, models, places, sightings, snapshots


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
            seen = fetch(connection, all_of().where(sightings.c.number >= since.sightings))
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
            state: bytes | None = connection.scalar(select(models.c.taught).order_by(models.c.id.desc()).limit(1))
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
        return self._snapshot(select(snapshots.c.id))

    def genesis(self) -> Snapshot:
        """Where the fold starts. Raises JournalError if the journal is empty."""
        return self._snapshot(select(snapshots.c.id).where(snapshots.c.genesis))

    def find(self, contents: Iterable[bytes]) -> dict[bytes, SightingRow]:
        """The first sighting of each content that was seen."""
        with self._reading() as connection:
            first = [number for some in chunks(contents) for number in first_of(connection, some)]
            queries = [all_of().where(sightings.c.number.in_(some)) for some in chunks(first)]
            rows = [row for query in queries for row in fetch(connection, query)]
        return {row.content: row for row in rows if row.content is not None}

    def alike(self, contents: Iterable[bytes]) -> list[SightingRow]:
        """All sightings of these contents, by number."""
        with self._reading() as connection:
            queries = [all_of().where(sightings.c.content.in_(some)) for some in chunks(set(contents))]
            return [row for query in queries for row in fetch(connection, query)]

    def named(self, images: Iterable[str]) -> list[SightingRow]:
        """The sightings of images of these names, by number."""
        with self._reading() as connection:
            queries = [all_of().where(sightings.c.image.in_(some)) for some in chunks(map(as_text, images))]
            return [row for query in queries for row in fetch(connection, query)]

    def sightings(self, numbers: Iterable[int]) -> list[SightingRow]:
        """Those with these numbers, by number; a number that is not there is left out."""
        with self._reading() as connection:
            queries = [all_of().where(sightings.c.number.in_(some)) for some in chunks(sorted(set(numbers)))]
            return [row for query in queries for row in fetch(connection, query)]

    def stream(
        self, start: int = 0, stop: int | None = None, chunk: int = 1000, *, features: bool = True
    ) -> Iterator[list[SightingRow]]:
        """The sightings from `start` to before `stop`, in lists of `chunk`; a transaction each, so none lasts long."""
        while stop is None or start < stop:
            size = chunk if stop is None else min(chunk, stop - start)
            with self._reading() as connection:
                rows = fetch(connection, all_of(features).where(sightings.c.number >= start).limit(size))
            if not rows:
                return
            yield rows
            start = rows[-1].number + 1

    def members(
        self, parts: Collection[int], *, limit: int | None = None, offset: int = 0, newest_first: bool = False,
        features: bool = False,
    ) -> list[SightingRow]:  # fmt: skip
        """The sightings that are in one of these parts now, by number."""
        stop = None if limit is None else offset + limit
        with self._reading() as connection:
            found = [
                number
                for some in chunks(dict.fromkeys(parts))
                for number in connection.scalars(numbers_in(some, newest_first).limit(stop))
            ]
            chosen = sorted(found, reverse=newest_first)[offset:stop]
            query = all_of(features, newest_first)
            queries = [query.where(sightings.c.number.in_(some)) for some in chunks(chosen)]
            return [row for query in queries for row in fetch(connection, query)]

    def count_members(self, parts: Collection[int], *, since: int = 0) -> int:
        """How many sightings, from number `since` on, are in one of these parts now."""
        with self._reading() as connection:
            members = [numbers_in(some).subquery() for some in chunks(dict.fromkeys(parts))]
            counts = [select(func.count()).select_from(m).where(m.c.number >= since) for m in members]
            return sum(connection.scalar(count) or 0 for count in counts)

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
                for query in searches(parts, after, newest_first)
                for number in connection.scalars(query.limit(limit))
            ]
            chosen = sorted(found, reverse=newest_first)[:limit]
            return fetch(connection, all_of(False, newest_first).where(sightings.c.number.in_(chosen)))

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

    def standing(self) -> tuple[Position, dict[int, tuple[int, bool]], dict[int, int]]:
        """How much there is, the place of every sighting that has one, and how many sightings are in each part.

        All of it is of one moment.
        """
        now = func.coalesce(places.c.part, sightings.c.part)
        counts = select(now, func.count()).join_from(
            sightings, places, places.c.sighting == sightings.c.number, isouter=True
        )
        with self._reading() as connection:
            moved = {number: (part, bool(pinned)) for number, part, pinned in connection.execute(select(places))}
            in_parts = {part: count for part, count in connection.execute(counts.group_by(now))}
            return position(connection), moved, in_parts

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
        """The newest of those whose first piece the query asks for."""
        s = snapshots.c
        with self._reading() as connection:
            first = connection.scalar(query.where(s.piece == 0).order_by(s.id.desc()).limit(1))
            if first is None:
                raise JournalError(f"{self.name} is empty: it has no genesis.")
            later = connection.scalar(select(func.min(s.id)).where(s.id > first, s.piece == 0))
            rows = select(snapshots).where(s.id >= first).order_by(s.id)
            pieces = connection.execute(rows if later is None else rows.where(s.id < later)).all()
        row = pieces[0]
        state = row.state if len(pieces) == 1 else b"".join(piece.state for piece in pieces)
        return Snapshot(Position(row.sightings, row.events), state, row.genesis)
