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
        self._some_moved = bool(outline.is_loose.any())
        self._memory = np.empty((2, _FETCHED, samples.shape[1]), np.float32)
        self.cost = cost_in_full(len(samples), *outline.centres.shape) + 2.0 * samples.size * outline.directions

    def run(self, most: float, lane: int) -> Found | None:
        """The prototypes that may be among the k nearest of each sample, or None if to find them costs too much."""
        tail, rows = self._tail(lane)
        if len(rows) < len(self._samples):
            return None
        self._best.see(slice(None), tail.products)
        firsts = self._compare_firsts()
        pairs = self._pairs(self._best.cuts(), most)
        if pairs is None:
            return None
        which, place = _filter.reaching(tail.products, self._best.floors())
        self._held.put(which, rows[which, place], tail.products[which, place])
        samples, columns, uppers = pairs
        left = (columns < firsts[samples, 0]) | (columns >= firsts[samples, 1])
        order = np.flatnonzero(left)[np.argsort(samples[left], kind="stable")]
        self._compare(samples[order], columns[order], uppers[order])
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

    def _compare_firsts(self) -> Ints:
        """Every sample with prototypes of the cell whose centre is nearest; their first and last columns, the last not
        included."""
        nearest = np.where(self._outline.sizes > 0, self._near, -np.inf).argmax(axis=1)
        counts = np.minimum(_FIRST, self._outline.sizes[nearest])
        starts = self._outline.starts(nearest)
        ends = np.cumsum(counts)
        samples = np.repeat(np.arange(len(counts)), counts)
        self._see(samples, np.arange(len(samples)) + (starts - ends + counts)[samples])
        return np.stack([starts, starts + counts], axis=1)

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
            upper, owners = outline.upper(first, last, self._parts[some]), outline.owners(first, last) - first
            # mode="clip" only spares np.take a check: every index is in range.
            at = np.flatnonzero(upper >= np.take(limits[some] - near, owners, axis=1, mode="clip"))
            i, column = np.divmod(at, upper.shape[1])
            found.append((some[i], column + outline.start(first), upper.ravel()[at] + near[i, owners[column]]))
            held += len(at)
            self.cost += cost_in_full(len(upper), upper.shape[1], outline.directions + 1) + _BOUND * upper.size + _STEP
            if self.cost + self._cost_of(held) > most or held > MOST_HELD:
                return None
        samples, columns, uppers = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return samples, columns, uppers

    def _pieces(self, open_: NDArray[np.bool_]) -> Iterator[tuple[Ints, int, int]]:
        """Samples, and first and last of cells in a row, that together hold all that is open."""
        stretches = self._outline.stretches()
        holding = np.logical_or.reduceat(open_.any(axis=0), np.array([first for first, _ in stretches], np.intp))
        for first, last in itertools.compress(stretches, holding.tolist()):
            some = np.flatnonzero(open_[:, first:last].any(axis=1))
            step = max(1, _AT_ONCE // max(1, self._outline.start(last) - self._outline.start(first)))
            for begin in range(0, len(some), step):
                yield some[begin : begin + step], first, last

    def _cost_of(self, pairs: float) -> float:
        """What the products of so many pairs cost."""
        return _READ * self._samples.shape[1] * pairs + 2.0 * _STEP

    def _compare(self, samples: Ints, columns: Ints, uppers: Float32s) -> None:
        """Samples (ascending) with columns: those of high bounds first, then as many of the others as still matter."""
        highest = np.full(len(self._samples), -np.inf, np.float32)
        np.maximum.at(highest, samples, uppers)
        high = uppers >= ((self._outline.limits(self._best.cuts()) + highest) / 2)[samples]
        self._see(samples[high], columns[high])
        left = ~high & (uppers >= self._outline.limits(self._best.cuts())[samples])
        self._see(samples[left], columns[left])

    def _see(self, samples: Ints, columns: Ints) -> None:
        """Takes the products of samples (ascending) with columns into account, pair by pair, but for what has moved."""
        rows = self._outline.rows(columns)
        if self._some_moved:
            there = ~self._outline.is_loose[rows]
            samples, rows = samples[there], rows[there]
        products = self._products(samples, rows)
        self._best.see_pairs(samples, products)
        self._held.put(samples, rows, products)

    def _products(self, samples: Ints, rows: Ints) -> Float32s:
        """The products of samples (ascending) with rows, pair by pair."""
        self.cost += self._cost_of(len(rows))
        products = np.empty(len(rows), np.float32)
        for start in range(0, len(rows), _FETCHED):
            part = slice(start, start + _FETCHED)
            who = samples[part]
            # mode="clip" only spares np.take a buffer: every index is in range.
            vectors = np.take(self._prototypes, rows[part], axis=0, out=self._memory[0, : len(who)], mode="clip")
            if who[0] == who[-1]:
                products[part] = _filter.products(self._samples[who[:1]], vectors)[0]
            else:
                others = np.take(self._samples, who, axis=0, out=self._memory[1, : len(who)], mode="clip")
                _filter.paired(vectors, others, out=products[part])
        return products
