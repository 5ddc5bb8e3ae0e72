"""Exact nearest prototypes of a block of samples: a fast product proposes, the canonical value decides."""

from __future__ import annotations

import numpy as np

from newfound.discovery import _compiled, _filter
from newfound.discovery._exact import Float32s, Float64s, Ints, Similarity
from newfound.discovery._found import Found

NOTHING = -1.0  # the score where there is nothing to compare with
_CACHED = 1 << 20  # products made at a time, 4 MB: few enough to stay in the cache


class Scratch:
    """Memory for one block after the other: fresh memory from the system costs more than the sums done in it."""

    def __init__(self, dimension: int) -> None:
        self.similarity = Similarity(dimension)
        self._memory = np.empty(0, np.float32)

    def take(self, *shape: int) -> Float32s:
        """An uninitialised array of this shape; what was taken before is overwritten."""
        size = int(np.prod(shape))
        if size > self._memory.size:
            self._memory = np.empty(size + size // 4, np.float32)
        return self._memory[:size].reshape(shape)


class Block:
    """The float32 products of a block of samples with prototypes, each within ``bound`` of the similarity.

    Either with all of them: column r then belongs to the prototype in row r. Or with those that were found to matter:
    every sample has columns of its own, and the similarity of each row it has no column for is below its entry in
    ``cuts``, which k of its rows reach. There is room for the founders of the block itself, which come
    next; what is not used is -inf. The maxima of lanes of columns are kept, so that the best of a sample are
    looked for in one lane instead of in all.
    """

    def __init__(self, samples: Float32s, size: int, width: int, lane: int, scratch: Scratch) -> None:
        n = len(samples)
        self.samples = samples
        self.similarity = scratch.similarity
        self.bound = _filter.bound(samples.shape[1])
        self.cuts: Float64s = np.full(n, -np.inf)
        self._size, self._width, self._lane = size, width, lane
        self._rows: Ints | None = None
        self._products = scratch.take(n, -(-(width + n) // lane) * lane)
        self._products[:, width:] = -np.inf
        self._lanes = self._products.reshape(n, -1, lane)
        self._peaks = np.empty(self._lanes.shape[:2], np.float32)

    @classmethod
    def of_all(cls, samples: Float32s, prototypes: Float32s, lane: int, scratch: Scratch) -> Block:
        """The products with all prototypes."""
        size = len(prototypes)
        block = cls(samples, size, size, lane, scratch)
        step = max(1, _CACHED // (len(samples) * lane)) * lane
        for start in range(0, size, step):  # maxima are taken while the products are in the cache
            _filter.products(samples, prototypes[start : start + step], out=block._products[:, start:size][:, :step])
            block._find_peaks(start, start + step)
        block._find_peaks(size, block._products.shape[1])
        return block

    @classmethod
    def of_some(cls, samples: Float32s, size: int, found: Found, lane: int, scratch: Scratch) -> Block:
        """The products with the prototypes, of ``size``, that were found."""
        width = found.rows.shape[1]
        block = cls(samples, size, width, lane, scratch)
        block.cuts, block._rows = found.cuts, found.rows
        block._products[:, :width] = found.products
        block._find_peaks(0, block._products.shape[1])
        return block

    def _find_peaks(self, start: int, stop: int) -> None:
        changed = slice(start // self._lane, -(-stop // self._lane))
        np.max(self._lanes[:, changed], axis=2, out=self._peaks[:, changed])

    def peaks(self) -> Float32s:
        """The largest product of every sample, -inf if there is none."""
        return self._peaks.max(axis=1)

    def add_founders(self, founders: Ints, products: Float32s) -> None:
        """Makes the samples ``founders`` (ascending) prototypes for the samples after them.

        ``products`` are those of all samples with them, ``[sample, founder]``.
        """
        later = np.arange(len(self.samples))[:, None] > founders
        columns = slice(self._width, self._width + len(founders))
        np.copyto(self._products[:, columns], products, where=later)
        self._find_peaks(columns.start, columns.stop)

    def leaders(self, k: int) -> tuple[Ints, Float32s]:
        """The rows of the k largest products of every sample, ``[sample, k]``, and the k + 1 largest values.

        Both descend; the row is -1 and the value -inf where there are fewer.
        """
        n = len(self.samples)
        columns, values = np.empty((n, k), np.int64), np.empty((n, k + 1), np.float32)
        each = np.arange(n)
        kernels = _compiled.kernels(self._products.size)
        if kernels is not None:
            kernels.leaders(self._products, self._peaks, self._lane, columns, values)
        else:
            self._lead(columns, values)
        rows = self._rows_of(each[:, None], columns)
        rows[values[:, :k] == -np.inf] = -1
        return rows, values

    def _lead(self, columns: Ints, values: Float32s) -> None:
        """Finds the columns of the largest products of every sample, and one value more."""
        k, each = columns.shape[1], np.arange(len(columns))
        peaks = self._peaks.copy()
        for j in range(k):
            lanes = peaks.argmax(axis=1)
            products = self._lanes[each, lanes]
            within = products.argmax(axis=1)
            columns[:, j] = lanes * self._lane + within
            values[:, j] = products[each, within]
            products[each, within] = self._products[each, columns[:, j]] = -np.inf
            peaks[each, lanes] = products.max(axis=1)
        values[:, k] = peaks.max(axis=1)
        # What was hidden comes back, last hidden first: where nothing was left, an entry was hidden again as -inf.
        for j in reversed(range(k)):
            self._products[each, columns[:, j]] = values[:, j]

    def _rows_of(self, samples: Ints | int, columns: Ints) -> Ints:
        if self._rows is None:
            return columns
        late = columns - self._width
        if not self._width:
            return self._size + late
        return np.where(late >= 0, self._size + late, self._rows[samples, np.minimum(columns, self._width - 1)])

    def contenders(self, sample: int, floor: float) -> Ints:
        """The rows whose product with the sample is at least ``floor`` (of :func:`_filter.floor_for`)."""
        # Rounded down: a comparison in float32 must not lose an entry that one in float64 would keep.
        limit = np.nextafter(np.float32(floor), np.float32(-np.inf))
        return self._rows_of(sample, np.flatnonzero(self._products[sample] >= limit))

    def products(self, sample: int) -> Float32s:
        """A copy of the sample's products by column, -inf where they do not count."""
        return self._products[sample].copy()

    def row(self, sample: int, column: int) -> int:
        """The row that a column belongs to."""
        return int(self._rows_of(sample, np.array([column]))[0])

    def withdraw(self, row: int) -> None:
        """Takes a prototype out of the search of :meth:`contenders` and :meth:`products`."""
        if self._rows is None:
            self._products[:, row] = -np.inf
        else:
            self._products[:, : self._width][self._rows == row] = -np.inf


def rank(block: Block, sample: int, vectors: Float32s, rows: Ints, k: int) -> tuple[Ints, Float64s]:
    """The k of ``rows`` whose ``vectors`` are nearest to the sample, equal ones by row; -1 where there are fewer."""
    best_rows, best_scores = np.full(k, -1, np.int64), np.full(k, NOTHING)
    scores = block.similarity(block.samples, np.full_like(rows, sample), vectors, rows)
    order = np.lexsort((rows, -scores))[:k]
    best_rows[: len(order)], best_scores[: len(order)] = rows[order], scores[order]
    return best_rows, best_scores


def nearest(block: Block, prototypes: Float32s, k: int) -> tuple[Ints, Float64s]:
    """The k nearest prototypes of every sample and their similarities, ``[sample, k]``, exactly.

    Where consecutive products are further apart than twice the bound, their order is that of the similarities.
    Where they are not, the similarities of all that could be among the first k are computed and compared.
    """
    rows, products = block.leaders(k)
    values = np.clip(products.astype(np.float64), -1.0, 1.0)  # clipping keeps them within the bound
    close = (values[:, 1:] >= values[:, :-1] - 2 * block.bound) & (products[:, 1:] > -np.inf)
    scores = np.full(rows.shape, NOTHING)
    for j in range(k):
        there = np.flatnonzero(rows[:, j] >= 0)
        scores[there, j] = block.similarity(block.samples, there, prototypes, rows[there, j])
    for i in np.flatnonzero(close.any(axis=1)).tolist():
        pool = block.contenders(i, _filter.floor_for(values[i, k - 1] - 2 * block.bound))
        rows[i], scores[i] = rank(block, i, prototypes, pool, k)
    return rows, scores
