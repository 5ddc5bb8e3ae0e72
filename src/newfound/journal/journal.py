"""The journal: what was seen and what people did, in order, in one file or one PostgreSQL database."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from sqlalchemy import Connection, select

from newfound.journal.database import Database
from newfound.journal.reading import Reader
from newfound.journal.schema import snapshots
from newfound.journal.writing import Writer


class Journal(Reader):
    """Sightings, events, snapshots. Any number of threads and processes read; one at a time writes.

    Every method raises JournalError when the database cannot do it: full, locked, lost, damaged. The journal can be
    used again afterwards.

    >>> with Journal.open(None) as journal:
    ...     journal.begin("a model", {"classes": ["cat", "dog"]}, b"what it knows")
    ...     journal.position()
    Position(sightings=0, events=0)
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.name = database.name  # for messages; without a password

    @classmethod
    def open(cls, where: str | os.PathLike[str] | None, *, read_only: bool = False, wait: float = 30.0) -> Journal:
        """Open a journal, and create it if there is none.

        Args:
            where: a path or ``sqlite:///path``; ``postgresql://user@host/database``; None: in memory.
            read_only: create and change nothing; so a file that may only be read will do.
            wait: how many seconds to wait for another's lock, as long as the same one has it, or for a server.

        Raises JournalError if it cannot be opened, is no journal, or is of a newer newfound; a file that is no journal
        is left as it is.
        """
        return cls(Database(where, read_only=read_only, wait=wait))

    @property
    def empty(self) -> bool:
        """Whether `begin` has yet to be called."""
        with self._reading() as connection:
            return connection.execute(select(snapshots.c.id).where(snapshots.c.genesis).limit(1)).first() is None

    def begin(self, model_fingerprint: str, about: dict[str, Any], genesis: bytes) -> None:
        """Write the first model and the state that the fold starts from; nothing if another process was faster."""
        if not self.empty:
            return
        with self.writing() as writer:
            if self.empty:
                writer.add_model(model_fingerprint, about, genesis)
                writer.snapshot(genesis, genesis=True)

    @contextmanager
    def writing(self) -> Iterator[Writer]:
        """One transaction under the journal's lock: committed at the end of the block, no trace after an exception.

        Questions to the journal itself inside the block, on the same thread, see what was written in it.
        """
        with self._database.write() as connection:
            yield Writer(connection, self.name, self._database.sweep_after)

    def sweep(self) -> bool:
        """Overwrite what SQLite's log may still hold of what was forgotten; whether some of it is left there."""
        return self._database.sweep()

    def close(self) -> None:
        """Close the connections; a journal in memory is gone."""
        self._database.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _reading(self) -> AbstractContextManager[Connection]:
        return self._database.read()
