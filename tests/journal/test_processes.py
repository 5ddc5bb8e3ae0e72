"""Promises of a journal that several processes use: one order, nothing lost, whoever is killed."""

from __future__ import annotations

import random
import time

from mortal import Mortal

from newfound.journal import Journal


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
