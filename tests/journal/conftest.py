"""Real databases for the tests of the journal: SQLite files, and a PostgreSQL server of our own."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from newfound.benchmarks.postgres import binaries, server
from newfound.journal import Journal, Position, SightingRow

_names = count()
_NOBODY = 65534


@pytest.fixture(scope="session")
def postgres():
    """The URL of a PostgreSQL server that runs for these tests: only clients are killed, so it need not be durable."""
    if binaries() is None:
        pytest.skip("no PostgreSQL server is installed (Debian: apt-get install postgresql)")
    with server(durable=False) as url:
        yield url


@pytest.fixture
def postgres_journal(postgres) -> str:
    """The URL of a schema of its own, with nothing in it."""
    import psycopg

    schema = f"test_{next(_names)}"
    with psycopg.connect(postgres) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
    return f"{postgres}?options=-csearch_path%3D{schema}"


@pytest.fixture(params=["sqlite", "postgres"])
def journal_at(request, tmp_path) -> str:
    """Where a new journal can be opened: once a file, once a PostgreSQL schema."""
    if request.param == "sqlite":
        return str(tmp_path / "journal.db")
    return request.getfixturevalue("postgres_journal")


@pytest.fixture
def journal(journal_at):
    """A journal that has begun."""
    with Journal.open(journal_at, wait=10) as journal:
        journal.begin("a model", {"classes": ["cat"]}, b"genesis")
        yield journal


@pytest.fixture(scope="session")
def sighting():
    """sighting(number, **changes): a row with all of its fields filled."""

    def make(number: int, **changes) -> SightingRow:
        values = {
            "number": number, "image": f"photos/{number}.jpg", "content": number.to_bytes(16, "big"), "part": 3,
            "category": 2, "created": False, "score": 0.5, "cut": 0.25, "probability": 0.75, "new_probability": 0.125,
            "runners_up": ((4, 0.5), (1, 0.25)), "feature": b"\x00\x3c" * 8, "model": 1, "time": 1700000000.5,
            "runners_up_probability": (0.0625, 1e-17),
        }  # fmt: skip
        return SightingRow(**(values | changes))

    return make


@pytest.fixture
def still_good(fill):
    """still_good(journal): whatever happened to it, the next block is entered."""

    def check(journal: Journal) -> None:
        before = journal.position()
        fill(journal, 1)
        assert journal.position() == Position(before.sightings + 1, before.events)

    return check


@pytest.fixture
def fill(sighting):
    """fill(journal, count): append so many sightings in one block."""

    def append(journal: Journal, count: int) -> list[SightingRow]:
        with journal.writing() as writer:
            start = writer.position().sightings
            rows = [sighting(start + i) for i in range(count)]
            writer.append(rows)
        return rows

    return append


@pytest.fixture
def not_root():
    """with not_root(): permissions mean something, which they do not to root."""

    @contextmanager
    def as_nobody():
        root = os.geteuid() == 0
        if root:
            os.seteuid(_NOBODY)
        try:
            yield
        finally:
            if root:
                os.seteuid(0)

    return as_nobody


@pytest.fixture
def public_folder():
    """A folder that any user can reach, which pytest's own is not."""
    folder = Path(tempfile.mkdtemp(prefix="nf"))
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)
