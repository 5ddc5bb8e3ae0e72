"""Prototypes a byte an entry: a fourth of the work and of the memory to read, with a proven bound of the error."""

from __future__ import annotations

import threading
import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from newfound.discovery import _compiled, _filter, _torch
from newfound.discovery._exact import UNIT_TOLERANCE, Float32s, Float64s, Ints
from newfound.discovery._found import MOST_HELD, Best, Found, fit, in_columns
from newfound.discovery._rows import Rows

Tensor = Any  # PyTorch is here only if somebody else has loaded it

_GROUP = 16  # entries that are turned together
_LARGEST = 127  # of a code
_ALL = 1 << 30  # more than products of codes differ by, up to _DIMENSIONS
_DIMENSIONS = 1 << 15
_TILE = 1 << 20  # products made at a time, 4 MB
_LANE = 64  # every so many columns share a maximum
_ROWS = 1 << 14  # prototypes coded at a time
_LONGEST = 1.0 + UNIT_TOLERANCE  # no unit row is longer
_SLACK = 2e-5  # pays, many times over, for what is rounded in float32 while rows are turned and coded


class Coarse:
    """Codes of the prototypes, and the search through them for those that may be nearest.

    Let b be a prototype, m the centre of the prototypes when codes were last made, a a sample and T a fixed rotation
    that keeps single entries from being large. Then a.b = a.m + Ta.T(b - m), of which the first part is the same for
    all prototypes. With integers p and q, T(b - m) = s q + e and Ta = t p + f, so that

        |Ta.T(b - m) - s t p.q| <= |t p| |e| + |f| |T(b - m)| =: W,

    by Cauchy and Schwarz; the lengths of e and f are measured, and p.q is exact in 32 bits. So if k prototypes have
    a p.q of at least v, one whose p.q is below v - 2 W / (s t) is none of the k nearest. A little more is kept, so that
    what was left out is below the k-th best by twice the error of a float32 product, too; of all that is left these
    products are made.

    It follows from the prototypes, so it is no part of a dictionary's state, and no answer depends on it.
    """

    # Sizes that change the speed and nothing else.
    least = 1 << 18  # pairs of a sample and a prototype: of fewer, all products are made as fast
    least_dimension = 192
    renewed = 2  # codes are made anew when there are so many times as many prototypes
    share = 1 / 32  # of all pairs: where codes leave more, all products are made as fast

    def __init__(self) -> None:
        self._codes: Rows | None = None
        self._stale: set[int] = set()
        self._made_for = 0
        self._resting, self._patience = 0, 1  # samples to go by until codes are tried again, and in blocks
        self._turn = threading.Lock()  # several threads may ask for predictions at once, and all need the codes

    def __reduce__(self) -> tuple[type[Coarse], tuple[()]]:
        """A copy makes its own codes when it needs some."""
        return Coarse, ()

    @property
    def nbytes(self) -> int:
        """The memory that codes take."""
        return 0 if self._codes is None else self._codes.nbytes

    def pays(self, samples: int, size: int, dimension: int) -> bool:
        """Whether so many samples are found sooner among so many prototypes with it than without.

        Features that are all alike have codes that are, too: then it rests, four times as long each time.
        """
        enough = samples * size >= self.least and self.least_dimension <= dimension <= _DIMENSIONS
        if not enough or _torch.loaded() is None:
            return False
        self._resting -= samples
        return self._resting < 0

    def drop(self) -> None:
        """Gives the memory back; codes are made anew when they are needed."""
        self._codes = None

    def loosen(self, rows: Ints) -> None:
        """The prototypes in these rows have moved."""
        if self._codes is not None:
            self._stale.update(rows.tolist())

    def find(self, samples: Float32s, prototypes: Float32s, k: int, most: int = MOST_HELD) -> Found:
        """The prototypes that may be among the k nearest of each sample.

        Where so many are alike that room for more than ``most`` pairs is needed, the first samples alone are answered.
        """
        with self._turn:
            codes = self._caught_up(prototypes)
            signs, centre, step, most_lost, radius = self._signs, self._centre, self._step, self._lost, self._radius
        ours, steps, lost, _ = _coded(samples, np.zeros_like(centre), signs)
        scales = steps.astype(np.float64) * step
        error = _filter.bound(samples.shape[1]) + _SLACK
        reach = (_LONGEST + lost) * most_lost + lost * radius + error  # W
        margins = np.minimum(np.ceil(2 * reach / scales), _ALL).astype(np.int32)
        kernels, close = _compiled.kernels(len(samples) * len(prototypes)), None
        if kernels is not None:
            bases = np.einsum("ij,j->i", samples, centre, dtype=np.float64)
            close = _Close(kernels, samples, prototypes, scales, reach + error, bases, k)
        at, rows, values, counts = _reaching(ours, codes, margins, k, most, close)
        samples = samples[: len(counts)]
        self._tell(len(rows), len(samples), len(prototypes))
        if close is not None:
            return close.shortlist(rows, values, counts)
        products = _sampled(samples, prototypes, counts, rows)
        best = Best(samples, k)
        best.see(slice(None), in_columns(at, counts, products, -np.inf))
        left = products >= best.floors()[at]
        return Found.of_pairs(at[left], rows[left], products[left], best.cuts())

    def _tell(self, left: int, samples: int, size: int) -> None:
        """So many pairs were left of all."""
        if left > self.share * samples * size:
            self._patience *= 4
            self._resting = self._patience * samples
            self.drop()
        else:
            self._patience = 1

    def _caught_up(self, prototypes: Float32s) -> NDArray[np.int8]:
        """The codes of all prototypes as they are now."""
        codes = self._codes
        if codes is None or len(prototypes) >= self.renewed * self._made_for:
            codes = self._codes = self._begun(prototypes)
        if self._stale:
            stale = np.array(sorted(row for row in self._stale if row < len(codes)), np.int64)
            codes.view[stale] = self._coded(prototypes[stale])
            self._stale.clear()
        for start in range(len(codes), len(prototypes), _ROWS):
            codes.append(self._coded(prototypes[start : start + _ROWS]))
        return codes.view

    def _begun(self, prototypes: Float32s) -> Rows:
        """A centre and a step that suit the prototypes; no codes yet."""
        size, dimension = prototypes.shape
        signs = np.random.default_rng(0).choice(np.array([-1.0, 1.0], np.float32), dimension)
        self._signs, self._centre = signs, prototypes[:: max(1, size // 4096)].mean(axis=0)
        pieces = (prototypes[start : start + _ROWS] for start in range(0, size, _ROWS))
        self._step = max(1e-6, *(_highest(piece, self._centre, signs) for piece in pieces)) / _LARGEST
        self._lost = self._radius = 0.0  # the longest e, and the longest T(b - m)
        self._made_for = size
        self._stale.clear()
        codes = Rows(np.empty((size, dimension + -dimension % _GROUP), np.int8))
        codes.keep(np.zeros(size, bool))
        return codes

    def _coded(self, prototypes: Float32s) -> NDArray[np.int8]:
        codes, _, lost, lengths = _coded(prototypes, self._centre, self._signs, self._step)
        self._lost = max(self._lost, float(lost.max(initial=0.0)))
        self._radius = max(self._radius, float(lengths.max(initial=0.0)))
        return codes


def _reaching(
    ours: NDArray[np.int8], codes: NDArray[np.int8], margins: NDArray[np.int32], k: int, most: int,
    close: _Close | None,
) -> tuple[Ints, Ints, NDArray[np.int32], Ints]:  # fmt: skip
    """Samples, ascending, rows and their products of codes: at most the margin below the sample's k-th largest.

    Also how many rows each sample has: the first alone, as many as there is room for where all get as much as the one
    with the most.
    """
    torch, n = _torch.loaded(), len(ours)
    step = max(1, _TILE // (n * _LANE)) * _LANE
    best = np.full((n, k), -_ALL, np.int32)
    held, count = list[tuple[Ints, Ints, NDArray[np.int32]]](), 0
    for start in range(0, len(codes), step):
        products = torch._int_mm(_torch.tensor(ours[:n]), _torch.tensor(codes[start : start + step]).T)
        if close is not None:
            at, rows, values = close.reaching(products.numpy(), start, best, margins)
        else:
            at, rows, values = _reaching_in(products, start, best, margins[:n])
        held.append((at, rows, values))
        count += len(at)
        if count > most and start + step < len(codes):
            held, counts = _left(held, best.min(axis=1) - margins[:n], most // 2)
            n, count = len(counts), len(held[0][0])
            best = best[:n]
    held, counts = _left(held, best.min(axis=1) - margins[:n], most)
    ((at, rows, values),) = held
    if len(codes) <= step:
        return at, rows, values, counts
    order = np.argsort(at, kind="stable")
    return at[order], rows[order], values[order], counts


def _reaching_in(
    products: Tensor, first: int, best: NDArray[np.int32], margins: NDArray[np.int32]
) -> tuple[Ints, Ints, NDArray[np.int32]]:
    """Samples, rows and values of what reaches the k ``best``, which are brought up to date, less the margins."""
    values, k = products.numpy(), best.shape[1]
    # The k largest are no smaller than the k largest maxima of lanes.
    width = values.shape[1]
    lanes = width // _LANE if width >= k * _LANE else 0
    peaks = products[:, : lanes * _LANE].unflatten(1, (lanes, _LANE)).amax(1).numpy() if lanes else values
    both = np.concatenate([best, peaks], axis=1)
    best[:] = both.max(axis=1, keepdims=True) if k == 1 else -np.partition(-both, k - 1, axis=1)[:, :k]
    at, columns = _filter.reaching(values, best.min(axis=1) - margins)
    return at, first + columns, values[at, columns]


@dataclass
class _Close:
    """What compiled loops know of samples besides their codes: few rows are left when products of floats say how many.

    A similarity is at most ``bases + scales * (the product of codes) + reach``.
    """

    kernels: Any
    samples: Float32s
    prototypes: Float32s
    scales: Float64s
    reach: Float64s
    bases: Float64s
    k: int

    def __post_init__(self) -> None:
        self._where = np.full((len(self.samples), self.k), -1)
        self._bound = _filter.bound(self.samples.shape[1])

    def reaching(
        self, values: NDArray[np.int32], first: int, best: NDArray[np.int32], margins: NDArray[np.int32]
    ) -> tuple[Ints, Ints, NDArray[np.int32]]:
        """As :func:`_reaching_in`."""
        at, rows, kept = (np.empty(values.size, kind) for kind in (np.int64, np.int64, np.int32))
        count = self.kernels.reaching(
            values, first, best, self._where, margins, self.samples, self.prototypes, self.scales, self.reach,
            self.bases, self._bound, at, rows, kept,
        )  # fmt: skip
        return at[:count].copy(), rows[:count].copy(), kept[:count].copy()

    def shortlist(self, rows: Ints, codes: NDArray[np.int32], counts: Ints) -> Found:
        """What products leave of the rows that codes have left, of which each of the first samples has so many."""
        samples, starts = self.samples[: len(counts)], np.concatenate([[0], np.cumsum(counts)])
        at, kept, products = np.empty_like(rows), np.empty_like(rows), np.empty(len(rows), np.float32)
        cuts = np.empty(len(samples))
        count = self.kernels.shortlist(
            samples, self.prototypes, starts, rows, codes, self.scales, self.reach, self.bases, self.k, self._bound,
            at, kept, products, cuts,
        )  # fmt: skip
        return Found.of_pairs(at[:count], kept[:count], products[:count], cuts)


def _left(
    held: list[tuple[Ints, Ints, NDArray[np.int32]]], floors: NDArray[np.int32], most: int
) -> tuple[list[tuple[Ints, Ints, NDArray[np.int32]]], Ints]:
    """Samples, rows and products that reach the floors, of the first samples that fit; how many each of those has."""
    at, rows, values = (np.concatenate(parts) for parts in zip(*held, strict=True))
    left = values >= floors[at]
    counts = np.bincount(at[left], minlength=len(floors))
    counts = counts[: fit(counts, most)]
    left &= at < len(counts)
    return [(at[left], rows[left], values[left])], counts


def _coded(
    rows: Float32s, centre: Float32s, signs: Float32s, step: float = 0.0
) -> tuple[NDArray[np.int8], Float32s, Float64s, Float64s]:
    """Rows, seen from the centre and turned, as multiples of the ``step``, or of one of their own; these steps.

    And what the lengths of what that leaves out, and of the rows, are at most.
    """
    size, dimension = rows.shape
    kernels = _compiled.kernels(8 * rows.size)
    if kernels is not None:
        codes = np.empty((size, dimension + -dimension % _GROUP), np.int8)
        steps, lost, lengths = np.empty(size, np.float32), np.empty(size), np.empty(size)
        kernels.coded(rows, centre, signs, step, _LARGEST, codes, steps, lost, lengths)
        return codes, steps, lost * (1.0 + 1e-6), lengths * (1.0 + 1e-6)
    turned = _turned(rows, centre, signs)
    each = turned.abs().amax(1, keepdim=True) / _LARGEST if not step else turned.new_full((size, 1), step)
    coded = (turned / each).round_().clamp_(-_LARGEST, _LARGEST)
    lost = _lengths(turned - coded * each)
    return coded.to(_torch.loaded().int8).numpy(), each[:, 0].numpy(), lost, _lengths(turned)


def _highest(rows: Float32s, centre: Float32s, signs: Float32s) -> float:
    return float(_turned(rows, centre, signs).abs().max())


def _turned(rows: Float32s, centre: Float32s, signs: Float32s) -> Tensor:
    """Rows, seen from the centre, with every group of entries rotated: what one of them has is spread over all.

    The entries of a group lie as far apart as there are groups, so that whole runs of them are added up at once.
    """
    seen = (_torch.tensor(rows) - _torch.tensor(centre)) * _torch.tensor(signs)
    missing = -rows.shape[1] % _GROUP
    if missing:
        seen = _torch.loaded().nn.functional.pad(seen, (0, missing))
    return (_hadamard() @ seen.reshape(len(rows), _GROUP, seen.shape[1] // _GROUP)).reshape(seen.shape)


@cache
def _hadamard() -> Tensor:
    """Orthonormal and symmetric; its entries are 1/4 and -1/4."""
    matrix = np.ones((1, 1), np.float32)
    while len(matrix) < _GROUP:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return _torch.tensor(matrix / np.float32(np.sqrt(_GROUP)))


def _lengths(rows: Tensor) -> Float64s:
    """What the lengths of rows are at most: their squares are added up in float32, which may lose D units of 2^-24."""
    squares = rows.square().sum(dim=1).numpy().astype(np.float64)
    return np.asarray(np.sqrt(squares) * (1.0 + rows.shape[1] * 2.0**-23))


def _sampled(samples: Float32s, prototypes: Float32s, counts: Ints, rows: Ints) -> Float32s:
    """The float32 products of samples with rows, of which each has so many."""
    torch = _torch.loaded()
    starts = np.concatenate([[0], np.cumsum(counts)])
    _without_warning(torch)
    pairs = torch.sparse_csr_tensor(
        _torch.tensor(starts), _torch.tensor(rows), _torch.tensor(np.zeros(len(rows), np.float32)),
        size=(len(samples), len(prototypes)), check_invariants=False, device="cpu",
    )  # fmt: skip
    product = torch.sparse.sampled_addmm(pairs, _torch.tensor(samples), _torch.tensor(prototypes).T, beta=0.0)
    return np.asarray(product.values().numpy())


@cache
def _without_warning(torch: Any) -> None:
    """PyTorch warns once, of its first such tensor, that there may be changes to them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.sparse_csr_tensor([0, 1], [0], [0.0], size=(1, 1), device="cpu")
