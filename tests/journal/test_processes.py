"""Promises of a journal that several processes use: one order, nothing lost, whoever is killed."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

from newfound.journal import Journal

WORKER = Path(__file__).with_name("appending.py")


def start(where: str, worker: str, *blocks: str) -> subprocess.Popen:
    command = [sys.executable, str(WORKER), where, worker, *blocks]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def acknowledged(lines: str) -> list[int]:
    """The numbers of the blocks in whole lines: one that was cut off by the kill was not heard by anybody."""
    blocks = [line.split() for line in lines.splitlines(keepends=True) if line.endswith("\n") and line[0].isdigit()]
    return [number for first, last in blocks for number in range(int(first), int(last) + 1)]


def test_processes_that_open_and_write_at_once_leave_no_gap_and_lose_no_row(journal_at):
    workers = {name: start(journal_at, name, "15") for name in ("one", "two")}
    told = {}
    for name, worker in workers.items():
        out, errors = worker.communicate(timeout=60)
        assert worker.returncode == 0, errors
        told[name] = acknowledged(out)
    with Journal.open(journal_at, read_only=True) as journal:
        rows = [row for some in journal.stream() for row in some]
        assert journal.genesis().state == b"genesis"
    assert [row.number for row in rows] == list(range(2 * 15 * 20))
    assert {name: [row.number for row in rows if row.image == name] for name in workers} == told


def test_killed_at_any_instant_nothing_acknowledged_is_missing(journal_at):
    rng = random.Random(6)
    heard: list[int] = []
    for kill in range(3):
        worker = start(journal_at, f"life {kill}")
        assert worker.stdout.readline() == "ready\n", worker.stderr.read()
        time.sleep(rng.uniform(0.05, 0.4))
        worker.kill()
        heard += acknowledged(worker.communicate(timeout=30)[0])
        with Journal.open(journal_at, read_only=True) as journal:  # also: it can be read before anyone repairs it
            numbers = [row.number for some in journal.stream(features=False) for row in some]
        assert numbers == list(range(len(numbers)))
        assert set(heard) <= set(numbers)
        assert len(numbers) % 20 == 0, "no half block"
    assert heard, "no worker lived long enough to write"
    with Journal.open(journal_at, wait=10) as journal, journal.writing() as writer:
        assert writer.position().sightings == len(numbers), "the lock of the dead is free"
