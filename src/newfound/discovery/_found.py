"""The prototypes that may be nearest, collected piece by piece."""

from __future__ import annotations

import copy
import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from newfound.discovery import _filter
from newfound.discovery._exact import Float32s, Float64s, Ints

_SWEPT = 1 << 20  # products made at a time, 4 MB: few enough for the cache, enough for the product to be fast
MOST_HELD = 1 << 22  # pairs of a sample and a prototype, some 300 MB while they are put in order
NO_TRIPLES = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32)


@dataclass
class Found:
    """The prototypes that may be among the k nearest of each sample of a block, in no order.

    ``rows`` and their ``products`` are ``[sample, width]``, filled up with -1 and -inf. The similarity of every
    row that is left out is below ``cuts``, and k that are listed reach it.
    """

    rows: Ints
    products: Float32s
    cuts: Float64s

    @classmethod
    def of_pairs(cls, samples: Ints, rows: Ints, products: Float32s, cuts: Float64s) -> Found:
        """From pairs of samples (ascending) and rows."""
        counts = np.bincount(samples, minlength=len(cuts))
        return cls(in_columns(samples, counts, rows, -1), in_columns(samples, counts, products, -np.inf), cuts)


def in_columns(samples: Ints, counts: Ints, values: NDArray[Any], nothing: float) -> NDArray[Any]:
    """Values of samples (ascending, so many each), a row a sample, filled up with ``nothing``."""
    places = np.arange(len(samples)) - np.repeat(np.cumsum(counts) - counts, counts)
    table = np.full((len(counts), counts.max(initial=0)), nothing, values.dtype)
    table[samples, places] = values
    return table


class Best:
    """The k largest products of every sample so far, and what follows from them."""

    def __init__(self, samples: Float32s, k: int) -> None:
        self.k = k
        self.bound = _filter.bound(samples.shape[1])
        self._best = np.full((len(samples), k), -np.inf, np.float32)

    def first(self, count: int) -> Best:
        """That of the first samples only."""
        twin = copy.copy(self)
        twin._best = self._best[:count]
        return twin

    def see(self, some: slice, products: Float32s) -> None:
        """Takes products of some samples into account, ``[sample, prototype]``, each prototype once."""
        both = np.concatenate([self._best[some], products], axis=1)
        if self.k == 1:
            self._best[some] = both.max(axis=1, keepdims=True)  # many times as fast
        else:
            self._best[some] = np.partition(both, both.shape[1] - self.k, axis=1)[:, -self.k :]

    def see_pairs(self, samples: Ints, products: Float32s) -> None:
        """The same for single products of samples (ascending)."""
        if self.k == 1:
            np.maximum.at(self._best[:, 0], samples, products)
            return
        some, starts = np.unique(samples, return_index=True)
        bounds = itertools.pairwise([*starts.tolist(), len(samples)])
        for i, (start, stop) in zip(some.tolist(), bounds, strict=True):
            self.see(slice(i, i + 1), products[None, start:stop])

    def cuts(self) -> Float64s:
        """What the similarities of k prototypes reach; -2, below all, where there are fewer."""
        kth = self._best.min(axis=1).astype(np.float64)
        return np.where(kth > -np.inf, np.clip(kth, -1.0, 1.0) - self.bound, -2.0)

    def floors(self) -> Float32s:
        """What the product of a prototype whose similarity reaches the cut is at least.

        As :func:`_filter.floor_for`, rounded down: float32 must not lose what float64 would keep.
        """
        values = self.cuts() - self.bound
        return np.nextafter(np.where(values > -1.0, values, -2.0).astype(np.float32), np.float32(-np.inf))


class Held:
    """Triples of a sample, a row and their product."""

    def __init__(self) -> None:
        self._triples = [NO_TRIPLES]
        self.count = 0

    def put(self, samples: Ints, rows: Ints, products: Float32s) -> None:
        """Some more, whether they matter or not."""
        self._triples.append((samples, rows, products))
        self.count += len(rows)

    def drop(self, best: Best) -> Ints:
        """Lets go of what matters no more, and of samples that are not in ``best``; how many each of those has left."""
        samples, rows, products = (np.concatenate(parts) for parts in zip(*self._triples, strict=True))
        floors = best.floors()
        left = samples < len(floors)
        left[left] = products[left] >= floors[samples[left]]
        self._triples = [(samples[left], rows[left], products[left])]
        self.count = int(np.count_nonzero(left))
        return np.bincount(samples[left], minlength=len(floors))

    def found(self, best: Best) -> Found:
        """All that still matters."""
        self.drop(best)
        ((samples, rows, products),) = self._triples
        order = np.argsort(samples, kind="stable")
        return Found.of_pairs(samples[order], rows[order], products[order], best.cuts())


def sweep(samples: Float32s, prototypes: Float32s, k: int, lane: int, most: int = MOST_HELD) -> Found:
    """What a comparison with all prototypes finds, some at a time, so that their products need not be kept.

    Only the lanes of columns whose maximum may matter, as things stand by then, are looked at again. Where so many
    prototypes are alike that room for more than ``most`` pairs is needed, the first samples alone are answered.
    """
    n, size = len(samples), len(prototypes)
    step = max(1, _SWEPT // (n * lane)) * lane
    memory = np.empty((n, min(step, -(-size // lane) * lane)), np.float32)
    best, held = Best(samples, k), Held()
    for start in range(0, size, step):
        part = prototypes[start : start + step]
        memory[:, len(part) :] = -np.inf
        _filter.products(samples, part, out=memory[:, : len(part)])
        lanes = memory.reshape(n, -1, lane)
        peaks = lanes.max(axis=2)
        best.see(slice(None), peaks)
        floors = best.floors()
        i, j = _filter.reaching(peaks, floors)
        some = lanes[i, j]
        which, column = _filter.reaching(some, floors[i])
        held.put(i[which], start + j[which] * lane + column, some[which, column])
        last = start + step >= size
        if held.count > most or last:
            fitting = fit(held.drop(best), most if last else most // 2)
            if fitting < n:
                n = fitting
                samples, memory, best = samples[:n], memory[:n], best.first(n)
                held.drop(best)
    return held.found(best)


def fit(counts: Ints, most: int) -> int:
    """How many samples, from the first on and one at least, have room where all get as much as the largest needs."""
    room = np.maximum.accumulate(counts) * np.arange(1, len(counts) + 1)
    return max(1, int(np.searchsorted(room, most, side="right")))
