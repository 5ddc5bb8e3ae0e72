"""Promises of verify: what was changed behind the journal's back is found, as far as it follows from the rest."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from newfound.discovery import BayesianDictionary
from newfound.journal import Journal, editing
from newfound.journal.book import Book
from newfound.journal.catalogue import Catalogue
from newfound.journal.keeper import Image, Keeper
from newfound.journal.replaying import Verified, verify

KINDS = 8
SHARE = "runners_up, '$[1][2]'"  # how probable the second of the runners-up is, in SQL


def keeper_at(path: Path) -> Keeper:
    """Of a dictionary that founds, doubts, thinks again every 10 sightings, and merges."""
    dictionary = BayesianDictionary(
        np.full(KINDS, 9.0), 24.0 * np.eye(KINDS)[:3], [4, 4, 4], 2.0,
        alone=-6.0, reconsider_every=10, memory=40, merge_at=0.0,
    )  # fmt: skip
    journal = Journal.open(path)
    journal.begin("a model", {}, Book(dictionary, Catalogue(["heron", "owl", "wren"])).to_bytes())
    return Keeper(journal, actor="ada")


def enter(keeper: Keeper, start: int, count: int, block: int) -> None:
    rng = np.random.default_rng(start)
    for first in range(start, start + count, block):
        kinds = np.eye(KINDS)[rng.integers(0, KINDS, block)]
        images = [Image(f"{n}.jpg", n.to_bytes(16, "little")) for n in range(first, first + block)]
        keeper.enter(images, 6.0 * kinds + rng.normal(size=(block, KINDS)) * 1.5)


def move(keeper: Keeper, number: int, category: int) -> None:
    keeper.edit(lambda book, writer: editing.move(book.catalogue, keeper.places(writer, [number]), category))


@pytest.fixture
def path(tmp_path) -> Path:
    """Where a journal is in which the dictionary and a person have moved sightings."""
    path = tmp_path / "journal.db"
    with closing(keeper_at(path)) as keeper:
        enter(keeper, 0, 120, 24)
        move(keeper, 5, 1)
        enter(keeper, 120, 60, 6)
    return path


def verified(path: Path) -> Verified:
    with Journal.open(path) as journal:
        return verify(journal)


def change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as raw, raw:
        assert raw.execute(statement).rowcount > 0, "there is something to change"


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("DELETE FROM places WHERE sighting = 5", "sighting 5 is where it was answered; replayed, it is in part 1 for"),
        ("DELETE FROM places WHERE NOT pinned", "is where it was answered; replayed, it is in part"),
        ("UPDATE places SET part = 2 WHERE sighting = 5", "sighting 5 is in part 2 for good; replayed, it is in part"),
        ("UPDATE places SET pinned = 0 WHERE sighting = 5", "sighting 5 is in part 1; replayed, it is in part 1 for"),
        ("INSERT INTO places SELECT max(number), 0, 0 FROM sightings", "sighting 179 is in part 0; replayed, it is"),
        ("UPDATE sightings SET cut = 7.5 WHERE number = 9", "sighting 9 was answered with cut 7.5; replayed, it gets"),
        ("UPDATE sightings SET runners_up = '[]' WHERE number = 9", "sighting 9 was answered with runners_up ()"),
        (f"UPDATE sightings SET runners_up = json_replace({SHARE}, 0.123) WHERE number = 9", "with runners_up_probabi"),
        ("DELETE FROM sightings WHERE number = 100", "sightings are missing after"),
        ("DELETE FROM events WHERE actor = 'ada'", "sighting 5 is in part 1 for good; replayed, it is where"),
    ],
)
def test_verify_finds_what_was_changed_behind_its_back(path, statement, told):
    assert verified(path).differences == []
    change(path, statement)
    differences = verified(path).differences
    assert told in differences[0]


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("UPDATE sightings SET feature = x'0102' WHERE number = 30", "sighting 30 is damaged in the journal: its fea"),
        (f"UPDATE sightings SET feature = x'{'007e' * KINDS}' WHERE number = 30", "sighting 30 is damaged in the jour"),
        ("UPDATE sightings SET feature = printf('%16d', 1) WHERE number = 30", "sighting 30 is damaged in the journal"),
        ("UPDATE sightings SET feature = 7 WHERE number = 30", "is damaged in the journal: its feature is 7"),
        ("UPDATE sightings SET runners_up = '[[' WHERE number = 30", "sighting 30 is damaged in the journal: its runn"),
        ("UPDATE sightings SET runners_up = '{\"a\":1}' WHERE number = 30", "sighting 30 is damaged in the journal"),
        (f"UPDATE sightings SET runners_up = json_remove({SHARE}) WHERE number = 30", "sighting 30 is damaged in"),
        (f"UPDATE sightings SET runners_up = json_replace({SHARE}, 'x') WHERE number = 30", "sighting 30 is damaged"),
        ("UPDATE events SET details = '{' WHERE actor = 'ada'", "is damaged in the journal: its details are '{'"),
    ],
)
def test_verify_names_what_is_damaged_so_that_it_cannot_be_read(path, statement, told):
    change(path, statement)
    (difference,) = verified(path).differences
    assert told in difference


def test_verify_asks_no_probabilities_of_runners_up_that_an_older_newfound_wrote(path):
    change(path, f"UPDATE sightings SET runners_up = json_remove({SHARE}, '$[0][2]') WHERE number < 100")
    assert verified(path) == Verified(180, 1)
    with Journal.open(path) as journal:
        rows = journal.sightings(range(180))
    assert all(len(row.runners_up_probability) == (row.number >= 100) * len(row.runners_up) for row in rows)
    assert all(row.runners_up for row in rows)


def test_verify_names_a_sighting_that_was_damaged_before_something_was_forgotten(path):
    with closing(Keeper(Journal.open(path))) as keeper:
        keeper.forget([7])
        move(keeper, 5, 2)
    change(path, "UPDATE sightings SET feature = x'0102' WHERE number = 5")
    (difference,) = verified(path).differences
    assert "sighting 5 is damaged in the journal: its feature has 2 bytes, not 16" in difference


def test_verify_finds_a_place_that_was_lost_before_something_was_forgotten(path):
    with closing(Keeper(Journal.open(path))) as keeper:
        keeper.forget([7])
        enter(keeper, 180, 30, 30)
    assert verified(path).differences == []
    change(path, "DELETE FROM places WHERE sighting = 5")
    assert any("category 1 has" in difference for difference in verified(path).differences)


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("DELETE FROM sightings WHERE number = 179", "sightings are missing after 179 of them"),
        ("UPDATE events SET at = at + 1 WHERE kind = 'renamed'", "sightings are missing after 180 of them"),
        ("UPDATE events SET at = at - 60 WHERE kind = 'renamed'", "came at Position(sightings=120, events="),
    ],
)
def test_verify_finds_that_an_edit_came_after_more_sightings_or_fewer(path, statement, told):
    with closing(Keeper(Journal.open(path))) as keeper:
        keeper.edit(lambda book, _: editing.rename(book.catalogue, 4, "gull"))
    assert verified(path).differences == []
    change(path, statement)
    assert told in verified(path).differences[0]


@pytest.mark.parametrize("name", ["genesis", "latest_snapshot", "standing", "events", "stream"])
def test_verify_holds_nothing_against_what_somebody_forgets_meanwhile(path, name, monkeypatch):
    with Journal.open(path) as journal, closing(Keeper(Journal.open(path))) as keeper:
        ask, forgotten = getattr(journal, name), []

        def asked(*given, **options):
            told = ask(*given, **options)
            if not forgotten:
                forgotten.append(keeper.forget([7]))
            return told

        monkeypatch.setattr(journal, name, asked)
        assert verify(journal) == Verified(skipped=180)


def test_verify_finds_that_the_end_is_cut_off_before_the_newest_snapshot(path):
    with closing(Keeper(Journal.open(path))) as keeper, keeper._writing() as (writer, book):
        writer.snapshot(book.to_bytes())
    assert verified(path).differences == []
    change(path, "DELETE FROM sightings WHERE number = 179")
    assert "its newest snapshot is of Position(sightings=180" in verified(path).differences[0]


@pytest.mark.parametrize(
    "spoil", [lambda state: b"", lambda state: state[:-9], lambda state: state.replace(b"wren", b"tern")]
)
def test_verify_finds_a_newest_snapshot_that_is_damaged_or_of_another_state(path, spoil):
    with closing(Keeper(Journal.open(path))) as keeper, keeper._writing() as (writer, book):
        position, state = book.position, book.to_bytes()
        assert spoil(state) != state
        writer.snapshot(spoil(state))
    (difference,) = verified(path).differences
    assert difference == f"the snapshot at {position} is not what the journal adds up to"
