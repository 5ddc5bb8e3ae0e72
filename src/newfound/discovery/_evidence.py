"""What is known of categories, each seen n times: evidence that grows, and what the model makes of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from newfound.discovery._exact import Float32s, Float64s, Ints, chunk_rows
from newfound.discovery._model import Model
from newfound.discovery._rows import Rows


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


@dataclass(frozen=True)
class Grown:
    """Rows of evidence that are not, or not yet, part of it: all that :class:`Evidence` keeps of a row."""

    sums: Float64s
    numbers: Ints  # counts and members
    weights: Float64s
    fast: Float32s
    scalars: Float64s

    def __getitem__(self, which: Any) -> Grown:
        return Grown(
            self.sums[which], self.numbers[which], self.weights[which], self.fast[which], self.scalars[which]
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.sums)


class Evidence:
    """Categories as rows that grow: sums and counts of the readings they are made of, and what follows from them.

    ``counts`` is the evidence, n. ``members`` is what the prior goes by: they differ for known categories that do
    not learn. ``fast`` (b, a 1 in the place of n, and c, in float32), ``offsets`` (c) and ``lengths`` (|b|) serve the
    filter only. ``changed`` marks the rows that second thoughts have not looked at as they are now.
    """

    def __init__(self, model: Model, prior: Prior, sums: Float64s, counts: Ints, members: Ints) -> None:
        self.model, self.prior = model, prior
        n, d = sums.shape
        self._sums, self._numbers = Rows(sums), Rows(np.stack([counts, members], axis=1))
        self._weights, self._fast = Rows(np.empty((n, d))), Rows(np.empty((n, model.width), np.float32))
        self._scalars = Rows(np.empty((n, 3)))  # share of the prior, c with that share, |b|
        self._changed = Rows(np.ones(n, bool))
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

    @property
    def changed(self) -> NDArray[np.bool_]:
        return self._changed.view

    def refresh(self, rows: Ints) -> None:
        """Works out again what follows from the sums, counts and members of these rows."""
        step = chunk_rows(self.model.dimension)
        for start in range(0, len(rows), step):
            some = rows[start : start + step]
            self._put(some, self._derive(self.sums[some], self._numbers.view[some]))

    def _derive(self, sums: Float64s, numbers: Ints) -> Grown:
        """All that follows for categories with these sums, counts and members."""
        model, (counts, members) = self.model, numbers.T
        levels = model.levels(counts)
        weights = model.weights(sums, counts)
        scalars = np.empty((len(sums), 3))
        scalars[:, 0] = [self.prior.of(n) for n in members.tolist()]
        bent = model.half[levels]
        bent *= weights
        scalars[:, 1] = model.constant[levels] - np.einsum("ij,ij->i", bent, weights) + scalars[:, 0]
        scalars[:, 2] = np.sqrt(np.einsum("ij,ij->i", weights, weights))
        fast = np.zeros((len(sums), model.width), np.float32)
        fast[:, : model.dimension], fast[:, -1] = weights, scalars[:, 1]
        fast[np.arange(len(sums)), model.dimension + levels] = 1.0
        return Grown(sums, numbers, weights, fast, scalars)

    def _put(self, rows: Ints, derived: Grown) -> None:
        self._weights.view[rows], self._fast.view[rows] = derived.weights, derived.fast
        self._scalars.view[rows] = derived.scalars
        self._changed.view[rows] = True

    def refresh_row(self, row: int) -> None:
        """:meth:`refresh` for a single row; the operations are those of :meth:`Model.weights`."""
        (count, members), model = self._numbers.view[row].tolist(), self.model
        level = min(count, model.cap)
        weights = self._weights.view[row]
        np.multiply(self._sums.view[row], level / count, out=weights)
        weights *= model.pull[level]
        odds = self.prior.of(members)
        offset = model.constant.item(level) - float((model.half[level] * weights).dot(weights)) + odds
        fast, d = self._fast.view[row], model.dimension
        fast[:d], fast[d:], fast[d + level], fast[-1] = weights, 0.0, 1.0, offset
        self._scalars.view[row] = odds, offset, math.sqrt(float(weights.dot(weights)))
        self._changed.view[row] = True

    def fast_row(self, row: int) -> tuple[Float32s, float, float]:
        """The row of ``fast``, c and |b| of a category."""
        _, offset, length = self._scalars.view[row].tolist()
        return self._fast.view[row], offset, length

    def join(self, row: int, reading: Float32s, *, learns: bool) -> None:
        """Takes one more reading in, as evidence if it ``learns``."""
        numbers = self._numbers.view[row]
        numbers[1] += 1
        if learns:
            numbers[0] += 1
            self._sums.view[row] += reading
        self.refresh_row(row)

    def append(self, total: Any, count: int) -> int:
        """Adds a category of ``count`` readings with this sum, and returns its row."""
        row = len(self)
        self._lengthen(1)
        self._sums.view[row], self._numbers.view[row] = total, count
        self.refresh_row(row)
        return row

    def _lengthen(self, rows: int) -> None:
        for column in self._columns:
            column.extend(rows)

    @property
    def _columns(self) -> tuple[Rows, ...]:
        return self._sums, self._numbers, self._weights, self._fast, self._scalars, self._changed

    def reserve(self, rows: int) -> tuple[NDArray[Any], ...]:
        """Sums, numbers, weights, fast, scalars and changed, with room for so many rows more: see :meth:`use`."""
        return tuple(column.reserve(rows) for column in self._columns)

    def use(self, rows: int) -> None:
        """So many rows have been written to where :meth:`reserve` had made room."""
        for column in self._columns:
            column.use(rows)

    def grown(self, rows: Ints, readings: Float32s, learning: NDArray[np.bool_]) -> Grown:
        """What the rows, each by itself, become with one more reading, as evidence if ``learning``; -1: a new one."""
        sums, old = readings.astype(np.float64), np.flatnonzero(rows >= 0)
        numbers = np.ones((len(rows), 2), np.int64)
        numbers[old] += self._numbers.view[rows[old]]
        if len(old) == len(rows):  # which is common, and spares two copies
            sums += self.sums[rows]
        else:
            sums[old] += self.sums[rows[old]]
        still = old[~learning[old]]
        sums[still] = self.sums[rows[still]]
        numbers[still, 0] -= 1
        return self._derive(sums, numbers)

    def grow(self, rows: Ints, grown: Grown) -> None:
        """Makes the rows what they have become; those beyond the last one are new, without a gap, ascending."""
        added = int(np.count_nonzero(rows >= len(self)))
        if added:
            self._lengthen(added)
        self._sums.view[rows], self._numbers.view[rows] = grown.sums, grown.numbers
        self._put(rows, grown)

    def scores(self, readings: Float32s, at: Ints, rows: Ints) -> Float64s:
        """The canonical log ratios of ``readings[at]`` with ``rows``, pair by pair, with their shares of the prior."""
        levels = self.model.levels(self.counts[rows])
        return self.model.log_ratios(readings, at, self.weights, rows, levels) + self.odds[rows]

    def scores_without(self, readings: Float32s, rows: Ints, inside: Any) -> Float64s:
        """The scores of readings with their own categories, as if they were not among the members.

        ``inside``: whether the reading is also part of the evidence. -inf where nothing would be left.
        """
        counts = self.counts[rows] - inside
        left = counts > 0
        sums = self.sums[rows] - np.where(inside[:, None], readings, np.float32(0)).astype(np.float64)
        counts = np.where(left, counts, 1)
        each, levels = np.arange(len(rows)), self.model.levels(counts)
        ratios = self.model.log_ratios(readings, each, self.model.weights(sums, counts), each, levels)
        members = np.where(left, self.members[rows] - 1, 1)
        return np.where(left, ratios + [self.prior.of(n) for n in members.tolist()], -np.inf)

    def keep(self, left: Any) -> None:
        """Drops the rows that are not marked."""
        if not left.all():
            for column in self._columns:
                column.keep(left)
