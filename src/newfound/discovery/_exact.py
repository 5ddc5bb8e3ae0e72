"""Arithmetic whose result does not depend on how, where or in which company it is computed.

A library's sum has the order of additions that suits its version, its threads and the shape of its input,
and floating-point addition is not associative. Here every sum is a tree of elementwise IEEE additions whose
order is written down, so that a value is a function of the numbers that go in and of nothing else.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from newfound.discovery import _compiled

Float32s = NDArray[np.float32]
Float64s = NDArray[np.float64]
Ints = NDArray[np.int64]

UNIT_TOLERANCE = 1e-5
"""Rows whose norm is this close to 1 count as unit vectors and keep their bits."""

_CHUNK = 1 << 16  # numbers worked on at a time: few enough to stay in the cache


def chunk_rows(dimension: int) -> int:
    """How many rows of this dimension are worked on at a time."""
    return max(1, _CHUNK // dimension)


def tree_sum(terms: Float64s, spare: Float64s | None = None) -> Float64s:
    """The sums of the rows of ``terms`` ``[n, D]``, by halving: the second half is added to the first.

    A row is thought of as padded with zeros to a power of two; adding those would change nothing, so they are
    left out. ``terms`` is overwritten, and so is ``spare``, flat memory of at least the same size, if given.
    """
    n, width = terms.shape
    memory = terms.reshape(-1)
    spare = np.empty_like(memory) if spare is None else spare
    while width > 1:
        half = 1 << (width - 1).bit_length() - 1
        # Not in place, where numpy would copy both sides for fear of an overlap, and without gaps, for the cache.
        sums = spare[: n * half].reshape(n, half)
        if width == 2 * half:
            np.add(terms[:, :half], terms[:, half:], out=sums)
        else:
            sums[:] = terms[:, :half]
            sums[:, : width - half] += terms[:, half:]
        terms, memory, spare, width = sums, spare, memory, half
    return terms[:, 0].copy()


class Similarity:
    """The canonical similarity of unit vectors, with memory of its own that is used again.

    The product of two float32 numbers is exact in float64 (24 + 24 bits fit into 53), the sum is
    :func:`tree_sum`, and the result is clipped to [-1, 1], which rounded unit vectors can overshoot.
    """

    def __init__(self, dimension: int) -> None:
        shape = chunk_rows(dimension), dimension
        self._a, self._b = np.empty(shape, np.float32), np.empty(shape, np.float32)
        self._terms, self._spare = np.empty(shape), np.empty(shape).ravel()

    def __call__(self, a: Float32s, i: Ints, b: Float32s, j: Ints) -> Float64s:
        """The similarities of the rows ``a[i]`` with ``b[j]``, pair by pair."""
        result = np.empty(len(i))
        kernels = _compiled.kernels(len(i) * a.shape[1])
        if kernels is not None:
            kernels.similarities(*map(np.ascontiguousarray, (a, i, b, j)), result)
            return result
        for start in range(0, len(i), len(self._a)):
            part = slice(start, start + len(self._a))
            n = len(i[part])
            # mode="clip" only spares np.take a buffer: every index is in range.
            np.take(a, i[part], axis=0, out=self._a[:n], mode="clip")
            np.take(b, j[part], axis=0, out=self._b[:n], mode="clip")
            np.multiply(self._a[:n], self._b[:n], out=self._terms[:n], dtype=np.float64)
            result[part] = tree_sum(self._terms[:n], self._spare)
        return np.clip(result, -1.0, 1.0, out=result)


def largest_entries(rows: Float64s) -> Float64s:
    """The largest absolute value of each row, ``[n, 1]``: finite and above 0 if the row has a direction."""
    return np.maximum(rows.max(axis=1, keepdims=True), -rows.min(axis=1, keepdims=True))


def normalised(rows: Float64s, largest: Float64s | None = None) -> Float32s:
    """Finite nonzero ``rows`` as float32 unit rows; those that, rounded, are unit rows already keep their length.

    Rows are scaled by their largest entry first, so that squares neither overflow nor vanish; ``largest``: of
    :func:`largest_entries`, if it is known.
    """
    largest = largest_entries(rows) if largest is None else largest
    with np.errstate(over="ignore", under="ignore"):
        scaled = rows / largest
        roots = np.sqrt(tree_sum(np.square(scaled)))[:, None]
        result = (scaled / roots).astype(np.float32)
        near = np.flatnonzero(np.abs(largest * roots - 1.0) < 2 * UNIT_TOLERANCE)
    if near.size:
        rounded = rows[near].astype(np.float32)
        norms = np.sqrt(tree_sum(np.square(rounded, dtype=np.float64)))
        keep = np.abs(norms - 1.0) <= UNIT_TOLERANCE
        result[near[keep]] = rounded[keep]
    return result


def direction(total: Float64s, otherwise: Float32s) -> Float32s:
    """The float32 unit vector along ``total``, or ``otherwise`` if everything in it has cancelled out."""
    return normalised(total[None])[0] if total.any() else otherwise
