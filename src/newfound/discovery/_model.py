"""The two-covariance model: how well a reading fits a category seen n times, in arithmetic batching cannot change.

Readings are whitened: around the mean of its class a reading has the covariance I, and class means have the
covariance diag(psi) around 0. A category with n readings of sum S then predicts the next one to be

    N(m, diag(v)),   m = psi S / (n psi + 1),   v = 1 + psi / (n psi + 1),

and a category never seen predicts N(0, 1 + psi) (two-covariance model, or PLDA). With b = m / v the log ratio of the
two densities at x is

    C_n + sum_i [ b_i (x_i - v_i b_i / 2) + a_i x_i^2 ],
    C_n = 1/2 sum log((1 + psi) / v),   a = 1/2 (1 / (1 + psi) - 1 / v),

linear in x and x^2, where C, a and v depend on n alone.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from newfound.discovery import _compiled
from newfound.discovery._exact import Float32s, Float64s, Ints, tree_sum

_CHUNK = 1 << 15  # numbers worked on at a time: what is worked on stays in the cache


class Model:
    """The tables of the two-covariance model for 1 .. ``cap`` members; row n is for n members.

    A category with more counts as one with ``cap`` members and the same mean.
    """

    def __init__(self, spread: Float64s, cap: int) -> None:
        n = np.arange(cap + 1)[:, None]
        pull = spread / (n * spread + 1.0)
        variance = 1.0 + pull
        logs = [[math.log(v) for v in row] for row in variance.tolist()]
        self.spread, self.cap = spread, cap
        self.constant = np.array([0.5 * math.fsum(logs[0] + [-log for log in row]) for row in logs])
        self.pull = pull / variance
        self.half = variance / 2.0
        self.bend = 0.5 * (1.0 / variance[0] - 1.0 / variance)
        self._gamma, self._most = _gamma(len(spread) + 8), self.constant.item(-1) + 1e-6

    @property
    def dimension(self) -> int:
        return len(self.spread)

    @property
    def width(self) -> int:
        """The length of what is multiplied for a fast value; see :meth:`error`."""
        return len(self.spread) + len(self.bend) + 1

    def levels(self, counts: Ints) -> Ints:
        """The row of the tables for so many members."""
        return np.minimum(counts, self.cap)

    def weights(self, sums: Float64s, counts: Ints) -> Float64s:
        """b for categories with these sums of readings and numbers of members."""
        levels = self.levels(counts)
        weights = sums * (levels / counts)[:, None]
        weights *= self.pull[levels]
        return weights

    def log_ratios(self, readings: Float32s, at: Ints, weights: Float64s, which: Ints, levels: Ints) -> Float64s:
        """The log ratios of ``readings[at]`` and categories with ``weights[which]``: functions of each pair alone.

        Elementwise float64 arithmetic and :func:`tree_sum`.
        """
        result = np.empty(len(which))
        kernels = _compiled.kernels(2 * len(which) * self.dimension)
        if kernels is not None and readings.dtype == np.float32:
            given = map(np.ascontiguousarray, (readings, at, weights, which, levels))
            kernels.log_ratios(*given, self.half, self.bend, self.constant, result)
            return result
        step = max(1, min(_CHUNK // self.dimension, len(which)))
        rows = np.empty((step, self.dimension), readings.dtype)
        memory = np.empty((4, step, self.dimension))  # used again for every chunk: fresh memory costs more than sums
        for start in range(0, len(which), step):
            part = slice(start, start + step)
            n = levels[part]
            b, x, terms, spare = memory[:, : len(n)]
            x[:] = _take(readings, at[part], rows[: len(n)])
            _take(weights, which[part], b)
            _take(self.half, n, terms)
            terms *= b
            np.subtract(x, terms, out=terms)
            terms *= b
            x *= x
            x *= _take(self.bend, n, b)
            terms += x
            result[part] = self.constant[n] + tree_sum(terms, spare.reshape(-1))
        return result

    @property
    def error_terms(self) -> tuple[float, float]:
        """What :meth:`error` multiplies with, and what it adds to what it is given."""
        return self._gamma, self._most

    def error(self, lengths: Any, bends: Any, longest: float, highest: float) -> Any:
        """How far a fast value (of :class:`_products.Products`) can be from the canonical one.

        A fast value is a float32 inner product of (x, q by number of members, 1) with (b, a 1 among zeros, c), all
        rounded to float32, where q = sum a x^2 and c = C - sum v b^2 / 2, with the prior's share. So it adds up D + 2
        terms, in any order and with any fused multiply-add; that of a zero is exact. With u = 2^-24 and
        gamma_n = n u / (1 - n u) it is within gamma_{D+3} (sum|x b| + |q| + |c|), where sum|x b| <= |x| |b|.

        The float64 roundings, of the canonical value too, are of the order D 2^-53 of |x| |b|, |q|, |c| and C. Five
        more units pay for them many times over (as long as D < 2^20) and for what underflows.

        Args:
            lengths: |x|, of one reading or of many.
            bends: The largest |q| of the reading.
            longest: The largest |b| of a category.
            highest: The largest |c|, C included, of a category.
        """
        return self._gamma * (lengths * longest + bends + highest + self._most)


def _take(rows: Any, which: Ints, out: Any) -> Any:
    return np.take(rows, which, axis=0, out=out, mode="clip")  # which only spares a buffer: every index is in range


def _gamma(n: int) -> float:
    return n * 2.0**-24 / (1.0 - n * 2.0**-24)
