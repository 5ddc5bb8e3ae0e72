"""A journal that may only be read is read: on a disk that is mounted so, or in another user's folder."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest

from newfound.errors import JournalError
from newfound.journal import Journal, Position, engines


@pytest.fixture
def theirs(public_folder) -> Path:
    """A journal in a folder where nobody may write."""
    path = public_folder / "journal.db"
    with Journal.open(path) as journal:
        journal.begin("a model", {}, b"genesis")
    public_folder.chmod(0o555)
    return path


@contextmanager
def its_owner(path: Path):
    """A block in which the folder can be written; all that is there afterwards can be read by anyone."""
    path.parent.chmod(0o755)
    yield
    for file in path.parent.iterdir():
        file.chmod(0o644)
    path.parent.chmod(0o555)


def names(path: Path) -> set[str]:
    return {file.name for file in path.parent.iterdir()}


def test_a_journal_in_a_folder_that_cannot_be_written_is_read_and_not_written(theirs, not_root):
    with not_root():
        assert not engines.may_write(theirs)
        with Journal.open(theirs, read_only=True) as journal:
            assert journal.genesis().state == b"genesis"
        with pytest.raises(JournalError, match="only be read"):
            Journal.open(theirs)
    assert names(theirs) == {"journal.db"}


def test_a_link_to_such_a_journal_is_read(theirs, not_root):
    links = theirs.parent / "links"
    with its_owner(theirs):
        links.mkdir()
        (links / "linked.db").symlink_to(theirs)
    links.chmod(0o777)
    with not_root(), Journal.open(links / "linked.db", read_only=True) as journal:
        assert not engines.may_write(links / "linked.db")
        assert journal.genesis().state == b"genesis"


def test_a_file_that_may_only_be_read_in_a_folder_of_ones_own_is_read(theirs, not_root):
    theirs.chmod(0o444)
    theirs.parent.chmod(0o777)
    with not_root():
        assert not engines.may_write(theirs)
        with Journal.open(theirs, read_only=True) as journal:
            assert journal.genesis().state == b"genesis"


def test_who_may_only_read_sees_what_others_write_whenever_they_do(theirs, not_root, fill):
    with not_root():
        reader = Journal.open(theirs, read_only=True)
        assert reader.position() == Position(0, 0)
    with its_owner(theirs):
        writer = Journal.open(theirs)
        fill(writer, 3)
    with not_root():
        assert reader.position() == Position(3, 0), "from the log"
    with its_owner(theirs):
        writer.close()
    assert names(theirs) == {"journal.db"}
    with not_root():
        assert reader.position() == Position(3, 0), "from the file"
        reader.close()


def test_a_log_that_cannot_be_read_is_no_journal_without_its_end(theirs, not_root, fill, tmp_path):
    with its_owner(theirs), Journal.open(theirs) as writer:
        fill(writer, 3)
        for name in ("journal.db", "journal.db-wal"):  # as a backup may have it
            shutil.copy(theirs.parent / name, tmp_path / name)
    with its_owner(theirs):
        for name in ("journal.db", "journal.db-wal"):
            shutil.copy(tmp_path / name, theirs.parent / name)
    for read_only in (True, False):
        with not_root(), pytest.raises(JournalError, match=r"journal\.db-wal.*Copy both files"):
            Journal.open(theirs, read_only=read_only)
    with Journal.open(tmp_path / "journal.db", read_only=True) as copied:
        assert copied.position() == Position(3, 0), "as the error says"


def test_a_disk_that_is_mounted_for_reading_is_read_also_by_root(tmp_path, monkeypatch):
    path = tmp_path / "journal.db"
    with Journal.open(path) as journal:
        journal.begin("a model", {}, b"genesis")
    monkeypatch.setattr(engines.os, "access", lambda *_, **__: False)  # what such a disk says to anyone
    with Journal.open(path, read_only=True) as journal:
        assert journal.genesis().state == b"genesis"
        assert names(path) == {"journal.db"}, "SQLite would have needed files beside it"
