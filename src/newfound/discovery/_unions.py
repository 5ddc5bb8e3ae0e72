"""Which discovered categories are better explained as one.

The log density of n readings with the sum S, up to what the model and the readings contribute however they are grouped,
is

    F(n, S) = 1/2 sum_i [ psi_i S_i^2 / (1 + n psi_i) - log(1 + n psi_i) ],

so explaining two categories as one gains F(n + n', S + S') - F(n, S) - F(n', S'): for a single reading and a category,
their log ratio.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from newfound.discovery._exact import Float64s, Ints, chunk_rows, tree_sum
from newfound.discovery._model import Model

_BLOCK = 512  # rows multiplied at a time: it changes the speed and nothing else


class Explanations:
    """Categories, each counted with at most ``model.cap`` members, and what pairs of them gain as one."""

    def __init__(self, model: Model, sums: Float64s, counts: Ints) -> None:
        n = np.arange(2 * model.cap + 1)[:, None] * model.spread + 1.0
        self._model = model
        self._shrink = model.spread / n
        self._logs = np.array([math.fsum(math.log(v) for v in row) for row in n.tolist()])
        self._all_sums, self._all_counts = sums.copy(), counts.copy()
        self._counts = model.levels(counts)
        self._sums = sums * (self._counts / counts)[:, None]
        self._explained = self._explain(self._sums, self._counts)

    def _explain(self, sums: Float64s, counts: Ints) -> Float64s:
        """F of each row, a function of the row alone."""
        result = np.empty(len(sums))
        step = chunk_rows(self._model.dimension)
        for start in range(0, len(sums), step):
            part = slice(start, start + step)
            terms = np.square(sums[part]) * self._shrink[counts[part]]
            result[part] = 0.5 * (tree_sum(terms) - self._logs[counts[part]])
        return result

    def gains(self, low: Ints, high: Ints) -> Float64s:
        """What the pairs of rows gain as one."""
        result = np.empty(len(low))
        step = chunk_rows(self._model.dimension)
        for start in range(0, len(low), step):
            i, j = low[start : start + step], high[start : start + step]
            together = self._explain(self._sums[i] + self._sums[j], self._counts[i] + self._counts[j])
            result[start : start + step] = together - self._explained[i] - self._explained[j]
        return result

    def near(self, at_least: float) -> tuple[Ints, Ints]:
        """The pairs, lower row first, that may gain ``at_least``.

        With w = psi / (1 + N psi), which N = n + n' fixes, sum w (S + S')^2 = s + s' + 2 S.(w S'): a product for
        every two numbers of members. In float64 it is within gamma_{D+16} of the sum of its terms' absolute values, at
        most 2 (s + s'), with the logs and F's, whatever the order (u = 2^-53); all other rounding is in there as well.
        """
        lows, highs = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        errors = (self._model.dimension + 16) * 2.0**-53
        sizes = [(size, np.flatnonzero(self._counts == size)) for size in np.unique(self._counts).tolist()]
        for k, (size, mine) in enumerate(sizes):
            for other, yours in sizes[k:]:
                weights, log = self._shrink[size + other], self._logs[size + other]
                right = np.square(self._sums[yours]) @ weights
                for start in range(0, len(mine), _BLOCK):
                    some = mine[start : start + _BLOCK]
                    weighted = self._sums[some] * weights
                    squares = (weighted * self._sums[some]).sum(axis=1)[:, None] + right
                    apart = self._explained[some][:, None] + self._explained[yours]
                    gain = 0.5 * (squares + 2 * (weighted @ self._sums[yours].T) - log) - apart
                    sizes_of_terms = 4 * squares + log + 2 * np.abs(self._explained[some])[:, None]
                    sizes_of_terms += 2 * np.abs(self._explained[yours])
                    i, j = np.nonzero(gain + 4 * errors * (sizes_of_terms + 1.0) >= at_least)
                    i, j = some[i], yours[j]
                    different = i < j if size == other else i != j
                    lows.append(np.minimum(i, j)[different])
                    highs.append(np.maximum(i, j)[different])
        return np.concatenate(lows), np.concatenate(highs)

    def unite(self, low: int, high: int) -> None:
        """Adds the row ``high`` to ``low``."""
        self._all_sums[low] += self._all_sums[high]
        self._all_counts[low] += self._all_counts[high]
        row = slice(low, low + 1)
        self._counts[row] = self._model.levels(self._all_counts[row])
        self._sums[row] = self._all_sums[row] * (self._counts[row] / self._all_counts[row])[:, None]
        self._explained[row] = self._explain(self._sums[row], self._counts[row])


def unions(
    model: Model, sums: Float64s, counts: Ints, apart: NDArray[np.bool_], at_least: float
) -> list[tuple[int, int]]:
    """The pairs of rows to merge one after the other, the higher into the lower.

    Always the pair that gains most, and at least ``at_least``; of equal ones the one with the lowest rows. No two that
    are to stay ``apart`` from each other become one, not by way of a third either.
    """
    apart = apart.copy()
    rows = Explanations(model, sums, counts)
    alive = np.ones(len(sums), bool)
    pairs = _worthwhile(rows, *rows.near(at_least), apart, at_least)
    merged = []
    while pairs:
        low, high = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merged.append((low, high))
        rows.unite(low, high)
        alive[high] = False
        apart[low] |= apart[high]
        pairs = {pair: gain for pair, gain in pairs.items() if not {low, high} & set(pair)}
        others = np.flatnonzero(alive)
        others = others[others != low]
        pairs |= _worthwhile(rows, np.minimum(others, low), np.maximum(others, low), apart, at_least)
    return merged


def _worthwhile(
    rows: Explanations, low: Ints, high: Ints, apart: NDArray[np.bool_], at_least: float
) -> dict[tuple[int, int], float]:
    may = ~(apart[low] & apart[high])
    low, high = low[may], high[may]
    pairs = zip(low.tolist(), high.tolist(), rows.gains(low, high).tolist(), strict=True)
    return {(i, j): gain for i, j, gain in pairs if gain >= at_least}
