"""SQLite's log holds old rows until it is overwritten: what was erased is to leave it too, whoever dies in between.

So an erasure commits a note with it that the log is to be swept; whoever has swept it takes the note away.
"""

from __future__ import annotations

from sqlalchemy import Connection
from sqlalchemy.engine.interfaces import DBAPICursor

_DUE = "unswept"  # a key in meta


def note(connection: Connection) -> None:
    """In the transaction that erases: the log is to be swept. Every erasure has a value of its own."""
    connection.exec_driver_sql(f"INSERT OR REPLACE INTO meta VALUES ('{_DUE}', hex(randomblob(16)))")


def sweep(cursor: DBAPICursor) -> bool:
    """Overwrite the log, if that is due. Returns whether it still is, as others that read are in the way."""
    due = cursor.execute(f"SELECT value FROM meta WHERE key = '{_DUE}'").fetchone()
    if due is None:
        return False
    busy = cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    if not busy:  # what another process has erased since stays noted
        cursor.execute(f"DELETE FROM meta WHERE key = '{_DUE}' AND value = ?", due)
    return bool(busy)
