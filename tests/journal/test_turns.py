"""Taking turns to write: a queue that moves is waited out, who decides keeps the lock, who is stopped loses it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack

import psycopg
import pytest

from newfound.errors import JournalError
from newfound.journal import Journal, Position, turns

HELD = 0.25  # seconds for which a writer has the lock
STOPPED = """
import sys, time
from newfound.journal import Journal, turns
turns.IDLE = 1
with Journal.open(sys.argv[1]) as journal, journal.writing() as writer:
    print("writing", flush=True)
    time.sleep(3)
    writer.snapshot(b"of one that was stopped")
"""


def crowd(journals: list[Journal], blocks: int, sighting) -> list[JournalError]:
    """A thread for each of the journals, all of which write so many blocks at once; returns why some gave up."""
    gave_up = []

    def write(journal: Journal) -> None:
        try:
            for _ in range(blocks):
                with journal.writing() as writer:
                    time.sleep(HELD)
                    writer.append([sighting(writer.position().sightings)])
        except JournalError as error:
            gave_up.append(error)

    threads = [threading.Thread(target=write, args=(journal,)) for journal in journals]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return gave_up


def end_waiting(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")


def test_a_queue_that_moves_is_waited_out_however_long_it_is(journal, journal_at, sighting):
    with ExitStack() as stack:
        journals = [stack.enter_context(Journal.open(journal_at, wait=2 * HELD)) for _ in range(8)]
        assert crowd(journals, 2, sighting) == []
    assert journal.position() == Position(16, 0)


def test_threads_of_one_process_wait_as_long_as_they_take_turns(journal_at, sighting):
    with Journal.open(journal_at, wait=2 * HELD) as journal:
        journal.begin("a model", {}, b"genesis")
        assert crowd([journal] * 6, 2, sighting) == []
        assert journal.position() == Position(12, 0)


def test_a_lock_that_one_keeps_is_told_to_the_whole_queue(journal, journal_at, sighting):
    with ExitStack() as stack:
        journals = [stack.enter_context(Journal.open(journal_at, wait=2 * HELD)) for _ in range(4)]
        with journal.writing():
            began = time.monotonic()
            gave_up = crowd(journals, 1, sighting)
            assert time.monotonic() - began < 20 * HELD
    assert len(gave_up) == 4
    assert all(f"locked for more than {2 * HELD:g} s" in str(error) for error in gave_up)


def test_a_connection_that_is_lost_in_the_queue_is_told(postgres_journal, postgres, fill):
    with Journal.open(postgres_journal) as journal, Journal.open(postgres_journal) as other:
        journal.begin("a model", {}, b"genesis")
        with psycopg.connect(postgres_journal) as holder:
            holder.execute(turns._TRY)
            ending = threading.Timer(0.5, end_waiting, [postgres])
            ending.start()
            with pytest.raises(JournalError, match=r"connection to the server was lost.*Nothing of this block"):
                fill(other, 1)
            ending.join()
        fill(other, 1)


def test_a_writer_keeps_the_lock_for_as_long_as_it_decides(postgres_journal, sighting, monkeypatch):
    monkeypatch.setattr(turns, "IDLE", 0.4)
    with Journal.open(postgres_journal) as journal:
        journal.begin("a model", {}, b"genesis")
        with journal.writing() as writer:
            time.sleep(1.5)
            writer.append([sighting(0)])
        assert journal.position() == Position(1, 0)


@pytest.mark.skipif(os.name != "posix", reason="nothing is stopped there")
def test_a_writer_that_is_stopped_loses_the_lock_before_others_give_up(postgres_journal, fill):
    with Journal.open(postgres_journal, wait=10) as journal:
        journal.begin("a model", {}, b"genesis")
        command = [sys.executable, "-c", STOPPED, postgres_journal]
        stopped = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert stopped.stdout.readline() == "writing\n", stopped.stderr.read()
        stopped.send_signal(signal.SIGSTOP)
        fill(journal, 1)
        stopped.send_signal(signal.SIGCONT)
        assert "Nothing of this block was written" in stopped.communicate(timeout=60)[1]
        assert journal.latest_snapshot().state == b"genesis"
    assert turns.IDLE < 30, "seconds that others wait where nobody says how many"
