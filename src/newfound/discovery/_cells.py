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
_DIMENSIONS = 64  # in which rows are told apart
_CENTRES_FROM = 6  # rows a cell: enough to tell where its centre is
_ROUNDS = 4  # in which centres are drawn: each round goes where the ones before left rows far from all
_PASSES = 8
_FAR = 2.0  # times the median of the squared distances
_STEP = 4096  # rows assigned at a time
_COMPARED = 1024  # centres that every point is compared with
_PROBED = 6  # groups of centres that a point is compared with, where there are more


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


def divide(rows: Float32s, cells: int) -> Ints:
    """The cell of every row, from 0 up, about ``cells`` in all; cells that lie close together follow each other.

    Rows that are left far from every centre, because none was drawn near them, are divided among themselves.
    """
    points = rows @ leading_directions(rows, min(_DIMENSIONS, rows.shape[1])).astype(np.float32)
    cell = np.empty(len(points), np.int64)
    some, used, limit = np.arange(len(points)), 0, np.inf
    for _ in range(_PASSES):
        centres = choose_centres(points[some], max(1, cells * len(some) // len(points)))
        part, distance = assign(points[some], centres)
        cell[some] = used + part
        used += len(centres)
        limit = min(limit, _FAR * float(np.median(distance)))
        some = some[distance > limit]
        if not some.size:
            break
    return _neighbours_together(cell, points)


def _neighbours_together(cell: Ints, points: Float32s) -> Ints:
    """The same cells, numbered so that those of a group follow each other: a sample looks into many of few groups."""
    order, starts = grouped(cell)
    means: Float32s = np.add.reduceat(points[order], starts[:-1], axis=0)
    means /= np.diff(starts)[:, None]
    group, _ = assign(means, choose_centres(means, math.isqrt(len(means))))
    place = np.empty(len(means), np.int64)
    place[np.argsort(group, kind="stable")] = np.arange(len(means))
    numbered = np.empty_like(cell)
    numbered[order] = np.repeat(place, np.diff(starts))
    return numbered


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
    """The nearest centre of every point, or nearly, and about the squared distance to it.

    Of many centres, a point is compared with those of the groups nearest to it. (To settle on one group first, and
    draw centres within it, would tear clusters apart: in many dimensions most points lie near some border.)
    """
    groups = None if len(centres) <= _COMPARED else _Groups(centres)
    cell, distance = np.empty(len(points), np.int64), np.empty(len(points))
    for start in range(0, len(points), _STEP):
        part = points[start : start + _STEP]
        best, peak = _nearest(part, centres) if groups is None else groups.nearest(part)
        cell[start : start + _STEP] = best
        distance[start : start + _STEP] = np.maximum(0, np.square(part).sum(axis=1) - 2 * peak)
    return cell, distance


class _Groups:
    """Centres in groups of centres that lie close together."""

    def __init__(self, centres: Float32s) -> None:
        heads = choose_centres(centres, math.isqrt(len(centres)))
        head, _ = assign(centres, heads)
        order, starts = grouped(head)
        self._heads = heads[head[order[starts[:-1]]]]  # those that have members
        self._members = [order[a:b] for a, b in itertools.pairwise(starts.tolist())]
        self._centres = [centres[members] for members in self._members]

    def nearest(self, points: Float32s) -> tuple[Ints, Float32s]:
        """As :func:`_nearest`, among the members of the groups that are nearest to each point."""
        count = min(_PROBED, len(self._heads))
        probed = np.argpartition(_closeness(points, self._heads), -count, axis=1)[:, -count:].ravel()
        best, peak = np.zeros(len(points), np.int64), np.full(len(points), -np.inf, np.float32)
        order, starts = grouped(probed)
        for a, b in itertools.pairwise(starts.tolist()):
            group, rows = probed[order[a]], order[a:b] // count
            place, value = _nearest(points[rows], self._centres[group])
            better = value > peak[rows]
            peak[rows[better]], best[rows[better]] = value[better], self._members[group][place[better]]
        return best, peak


def _nearest(points: Float32s, centres: Float32s) -> tuple[Ints, Float32s]:
    """The nearest centre of every point, and its closeness."""
    closeness = _closeness(points, centres)
    best = closeness.argmax(axis=1)
    return best, closeness[np.arange(len(points)), best]


def _closeness(points: Float32s, centres: Float32s) -> Float32s:
    """Half of how much longer a point's square is than its squared distance to each centre."""
    closeness: Float32s = points @ centres.T
    closeness -= np.square(centres).sum(axis=1) / 2
    return closeness


def grouped(keys: Ints) -> tuple[Ints, Ints]:
    """The positions of ``keys`` ordered by key, and where each key that occurs begins, with the end as the last."""
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.diff(keys[order], prepend=-1, append=np.iinfo(np.int64).max))
    return order, starts
