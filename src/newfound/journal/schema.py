"""The tables of a journal, their version, and the way from older versions to this one.

Version 1 is the first; version 2 stores a snapshot in pieces; version 3 says how probable runners-up are. To change a
table: change it here, add the step to `MIGRATIONS` under the version it starts from, and keep dumps of journals of the
new version in tests/journal/versions for ever: one with every kind of row, and one for each kind of dictionary that has
decided on a few sightings.
"""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa
from sqlalchemy import BigInteger, Boolean, Column, Connection, Double, ForeignKey, Integer, LargeBinary, Table, Text

from newfound.errors import JournalError

_VERSION = "newfound journal"  # the key in meta whose value is the version; no other program writes it
_Number = BigInteger().with_variant(Integer, "sqlite")  # only INTEGER PRIMARY KEY is SQLite's own row number

tables = sa.MetaData()

meta = Table("meta", tables, Column("key", Text, primary_key=True), Column("value", Text, nullable=False))

models = Table(
    "models", tables,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("fingerprint", Text, nullable=False),
    Column("about", Text, nullable=False),  # JSON
    Column("time", Double, nullable=False),
    Column("taught", LargeBinary, nullable=False),  # what it knew before it saw anything
)  # fmt: skip

# A forgotten sighting keeps what cannot be null; score, cut, runners_up and the rest become null.
sightings = Table(
    "sightings", tables,
    Column("number", _Number, primary_key=True, autoincrement=False),
    Column("image", Text),
    Column("content", LargeBinary, index=True),
    Column("part", BigInteger, nullable=False, index=True),
    Column("category", BigInteger, nullable=False),
    Column("created", Boolean, nullable=False),
    Column("score", Double),
    Column("cut", Double),
    Column("probability", Double),
    Column("new_probability", Double),
    Column("runners_up", Text),  # JSON: of each [category, score, probability]; without the last where there is none
    Column("feature", LargeBinary),
    Column("model", Integer, ForeignKey("models.id"), nullable=False),
    Column("time", Double, nullable=False),
)  # fmt: skip

events = Table(
    "events", tables,
    Column("number", _Number, primary_key=True, autoincrement=False),
    Column("at", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column("time", Double, nullable=False),
    Column("details", Text, nullable=False),  # JSON
)  # fmt: skip

places = Table(
    "places", tables,
    Column("sighting", _Number, ForeignKey("sightings.number"), primary_key=True, autoincrement=False),
    Column("part", BigInteger, nullable=False, index=True),
    Column("pinned", Boolean, nullable=False),
)  # fmt: skip

# A snapshot is one row or several: a database limits what fits into one value. Pieces follow each other by id.
snapshots = Table(
    "snapshots", tables,
    Column("id", Integer, primary_key=True),
    Column("sightings", BigInteger, nullable=False),
    Column("events", BigInteger, nullable=False),
    Column("genesis", Boolean, nullable=False),
    Column("state", LargeBinary, nullable=False),
    Column("piece", Integer, nullable=False, server_default="0"),  # 0, 1, 2, ...: the first one starts a snapshot
    sqlite_autoincrement=True,  # ids are never used again, so the newest has the highest
)  # fmt: skip


def _in_pieces(connection: Connection) -> None:
    """To version 2: what is there becomes the one piece of its snapshot."""
    connection.exec_driver_sql("ALTER TABLE snapshots ADD COLUMN piece INTEGER NOT NULL DEFAULT 0")


def _with_probabilities(connection: Connection) -> None:
    """To version 3: rows stay as they are, without probabilities; an older newfound could not read those to come."""


MIGRATIONS: dict[int, Callable[[Connection], None]] = {  # version n: what makes n + 1 of it
    1: _in_pieces, 2: _with_probabilities,
}  # fmt: skip


def newest() -> int:
    """The version that this newfound writes."""
    return 1 + len(MIGRATIONS)


def version(connection: Connection, name: str) -> int:
    """The version of the journal there, 0 if nothing is there yet.

    Raises JournalError if what is there is no journal, or one that this newfound is too old for.
    """
    inspector = sa.inspect(connection)
    names = set(inspector.get_table_names())
    found = None
    if "meta" in names and {"key", "value"} <= {column["name"] for column in inspector.get_columns("meta")}:
        found = connection.scalar(sa.select(meta.c.value).where(meta.c.key == _VERSION))
    if found is None:
        # A database server may hold other things beside a journal, a file may not.
        taken = names if connection.dialect.name == "sqlite" else names & set(tables.tables)
        if taken:
            raise JournalError(
                f"{name} is not a newfound journal: it has other tables ({', '.join(sorted(taken)[:5])}). It was not "
                f"touched; give the journal a file, schema or database of its own."
            )
        return 0
    if not str(found).isdecimal():
        raise JournalError(f"{name} is damaged: its version is {found!r}, not a number. Restore it from a backup.")
    if int(found) > newest():
        raise JournalError(
            f"{name} was written by a newer newfound (journal version {found}, here {newest()}); update newfound."
        )
    return int(found)


def upgrade(connection: Connection, name: str) -> None:
    """Create the tables, or bring them to the newest version; to be called under the journal's lock."""
    there = version(connection, name)  # again: another process may have been faster
    if there == 0:
        tables.create_all(connection)
        connection.execute(meta.insert().values(key=_VERSION, value=str(newest())))
        return
    for step in range(there, newest()):
        MIGRATIONS[step](connection)
        connection.execute(sa.update(meta).where(meta.c.key == _VERSION).values(value=str(step + 1)))
