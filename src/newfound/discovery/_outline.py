"""An outline of the prototypes: much smaller than they are, and enough to tell which ones cannot be nearest."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from newfound.discovery import _cells, _filter
from newfound.discovery._exact import UNIT_TOLERANCE, Float32s, Float64s, Ints

_LONGEST = 1.0 + UNIT_TOLERANCE  # no unit row is longer
_STRETCH = 2048  # prototypes whose bounds are made at a time
_WIDER = np.float32(1.0 + 2.0**-20)  # makes up, many times over, for rounding a length to float32


class Outline:
    """Cells of prototypes that lie close together, and of each prototype how it differs from its cell's centre.

    Let b be a prototype, c the centre of its cell, r = b - c, Q the directions ``[D, m]`` and x a sample. Stored
    are c, R >= |r| for all of the cell, e = Q'r, and s >= the length of what Q does not reach of r. Then

    - *a cell*: x.b = x.c + x.r <= x.c + |x| R;
    - *a prototype*: split x and r into their parts in the span of Q and orthogonal to it. Were Q orthonormal,
      x.r = (Q'x).e + x_o.r_o <= (Q'x).e + |x_o| s, by Cauchy and Schwarz. The columns are orthonormal up to
      rounding: let d >= |Q'Q - I|. In the span, I - QQ' has eigenvalues of at most d, so that costs at most d |x| |r|.
      And |Q'x|^2 <= (1 + d) |x_s|^2 for the part x_s in the span, so |x_o|^2 <= |x|^2 - |Q'x|^2 / (1 + d), and the
      same for s; a little is added before the root for what the subtraction has lost.

    Q, Q'x and e are computed in float64, then rounded to float32, lengths upwards. All else that is rounded is a
    float32 product of length D (x.c), one of length m + 1 whose vectors are no longer than 1 and |r| <= 2 with entries
    rounded once each (so m + 3 units), and the sum of both, or the difference of x.c and what the sum is compared with
    (4 units): :attr:`slack` pays for them, for d, and for |x| in the first bound. So *bound + slack is at least the
    similarity*, before and after it is clipped to [-1, 1] as long as it is compared with more than -1.
    """

    def __init__(self, prototypes: Float32s, directions: int, order: Ints, starts: Ints) -> None:
        self._order, self._starts = order, starts
        self.sizes = np.diff(self._starts)
        self.centres = np.stack([prototypes[self.members(j)].mean(axis=0) for j in range(self.cells)])
        self._describe(prototypes, directions)
        self.is_loose = np.zeros(len(prototypes), bool)

    @classmethod
    def of(cls, prototypes: Float32s, cells: int, directions: int) -> Outline:
        """With about so many cells."""
        return cls(prototypes, directions, *_cells.grouped(_cells.divide(prototypes, cells)))

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return len(self.sizes)

    @property
    def directions(self) -> int:
        """m, the coordinates that are kept of each prototype."""
        return self._basis.shape[1]

    def members(self, j: int) -> Ints:
        """The rows of the prototypes in cell ``j``."""
        return self._order[self._starts[j] : self._starts[j + 1]]

    def view(self, samples: Float32s) -> tuple[Float32s, Float32s]:
        """The products of samples with all centres, and what :meth:`upper` needs to know of the samples."""
        return _filter.products(samples, self.centres), self._reach(samples.astype(np.float64))[1]

    def _describe(self, prototypes: Float32s, directions: int) -> None:
        dimension = prototypes.shape[1]
        some = _cells.evenly(len(self._order), 4096)
        owner = np.searchsorted(self._starts, some, side="right") - 1
        self._basis = _cells.leading_directions(prototypes[self._order[some]] - self.centres[owner], directions)
        skew = np.linalg.norm(self._basis.T @ self._basis - np.eye(directions)) + 1e-12
        self._straight = 1.0 + skew
        self._lost = (dimension + directions) * 2.0**-50
        self._parts = np.empty((len(prototypes), directions + 1), np.float32)
        self.radii = np.empty(len(self.sizes), np.float32)
        for j in range(self.cells):
            r = prototypes[self.members(j)].astype(np.float64) - self.centres[j]
            part = slice(self._starts[j], self._starts[j + 1])
            squares, self._parts[part] = self._reach(r)
            self.radii[j] = np.sqrt(squares.max() + self._lost) * _LONGEST
        self.radii *= _WIDER
        self.bound = _filter.bound(dimension)
        self.slack = self.bound + 2 * _filter.bound(directions + 3) + 4 * 2.0**-22 + 2 * skew * _LONGEST**2

    def _reach(self, vectors: Float64s) -> tuple[Float64s, Float32s]:
        """The squared lengths of the vectors; and their coordinates in Q, followed by the length of the rest."""
        coordinates = vectors @ self._basis
        squares = np.einsum("ij,ij->i", vectors, vectors)
        rest = squares - np.einsum("ij,ij->i", coordinates, coordinates) / self._straight
        parts = np.empty((len(vectors), coordinates.shape[1] + 1), np.float32)
        parts[:, :-1] = coordinates
        parts[:, -1] = np.sqrt(np.maximum(rest, 0) + self._lost)
        parts[:, -1] *= _WIDER
        return squares, parts

    @property
    def nbytes(self) -> int:
        """The memory it takes."""
        arrays = (self._order, self._starts, self.centres, self._basis, self._parts, self.radii, self.is_loose)
        return sum(array.nbytes for array in arrays)

    def loosen(self, rows: Ints) -> None:
        """The prototypes in these rows have moved: from now on they are compared in full."""
        self.is_loose[rows[rows < len(self.is_loose)]] = True

    def keep(self, which: NDArray[np.bool_]) -> None:
        """Follows a dictionary that drops the rows that are not marked."""
        which = which[: len(self.is_loose)]
        left = which[self._order]
        owner = np.repeat(np.arange(len(self.sizes)), self.sizes)[left]
        self._order = (np.cumsum(which) - 1)[self._order[left]]
        self._parts, self.is_loose = self._parts[left], self.is_loose[which]
        self.sizes = np.bincount(owner, minlength=len(self.sizes))
        self._starts = np.concatenate([[0], np.cumsum(self.sizes)])

    def loose(self, total: int) -> Ints:
        """The rows, of ``total``, that it says nothing about: moved since, or come later."""
        return np.concatenate([np.flatnonzero(self.is_loose), np.arange(len(self.is_loose), total)])

    def limits(self, cuts: Float64s) -> Float32s:
        """What an upper bound must reach to matter; rounded down."""
        limits = np.where(cuts > -1.0, cuts - self.slack, -np.inf).astype(np.float32)
        return np.nextafter(limits, np.float32(-np.inf))

    def stretches(self) -> list[tuple[int, int]]:
        """First and last of cells in a row, the last not included, with about as many prototypes each."""
        starts = np.unique(np.searchsorted(self._starts, np.arange(0, self._starts[-1], _STRETCH)))
        return list(itertools.pairwise([*starts.tolist(), self.cells]))

    def start(self, cell: int) -> int:
        """The first column of a cell: columns are prototypes in the order of the cells."""
        return int(self._starts[cell])

    def starts(self, cells: Ints) -> Ints:
        """Those of several cells."""
        return self._starts[cells]

    def rows(self, columns: Ints) -> Ints:
        """The rows of the prototypes that columns stand for."""
        return self._order[columns]

    def owners(self, first: int, last: int) -> Ints:
        """The cells of the columns of cells in a row."""
        return np.repeat(np.arange(first, last), self.sizes[first:last])

    def upper(self, first: int, last: int, parts: Float32s) -> Float32s:
        """Upper bounds, less the slack and x.c, of the products of samples with the columns of cells in a row."""
        upper: Float32s = parts @ self._parts[self._starts[first] : self._starts[last]].T
        return upper
