"""The fast float32 products that rule out what cannot matter, so that few canonical values are left to compute."""

from __future__ import annotations

import numpy as np

from newfound.discovery._evidence import Evidence, Model
from newfound.discovery._exact import Float32s, Ints

_LOWEST = -3.4e38  # above the -inf of columns that do not count
_CACHED = 16  # readings that are added to at a time: what is worked on stays in the cache


class Readings:
    """A block of readings and what every product with it needs."""

    def __init__(self, readings: Float32s, model: Model) -> None:
        squares = np.square(readings, dtype=np.float64)
        bends = squares @ model.bend.T
        self.rows = readings
        self.bends = bends.astype(np.float32)
        self.largest_bends = np.abs(bends).max(axis=1)
        self.lengths = np.sqrt(squares.sum(axis=1))

    def __len__(self) -> int:
        return len(self.rows)


class Products:
    """Fast values of a block of readings with all rows of evidence: log ratios with the rows' shares of the prior.

    Each is within :meth:`Model.error` of the canonical value. Rows that change or are added while the block is worked
    on (at most ``room``) are withdrawn from the product and compared afresh with each reading that follows.
    """

    def __init__(self, block: Readings, evidence: Evidence, room: int = 0) -> None:
        n, size, dimension = len(block), len(evidence), evidence.model.dimension
        self.evidence, self._block, self._size = evidence, block, size
        self.values = np.empty((n, size + room), np.float32)
        base = self.values[:, :size]
        np.matmul(block.rows, evidence.fast.T, out=base)
        levels, offsets = evidence.model.levels(evidence.counts), evidence.offsets.astype(np.float32)
        for start in range(0, n, _CACHED):
            some = slice(start, start + _CACHED)
            base[some] += block.bends[some].take(levels, axis=1)
            base[some] += offsets
        self.longest = float(evidence.lengths.max(initial=0.0))
        self.highest = float(np.abs(evidence.offsets).max(initial=0.0))
        self._slots: dict[int, int] = {}
        self._vectors = np.empty((room, dimension), np.float32)
        self._levels, self._offsets = np.empty(room, np.int64), np.empty(room, np.float32)
        self._rows = np.arange(size + room)

    def renew(self, row: int, after: int) -> None:
        """From the reading after ``after`` on, compares with the row as it is now."""
        slot = self._slots.get(row)
        if slot is None:
            self.withdraw(row, after)
            slot = self._slots[row] = len(self._slots)
            self._rows[self._size + slot] = row
        offset = self.evidence.offsets.item(row)
        self._vectors[slot] = self.evidence.fast[row]
        self._levels[slot] = min(self.evidence.counts.item(row), self.evidence.model.cap)
        self._offsets[slot] = offset
        self.longest = max(self.longest, self.evidence.lengths.item(row))
        self.highest = max(self.highest, abs(offset))

    def withdraw(self, row: int, after: int) -> None:
        """From the reading after ``after`` on, the row does not count."""
        if row in self._slots:
            self._offsets[self._slots[row]] = -np.inf
        elif row < self._size:
            self.values[after + 1 :, row] = -np.inf

    def of(self, i: int) -> Float32s:
        """The values of reading ``i``, by column; -inf for what does not count."""
        end = self._size + len(self._slots)
        if self._slots:
            fresh = self.values[i, self._size : end]
            np.matmul(self._vectors[: len(fresh)], self._block.rows[i], out=fresh)
            fresh += self._block.bends[i, self._levels[: len(fresh)]]
            fresh += self._offsets[: len(fresh)]
        return self.values[i, :end]

    def pool(self, values: Float32s, floor: float, most: int, error: float) -> tuple[Ints, Float32s]:
        """The rows that may be among the ``most`` best and whose values are at least ``floor``, and these values."""
        columns = (values >= _at_most(floor)).nonzero()[0]
        if len(columns) > most:
            near = values[columns]
            last = np.partition(near, -most)[-most].item()
            columns = columns[near >= _at_most(last - 2 * error)]
        return self._rows[columns], values[columns]


def _at_most(floor: float) -> float:
    # Lower by more than the rounding to float32: a comparison there must not lose what one in float64 would keep.
    return max(_LOWEST, floor - abs(floor) * 2.0**-22 - 1e-37)
