"""What went wrong in a database, in words for people."""

from __future__ import annotations

from sqlalchemy.exc import DBAPIError, TimeoutError

from newfound.errors import JournalError

UNTOUCHED = "Nothing of this block was written, and nothing written before is lost."
UNKNOWN = (
    "it is unknown whether the block that was being committed was written. Giving the same images again is safe: "
    "those that are there already are known by their content."
)

_FULL = "the disk is full; make room and try again."
_READ_ONLY = "it may only be read; change the permissions of the file and its folder, or choose another place."
_LOCKED = "another process has kept it locked for more than {wait:g} s; try again, or end that process."
_DAMAGED = "it is damaged; restore it from a backup (SQLite: `sqlite3 FILE .recover` saves what can be read)."
_LOST = "the connection to the server was lost; try again when the server can be reached."

# Words of SQLite's messages: Python 3.10 does not give its error codes.
_SQLITE = {
    "is full": _FULL,
    "readonly database": _READ_ONLY,
    "unable to open database file": "it cannot be opened; its folder may not be written to, or the path is no file.",
    "is locked": _LOCKED,
    "malformed": _DAMAGED,
    "file is not a database": "it is not a newfound journal (not an SQLite file). It was not touched.",
    "disk I/O error": "the disk reports an error; it may be full, failing, or a network folder.",
}

# https://www.postgresql.org/docs/current/errcodes-appendix.html
_POSTGRES = {
    "53100": _FULL,
    "53300": "the server has no connection left (max_connections); close some, or raise it.",
    "25006": "the server only reads (a standby, or a read-only role); give the address of the primary.",
    "42501": "this user may not do that; grant the rights to create, read and write tables in the schema.",
    "55P03": _LOCKED,
    "25P03": "the server ended a transaction whose process gave no sign of life, as one that is stopped; try again.",
    "57P01": _LOST,
    "57P02": _LOST,
    "57P03": _LOST,
    "XX001": _DAMAGED,
    "XX002": _DAMAGED,
}


def explain(error: Exception, name: str, wait: float, *, writing: bool, committing: bool) -> JournalError | None:
    """The error for people, None if it is a mistake in the program that should be seen as it is.

    Args:
        error: as raised by SQLAlchemy.
        name: of the journal.
        wait: for how many seconds a lock is waited for.
        writing: in a transaction that writes, so that it is worth saying what became of it.
        committing: the commit itself failed.
    """
    if isinstance(error, TimeoutError):
        return JournalError(f"{name}: all connections have been in use for more than {wait:g} s; try again.")
    if not isinstance(error, DBAPIError):
        return None
    words = str(error.orig).strip()
    known = _POSTGRES.get(getattr(error.orig, "sqlstate", None) or "")
    if known is None and error.connection_invalidated:
        known = _LOST
    if known is None:
        known = next((text for part, text in _SQLITE.items() if part in words), None)
    if known is None and type(error).__name__ != "OperationalError":
        return None
    lines = f"{name}: {(known or 'the database cannot be used.').format(wait=wait)} ({' '.join(words.split())})"
    # An I/O error may come from the last fsync, when all is written; a lost connection after the server's commit.
    if committing and (error.connection_invalidated or known == _LOST or "I/O error" in words):
        return JournalError(f"{lines} Beware: {UNKNOWN}")
    return JournalError(f"{lines} {UNTOUCHED}" if writing else lines)
