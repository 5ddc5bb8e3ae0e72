"""A block of the stream against the evidence, in compiled loops: what :mod:`newfound.discovery._weighing` decides.

Compiled, one reading after the other is fast enough, so that nothing has to be surveyed: each is held against the
products with all evidence and, afresh, against what has changed since these were made; whatever may matter gets its
canonical score at once, and the best of these decides.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from newfound.discovery._answers import LEADING, Answers, Odds, Pairs
from newfound.discovery._exact import Float64s, Ints
from newfound.discovery._ledger import Ledger
from newfound.discovery._products import Readings

_RUN = 64  # readings after which what has changed is multiplied with all that are left: it changes only the speed
_PAIRS = 1 << 13  # scores that there is room for at a time

Met = list[tuple[int, int, int]]  # candidates, what they founded, and when


def weigh(
    kernels: Any, block: Readings, ledger: Ledger, cuts: tuple[float, float | None, Odds], answers: Answers, ids: Ints,
    seen: int,
) -> tuple[Ints, Met]:  # fmt: skip
    """Decides on each reading in turn; evidence and candidates follow, and ``answers`` get the scores.

    Returns the rows where the readings belong, and the candidates that met their like. There must be no prior.

    Args:
        cuts: The threshold, the score below which a reading founds a category alone, and how probabilities are made.
        ids: Of all rows, and of those that the block may found.
    """
    threshold, alone, odds = cuts
    n, model = len(block), ledger.evidence.model
    sides = ledger.evidence, ledger.candidates.evidence
    sizes = np.array([len(sides[0]), len(sides[1]), 0, 0, 0, 0])
    values = [np.empty((n, len(side) + n), np.float32) for side in sides]
    for side, table in zip(sides, values, strict=True):
        block.values(side.fast, out=table[:, : len(side)])
    columns = tuple(side.reserve(n) for side in sides)
    reached = np.array([
        max(float(side.lengths.max(initial=0.0)) for side in sides),
        max(float(np.abs(side.offsets).max(initial=0.0)) for side in sides),
        *model.error_terms,
    ])  # fmt: skip
    fresh = np.empty(_RUN, np.int64), np.empty(_RUN, np.int64)
    told = np.empty((n, 4), np.int64)
    pairs, rivals = (_room(len(side) + n) for side in sides)
    readings, lengths, bends = block.rows, block.lengths.copy(), block.largest_bends.copy()
    tables = model.pull, model.half, model.bend
    limits = threshold, np.inf if alone is None else alone, odds.even, odds.reach
    learning = 0 if ledger.learn_known else ledger.categories.known
    begin = 0
    while begin < n:
        part = slice(begin, begin + _RUN)
        sizes[2:] = 0
        done = kernels.weigh(
            readings[part], block.wide[part], lengths[part], bends[part], *columns, tables, model.constant, reached,
            limits, learning, answers.k, LEADING, tuple(table[begin:] for table in values), fresh, sizes, told[part],
            pairs, rivals,
        )  # fmt: skip
        here = told[begin : begin + done]
        answers.add(
            np.arange(begin, begin + done), here[:, 0], here[:, 1] > 0,
            _ranked(pairs, sizes[4]), _ranked(rivals, sizes[5]),
        )  # fmt: skip
        begin += done
        for table, column, rows, count in zip(values, columns, fresh, sizes[2:4].tolist(), strict=True):
            if count and begin < n:  # what has changed is multiplied with all readings that are left
                table[begin:, rows[:count]] = block[begin:].values(column[3][rows[:count]])
    for side, size in zip(sides, sizes[:2].tolist(), strict=True):
        side.use(size)
    homes, _, partners, waiting = told.T
    doubtful, founders = np.flatnonzero(waiting >= 0), np.flatnonzero(partners >= 0)
    ledger.candidates.told_of(seen + doubtful, ids[homes[doubtful]])
    return homes.copy(), [(int(partners[i]), int(homes[i]), seen + i + 1) for i in founders.tolist()]


def _room(least: int) -> tuple[Ints, Ints, Float64s]:
    size = max(least, _PAIRS)
    return np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size)


def _ranked(pairs: tuple[Ints, Ints, Float64s], count: int) -> Pairs:
    at, rows, scores = pairs
    return Pairs.ranked(at[:count], rows[:count], scores[:count])
