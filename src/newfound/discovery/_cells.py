"""Dividing unit rows into cells of rows that lie close together, and the directions in which rows differ most.

Whatever is chosen here, searches stay exact; a good choice only makes them fast. So all of it is done on a sample of
the rows, with few rounds and in few dimensions.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from newfound.discovery._exact import Float32s, Float64s, Ints

_DIRECTIONS_FROM = 4096  # rows: enough to tell the leading directions
_CENTRES_FROM = 16  # rows a cell: enough to tell where its centre is
_ROUNDS = 4  # in which centres are drawn: each round goes where the ones before left rows far from all
_PASSES = 8
_FAR = 2.0  # times the median of the squared distances
_STEP = 4096  # rows assigned at a time


def leading_directions(rows: Float32s, count: int) -> Float64s:
    """``[D, count]``: orthonormal columns that hold most of the rows' length, nearly the principal directions."""
    some = rows[evenly(len(rows), _DIRECTIONS_FROM)]
    start = np.random.default_rng(0).standard_normal((rows.shape[1], count), dtype=np.float32)
    basis = np.linalg.qr(some.T @ (some @ start))[0]
    return np.linalg.qr((some.T @ (some @ basis)).astype(np.float64))[0]


def evenly(total: int, count: int) -> Ints:
    """At most ``count`` positions spread over ``range(total)``."""
    return np.unique(np.linspace(0, total - 1, min(total, count)).astype(np.int64))


def neighbours(rows: Float32s, count: int, size: int) -> Ints:
    """``[count, size]``: the rows nearest to each of ``count`` rows, themselves included."""
    closeness = rows[evenly(len(rows), count)] @ rows.T
    size = min(size, len(rows))
    return np.argpartition(closeness, len(rows) - size, axis=1)[:, -size:]


def divide(points: Float32s, cells: int) -> Ints:
    """The cell of every point (in few dimensions), from 0 up, about ``cells`` in all.

    Points that are left far from every centre, because none was drawn near them, are divided among themselves.
    """
    cell = np.empty(len(points), np.int64)
    some, used, limit = np.arange(len(points)), 0, np.inf
    for _ in range(_PASSES):
        part, distance = _in_two_steps(points[some], max(1, cells * len(some) // len(points)))
        cell[some] = used + part
        used += int(part.max()) + 1
        limit = min(limit, _FAR * float(np.median(distance)))
        some = some[distance > limit]
        if not some.size:
            break
    return cell


def _in_two_steps(points: Float32s, cells: int) -> tuple[Ints, Float64s]:
    """As :func:`assign`, for about ``cells`` centres: groups first and cells within each, which costs far less."""
    groups, _ = assign(points, choose_centres(points, max(1, math.isqrt(cells))))
    order, starts = grouped(groups)
    cell, distance, used = groups, np.empty(len(points)), 0
    for a, b in itertools.pairwise(starts.tolist()):
        some = order[a:b]
        centres = choose_centres(points[some], max(1, round(cells * len(some) / len(points))))
        part, distance[some] = assign(points[some], centres)
        cell[some] = used + part
        used += len(centres)
    return cell, distance


def choose_centres(points: Float32s, count: int) -> Float32s:
    """About ``count`` centres among which the points (in few dimensions) are well shared out.

    Centres are drawn in rounds, each time with a chance that grows with the squared distance to the nearest one
    so far (Bahmani et al., Scalable K-Means++, 2012), and moved to the mean of their points once.
    """
    rng = np.random.default_rng(0)
    some = points[evenly(len(points), _CENTRES_FROM * count)]
    centres = some[evenly(len(some), -(-count // _ROUNDS))]
    for _ in range(_ROUNDS - 1):
        _, distance = assign(some, centres)
        if not distance.any():
            break
        drawn = min(-(-count // _ROUNDS), int(np.count_nonzero(distance)))
        far = rng.choice(len(some), drawn, replace=False, p=distance / distance.sum())
        centres = np.concatenate([centres, some[far]])
    cell, _ = assign(some, centres)
    order, starts = grouped(cell)
    sums: Float32s = np.add.reduceat(some[order], starts[:-1], axis=0)
    sums /= np.diff(starts)[:, None]
    return sums


def assign(points: Float32s, centres: Float32s) -> tuple[Ints, Float64s]:
    """The nearest centre of every point, and about the squared distance to it."""
    half = np.square(centres).sum(axis=1) / 2
    cell, distance = np.empty(len(points), np.int64), np.empty(len(points))
    for start in range(0, len(points), _STEP):
        part = points[start : start + _STEP]
        closeness = part @ centres.T
        closeness -= half
        best = closeness.argmax(axis=1)
        cell[start : start + _STEP] = best
        peak = closeness[np.arange(len(part)), best]
        distance[start : start + _STEP] = np.maximum(0, np.square(part).sum(axis=1) - 2 * peak)
    return cell, distance


def grouped(keys: Ints) -> tuple[Ints, Ints]:
    """The positions of ``keys`` ordered by key, and where each key that occurs begins, with the end as the last."""
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.diff(keys[order], prepend=-1, append=np.iinfo(np.int64).max))
    return order, starts
