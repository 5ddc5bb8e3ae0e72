"""Files are written whole or not at all."""

from __future__ import annotations

import os
import threading

import pytest

from newfound.errors import DataError
from newfound.files import new_file, put_in_place, write_text


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_a_full_device_is_told_of_and_stays_a_device(tmp_path):
    full = tmp_path / "full"
    full.symlink_to("/dev/full")
    with pytest.raises(DataError, match=r"cannot write .*full"), new_file(full) as file:
        file.write("x" * 100_000)
    with pytest.raises(DataError, match=r"cannot write .*full"):
        write_text(full, "x" * 100_000)
    assert os.path.exists("/dev/full")
    assert [path.name for path in tmp_path.iterdir()] == ["full"]
    assert full.is_symlink()


def test_a_place_below_a_file_is_told_of(tmp_path):
    (tmp_path / "note").write_text("mine")
    with pytest.raises(DataError, match=r"cannot write .*table\.csv"), new_file(tmp_path / "note" / "table.csv"):
        pytest.fail("there is nothing to write to")
    with pytest.raises(DataError, match=r"cannot write .*table\.csv"):
        write_text(tmp_path / "note" / "table.csv", "x")
    assert (tmp_path / "note").read_text() == "mine"


def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    pipe, heard = tmp_path / "pipe", []
    os.mkfifo(pipe)
    listener = threading.Thread(target=lambda: heard.append(pipe.read_text()))
    listener.start()
    with new_file(pipe) as file:
        file.write("told")
    listener.join()
    assert heard == ["told"]
    assert pipe.is_fifo()


def test_what_fails_in_between_leaves_the_file_of_before(tmp_path):
    path = tmp_path / "table.csv"
    write_text(path, "before")
    with pytest.raises(TypeError), new_file(path) as file:
        file.writelines(["half", 2])
    assert path.read_text() == "before"
    assert [p.name for p in tmp_path.iterdir()] == ["table.csv"]


def test_of_two_writers_of_one_file_the_last_to_finish_has_written_all_of_it(tmp_path):
    path = tmp_path / "table.csv"
    with new_file(path) as slow:
        slow.write("slow, ")
        with new_file(path) as fast:
            fast.write("fast")
        assert path.read_text() == "fast"
        write_text(path, "at once")
        slow.write("and last")
    assert path.read_text() == "slow, and last"
    assert [p.name for p in tmp_path.iterdir()] == ["table.csv"]


def test_what_is_put_in_place_is_on_the_disk_and_so_is_its_name(tmp_path, monkeypatch):
    synced = []
    sync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: (synced.append(os.fstat(handle).st_ino), sync(handle)))
    part, path = tmp_path / "a.part", tmp_path / "a"
    path.write_text("old")
    part.write_text("new")
    written = part.stat().st_ino
    put_in_place(part, path)
    assert path.read_text() == "new"
    assert not part.exists()
    assert synced == [written, tmp_path.stat().st_ino], "the content first, then the folder that has its name"
