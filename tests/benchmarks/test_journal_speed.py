"""The journal's speed rows compare like with like; how fast a machine is, is not tested."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import numpy as np
import pytest

from newfound.benchmarks import journal_speed, postgres, speed
from newfound.benchmarks._streams import KINDS, Stream
from newfound.errors import SettingsError
from newfound.journal import Journal
from newfound.journal.keeper import Keeper

TINY = {"categories": 20, "dimension": 16, "block": 8, "blocks": 2, "rounds": 2}


@pytest.mark.parametrize(
    ("measure", "stage"),
    [(journal_speed.prototype_entering, "journal"), (journal_speed.evidence_entering, "journal-evidence")],
)
def test_entering_is_timed_beside_a_bare_insert(measure, stage):
    row = measure(**TINY)
    assert row.stage == stage
    assert row.ratio == pytest.approx(row.ours / row.baseline)
    assert 0 < row.low <= row.high


def test_the_bare_insert_fills_the_same_table_with_the_same_rows_and_is_as_durable(tmp_path):
    stream = Stream("prototypes", 5, 16)
    with journal_speed.begun(tmp_path / "ours.db", stream) as journal:
        entered = Keeper(journal).enter([journal_speed.image(i) for i in range(8)], stream.features(8))
        with closing(journal_speed._bare(tmp_path / "bare.db")) as bare:
            assert bare.execute("PRAGMA journal_mode").fetchone() == ("wal",)
            assert bare.execute("PRAGMA synchronous").fetchone() == (2,), "FULL"
            journal_speed._insert(bare, [journal_speed.pack_sighting(one.row) for one in entered])
        with (
            closing(sqlite3.connect(tmp_path / "ours.db")) as ours,
            closing(sqlite3.connect(tmp_path / "bare.db")) as theirs,
        ):
            for query in (
                "SELECT * FROM sightings",
                "SELECT sql FROM sqlite_master WHERE tbl_name = 'sightings' ORDER BY name",
            ):
                assert ours.execute(query).fetchall() == theirs.execute(query).fetchall()


@pytest.mark.parametrize("features", [False, True])
def test_a_large_journal_opens_with_all_its_sightings_and_categories(tmp_path, features):
    path = tmp_path / "large.db"
    state = journal_speed.write_large(path, 300, 40, 16, features=features, chunk=70)
    with Journal.open(path) as journal:
        book = Keeper(journal).book
        assert book.to_bytes() == state
        assert book.position.sightings == journal.position().sightings == 300
        assert len(book.dictionary) == book.catalogue.next_id == 40
        assert sum(book.catalogue.counts(book.dictionary).values()) == 300
        parts, times = np.unique([row.part for rows in journal.stream() for row in rows], return_counts=True)
        counted = book.catalogue.counts(book.dictionary)
        assert dict(zip(parts.tolist(), times.tolist(), strict=True)) == {k: n for k, n in counted.items() if n}


def test_opening_is_timed_only_if_the_book_is_the_one_that_was_written():
    row = journal_speed.opening(sightings=200, categories=30, dimension=16, repeats=1)
    assert "equal in every bit: True" in row.detail
    assert row.target == "under 3 s"


@pytest.mark.parametrize("kind", KINDS)
def test_most_features_of_a_stream_join_a_category_and_some_found_one(kind):
    stream = Stream(kind, 50, 64)
    created = stream.dictionary().observe(stream.features(2000)).created
    assert 0 < created.mean() < 0.05  # 1 % belong to none


def test_the_stages_of_the_journal_are_part_of_the_speed_benchmark():
    assert {"journal", "journal-evidence", "journal-open", "journal-writers"} <= set(speed.STAGES)
    assert "journal-open-full" not in speed.STAGES, "a gigabyte only on request"


def test_a_stage_that_cannot_be_measured_here_is_said_and_passed_over(monkeypatch):
    monkeypatch.setattr(postgres, "binaries", lambda: None)
    monkeypatch.setattr(speed, "STAGES", {"journal-writers": journal_speed.writers})
    said = []
    reporter = speed.Reporter()
    monkeypatch.setattr(reporter, "say", said.append, raising=False)
    assert speed.run_speed(reporter=reporter) == []
    assert "journal-writers cannot be measured here: no PostgreSQL" in said[0]
    with pytest.raises(SettingsError, match="apt-get install postgresql"):
        speed.run_speed(["journal-writers"])
