"""The one transaction that writes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from sqlalchemy import Connection, Table, delete, func, insert, select, update

from newfound.errors import JournalError
from newfound.journal import schema
from newfound.journal.queries import chunks, marks, position
from newfound.journal.reading import Reader
from newfound.journal.rows import (
    NUMBER,
    EventRow,
    Packed,
    Position,
    SightingRow,
    pack_event,
    pack_sighting,
    to_json,
)
from newfound.journal.schema import models, snapshots

Places = Mapping[int, tuple[int, bool]]

_KEPT = 2  # snapshots besides the genesis: one to start from, and the one before it
_PIECE = 1 << 26  # bytes of a snapshot in one row: SQLite takes 10^9 at the most, PostgreSQL 2^30
_OR_MOVE = " ON CONFLICT (sighting) DO UPDATE SET part = excluded.part, pinned = excluded.pinned"


class Writer(Reader):
    """Reads and writes inside `Journal.writing`: it sees everything committed and written here, and nobody else writes.

    Args:
        sweep: called when something was forgotten, to have the database's log overwritten after the commit.
    """

    def __init__(self, connection: Connection, name: str, sweep: Callable[[], None]) -> None:
        self.name = name
        self._connection = connection
        self._sweep = sweep
        self._reached = position(connection)

    def position(self) -> Position:
        """How much there is, with what was appended here."""
        return self._reached

    def append(
        self, sightings: Sequence[SightingRow], events: Sequence[EventRow] = (), places: Places | None = None
    ) -> None:
        """Add sightings and events, and say where sightings are now: number -> (part, whether a person put it there).

        Raises JournalError if the numbers do not continue those of the journal without gaps.
        """
        self.append_packed(list(map(pack_sighting, sightings)), events, places)

    def append_packed(
        self, sightings: Sequence[Packed], events: Sequence[EventRow] = (), places: Places | None = None
    ) -> None:
        """As `append`, with the sightings as rows of the table."""
        reached = self._reached
        self._must_continue("sighting", reached.sightings, [row[NUMBER] for row in sightings])
        self._must_continue("event", reached.events, [row.number for row in events])
        self._insert(schema.sightings, sightings)
        self._insert(schema.events, list(map(pack_event, events)))
        moved = [(number, part, pinned) for number, (part, pinned) in (places or {}).items()]
        self._insert(schema.places, moved, _OR_MOVE)
        self._reached = Position(reached.sightings + len(sightings), reached.events + len(events))

    def add_model(self, fingerprint: str, about: dict[str, Any], taught: bytes) -> int:
        """Who writes from now on, and what it knew before it saw anything; returns its id."""
        last = self._connection.scalar(select(func.max(models.c.id)))
        row = {"id": (last or 0) + 1, "fingerprint": fingerprint, "about": to_json(about), "time": time.time()}
        self._connection.execute(insert(models).values(row | {"taught": taught}))
        return row["id"]  # type: ignore[return-value]

    def snapshot(self, state: bytes, *, genesis: bool = False) -> None:
        """Keep the state at the position reached. A genesis replaces all; else it and the newest two others stay."""
        here = {"sightings": self._reached.sightings, "events": self._reached.events}
        if genesis:
            self._connection.execute(delete(snapshots))
        else:
            self._make_room()
        whole = memoryview(state)
        for piece, start in enumerate(range(0, max(1, len(whole)), _PIECE)):
            values = here | {"genesis": genesis, "piece": piece, "state": whole[start : start + _PIECE]}
            self._connection.execute(insert(snapshots).values(values))

    def _make_room(self) -> None:
        """Drop the oldest snapshots before there is one more: so SQLite writes over their pages instead of erasing them
        and filling others."""
        others = select(snapshots.c.id).where(~snapshots.c.genesis, snapshots.c.piece == 0)
        kept = self._connection.scalar(others.order_by(snapshots.c.id.desc()).offset(_KEPT - 2).limit(1))
        if kept is not None:
            self._connection.execute(delete(snapshots).where(~snapshots.c.genesis, snapshots.c.id < kept))

    def forget(self, numbers: Iterable[int]) -> None:
        """Erase what tells of these images; number, part, category, created, model and time stay as a tombstone.

        SQLite overwrites the old rows; in PostgreSQL they go with the server's next vacuum.
        """
        tombstone = {column.name: None for column in schema.sightings.c if column.nullable}
        for some in chunks(numbers):
            self._connection.execute(
                update(schema.sightings).where(schema.sightings.c.number.in_(some)).values(tombstone)
            )
        self._sweep()

    def _reading(self) -> AbstractContextManager[Connection]:
        return nullcontext(self._connection)

    def _insert(self, table: Table, rows: Sequence[tuple[Any, ...]], otherwise: str = "") -> None:
        """Tuples straight to the driver's executemany: building statements from dicts takes as long as the database."""
        if not rows:
            return
        values = marks(self._connection, len(table.c))
        self._connection.exec_driver_sql(f"INSERT INTO {table.name} VALUES ({values}){otherwise}", rows)

    def _must_continue(self, what: str, start: int, numbers: list[int]) -> None:
        for due, number in enumerate(numbers, start):
            if number != due:
                raise JournalError(f"{self.name}: {what} {number} was given where {due} comes next.")
