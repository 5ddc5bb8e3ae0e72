"""A process that decides on features and enters them: python observing.py WHERE WORKER COUNT SEED.

Its features and contents depend on WORKER alone, the size of its blocks on SEED. It may be killed and started again at
any time: what is in the journal is not entered twice. After each committed block it prints numbers and categories; with
an odd SEED, after several that were entered while the one before was being committed.
"""

from __future__ import annotations

import sys

import numpy as np

from newfound.discovery import BayesianDictionary
from newfound.journal import Journal
from newfound.journal.book import Book
from newfound.journal.catalogue import Catalogue
from newfound.journal.keeper import Image, Keeper

DIMENSION, KNOWN, KINDS = 16, 5, 40


def dictionary() -> BayesianDictionary:
    """Founds, doubts, and thinks again: everything that depends on the order."""
    centres = _centres()[:KNOWN]
    return BayesianDictionary(
        np.full(DIMENSION, 9.0), 5 * centres, [5] * KNOWN, 2.0, alone=-8.0, reconsider_every=100, memory=300
    )


def features(worker: int, count: int) -> np.ndarray:
    rng = np.random.default_rng(worker)
    return _centres()[rng.integers(0, KINDS, count)] + rng.normal(size=(count, DIMENSION))


def _centres() -> np.ndarray:
    """So close together that an answer depends on all that came before, and on when second thoughts are due."""
    return np.random.default_rng(99).normal(size=(KINDS, DIMENSION))


def main(where: str, worker: int, count: int, seed: int) -> None:
    journal = Journal.open(where, wait=60)
    journal.begin("a model", {}, Book(dictionary(), Catalogue([f"class {k}" for k in range(KNOWN)])).to_bytes())
    keeper, readings = Keeper(journal, actor=f"worker {worker}"), features(worker, count)
    images = [Image(f"{worker}/{i}.jpg", worker.to_bytes(8, "big") + i.to_bytes(8, "big")) for i in range(count)]
    rng, start = np.random.default_rng(seed), 0
    print("ready", flush=True)
    while start < count:
        stop = start + int(rng.integers(1, 120))
        if seed % 2:
            entered = keeper.enter_all(images[start:stop], readings[start:stop], block=8)
        else:
            entered = keeper.enter(images[start:stop], readings[start:stop])
        print(" ".join(f"{one.row.number}:{one.row.category}" for one in entered), flush=True)
        start = stop


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
