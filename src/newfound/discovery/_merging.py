"""Which discovered prototypes have turned out to be one and the same, and sums of members in the order they came."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from newfound.discovery import _filter
from newfound.discovery._exact import Float32s, Float64s, Ints, Similarity, chunk_rows


def mutual_nearest(prototypes: Float32s, at: float, block: int) -> list[tuple[int, int]]:
    """The pairs of rows, lower first, that are each other's nearest, with a similarity of at least ``at``.

    Of equally near ones the lowest row counts. Similarities are canonical; products, of ``block`` rows at a
    time, only rule out pairs that cannot reach ``at``.
    """
    similarity = Similarity(prototypes.shape[1])
    mates = np.full(len(prototypes), -1, np.int64)
    for start in range(0, len(prototypes), block):
        part = slice(start, start + block)
        mates[part] = _mates(prototypes, part, at, similarity)
    return [(i, j) for i, j in enumerate(mates.tolist()) if i < j and mates[j] == i]


def _mates(prototypes: Float32s, part: slice, at: float, similarity: Similarity) -> Ints:
    """The nearest other row of each row in ``part``, -1 if none is as near as ``at``."""
    floor = _filter.floor_for(at - _filter.bound(prototypes.shape[1]))
    rows = prototypes[part]
    each = np.arange(len(rows))
    products = _filter.products(rows, prototypes)
    products[each, part.start + each] = -np.inf
    i, j = np.nonzero(products >= np.float64(floor))
    scores = similarity(rows, i, prototypes, j)
    order = np.lexsort((-j, scores))  # the nearest last, of equals the lowest row: what is written last stays
    order = order[scores[order] >= at]
    mates = np.full(len(rows), -1, np.int64)
    mates[i[order]] = j[order]
    return mates


def sum_in_order(rows: Float32s | Float64s) -> Float64s:
    """The sum of the rows, added one after the other."""
    return add_in_order(np.zeros(rows.shape[1]), rows)[0]


def add_in_order(total: Float64s, rows: Float32s | Float64s) -> tuple[Float64s, Float64s]:
    """``total`` with the rows added one after the other, and the last of the sums on the way that is not zero.

    The latter is zero if there is none. Every sum on the way is a result of its own, so none is regrouped.
    """
    last, step = np.zeros_like(total), chunk_rows(len(total))
    for start in range(0, len(rows), step):
        sums = np.add.accumulate(np.concatenate([total[None], rows[start : start + step]]), axis=0)[1:]
        total = sums[-1]
        there = [-1] if total.any() else np.flatnonzero(sums.any(axis=1))[-1:]
        last = sums[there[0]] if len(there) else last
    return total, last


def by_row(rows: Ints, which: Ints) -> Iterator[tuple[int, Ints]]:
    """Each distinct row of the samples ``which``, ascending, and the samples that have it, in their order."""
    order = which[np.argsort(rows[which], kind="stable")]
    starts = np.flatnonzero(np.diff(rows[order], prepend=-1))
    for samples in np.split(order, starts[1:]) if len(order) else ():
        yield int(rows[samples[0]]), samples
