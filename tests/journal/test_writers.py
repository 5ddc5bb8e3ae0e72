"""Several writers, one order: the ids of any number of processes are those of one, whoever is killed when."""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from mortal import Mortal
from observing import dictionary, features

from newfound.journal import Journal
from newfound.journal.replaying import verify

_LATER = 0.05  # seconds at most between what is acknowledged and the kill: blocks take about as long


def heard(lines: list[str]) -> dict[int, int]:
    """The categories that were acknowledged, by number."""
    pairs = [pair.split(":") for line in lines if line[0].isdigit() for pair in line.split()]
    return {int(number): int(category) for number, category in pairs}


def killed_again_and_again(
    where: str, worker: int, count: int, kills: int, seeds: tuple[int, ...] = ()
) -> tuple[dict[int, int], int]:
    """Start a writer, kill it at a random moment of its work, start it again, and at last let it finish.

    Every life acknowledges some of what is new before the moment is drawn, and leaves the others their share.

    Returns what was acknowledged, and how many kills interrupted it: after something was, before all was.
    """
    rng, told, interrupted = random.Random(worker), dict[int, int](), 0
    for life in range(kills):
        share = count // (kills + 1)
        before = len(told)
        due = min(rng.randint(share // 2, share), count - before)  # a fast one may have left less than that
        writer = Mortal("observing.py", where, worker, count, seeds[life] if seeds else 100 * life + worker)
        writer.wait_until(lambda lines: len(heard(lines).keys() - told.keys()) >= due)  # noqa: B023
        time.sleep(rng.uniform(0, _LATER))
        at_work = writer.kill()
        told |= heard(writer.told)
        interrupted += at_work and before + due <= len(told) < count
    last = Mortal("observing.py", where, worker, count, 1000 + worker)
    return told | heard(last.finish()), interrupted


def run_and_kill(where: str, writers: int, count: int, kills: int) -> tuple[dict[int, int], int]:
    """So many writers at once, each killed so many times, as `killed_again_and_again` does it; all kills together."""
    with ThreadPoolExecutor(writers) as pool:
        lives = [pool.submit(killed_again_and_again, where, worker, count, kills) for worker in range(writers)]
    told, interrupted = zip(*(life.result() for life in lives), strict=True)
    return {number: category for one in told for number, category in one.items()}, sum(interrupted)


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
    told, interrupted = run_and_kill(journal_at, writers=2, count=5000, kills=2)
    assert interrupted >= 3, "of four kills"
    check(journal_at, 2, 5000, told)


def test_a_writer_killed_while_one_block_is_committed_and_the_next_decided_on_leaves_the_same_ids(journal_at):
    told, interrupted = killed_again_and_again(journal_at, 0, 4000, kills=2, seeds=(1, 3))
    assert interrupted == 2
    check(journal_at, 1, 4000, told)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_four_writers_of_five_thousand_features_killed_at_random_leave_the_ids_of_a_single_process(postgres_journal):
    told, interrupted = run_and_kill(postgres_journal, writers=4, count=5000, kills=3)
    assert interrupted >= 10, "of twelve kills"
    check(postgres_journal, 4, 5000, told)
