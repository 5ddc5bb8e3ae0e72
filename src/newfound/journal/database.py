"""Connections: one transaction for reading, one for writing under the journal's lock, on SQLite and PostgreSQL.

SQLite works in WAL mode: readers never wait, and one process writes at a time. PostgreSQL's writers queue at an
advisory lock that goes with the transaction, so one that dies or hangs holds nobody up; see `turns`.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, NoReturn

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from newfound.errors import JournalError
from newfound.journal import schema, sweeping, turns
from newfound.journal.engines import parse, postgres_engine, sqlite_engine
from newfound.journal.failures import explain


class Database:
    """A database with the tables of a journal, of the newest version.

    Args:
        where: a path, a URL, or None for one in memory; as `Journal.open` says.
        read_only: nothing is created, and `write` raises JournalError.
        wait: seconds to wait for others' locks, as long as nothing moves: a queue is waited out, however long it is.
    """

    def __init__(self, where: str | os.PathLike[str] | None, *, read_only: bool = False, wait: float = 30.0) -> None:
        self.read_only, self.wait = read_only, wait
        self._turn = threading.RLock()  # writers of this process queue here, and in memory also its readers
        self._turns = 0  # that writers of this process have had
        self._pulse = turns.Pulse()
        self._thread = threading.local()  # .connection: this thread's transaction, while it writes
        self._closed = False
        self._unswept = False
        url = parse(where)
        self._in_memory = url is None
        self._file = url if isinstance(url, Path) else None
        self._opened: os.stat_result | None = None
        if url is None:
            self.name = "the journal in memory"
            self._engine = sqlite_engine(None, read_only=False, wait=wait)
        elif isinstance(url, Path):
            self.name = str(url)
            self._check_file(url)
            self._engine = sqlite_engine(url, read_only=read_only, wait=wait)
        else:
            shown = url.set(drivername="postgresql").difference_update_query(["password"])
            self.name = shown.render_as_string(hide_password=True)
            self._engine = postgres_engine(url, wait)
        self.is_sqlite = self._engine.dialect.name == "sqlite"
        # Reads see one moment. A writer on PostgreSQL must not: its moment would be the one before it got the lock.
        reader: dict[str, Any] = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        writer: dict[str, Any] = {"isolation_level": "READ COMMITTED"}
        if self.is_sqlite:
            reader, writer = {}, {"writes": True}
        self._reader = self._engine.execution_options(**reader)
        self._writer = self._engine.execution_options(**writer)
        try:
            self._prepare()
            self._opened = None if self._file is None else self._file.stat()
            self.sweep()
        except BaseException:
            self._pulse.stop()
            self._engine.dispose()
            raise

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that sees one moment; inside `write`, on the same thread, the writing one."""
        self._must_be_open()
        mine = getattr(self._thread, "connection", None)
        if mine is not None:
            yield mine
            return
        with self._turn if self._in_memory else nullcontext():
            try:
                with self._reader.begin() as connection:
                    yield connection
            except Exception as error:
                self._raise(error)

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """The transaction that writes: one at a time over all processes; commits at the end, or leaves no trace."""
        self._must_be_open()
        if self.read_only:
            raise JournalError(f"{self.name} was opened for reading only; open it without read_only.")
        if getattr(self._thread, "connection", None) is not None:
            raise JournalError(f"{self.name}: this thread is writing already; finish that block first.")
        self._take_turn()
        committing = False
        try:
            with self._writer.connect() as connection:
                transaction = connection.begin()
                try:
                    if not self.is_sqlite:
                        turns.lock(connection, self.wait)
                    self._thread.connection = connection
                    with nullcontext() if self.is_sqlite else self._pulse.of(connection):
                        yield connection
                    self._must_be_there()
                    committing = True
                    transaction.commit()
                except BaseException:
                    with suppress(DBAPIError):  # a lost connection cannot roll back; the server does
                        transaction.rollback()
                    raise
                finally:
                    self._thread.connection = None
            if self._unswept:
                self.sweep()
        except Exception as error:
            self._raise(error, writing=True, committing=committing)
        finally:
            self._turn.release()

    def _take_turn(self) -> None:
        """Wait for other threads of this process, as long as they take turns."""
        while True:
            before = self._turns
            if self._turn.acquire(timeout=self.wait):
                self._turns += 1
                return
            if self._turns == before:
                why = f"another thread has written for more than {self.wait:g} s; try again."
                raise JournalError(f"{self.name}: {why}")

    def sweep_after(self) -> None:
        """After the commit, overwrite what SQLite's log holds of old rows. That it is due is committed with them."""
        if self._file is not None:
            sweeping.note(self._thread.connection)
            self._unswept = True

    def sweep(self) -> bool:
        """Overwrite what SQLite's log holds of old rows, if that is due, also if whoever erased them was killed.

        Returns whether it still is: others that read are in the way. The next block, opening or `forget` tries again.
        """
        self._must_be_open()
        if self._file is None or self.read_only:
            return False
        self._unswept = True
        with suppress(DBAPIError, sqlite3.Error):  # the block is committed: to sweep later is no failure of it
            connection = self._engine.raw_connection()
            try:
                self._unswept = sweeping.sweep(connection.cursor())
            finally:
                connection.close()
        return self._unswept

    def close(self) -> None:
        """Close all connections; the last process to do so leaves a single file."""
        if self._closed:
            return
        if self._unswept:
            self.sweep()
        self._closed = True
        self._pulse.stop()
        self._engine.dispose()

    def _prepare(self) -> None:
        with self.read() as connection:
            there = schema.version(connection, self.name)
        if there == schema.newest():
            return
        if self.read_only:
            if there == 0:
                raise JournalError(f"{self.name} is not a journal yet: nothing is in it.")
            raise JournalError(
                f"{self.name} was written by an older newfound (journal version {there}); open it once where it can "
                f"be written, or a copy of it, which brings it to version {schema.newest()}."
            )
        with self.write() as connection:
            schema.upgrade(connection, self.name)

    def _check_file(self, path: Path) -> None:
        """Refuse what is no journal before SQLite may change a byte of it; make the folders for a new one."""
        try:
            if path.exists() and not path.is_file():
                raise JournalError(f"{self.name} is not a file; give the path of a journal's file.")
            if path.is_file() and path.stat().st_size:
                with path.open("rb") as file:
                    if file.read(16) != b"SQLite format 3\0":
                        raise JournalError(
                            f"{self.name} is not a newfound journal (not an SQLite file). It was not touched."
                        )
            elif self.read_only:
                raise JournalError(f"{self.name}: there is no journal.")
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                return
        except OSError as error:
            raise JournalError(f"{self.name} cannot be opened ({error.strerror or error}).") from error
        engine = sqlite_engine(path, read_only=True, wait=self.wait)
        try:
            with engine.begin() as connection:
                schema.version(connection, self.name)
        except DBAPIError as error:
            self._raise(error)
        finally:
            engine.dispose()

    def _must_be_there(self) -> None:
        """SQLite goes on in a file that nobody can find any more: what is committed to it is gone with the process."""
        if self._file is None or self._opened is None:
            return
        with suppress(OSError):
            if os.path.samestat(self._file.stat(), self._opened):
                return
        raise JournalError(
            f"{self.name} was removed, moved or replaced while it was open: nothing more is written. End this program, "
            "put the file back beside its -wal file, or a backup in its place, and start again."
        )

    def _must_be_open(self) -> None:
        if self._closed:
            raise JournalError(f"{self.name} is closed; open it again.")

    def _raise(self, error: Exception, *, writing: bool = False, committing: bool = False) -> NoReturn:
        self._must_be_there()  # else whatever failed is told of a file that this is not
        explained = explain(error, self.name, self.wait, writing=writing, committing=committing)
        if explained is None:
            raise error
        raise explained from error
