"""The journal's rows of `newfound bench speed`: entering, opening, and several writers at once."""

from __future__ import annotations

import os
import sqlite3
import statistics
import tempfile
import time
from contextlib import closing
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from newfound.benchmarks import postgres
from newfound.benchmarks._streams import Stream
from newfound.benchmarks._timing import SpeedRow, in_turn, timed
from newfound.benchmarks.writers import BACKBONE, BLOCK, PIXELS, Round, started
from newfound.journal import Journal, Position, SightingRow
from newfound.journal.answers import Image
from newfound.journal.book import Book, feature_bytes, stored
from newfound.journal.keeper import Keeper
from newfound.journal.rows import pack_sighting

_COLUMNS = 14  # of the table of sightings
_NEWEST = (
    "SELECT state FROM snapshots WHERE id >= (SELECT max(id) FROM snapshots WHERE piece = 0) ORDER BY id"  # all pieces
)


def prototype_entering(**sizes: int) -> SpeedRow:
    """Deciding with prototypes and committing, against a bare `executemany` of the same rows."""
    return _entering("journal", "prototypes", **sizes)


def evidence_entering(**sizes: int) -> SpeedRow:
    """The same with evidence that is weighed, and second thoughts as often as by default."""
    return _entering("journal-evidence", "evidence", **sizes)


def _entering(
    stage: str, kind: str, *, categories: int = 2000, dimension: int = 512, block: int = 256, blocks: int = 20,
    rounds: int = 7,
) -> SpeedRow:  # fmt: skip
    """Ours and the baseline take turns; a round is long enough to hold a snapshot, which is ours to pay.

    Both commit every block by itself. Rows that say what the dictionary changed by itself are left out of the baseline.
    """
    ours, bare = [], []
    with tempfile.TemporaryDirectory() as folder:
        stream = Stream(kind, categories, dimension)
        with begun(Path(folder) / "ours.db", stream) as journal, closing(_bare(Path(folder) / "bare.db")) as database:
            keeper, number = Keeper(journal, actor="bench"), 0
            for number_of_round in range(rounds + 1):
                images = [image(number + i) for i in range(block * blocks)]
                readings, number = stream.features(len(images)), number + len(images)
                entered, mine = timed(partial(keeper.enter_all, block=block), images, readings)
                rows = [pack_sighting(one.row) for one in entered]
                theirs = sum(timed(_insert, database, rows[at : at + block])[1] for at in range(0, len(rows), block))
                if number_of_round:  # the first warms up
                    ours.append(len(rows) / mine)
                    bare.append(len(rows) / theirs)
            found = len(keeper.current.dictionary)
    shares = [a / b for a, b in zip(ours, bare, strict=True)]
    fast, slow = statistics.median(ours), statistics.median(bare)
    return SpeedRow(
        stage, fast, slow, "rows/s", fast / slow, min(shares), max(shares), "at least 0.6 of the bare insert",
        f"{kind}, {dimension} dimensions, {categories:,} categories growing to {found:,}, blocks of {block} in an "
        f"SQLite file (WAL, synchronous=FULL), {rounds} rounds of {blocks} blocks in turn with `sqlite3`'s "
        "`executemany`",
    )  # fmt: skip


