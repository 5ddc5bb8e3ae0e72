"""Several writers, one order: the ids of any number of processes are those of one, whoever is killed when."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from observing import dictionary, features

from newfound.journal import Journal
from newfound.journal.replaying import verify

WORKER = Path(__file__).with_name("observing.py")


def start(where: str, worker: int, count: int, seed: int) -> subprocess.Popen:
    command = [sys.executable, str(WORKER), where, str(worker), str(count), str(seed)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def heard(out: str) -> dict[int, int]:
    """The categories that were acknowledged, by number; a line that the kill cut off was heard by nobody."""
    lines = [line for line in out.splitlines(keepends=True) if line.endswith("\n") and line[0].isdigit()]
    return {int(n): int(c) for line in lines for n, c in (pair.split(":") for pair in line.split())}


def run_and_kill(where: str, writers: int, count: int, kills: int) -> dict[int, int]:
    """So many writers at once, killed at random instants and started again until all is entered."""
    rng, told = random.Random(3), {}
    alive = {worker: start(where, worker, count, seed=worker) for worker in range(writers)}
    while alive:
        if kills:
            time.sleep(rng.uniform(0.5, 3.0))
            victim = rng.choice(list(alive))
            alive[victim].kill()
            told |= heard(alive[victim].communicate()[0])
            kills -= 1
            alive[victim] = start(where, victim, count, seed=100 + kills)
            continue
        _, process = alive.popitem()
        out, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
        told |= heard(out)
    return told


def check(where: str, writers: int, count: int, told: dict[int, int]) -> None:
    with Journal.open(where) as journal:
        rows = [row for some in journal.stream() for row in some]
        assert [row.number for row in rows] == list(range(writers * count)), "nothing is missing or there twice"
        assert len({row.content for row in rows}) == writers * count
        answered = {row.number: row.category for row in rows}
        assert told == {number: answered[number] for number in told}, "what was acknowledged is what is there"
        replayed = verify(journal)
        assert replayed.fine, replayed.differences
    given = np.concatenate([features(worker, count) for worker in range(writers)]).astype(np.float16)
    order = [int(name.split("/")[0]) * count + int(name.split("/")[1][:-4]) for name in (row.image for row in rows)]
    alone = dictionary().observe(given[order].astype(np.float32))
    assert alone.category.tolist() == [row.category for row in rows], "one process fed in the committed order"


def test_writers_that_are_killed_leave_the_ids_of_a_single_process(journal_at):
    told = run_and_kill(journal_at, writers=2, count=400, kills=2)
    check(journal_at, 2, 400, told)


def test_a_writer_killed_while_one_block_is_committed_and_the_next_decided_on_leaves_the_same_ids(journal_at):
    rng, told = random.Random(4), {}
    for seed in (1, 3):
        writer = start(journal_at, 0, 600, seed)
        assert writer.stdout.readline() == "ready\n", writer.stderr.read()
        time.sleep(rng.uniform(0.2, 0.6))
        writer.kill()
        told |= heard(writer.communicate()[0])
    last = start(journal_at, 0, 600, seed=7)
    out, errors = last.communicate(timeout=120)
    assert last.returncode == 0, errors
    check(journal_at, 1, 600, told | heard(out))


@pytest.mark.slow
def test_four_writers_of_five_thousand_features_killed_at_random_leave_the_ids_of_a_single_process(postgres_journal):
    told = run_and_kill(postgres_journal, writers=4, count=5000, kills=12)
    check(postgres_journal, 4, 5000, told)
