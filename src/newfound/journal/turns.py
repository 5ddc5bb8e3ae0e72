"""Whose turn it is to write: who waits does so as long as the lock changes hands; who has it keeps it while alive.

PostgreSQL's lock is an advisory one that goes with the transaction; the server serves writers in their order.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

IDLE = 20.0  # seconds without a sign of life, after which the server ends a transaction: fewer than others wait for it

_KEY = "hashtextextended('newfound journal ' || current_schema(), 0)"
_TRY = f"SELECT pg_try_advisory_xact_lock({_KEY})"
_WAIT = f"SELECT pg_advisory_xact_lock({_KEY})"
_HOLDER = (
    "SELECT virtualtransaction FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1 "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
    f"AND (classid::bigint << 32) | objid::bigint = {_KEY}"
)
_GIVEN_UP = "55P03"


def lock(connection: Connection, wait: float) -> None:
    """Take the lock of a journal in PostgreSQL. Raises DBAPIError if one transaction has kept it for `wait` seconds."""
    if connection.exec_driver_sql(_TRY).scalar():
        return
    while True:
        holder = connection.exec_driver_sql(_HOLDER).scalar()
        try:
            with connection.begin_nested():  # so that to give up does not end the transaction
                connection.exec_driver_sql(f"SET LOCAL lock_timeout = {max(1, round(wait * 1000))}")
                connection.exec_driver_sql(_WAIT)
            return
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) != _GIVEN_UP:
                raise
            if holder is not None and connection.exec_driver_sql(_HOLDER).scalar() == holder:
                raise
        wait *= 2  # who gives up goes to the end of the queue; so it waits the whole of one out, however long


def begin_writing(connection: Connection) -> None:
    """Begin in SQLite. Raises DBAPIError if it is locked for as long as the connection waits, and nobody commits."""
    while True:
        before = _commits(connection)
        try:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            return
        except DBAPIError as error:
            if "is locked" not in str(error.orig) or _commits(connection) == before:
                raise


def _commits(connection: Connection) -> Any:
    """A number that changes when another connection commits, in SQLite."""
    return connection.exec_driver_sql("PRAGMA data_version").scalar()


class Pulse:
    """Tells PostgreSQL now and then that whoever writes lives, so that it may decide for as long as that takes.

    A process that hangs as a whole, as one that is stopped or swapped out, tells nothing, and loses its transaction.
    """

    def __init__(self) -> None:
        self._writing: Any = None  # the driver's connection, while there is something to tell of it
        self._turn = threading.Lock()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None  # one for all transactions: to start one takes as long as a block

    @contextmanager
    def of(self, connection: Connection) -> Iterator[None]:
        """Inside the block, tell of this connection's transaction."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._tell, name="newfound-pulse", daemon=True)
            self._thread.start()
        self._writing = connection.connection.dbapi_connection
        try:
            yield
        finally:
            with self._turn:
                self._writing = None

    def stop(self) -> None:
        self._over.set()

    def _tell(self) -> None:
        while not self._over.wait(IDLE / 4):
            with self._turn, suppress(Exception):  # of a lost connection whoever writes will hear
                if self._writing is not None:
                    self._writing.execute("SELECT 1")
