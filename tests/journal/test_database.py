"""Promises of newfound.journal.database: what is opened, what is refused untouched, and what is said when it fails."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

from newfound.curator import Curator
from newfound.errors import JournalError
from newfound.journal import Journal, Position, Snapshot, schema
from newfound.journal.keeper import Image
from newfound.journal.replaying import Verified, verify


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "journal.db"


@pytest.fixture
def journal(path):
    with Journal.open(path, wait=0.3) as journal:
        journal.begin("a model", {}, b"genesis")
        yield journal


def test_any_path_will_do_and_its_folders_are_made(tmp_path):
    path = tmp_path / "folder that is not there" / "ünd #1?%20.db"
    with Journal.open(path) as journal:
        journal.begin("a model", {}, b"genesis")
    assert path.is_file()
    with Journal.open(str(path), read_only=True) as journal:
        assert not journal.empty


def test_a_path_and_its_url_are_the_same_file(journal, path):
    with Journal.open(f"sqlite:///{path}", read_only=True) as same:
        assert same.name == str(path)
        assert same.genesis().state == b"genesis"


@pytest.mark.parametrize(
    "url", ["mysql://ann:s3cret@host/birds", "sqlite://host/x.db", "postgresql://ann:s3cret@h:port/b"]
)
def test_a_url_that_is_none_of_ours_is_refused_without_its_password(url):
    with pytest.raises(JournalError, match="give a path") as caught:
        Journal.open(url)
    assert "s3cret" not in str(caught.value)


def test_sqlite_is_set_up_so_that_what_is_committed_stays(journal):
    with journal.writing() as writer:
        settings = {
            name: writer._connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys", "secure_delete", "busy_timeout")
        }
    # synchronous 2 is FULL
    assert settings == {
        "journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "secure_delete": 1, "busy_timeout": 300
    }  # fmt: skip


def test_a_sighting_of_a_model_that_is_not_there_is_refused(journal, sighting, still_good):
    with pytest.raises(sa.exc.IntegrityError), journal.writing() as writer:
        writer.append([sighting(0, model=7)])
    still_good(journal)


def test_reading_creates_nothing(path):
    with pytest.raises(JournalError, match="no journal"):
        Journal.open(path, read_only=True)
    assert not path.exists()
    path.touch()
    with pytest.raises(JournalError, match="no journal"):
        Journal.open(path, read_only=True)
    assert path.read_bytes() == b""


def test_a_journal_opened_for_reading_refuses_to_write(journal, path):
    with (
        Journal.open(path, read_only=True) as reader,
        pytest.raises(JournalError, match="reading only"),
        reader.writing(),
    ):
        pass


@pytest.mark.parametrize("read_only", [False, True])
def test_a_file_that_is_no_journal_is_refused_and_not_touched(tmp_path, read_only):
    other, text = tmp_path / "other.db", tmp_path / "notes.txt"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE meta (key TEXT, value TEXT)")
    connection.close()
    text.write_text("sightings of birds, in ink")
    for file, why in ((other, "other tables"), (text, "not an SQLite file"), (tmp_path, "not a file")):
        before = file.read_bytes() if file.is_file() else None
        with pytest.raises(JournalError, match=why):
            Journal.open(file, read_only=read_only)
        assert before is None or file.read_bytes() == before
    assert {file.name for file in tmp_path.iterdir()} == {"other.db", "notes.txt"}


@pytest.mark.parametrize(("version", "told"), [("99", "update newfound"), ("two", "is damaged"), ("-1", "is damaged")])
def test_a_journal_of_a_newer_newfound_or_of_none_is_refused(journal, path, version, told):
    journal.close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE meta SET value = ?", (version,))
    connection.close()
    with pytest.raises(JournalError, match=told):
        Journal.open(path)


def tables(journal: Journal) -> dict[str, list[tuple[str, str]]]:
    with journal._reading() as connection:
        look = sa.inspect(connection)
        return {
            name: [(column["name"], str(column["type"])) for column in look.get_columns(name)]
            for name in look.get_table_names()
        }


def restore(dump: str, path: Path) -> None:
    text = (Path(__file__).with_name("versions") / f"{dump}.sql").read_text(encoding="utf-8")
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(text)


@pytest.mark.parametrize("version", range(1, schema.newest() + 1))
def test_a_journal_of_every_version_opens(path, version):
    restore(str(version), path)
    with Journal.open(path) as journal:
        assert journal.model().about == {"classes": ["cat", "dog"]}
        assert journal.position() == Position(3, 2)
        sightings, events = journal.tail(Position(0, 0))
        assert [row.image for row in sightings] == ["a.jpg", None, "ü.jpg"]
        assert sightings[0].runners_up == ((1, 0.5), (0, 0.25))
        assert sightings[0].runners_up_probability == ((0.0625, 0.03125) if version >= 3 else ())
        assert sightings[0].feature == b"\x00\x3c\x00\x00"
        assert [event.kind for event in events] == ["renamed", "moved"]
        assert journal.place([0, 1, 2]) == {0: 2, 1: 0, 2: 0}
        assert journal.pinned([0, 1, 2]) == {2}
        assert journal.genesis().state == journal.taught() == b"genesis"
        assert journal.latest_snapshot() == Snapshot(Position(3, 1), b"later", False)
        assert tables(journal) == tables(Journal.open(None)), "it has become what a new one is"


# Where the 36 images stand in what the first newfound of each version has written, after these edits of ada:
# 3 renamed bittern, 4 merged into it, an image of 5 moved to 0; then, after a snapshot and 8 images, 5 renamed gull.
STANDING = {
    "prototypes": "3 3 3 0 0 1 3 5 1 2 5 2 1 3 1 2 2 5 5 6 2 3 3 0 0 3 3 1 1 0 5 6 0 1 6 1",
    "evidence": "3 3 3 0 0 1 6 5 1 2 5 2 1 6 7 2 2 5 5 9 2 1 3 0 0 3 3 1 1 0 5 8 0 1 9 1",
}


@pytest.mark.parametrize("dictionary", STANDING)
@pytest.mark.parametrize("version", range(1, schema.newest() + 1))
def test_what_a_newfound_of_every_version_decided_is_replayed_and_gone_on_with(path, version, dictionary):
    restore(f"{version}_{dictionary}", path)
    stands = [int(category) for category in STANDING[dictionary].split()]
    with Curator(Journal.open(path), actor="ada") as curator:
        journal, numbers = curator.keeper.journal, range(36)
        assert curator.keeper.standing(numbers) == stands, "from the snapshot"
        assert verify(journal) == Verified(36, 4), "from the genesis"
        names = {category.id: category.name for category in curator.categories(merged=True)}
        assert (names[3], names[4], names[5]) == ("bittern", "new-2", "gull")
        edits = [curator.undo().details["was"] for _ in range(4)]
        assert edits == ["renamed", "moved", "merged", "renamed"]
        assert {category.id for category in curator.categories()} >= {3, 4, 5}, "the merge has been taken back"
        assert curator.category(5).name == "new-3"
        curator.rename(4, "owlet")
        feature = np.frombuffer(journal.sightings([0])[0].feature, "<f2").astype(np.float32)
        (answer,) = curator.keeper.enter([Image("new.jpg", b"new")], feature[None])
        assert answer.row.number == 36
        assert answer.row.category == curator.keeper.standing([0])[0], "as an image like it"
        assert len(answer.row.runners_up_probability) == (2 if dictionary == "evidence" else 0)
        assert verify(journal).fine
    with Curator(Journal.open(path), actor="ada") as again:
        assert again.category(4).name == "owlet"


def test_a_journal_of_version_1_in_postgres_opens(postgres_journal):
    with Journal.open(postgres_journal) as journal:
        journal.begin("a model", {}, b"genesis")
        with journal.writing() as writer:
            writer._connection.exec_driver_sql("ALTER TABLE snapshots DROP COLUMN piece")  # all that version 2 added
            writer._connection.exec_driver_sql("UPDATE meta SET value = '1'")
    with Journal.open(postgres_journal) as journal:
        assert journal.genesis() == Snapshot(Position(0, 0), b"genesis", True)
        with journal._reading() as connection:
            assert connection.exec_driver_sql("SELECT value FROM meta").scalar() == str(schema.newest())


def _add_a_column(connection: sa.Connection) -> None:
    connection.exec_driver_sql("ALTER TABLE events ADD COLUMN note TEXT")


def _fail(connection: sa.Connection) -> None:
    raise KeyError("a step that fails")


def test_an_older_journal_is_brought_up_to_date_in_one_transaction(journal_at, monkeypatch):
    Journal.open(journal_at).close()

    def look() -> tuple[str, list[str]]:
        with Journal.open(journal_at) as journal, journal._reading() as connection:
            columns = [column["name"] for column in sa.inspect(connection).get_columns("events")]
            return connection.exec_driver_sql("SELECT value FROM meta").scalar(), columns

    before, newest = look(), schema.newest()
    assert before[0] == str(newest)
    monkeypatch.setitem(schema.MIGRATIONS, newest, _add_a_column)
    with pytest.raises(JournalError, match="older newfound"):
        Journal.open(journal_at, read_only=True)
    with monkeypatch.context() as broken:
        broken.setitem(schema.MIGRATIONS, newest + 1, _fail)
        with pytest.raises(KeyError, match="a step that fails"):
            Journal.open(journal_at)
    assert look() == (str(newest + 1), [*before[1], "note"])


def test_a_full_file_is_told_and_used_again_when_there_is_room(journal, fill, still_good):
    def pragma(text: str) -> int:
        with journal.writing() as writer:  # one thread has one connection, so the limit stays
            return writer._connection.exec_driver_sql(f"PRAGMA {text}").scalar()

    fill(journal, 5)
    pragma(f"max_page_count = {pragma('page_count') + 1}")
    with pytest.raises(JournalError, match=r"disk is full.*Nothing of this block"), journal.writing() as writer:
        writer.snapshot(bytes(100_000))
    assert journal.position() == Position(5, 0)
    pragma("max_page_count = 1000000")
    still_good(journal)


def test_a_full_disk_is_told_and_used_again_when_there_is_room(tmp_path, fill, still_good):
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", disk]).returncode:
        pytest.skip("only root can mount a small disk")
    try:
        with Journal.open(disk / "journal.db") as journal:
            journal.begin("a model", {}, b"genesis")
            fill(journal, 5)
            (disk / "ballast").write_bytes(bytes(500_000))
            with pytest.raises(JournalError, match=r"full.*Nothing of this block"), journal.writing() as writer:
                writer.snapshot(bytes(600_000))
            assert journal.position() == Position(5, 0)
            (disk / "ballast").unlink()
            still_good(journal)
    finally:
        subprocess.run(["umount", disk], check=True)


def test_what_may_only_be_read_is_told(public_folder, not_root):
    path = public_folder / "journal.db"
    with Journal.open(path) as journal:
        journal.begin("a model", {}, b"genesis")
    path.chmod(0o444)
    public_folder.chmod(0o555)
    with not_root():
        with pytest.raises(JournalError, match=r"only be read|may not be written"):
            Journal.open(path)
        with pytest.raises(JournalError, match=r"may not be written|cannot be opened"):
            Journal.open(public_folder / "new.db")
        with pytest.raises(JournalError, match="cannot be opened"):
            Journal.open(public_folder / "folder" / "new.db")


def test_a_lock_that_is_kept_is_waited_for_and_then_told(journal, path, sighting, fill, still_good):
    with Journal.open(path) as other, other.writing() as writer:
        writer.append([sighting(0)])
        with pytest.raises(JournalError, match=r"locked for more than 0\.3 s"):
            fill(journal, 1)
        assert journal.position() == Position(0, 0), "readers do not wait"
    still_good(journal)


@pytest.mark.parametrize("then", ["nothing", "another journal", "no journal"])
def test_a_file_that_is_removed_while_it_is_open_takes_no_more_blocks(journal, path, fill, then):
    fill(journal, 1)
    path.unlink()
    if then == "another journal":
        Journal.open(path.with_name("other.db")).close()
        path.with_name("other.db").rename(path)
    elif then == "no journal":
        path.write_text("sightings of birds, in ink")
    with pytest.raises(JournalError, match=r"was removed, moved or replaced .* or a backup in its place"):
        fill(journal, 1)
    assert journal.position() == Position(1, 0), "what is still open can be read"


def test_a_file_that_is_moved_away_and_back_goes_on(journal, path, fill, still_good):
    fill(journal, 1)
    path.rename(path.with_name("elsewhere.db"))
    with pytest.raises(JournalError, match="was removed, moved or replaced"):
        fill(journal, 1)
    path.with_name("elsewhere.db").rename(path)
    still_good(journal)


def test_a_connection_made_after_the_file_was_removed_tells_of_that(journal, path):
    with journal._reading():  # so that the next question needs a connection of its own
        path.unlink()
        with pytest.raises(JournalError, match="was removed, moved or replaced"), journal.writing() as writer:
            writer.position()


def test_a_damaged_file_is_told(journal, path, fill):
    fill(journal, 300)
    journal.close()
    content = bytearray(path.read_bytes())
    half = len(content) // 2  # the tables were made first, so they are in the other half
    content[half:] = b"\xff" * (len(content) - half)
    path.write_bytes(content)
    with Journal.open(path, read_only=True) as damaged, pytest.raises(JournalError, match="damaged"):
        damaged.tail(Position(0, 0))


def test_a_closed_journal_says_so(journal):
    journal.close()
    journal.close()
    with pytest.raises(JournalError, match="closed"):
        journal.position()
    with pytest.raises(JournalError, match="closed"), journal.writing():
        pass
