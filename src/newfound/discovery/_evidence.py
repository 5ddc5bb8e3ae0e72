"""What is known of a category seen n times, and how well a reading fits it, in arithmetic that batching cannot change.

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
from dataclasses import dataclass
from typing import Any

import numpy as np

from newfound.discovery._exact import Float32s, Float64s, Ints, chunk_rows, tree_sum
from newfound.discovery._rows import Rows


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

    @property
    def dimension(self) -> int:
        return len(self.spread)

    def levels(self, counts: Ints) -> Ints:
        """The row of the tables for so many members."""
        return np.minimum(counts, self.cap)

    def weights(self, sums: Float64s, counts: Ints) -> Float64s:
        """b for categories with these sums of readings and numbers of members."""
        levels = self.levels(counts)
        return sums * (levels / counts)[:, None] * self.pull[levels]

    def log_ratios(self, readings: Any, weights: Float64s, levels: Ints) -> Float64s:
        """The log ratios of readings and categories, pair by pair: functions of the two and of nothing else.

        ``readings`` are rows, or a single one for all. Elementwise float64 arithmetic and :func:`tree_sum`.
        """
        result = np.empty(len(weights))
        step = chunk_rows(self.dimension)
        for start in range(0, len(weights), step):
            part = slice(start, start + step)
            x = readings if readings.ndim == 1 else readings[part].astype(np.float64)
            b, n = weights[part], levels[part]
            terms = self.half[n]
            terms *= b
            np.subtract(x, terms, out=terms)
            terms *= b
            terms += self.bend[n] * (x * x)
            result[part] = self.constant[n] + tree_sum(terms)
        return result

    def error(self, lengths: Any, bends: Any, longest: float, highest: float) -> Any:
        """How far a fast value (of :class:`_weighing.Products`) can be from the canonical one.

        A fast value is fl(fl(x.b + q) + c): x.b a float32 inner product with b rounded to float32, q = sum a x^2 and
        c = C - sum v b^2 / 2, with the prior's share, rounded from float64. With u = 2^-24 and
        gamma_n = n u / (1 - n u), any order of summation and any fused multiply-add,

        - the inner product is within gamma_D sum|x b| of x.b for the rounded b, which is itself within u sum|x b|,
          and sum|x b| <= |x| |b|; the two additions cost another 2 u |x.b|: together gamma_{D+4} |x| |b|;
        - q and c are rounded once and go through at most two additions: gamma_4 (|q| + |c|).

        The float64 roundings, of the canonical value too, are of the order D 2^-53 of |x| |b|, |q|, |c| and C. Four
        more units on each term pay for them many times over (as long as D < 2^20) and for what underflows.

        Args:
            lengths: |x|, of one reading or of many.
            bends: The largest |q| of the reading.
            longest: The largest |b| of a category.
            highest: The largest |c|, C included, of a category.
        """
        return _gamma(self.dimension + 8) * lengths * longest + _gamma(8) * (bends + highest + self.constant[-1] + 1e-6)


def _gamma(n: int) -> float:
    return n * 2.0**-24 / (1.0 - n * 2.0**-24)


@dataclass(frozen=True)
class Prior:
    """How much more likely a sample belongs to a category with more members (Pitman and Yor, 1997).

    A category with n members has the odds (n - discount) : (concentration + discount * categories) against a new one;
    with ``discount`` 0 this is the Chinese restaurant process. A ``concentration`` of None is no prior at all.
    """

    concentration: float | None = None
    discount: float = 0.0

    def of(self, members: int) -> float:
        """The share of a category, log(n - discount)."""
        return 0.0 if self.concentration is None else math.log(members - self.discount)

    def of_new(self, categories: int) -> float:
        """The share that all have in common, log(concentration + discount * categories): it is subtracted."""
        return 0.0 if self.concentration is None else math.log(self.concentration + self.discount * categories)


class Evidence:
    """Categories as rows that grow: sums and counts of the readings they are made of, and what follows from them.

    ``counts`` is the evidence, n. ``members`` is what the prior goes by: they differ for known categories that do
    not learn. ``fast``, ``offsets`` and ``lengths`` (b in float32, c and |b|) serve the filter only.
    """

    def __init__(self, model: Model, prior: Prior, sums: Float64s, counts: Ints, members: Ints) -> None:
        self.model, self.prior = model, prior
        n, d = sums.shape
        self._sums, self._numbers = Rows(sums), Rows(np.stack([counts, members], axis=1))
        self._weights, self._fast = Rows(np.empty((n, d))), Rows(np.empty((n, d), np.float32))
        self._scalars = Rows(np.empty((n, 3)))  # share of the prior, c with that share, |b|
        self.refresh(np.arange(n))

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def sums(self) -> Float64s:
        return self._sums.view

    @property
    def counts(self) -> Ints:
        return self._numbers.view[:, 0]

    @property
    def members(self) -> Ints:
        return self._numbers.view[:, 1]

    @property
    def weights(self) -> Float64s:
        return self._weights.view

    @property
    def odds(self) -> Float64s:
        return self._scalars.view[:, 0]

    @property
    def fast(self) -> Float32s:
        return self._fast.view

    @property
    def offsets(self) -> Float64s:
        return self._scalars.view[:, 1]

    @property
    def lengths(self) -> Float64s:
        return self._scalars.view[:, 2]

    def refresh(self, rows: Ints) -> None:
        """Works out again what follows from the sums, counts and members of these rows."""
        for row in rows.tolist():
            self.refresh_row(row)

    def refresh_row(self, row: int) -> None:
        """:meth:`refresh` for a single row; the operations are those of :meth:`Model.weights`."""
        (count, members), model = self._numbers.view[row].tolist(), self.model
        level = min(count, model.cap)
        weights = self.sums[row] * (level / count) * model.pull[level]
        self._weights.view[row] = self._fast.view[row] = weights
        odds = self.prior.of(members)
        offset = model.constant.item(level) - float((model.half[level] * weights) @ weights) + odds
        self._scalars.view[row] = odds, offset, math.sqrt(float(weights @ weights))

    def append(self, total: Any, count: int) -> int:
        """Adds a category of ``count`` readings with this sum, and returns its row."""
        row = len(self)
        self._sums.append(total[None])
        self._numbers.append(np.array([[count, count]]))
        for derived in (self._weights, self._fast, self._scalars):
            derived.append(np.zeros((1, 1)))
        self.refresh_row(row)
        return row

    def scores(self, reading: Float64s, rows: Ints) -> Float64s:
        """The canonical log ratios of one reading with ``rows``, each with its share of the prior."""
        levels = self.model.levels(self.counts[rows])
        return self.model.log_ratios(reading, self.weights[rows], levels) + self.odds[rows]

    def scores_without(self, readings: Float32s, rows: Ints, inside: Any) -> Float64s:
        """The scores of readings with their own categories, as if they were not among the members.

        ``inside``: whether the reading is also part of the evidence. -inf where nothing would be left.
        """
        counts = self.counts[rows] - inside
        left = counts > 0
        sums = self.sums[rows] - np.where(inside[:, None], readings, np.float32(0)).astype(np.float64)
        counts = np.where(left, counts, 1)
        ratios = self.model.log_ratios(readings, self.model.weights(sums, counts), self.model.levels(counts))
        members = np.where(left, self.members[rows] - 1, 1)
        return np.where(left, ratios + [self.prior.of(n) for n in members.tolist()], -np.inf)

    def keep(self, left: Any) -> None:
        """Drops the rows that are not marked."""
        if not left.all():
            for column in (self._sums, self._numbers, self._weights, self._fast, self._scalars):
                column.keep(left)