def opening(*, sightings: int = 1_000_000, categories: int = 10_000, dimension: int = 512, repeats: int = 5,
            features: bool = False) -> SpeedRow:  # fmt: skip
    """Opening a large journal until it can answer, against reading the bytes of its snapshot with `sqlite3`.

    Opening never reads the sightings before a snapshot; without their features the file is written faster.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.db"
        state = write_large(path, sightings, categories, dimension, features=features)

        def ours() -> Book:
            with Journal.open(path) as journal:
                return Keeper(journal, actor="bench").book

        def bare() -> bytes:
            with closing(sqlite3.connect(path)) as database:
                pieces = database.execute(_NEWEST).fetchall()
                return pieces[0][0] if len(pieces) == 1 else b"".join(state for (state,) in pieces)

        same = ours().to_bytes() == state == bare()
        fast, slow, ratios = in_turn(ours, bare, repeats)
        size = path.stat().st_size
    return SpeedRow(
        "journal-open-full" if features else "journal-open", fast, slow, "s", slow / fast, min(ratios), max(ratios),
        "under 3 s",
        f"{sightings:,} sightings, {categories:,} categories, {dimension} dimensions, evidence; a file of "
        f"{size / 1e6:,.0f} MB with a snapshot of {len(state) / 1e6:,.0f} MB; equal in every bit: {same}",
    )  # fmt: skip


def opening_with_features() -> SpeedRow:
    """The same with the features of all sightings in the file."""
    return opening(features=True)


def writers(*, many: int = 4, blocks: int = 12, rounds: int = 5, backbone: str = BACKBONE) -> SpeedRow:
    """Four processes that encode and enter into one PostgreSQL journal, against one of them.

    Raises SettingsError if no PostgreSQL server is installed.
    """
    alone: list[Round] = []
    together: list[Round] = []
    with (
        postgres.server() as url,
        begun(url, writers_stream(backbone)),
        started(url, many, backbone=backbone) as processes,
    ):
        processes.work(many, 1)
        for _ in range(rounds):
            alone.append(processes.work(1, blocks))
            together.append(processes.work(many, max(1, blocks // 2)))
    fast, slow = (statistics.median(one.rate for one in side) for side in (together, alone))
    ratios = [b.rate / a.rate for a, b in zip(alone, together, strict=True)]
    return SpeedRow(
        "journal-writers", fast, slow, "images/s", fast / slow, min(ratios), max(ratios), "at least as fast as one",
        f"{many} processes against one, each {backbone} on {PIXELS}-pixel images on one thread, blocks of {BLOCK}, "
        f"2,000 categories, one PostgreSQL journal, {os.cpu_count()} cores, {rounds} rounds in turn",
    )  # fmt: skip


def writers_stream(backbone: str = BACKBONE, categories: int = 2000) -> Stream:
    """Prototypes of the dimension that a backbone's features have."""
    from newfound.benchmarks.writers import make_encoder

    return Stream("prototypes", categories, make_encoder(backbone).dimension)


def begun(where: Any, stream: Stream) -> Journal:
    """A journal that starts from the dictionary of a stream."""
    journal = Journal.open(where)
    journal.begin("bench", {}, stream.book().to_bytes())
    return journal


def image(number: int) -> Image:
    """A made-up image: its name, and a content like no other's."""
    return Image(f"photos/{number:09d}.jpg", blake2b(number.to_bytes(8, "big"), digest_size=16).digest())


def write_large(
    path: Path, sightings: int, categories: int, dimension: int, *, features: bool = False, chunk: int = 20_000
) -> bytes:
    """Write a journal of evidence with made-up answers and a snapshot at its end, whose bytes are returned.

    100 categories were taught (or half of them, of fewer); the first sightings found the others.
    """
    known = min(100, categories // 2)
    stream = Stream("evidence", known, dimension)
    rng, book = np.random.default_rng(1), stream.book()
    founders = np.arange(known, categories)
    answers = np.concatenate([founders, rng.integers(0, categories, sightings - len(founders))])
    for part in founders.tolist():
        book.catalogue.found(part)
    with begun(path, stream) as journal:
        for start in range(0, sightings, chunk):
            parts = answers[start : start + chunk]
            half = stored(rng.standard_normal((len(parts), dimension), dtype=np.float32))
            book.dictionary.admit(half.astype(np.float32), parts)
            given = feature_bytes(half) if features else [None] * len(parts)
            numbers = range(start, start + len(parts))
            rows = [_row(*one) for one in zip(numbers, parts.tolist(), given, strict=True)]
            with journal.writing() as writer:
                writer.append(rows)
        book.position = Position(sightings, 0)
        state = book.to_bytes()
        with journal.writing() as writer:
            writer.snapshot(state)
    return state


def _row(number: int, part: int, feature: bytes | None) -> SightingRow:
    seen = image(number)
    others = ((part + 1, 1.5), (part + 2, 0.5))
    return SightingRow(
        number, seen.name, seen.content, part, part, False, 12.5, 10.0, 0.9, 0.01, others, feature, 1, time.time()
    )


def _bare(path: Path) -> sqlite3.Connection:
    """The same tables and indexes, as durable, without anything of ours in between."""
    Journal.open(path).close()
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("PRAGMA synchronous=FULL")
    return database


def _insert(database: sqlite3.Connection, rows: list[tuple[Any, ...]]) -> None:
    database.execute("BEGIN IMMEDIATE")
    database.executemany(f"INSERT INTO sightings VALUES ({', '.join('?' * _COLUMNS)})", rows)
    database.execute("COMMIT")
