"""Searching an outline: cheap bounds for all prototypes, then the products of those that look nearest."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from newfound.discovery import _filter
from newfound.discovery._exact import Float32s, Float64s, Ints
from newfound.discovery._found import MOST_HELD, NO_TRIPLES, Best, Found, Held, fit, sweep
from newfound.discovery._outline import Outline

_LEADING = 16  # prototypes that are compared first, to know which of the others still matter
_FIRST = 64  # prototypes of the nearest cell that are compared before there are any bounds
_AT_ONCE = 1 << 21  # bounds, 8 MB
_FETCHED = 128  # prototypes at a time: they stay in the cache, in memory that is used again

# What work costs, told in the multiplications of a large product that take as long.
_READ = 20  # to fetch a number from memory
_BOUND = 16  # to complete a bound and compare it
_STEP = 1 << 21  # to have a small piece of work done


def cost_in_full(samples: int, prototypes: int, dimension: int) -> float:
    """What the products of all samples with all prototypes cost."""
    return float(samples + _READ) * prototypes * dimension


class OutlineSearch:
    """One search for a block of samples. ``cost`` is what it has cost so far."""

    def __init__(self, outline: Outline, samples: Float32s, prototypes: Float32s, k: int) -> None:
        self._outline, self._samples, self._prototypes = outline, samples, prototypes
        self._near, self._parts = outline.view(samples)
        self._best, self._held = Best(samples, k), Held()
        self._memory = np.empty((_FETCHED, samples.shape[1]), np.float32)
        self.cost = cost_in_full(len(samples), *outline.centres.shape) + 2.0 * samples.size * outline.directions

    def run(self, most: float, lane: int) -> Found | None:
        """The prototypes that may be among the k nearest of each sample, or None if to find them costs too much."""
        tail, rows = self._tail(lane)
        if len(rows) < len(self._samples):
            return None
        self._best.see(slice(None), tail.products)
        cuts = self._first_cuts()
        pairs = self._pairs(cuts, most)
        if pairs is None:
            return None
        self._best.least = cuts
        self._held.add(np.arange(len(rows)), rows, tail.products, self._best.floors())
        samples, columns, uppers = pairs
        order = np.argsort(samples, kind="stable")
        columns, uppers = columns[order], uppers[order]
        starts = np.searchsorted(samples[order], np.arange(len(rows) + 1))
        for i, (start, stop) in enumerate(itertools.pairwise(starts.tolist())):
            self._compare(i, columns[start:stop], uppers[start:stop])
        if fit(self._held.drop(self._best), MOST_HELD) < len(rows):
            return None
        return self._held.found(self._best)

    def _tail(self, lane: int) -> tuple[Found, Ints]:
        """What the outline says nothing about, searched in full, and the rows of what was found."""
        loose = self._outline.loose(len(self._prototypes))
        start = len(self._prototypes) - len(loose)
        moved = loose.size and loose[0] != start
        some = self._prototypes[loose] if moved else self._prototypes[start:]  # without a copy
        self.cost += cost_in_full(len(self._samples), *some.shape)
        found = sweep(self._samples, some, self._best.k, lane)
        return found, np.append(loose, -1)[found.rows]

    def _first_cuts(self) -> Float64s:
        """What k prototypes of each sample reach, going by the cell whose centre is nearest."""
        nearest = np.where(self._outline.sizes > 0, self._near, -np.inf).argmax(axis=1)
        first = self._best.copy()
        for i, cell in enumerate(nearest.tolist()):
            first.see_one(i, self._products(i, self._outline.members(cell)[:_FIRST])[1])
        return first.cuts()

    def _first_cost(self) -> float:
        return self._cost_of(_FIRST * len(self._samples))

    def predicted(self, cuts: Float64s, scale: float) -> float:
        """What a search costs if there are ``scale`` times as many prototypes, and k of each sample reach the cuts."""
        cells, before = cost_in_full(len(self._samples), *self._outline.centres.shape), self.cost
        pairs = self._pairs(cuts, np.inf)
        if pairs is None:
            return np.inf
        bounds = self.cost - before
        return before - cells + self._first_cost() + scale * (cells + bounds) + self._cost_of(scale * len(pairs[0]))

    def _pairs(self, cuts: Float64s, most: float) -> tuple[Ints, Ints, Float32s] | None:
        """The samples and columns whose bounds reach the samples' cuts, and the bounds, less the slack.

        None if that and the products of all of them would cost more than ``most``.
        """
        outline, limits = self._outline, self._outline.limits(cuts)[:, None]
        open_ = (self._near + outline.radii >= limits) & (outline.sizes > 0)
        found, held = [NO_TRIPLES], 0
        for some, first, last in self._pieces(open_):
            near = self._near[some, first:last]
            upper = outline.upper(first, last, self._parts[some])
            at = np.flatnonzero(upper >= np.repeat(limits[some] - near, outline.sizes[first:last], axis=1))
            i, column = np.divmod(at, upper.shape[1])
            column += outline.start(first)
            found.append((some[i], column, upper.ravel()[at] + near[i, outline.cell_of(column) - first]))
            held += len(at)
            self.cost += cost_in_full(len(upper), upper.shape[1], outline.directions + 1) + _BOUND * upper.size + _STEP
            if self.cost + self._cost_of(held) > most or held > MOST_HELD:
                return None
        samples, columns, uppers = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return samples, columns, uppers

    def _pieces(self, open_: NDArray[np.bool_]) -> Iterator[tuple[Ints, int, int]]:
        """Samples, and first and last of cells in a row, that together hold all that is open."""
        for first, last in self._outline.stretches():
            some = np.flatnonzero(open_[:, first:last].any(axis=1))
            step = max(1, _AT_ONCE // max(1, self._outline.start(last) - self._outline.start(first)))
            for begin in range(0, len(some), step):
                yield some[begin : begin + step], first, last

    def _cost_of(self, pairs: float) -> float:
        """What the products of so many pairs cost."""
        return _READ * self._samples.shape[1] * pairs + 2.0 * _STEP * len(self._samples)

    def _compare(self, i: int, columns: Ints, uppers: Float32s) -> None:
        """Sample ``i`` with columns: those of the highest bounds first, then as many as still matter."""
        count = max(_LEADING, self._best.k)
        if len(columns) > count:
            order = np.argpartition(uppers, len(uppers) - count)
            self._see(i, columns[order[-count:]])
            order = order[:-count]
            limit = self._outline.limits(self._best.cuts(slice(i, i + 1)))
            columns = columns[order[uppers[order] >= limit]]
        if columns.size:
            self._see(i, columns)

    def _see(self, i: int, columns: Ints) -> None:
        rows, products = self._products(i, self._outline.rows(columns))
        self._best.see_one(i, products)
        self._held.put(i, rows, products)

    def _products(self, i: int, rows: Ints) -> tuple[Ints, Float32s]:
        """Those of the rows that have not moved, and the products of sample ``i`` with them."""
        rows = rows[~self._outline.is_loose[rows]]
        self.cost += _STEP + float(_READ) * len(rows) * self._samples.shape[1]
        products, sample = np.empty(len(rows), np.float32), self._samples[i : i + 1]
        for start in range(0, len(rows), _FETCHED):
            some = rows[start : start + _FETCHED]
            # mode="clip" only spares np.take a buffer: every index is in range.
            vectors = np.take(self._prototypes, some, axis=0, out=self._memory[: len(some)], mode="clip")
            products[start : start + len(some)] = _filter.products(sample, vectors)[0]
        return rows, products
