"""Where a journal is kept, and how a connection to it is set up so that what is committed stays."""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import NullPool, QueuePool, StaticPool

from newfound.errors import JournalError
from newfound.journal import turns

_LOG = 4000  # pages, 16 MB: pages of indexes, which every block changes, go from the log to the file a quarter as often


def parse(where: str | os.PathLike[str] | None) -> Path | URL | None:
    """A file, a server, or None for memory. Raises JournalError if it is neither, without showing a password."""
    if where is None:
        return None
    try:
        text = os.fsdecode(where)
    except TypeError:
        raise JournalError(f"{where!r} is no place for a journal: give a path or a URL.") from None
    if "://" not in text:
        return None if text == ":memory:" else Path(text).absolute()
    help = "give a path, sqlite:///path, or postgresql://user@host/database"
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):  # whose message may hold the password
        raise JournalError(f"the journal's URL cannot be read; {help}.") from None
    kind = url.drivername.split("+")[0]
    if kind in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    if kind != "sqlite":
        raise JournalError(f"a journal cannot be kept in {kind!r}; {help}.")
    if url.query or url.host:
        raise JournalError(f"the URL of an SQLite journal has a path and nothing else; {help}.")
    return None if url.database in (None, "", ":memory:") else Path(str(url.database)).absolute()


def may_write(where: str | os.PathLike[str] | None) -> bool:
    """Whether a journal can be written, as far as permissions of its file and folder tell; a server is not asked."""
    place = parse(where)
    return not isinstance(place, Path) or (_writable(place) and _writable(_folder(place)))


def _writable(path: Path) -> bool:
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def _folder(path: Path) -> Path:
    """Where SQLite keeps its log: beside the file itself, not beside a link to it."""
    return path.resolve().parent


def sqlite_engine(path: Path | None, *, read_only: bool, wait: float) -> Engine:
    """Connections to a file, or to None: one in memory, shared by all threads."""

    def connect() -> sqlite3.Connection:
        address = ":memory:"
        if path is not None:
            address = f"file:{quote(os.fsencode(path))}?{_how_to_read(path) if read_only else 'mode=rwc'}"
        connection = sqlite3.connect(address, timeout=wait, uri=path is not None, check_same_thread=False)
        connection.isolation_level = None  # transactions begin where the listener below says
        if not read_only:
            if path is not None:
                _use_wal(connection, path, wait)
            for pragma in ("synchronous=FULL", "foreign_keys=ON", "secure_delete=ON", f"wal_autocheckpoint={_LOG}"):
                connection.execute(f"PRAGMA {pragma}")
        return connection

    if path is None:
        engine = create_engine("sqlite://", creator=connect, poolclass=StaticPool, hide_parameters=True)
    elif read_only and not _writable(_folder(path)):  # how to read is asked each time: others may begin to write
        engine = create_engine("sqlite://", creator=connect, poolclass=NullPool, hide_parameters=True)
    else:
        engine = create_engine("sqlite://", creator=connect, poolclass=QueuePool, max_overflow=-1, hide_parameters=True)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        if connection.get_execution_options().get("writes"):
            turns.begin_writing(connection)
        else:
            connection.exec_driver_sql("BEGIN")

    return engine


def _how_to_read(path: Path) -> str:
    """The mode in which SQLite can read a file as it is now.

    It needs the log and the log's index beside the file, and makes them where it can. Where it cannot, and there is
    neither, nobody is writing, and the file alone is the whole journal: it is read without locks.

    Raises:
        JournalError: there is a log that cannot be read without writing an index.
    """
    folder, name = _folder(path), path.resolve().name
    log, index = folder / f"{name}-wal", folder / f"{name}-shm"
    if _writable(folder) or (log.is_file() and index.is_file()):
        return "mode=ro"
    if log.is_file() and log.stat().st_size:
        raise JournalError(
            f"{path}: its last sightings are in {log.name}, which can only be read where its folder can be written. "
            f"Copy both files to such a folder, or open the journal once where it can be written."
        )
    return "mode=ro&immutable=1"


def _use_wal(connection: sqlite3.Connection, path: Path, wait: float) -> None:
    """Switch to WAL mode. Two processes that do so at once do not wait for each other's lock: SQLite would deadlock."""
    until = time.monotonic() + wait
    while True:
        try:
            mode = connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]
            break
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(0.01)
    if mode != "wal":
        raise JournalError(f"{path}: this file system cannot hold a journal; use a local disk, or PostgreSQL.")


def postgres_engine(url: URL, wait: float) -> Engine:
    """Connections to a server. Raises JournalError if the driver is not installed."""
    alive = {"keepalives": 1, "keepalives_idle": 20, "keepalives_interval": 10, "keepalives_count": 3}
    try:
        engine = create_engine(
            url, pool_pre_ping=True, pool_timeout=wait, hide_parameters=True,
            connect_args=alive | {"connect_timeout": max(2, round(wait))},
        )  # fmt: skip
    except ImportError as error:
        raise JournalError('a journal in PostgreSQL needs a driver: pip install "newfound[postgres]"') from error

    @event.listens_for(engine, "connect")
    def limits(connection: Any, _record: Any) -> None:
        # The server probes its side too: it then ends the transaction of a machine that has vanished.
        settings = {
            "lock_timeout": max(1, round(wait * 1000)), "idle_in_transaction_session_timeout": round(turns.IDLE * 1000),
            "tcp_keepalives_idle": 20, "tcp_keepalives_interval": 10, "tcp_keepalives_count": 3,
        }  # fmt: skip
        connection.execute("; ".join(f"SET {key} = {value}" for key, value in settings.items()))
        connection.commit()

    return engine
