"""Promises of a journal that several processes use: one order, nothing lost, whoever is killed."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from mortal import Mortal
from test_review import E, images, keeper_of

from newfound.errors import SettingsError
from newfound.journal import Journal
from newfound.journal.keeper import Image, Keeper

FORGETS_AND_IS_KILLED = """
import os, signal, sys
from newfound.journal import Journal, sweeping
from newfound.journal.keeper import Keeper

def noted(connection, note=sweeping.note):
    note(connection)
    sweeping.sweep = lambda _: os.kill(os.getpid(), signal.SIGKILL)  # which comes after the commit

sweeping.note = noted
Keeper(Journal.open(sys.argv[1])).forget([0])
"""


def acknowledged(lines: list[str]) -> list[int]:
    """The numbers of the blocks that were acknowledged."""
    blocks = [line.split() for line in lines if line[0].isdigit()]
    return [number for first, last in blocks for number in range(int(first), int(last) + 1)]


def test_processes_that_open_and_write_at_once_leave_no_gap_and_lose_no_row(journal_at):
    workers = {name: Mortal("appending.py", journal_at, name, 15) for name in ("one", "two")}
    told = {name: acknowledged(worker.finish(60)) for name, worker in workers.items()}
    with Journal.open(journal_at, read_only=True) as journal:
        rows = [row for some in journal.stream() for row in some]
        assert journal.genesis().state == b"genesis"
    assert [row.number for row in rows] == list(range(2 * 15 * 20))
    assert {name: [row.number for row in rows if row.image == name] for name in workers} == told


def test_killed_at_any_instant_nothing_acknowledged_is_missing(journal_at):
    rng = random.Random(6)
    heard: list[int] = []
    for kill in range(3):
        worker = Mortal("appending.py", journal_at, f"life {kill}")
        worker.wait_until(acknowledged)  # of blocks that it would append for ever
        time.sleep(rng.uniform(0, 0.3))
        at_work = worker.kill()
        assert at_work, "in the middle of it"
        heard += acknowledged(worker.told)
        with Journal.open(journal_at, read_only=True) as journal:  # also: it can be read before anyone repairs it
            numbers = [row.number for some in journal.stream(features=False) for row in some]
        assert numbers == list(range(len(numbers)))
        assert set(heard) <= set(numbers)
        assert len(numbers) % 20 == 0, "no half block"
    with Journal.open(journal_at, wait=10) as journal, journal.writing() as writer:
        assert writer.position().sightings == len(numbers), "the lock of the dead is free"


def left(folder: Path) -> list[str]:
    """The files that still hold something of the image to be forgotten."""
    return sorted(file.name for file in folder.iterdir() if b"secret" in file.read_bytes())


@pytest.fixture
def unswept(tmp_path):
    """A journal that is open, as that of a service; another process has forgotten an image, and was killed at once."""
    keeper = keeper_of(where=tmp_path / "journal.db")
    keeper.enter([Image("/photos/secret place.jpg", b"secret content")], E[[3]])
    keeper.enter(images(1, 2), E[[4, 5]])
    dead = subprocess.run([sys.executable, "-c", FORGETS_AND_IS_KILLED, str(tmp_path / "journal.db")], timeout=60)
    assert dead.returncode == -signal.SIGKILL
    assert keeper.journal.sightings([0])[0].forgotten
    assert left(tmp_path) == ["journal.db-wal"]
    return keeper


def forget_again(keeper: Keeper) -> None:
    with pytest.raises(SettingsError, match=r"sighting 0 has been forgotten already\.$"):
        keeper.forget([0])


@pytest.mark.parametrize(
    "finish",
    [lambda keeper: Journal.open(keeper.journal.name).close(), forget_again, lambda keeper: keeper.forget([1])],
    ids=["the next opening", "to forget it again", "to forget another"],
)
def test_what_was_forgotten_leaves_the_log_though_who_forgot_it_was_killed_before(unswept, tmp_path, finish):
    finish(unswept)
    assert left(tmp_path) == []
    with unswept.journal._reading() as connection:
        keys = connection.exec_driver_sql("SELECT key FROM meta").scalars().all()
    assert keys == ["newfound journal"], "and that it was due is no longer noted"
    unswept.enter(images(3), E[[6]])


def test_a_log_that_others_read_is_told_of_and_swept_when_they_are_done(unswept, tmp_path):
    with Journal.open(tmp_path / "journal.db", read_only=True) as reader, reader._reading() as connection:
        connection.exec_driver_sql("SELECT * FROM sightings").all()
        with Journal.open(tmp_path / "journal.db", wait=0.1) as journal:
            with pytest.raises(SettingsError, match="log still holds some of it"):
                Keeper(journal).forget([0])
            assert left(tmp_path) == ["journal.db-wal"]
    forget_again(unswept)
    assert left(tmp_path) == []
