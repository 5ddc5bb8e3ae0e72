"""The statements behind a journal's questions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from sqlalchemy import CompoundSelect, Connection, Select, literal_column, select, text, union_all

from newfound.journal.rows import Position, SightingRow, unpack_sighting
from newfound.journal.schema import places, sightings

_MANY = 5000  # values in one IN: SQLite takes 32,766, PostgreSQL 65,535
_LAST = "SELECT (SELECT max(number) FROM sightings), (SELECT max(number) FROM events)"

T = TypeVar("T")


def position(connection: Connection) -> Position:
    """How much there is; numbers have no gaps, so the last one tells.

    Asked for every block, so in plain words: to build the question takes longer than to answer it.
    """
    seen, happened = connection.exec_driver_sql(_LAST).one()
    return Position(0 if seen is None else seen + 1, 0 if happened is None else happened + 1)


def marks(connection: Connection, count: int) -> str:
    """Places for so many values in a statement that goes straight to the driver."""
    return ", ".join(["?" if connection.dialect.name == "sqlite" else "%s"] * count)


def first_of(connection: Connection, contents: Sequence[bytes]) -> Sequence[int]:
    """The numbers of the first sightings of contents.

    Asked for every block of images, most of which are new: without SQLAlchemy's work on every value.
    """
    known = f"content IN ({marks(connection, len(contents))})"
    query = f"SELECT min(number) FROM sightings WHERE {known} GROUP BY content"
    return connection.exec_driver_sql(query, tuple(contents)).scalars().all()


def all_of(features: bool = True, newest_first: bool = False) -> Select:
    """All of every sighting, by number."""
    columns = [literal_column("NULL") if c.name == "feature" and not features else c for c in sightings.c]
    return select(*columns).order_by(sightings.c.number.desc() if newest_first else sightings.c.number)


def fetch(connection: Connection, query: Select) -> list[SightingRow]:
    """What a query of `all_of` finds."""
    return [unpack_sighting(row) for row in connection.execute(query)]


def numbers_in(parts: Collection[int], newest_first: bool = False) -> CompoundSelect:
    """The numbers of the sightings in one of these parts, which fit into one IN.

    Two searches by index, which a join over coalesce(place, part) would not be.
    """
    moved = select(places.c.sighting).where(places.c.sighting == sightings.c.number).exists()
    return union_all(
        select(sightings.c.number.label("number")).where(sightings.c.part.in_(parts), ~moved),
        select(places.c.sighting).where(places.c.part.in_(parts)),
    ).order_by(text("number DESC" if newest_first else "number"))


def searches(parts: Collection[int], after: int | None, newest_first: bool) -> Iterator[Select]:
    """The numbers of the sightings in each part: one search by index for those it was answered with, one for those
    that came later. A single query over all parts would sort every member before it gives the first."""
    moved = select(places.c.sighting).where(places.c.sighting == sightings.c.number).exists()
    for part in parts:
        for number, here in (
            (sightings.c.number, (sightings.c.part == part) & ~moved),
            (places.c.sighting, places.c.part == part),
        ):
            query = select(number).where(here).order_by(number.desc() if newest_first else number)
            yield query if after is None else query.where(number < after if newest_first else number > after)


def chunks(values: Iterable[T]) -> Iterator[Sequence[T]]:
    """The values in lists that fit into one IN."""
    rest = iter(values)
    while some := list(islice(rest, _MANY)):
        yield some
