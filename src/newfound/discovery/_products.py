"""The fast float32 products that rule out what cannot matter, so that few canonical values are left to compute."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from newfound.discovery._evidence import Evidence, Grown
from newfound.discovery._exact import Float32s, Float64s, Ints
from newfound.discovery._model import Model

_GONE = np.float32(-1e35)  # in a vector, to be below every value; -inf times the zeros of a padded product is no number
_LOWEST = -1e34  # above that, and the -inf, of columns that do not count


class Readings:
    """A block of readings and what every product with it needs."""

    def __init__(self, readings: Float32s, model: Model, facts: Float64s | None = None) -> None:
        self.rows, self._model = readings, model
        self.facts = self._find_out() if facts is None else facts
        self.lengths, self.largest_bends = self.facts[:, 0], self.facts[:, 1]

    def _find_out(self) -> Float64s:
        """For every reading |x|, the largest |q|, and q by number of members."""
        squares = np.square(self.rows, dtype=np.float64)
        bends = squares @ self._model.bend.T
        return np.column_stack([np.sqrt(squares.sum(axis=1)), np.abs(bends).max(axis=1), bends])

    @staticmethod
    def width_of_facts(model: Model) -> int:
        return 2 + len(model.bend)

    @cached_property
    def wide(self) -> Float32s:
        """What is multiplied with a row of :attr:`Evidence.fast`: x, q by number of members, and 1."""
        wide = np.ones((len(self), self._model.width), np.float32)
        wide[:, : self._model.dimension] = self.rows
        wide[:, self._model.dimension : -1] = self.facts[:, 2:]
        return wide

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, which: Any) -> Readings:
        """Some of them."""
        some = Readings(self.rows[which], self._model, self.facts[which])
        if "wide" in self.__dict__:
            some.wide = self.wide[which]
        return some

    def values(self, vectors: Float32s, out: Float32s | None = None) -> Float32s:
        """The fast values of all readings with categories of which these are the rows of ``fast``."""
        return np.matmul(self.wide, vectors.T, out=out)

    def errors(self, longest: float, highest: float) -> Float64s:
        """:meth:`Model.error` of each."""
        return np.asarray(self._model.error(self.lengths, self.largest_bends, longest, highest))


class Products:
    """Fast values of a block of readings with all rows of evidence: log ratios with the rows' shares of the prior.

    Each is within :meth:`Model.error` of the canonical value. Rows that change or are added while the block is worked
    on (at most ``room``) are withdrawn from the product and compared afresh with each reading that follows, until they
    are settled: then they are multiplied with all readings that are left, and are rows like others. ``rows``: only
    these, in a product that stays as it is.
    """

    def __init__(self, block: Readings, evidence: Evidence, room: int = 0, unsettled: int = 0,
                 rows: Any = slice(None)) -> None:  # fmt: skip
        offsets = evidence.offsets[rows]
        n, size = len(block), len(offsets)
        self.evidence, self._block, self._end = evidence, block, size
        self._unsettled, self._stop = unsettled, unsettled
        self.values = np.empty((n, size + room + unsettled), np.float32)
        block.values(evidence.fast[rows], out=self.values[:, :size])
        self.longest = float(evidence.lengths[rows].max(initial=0.0))
        self.highest = float(np.abs(offsets).max(initial=0.0))
        self._slots: dict[int, int] = {}
        self._vectors = np.empty((unsettled, evidence.model.width), np.float32)
        self._rows = np.arange(size + room + unsettled)

    def renew(self, row: int, after: int) -> None:
        """From the reading after ``after`` on, compares with the row as it is now."""
        slot = self._slots.get(row)
        if slot is None:
            if row < self._end:
                self.values[after + 1 : self._stop, row] = -np.inf
            slot = self._slots[row] = len(self._slots)
            self._rows[self._end + slot] = row
        self._vectors[slot], offset, length = self.evidence.fast_row(row)
        self.longest, self.highest = max(self.longest, length), max(self.highest, abs(offset))

    def renew_all(self, rows: Ints, grown: Grown, after: int) -> None:
        """:meth:`renew` of rows that are now ``grown``, all different and not renewed since they were settled."""
        first, (_, offsets, lengths) = len(self._slots), grown.scalars.T
        slots = slice(first, first + len(rows))
        self._slots.update(zip(rows.tolist(), range(first, slots.stop), strict=True))
        self._rows[self._end + first : self._end + slots.stop] = rows
        self._vectors[slots] = grown.fast
        old = rows[rows < self._end]
        if len(old):
            self.values[after + 1 : self._stop, old] = -np.inf
        self.longest = max(self.longest, float(lengths.max(initial=0.0)))
        self.highest = max(self.highest, float(np.abs(offsets).max(initial=0.0)))

    def withdraw(self, row: int, after: int) -> None:
        """From the reading after ``after`` on, the row does not count."""
        if row in self._slots:
            self._vectors[self._slots[row], -1] = _GONE
        elif row < self._end:
            self.values[after + 1 :, row] = -np.inf

    def settle(self, start: int) -> None:
        """Multiplies what was renewed with all readings from ``start`` on."""
        count, end = len(self._slots), self._end
        rows, rest = self._rows[end : end + count].copy(), self._block[start:]
        if count and len(rest):
            self.values[start:, rows] = rest.values(self._vectors[:count])
        self._rows[end : end + count] = np.arange(end, end + count)
        self._end, self._stop = len(self.evidence), start + self._unsettled
        self._slots.clear()

    def settled(self, part: slice) -> Float32s:
        """The values of a part of the readings, by row, if all is settled."""
        return self.values[part, : self._end]

    def of(self, i: int) -> Float32s:
        """The values of reading ``i``, by column; out of all reach for what does not count."""
        end = self._end + len(self._slots)
        if self._slots:
            fresh = self.values[i, self._end : end]
            np.matmul(self._vectors[: len(fresh)], self._block.wide[i], out=fresh)
        return self.values[i, :end]

    def pool(self, values: Float32s, floor: float, most: int, error: float) -> tuple[Ints, Float32s]:
        """The rows that may be among the ``most`` best and whose values are at least ``floor``, and these values."""
        columns = (values >= at_most(floor)).nonzero()[0]
        if len(columns) > most:
            near = values[columns]
            last = np.partition(near, -most)[-most].item()
            columns = columns[near >= at_most(last - 2 * error)]
        return self._rows[columns], values[columns]


def at_most(floor: float) -> float:
    """A little less: a comparison in float32 with it does not lose what one with ``floor`` in float64 would keep."""
    return max(_LOWEST, floor - abs(floor) * 2.0**-22 - 1e-37)


def all_at_most(floors: Float64s) -> Float32s:
    """:func:`at_most` of each."""
    return np.maximum(_LOWEST, floors - np.abs(floors) * 2.0**-22 - 1e-37).astype(np.float32)
