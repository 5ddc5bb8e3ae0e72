"""The innermost loops, to be compiled; :mod:`newfound.discovery._compiled` says when that is done.

Canonical values are the same bits as those of the NumPy code that a kernel stands in for: sums are added up in the
order of :func:`newfound.discovery._exact.tree_sum`, and nothing is reassociated or contracted. Only filters may be,
whose errors are bounded for every order of additions.

All of it is in one file, because compiled code is kept on the disk until the file that it came from changes: what it
calls in other files would not be looked at.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import config, njit, types

if getattr(config, "DISABLE_JIT", False):  # for a debugger, say: Python alone takes a thousand times as long as NumPy
    raise ImportError("NUMBA_DISABLE_JIT is set")

_LANES = 64  # of columns, whose maxima are looked at before they are: lane c has the columns c, c + 64, c + 128, ...


def _given(dtype: Any, dimensions: int) -> Any:
    return types.Array(dtype, dimensions, "C", readonly=True)


def _compile(*signature: Any) -> Any:
    """Compiled for these types by :func:`compile_all`, or where it is called; other threads run while it does."""

    def prepared(loop: Any) -> Any:
        kernel = njit(nogil=True, cache=True)(loop)
        if signature:
            _signatures.append((kernel, signature))
        return kernel

    return prepared


_signatures: list[tuple[Any, tuple[Any, ...]]] = []


def compile_all() -> None:
    """Compiles one kernel after the other, or reads it from where it was kept."""
    for kernel, signature in _signatures:
        if not kernel.signatures:
            kernel.compile(signature)
            kernel.disable_compile()  # other types are a mistake


_ROWS, _VECTORS, _TABLE = _given(types.float32, 2), _given(types.float64, 2), _given(types.float64, 1)
_INDEX, _SCORES = _given(types.int64, 1), types.float64[::1]
_NUMBERS, _SCALARS, _FAST = types.int64[:, ::1], types.float64[:, ::1], types.float32[:, ::1]


@_compile()
def _folded(terms: Any) -> float:
    """The sum of the terms by halving; they are overwritten. Slices, because the compiler then knows what is where."""
    width, half = terms.size, 1
    while 2 * half < width:
        half *= 2
    while width > 1:
        first, second = terms[:half], terms[half:width]
        for c in range(second.size):
            first[c] += second[c]
        width, half = half, half // 2
    return terms[0]


@_compile(_ROWS, _INDEX, _ROWS, _INDEX, _SCORES)
def similarities(a: Any, i: Any, b: Any, j: Any, result: Any) -> None:
    """Of the unit rows ``a[i]`` and ``b[j]``, pair by pair: :class:`newfound.discovery._exact.Similarity`."""
    terms = np.empty(a.shape[1])
    for n in range(i.size):
        x, y = a[i[n]], b[j[n]]
        for c in range(terms.size):
            terms[c] = np.float64(x[c]) * np.float64(y[c])
        result[n] = min(1.0, max(-1.0, _folded(terms)))


@_compile()
def _log_ratio(x: Any, b: Any, level: int, half: Any, bend: Any, constant: Any, terms: Any) -> float:
    """Of a reading and a category with the weights ``b``; ``terms`` is memory to work in."""
    h, a = half[level], bend[level]
    for c in range(terms.size):
        v = np.float64(x[c])
        terms[c] = (v - h[c] * b[c]) * b[c] + (v * v) * a[c]
    return constant[level] + _folded(terms)


@_compile(_ROWS, _INDEX, _VECTORS, _INDEX, _INDEX, _VECTORS, _VECTORS, _TABLE, _SCORES)
def log_ratios(readings: Any, at: Any, weights: Any, which: Any, levels: Any, half: Any, bend: Any, constant: Any,
               result: Any) -> None:  # fmt: skip
    """:meth:`newfound.discovery._model.Model.log_ratios`, into ``result``."""
    terms = np.empty(readings.shape[1])
    for n in range(at.size):
        result[n] = _log_ratio(readings[at[n]], weights[which[n]], levels[n], half, bend, constant, terms)


@_compile(types.float32[:, ::1], types.int32[:, ::1], types.float64, types.int64, types.boolean)
def to_unit(rows: Any, bits: Any, tolerance: float, start: int, change: bool) -> int:
    """Normalises float32 rows from ``start`` on where they are, as :func:`newfound.discovery._exact.normalised` does.

    ``bits`` is the same memory as integers, whose order, without the sign, is that of the numbers. Returns how many
    rows are done: up to the first that is NaN, infinite or zero, or that would have to ``change`` and must not.
    """
    scaled, terms = np.empty(rows.shape[1]), np.empty(rows.shape[1])
    for n in range(start, len(rows)):
        row, pattern = rows[n], bits[n]
        highest = np.int32(0)
        for c in range(terms.size):
            highest = max(highest, pattern[c] & np.int32(0x7FFFFFFF))
        if highest == 0 or highest >= 0x7F800000:  # the pattern of infinity; those of NaN are above it
            return n
        largest = 0.0
        for c in range(terms.size):
            if pattern[c] & np.int32(0x7FFFFFFF) == highest:
                largest = abs(np.float64(row[c]))
                break
        if largest == 0.0:  # where the processor is told to take the smallest numbers for zero
            return n
        for c in range(terms.size):
            scaled[c] = np.float64(row[c]) / largest
        for c in range(terms.size):
            terms[c] = scaled[c] * scaled[c]
        root = np.sqrt(_folded(terms))
        if abs(largest * root - 1.0) < 2 * tolerance:
            for c in range(terms.size):
                terms[c] = np.float64(row[c]) * np.float64(row[c])
            if abs(np.sqrt(_folded(terms)) - 1.0) <= tolerance:
                continue
        if not change:
            return n
        for c in range(terms.size):
            row[c] = np.float32(scaled[c] / root)
    return len(rows)


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})
def _dot(x: Any, y: Any) -> Any:
    total = np.float32(0.0)
    for c in range(x.size):
        total += x[c] * y[c]
    return total


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})
def _squares(x: Any) -> float:
    total = 0.0
    for c in range(x.size):
        total += np.float64(x[c]) * np.float64(x[c])
    return total


@_compile()
def _keep_best(best: Any, value: Any) -> None:
    """Puts a value into the descending ``best``, whose last one it exceeds."""
    place = best.size - 1
    while place > 0 and best[place - 1] < value:
        best[place] = best[place - 1]
        place -= 1
    best[place] = value


@_compile()
def _keep_best_with(best: Any, where: Any, value: Any, place: int) -> None:
    """:func:`_keep_best` of values and their places."""
    slot = best.size - 1
    while slot > 0 and best[slot - 1] < value:
        best[slot], where[slot] = best[slot - 1], where[slot - 1]
        slot -= 1
    best[slot], where[slot] = value, place


@_compile()
def _find_peaks(values: Any, peaks: Any) -> None:
    """The maxima of as many lanes as there is room for. They are no runs, so that the compiler takes runs at once."""
    lanes = max(1, peaks.size)
    peaks[:] = values[: peaks.size]
    for start in range(lanes, values.size, lanes):
        some = values[start : start + lanes]
        for c in range(some.size):
            peaks[c] = some[c] if some[c] > peaks[c] else peaks[c]


@_compile()
def _largest(peaks: Any) -> float:
    """The largest of all; -inf of none."""
    top = -np.inf
    for c in range(peaks.size):
        top = max(top, np.float64(peaks[c]))
    return top


@_compile()
def _least_reached(sample: Any, prototypes: Any, rows: Any, bound: float) -> float:
    """What the similarities of the nearest prototypes reach at least, by the products with as many ``rows``.

    Lower by twice the bound; -inf where all of them may be -1, to which similarities are clipped.
    """
    least = np.float32(np.inf)
    for r in range(rows.size):
        least = min(least, _dot(sample, prototypes[rows[r]]))
    reached = min(1.0, np.float64(least)) - 2 * bound
    return reached if reached > -1.0 else -np.inf


@_compile(types.int32[:, ::1], types.int64, types.int32[:, ::1], _NUMBERS, types.int32[::1], _ROWS, _ROWS, _TABLE,
          _TABLE, _TABLE, types.float64, types.int64[::1], types.int64[::1], types.int32[::1])  # fmt: skip
def reaching(values: Any, first: int, best: Any, where: Any, margins: Any, samples: Any, prototypes: Any, scales: Any,
             reaches: Any, bases: Any, bound: float, at: Any, rows: Any, kept: Any) -> int:  # fmt: skip
    """What in the ``values`` ``[sample, column]``, products of codes, may be one of a sample's k nearest.

    Column 0 is that of the row ``first``. The k largest values so far, ``best`` ``[sample, k]``, descending, and their
    rows (``where``) are brought up to date before. What is left out is more than the margin below the last of them, or
    cannot reach what the products of these k rows say that the nearest do: a similarity is at most ``bases + scales *
    value + reaches``. Samples, rows and values go into the last three arrays; returns how many there are.
    """
    count, width = 0, values.shape[1]
    peaks = np.empty(min(_LANES, width), values.dtype)
    for n in range(len(values)):
        mine, leading, places = values[n], best[n], where[n]
        _find_peaks(mine, peaks)
        for lane in range(peaks.size):
            if peaks[lane] > leading[-1]:
                for c in range(lane, width, peaks.size):
                    if mine[c] > leading[-1]:
                        _keep_best_with(leading, places, mine[c], first + c)
        floor = np.float64(leading[-1] - margins[n])
        if places[-1] >= 0:
            reached = _least_reached(samples[n], prototypes, places, bound)
            floor = max(floor, (reached - bases[n] - reaches[n]) / scales[n])
        for lane in range(peaks.size):
            if peaks[lane] >= floor:
                for c in range(lane, width, peaks.size):
                    if mine[c] >= floor:
                        at[count], rows[count], kept[count] = n, first + c, mine[c]
                        count += 1
    return count


@_compile(_ROWS, _given(types.float32, 1), _given(types.float32, 1), types.float32, types.int64,
          types.int8[:, ::1], types.float32[::1], _SCORES, _SCORES)  # fmt: skip
def coded(rows: Any, centre: Any, signs: Any, step: float, largest: int, codes: Any, steps: Any, lost: Any,
          lengths: Any) -> None:  # fmt: skip
    """Rows seen from the ``centre``, turned, and coded: see :class:`newfound.discovery._coarse.Coarse`.

    ``step``: of all codes; 0: each row has its own, so that its largest entry gets the ``largest`` code. What rounding
    leaves out of every row, and the row as it was turned, have the lengths ``lost`` and ``lengths``.
    """
    width = codes.shape[1]
    turned, other = np.zeros(width, np.float32), np.zeros(width, np.float32)
    for n in range(len(rows)):
        row, mine = rows[n], codes[n]
        for c in range(row.size):
            turned[c] = (row[c] - centre[c]) * signs[c]
        turned[row.size :] = np.float32(0.0)
        half = width
        for _ in range(4):  # what is added and subtracted lies half of the row apart, then a quarter, and so on
            half //= 2
            for start in range(0, width, 2 * half):
                first, second = turned[start : start + half], turned[start + half : start + 2 * half]
                sums, differences = other[start : start + half], other[start + half : start + 2 * half]
                for c in range(half):
                    sums[c], differences[c] = first[c] + second[c], first[c] - second[c]
            turned, other = other, turned
        highest = np.float32(0.0)
        for c in range(width):
            turned[c] *= np.float32(0.25)
            highest = max(highest, abs(turned[c]))
        steps[n] = step if step > 0 else max(highest, np.float32(1e-30)) / np.float32(largest)
        inverse = np.float32(1.0) / steps[n]
        for c in range(width):
            other[c] = min(np.float32(largest), max(np.float32(-largest), np.rint(turned[c] * inverse)))
            mine[c] = np.int8(other[c])
        lengths[n] = np.sqrt(_squares(turned))
        for c in range(width):
            other[c] = turned[c] - other[c] * steps[n]
        lost[n] = np.sqrt(_squares(other))


@_compile(_ROWS, _ROWS, _INDEX, _INDEX, _given(types.int32, 1), _TABLE, _TABLE, _TABLE, types.int64, types.float64,
          types.int64[::1], types.int64[::1], types.float32[::1], _SCORES)  # fmt: skip
def shortlist(samples: Any, prototypes: Any, starts: Any, rows: Any, codes: Any, scales: Any, reaches: Any, bases: Any,
              k: int, bound: float, at: Any, kept: Any, products: Any, cuts: Any) -> int:  # fmt: skip
    """Of the rows that codes leave to each sample, from ``starts[n]`` to ``starts[n + 1]``, those that products leave.

    The products of the k with the largest codes say what the k nearest reach at least. What a row can reach follows
    from its code: ``bases + scales * code``, and ``reaches`` at most above it. Samples, rows and products go to the
    start of ``at``, ``kept`` and ``products``; returns how many. ``cuts`` are those of a
    :class:`newfound.discovery._found.Found`.
    """
    count = 0
    leading, where = np.empty(k, np.int32), np.empty(k, np.int64)
    best, found = np.empty(k, np.float32), np.empty(rows.size, np.float32)
    for n in range(len(samples)):
        first, last = starts[n], starts[n + 1]
        sample, cuts[n], floor, lowest = samples[n], -2.0, np.float32(-np.inf), -np.inf
        if last - first >= k:
            leading[:] = -(1 << 31)
            for p in range(first, last):
                if codes[p] > leading[-1] or p - first < k:
                    _keep_best_with(leading, where, codes[p], rows[p])
            lowest = (_least_reached(sample, prototypes, where, bound) - bases[n] - reaches[n]) / scales[n]
        best[:] = np.float32(-np.inf)
        for p in range(first, last):
            found[p] = np.float32(-np.inf)
            if codes[p] >= lowest:
                found[p] = _dot(sample, prototypes[rows[p]])
                if found[p] > best[-1]:
                    _keep_best(best, found[p])
        if best[-1] > -np.inf:
            cuts[n] = min(1.0, max(-1.0, np.float64(best[-1]))) - bound
            if cuts[n] - bound > -1.0:
                floor = np.float32(np.nextafter(np.float32(cuts[n] - bound), np.float32(-np.inf)))
        for p in range(first, last):
            if found[p] > np.float32(-np.inf) and found[p] >= floor:
                at[count], kept[count], products[count] = n, rows[p], found[p]
                count += 1
    return count


@_compile(types.float32[:, ::1], types.float32[:, ::1], types.int64, types.int64[:, ::1], types.float32[:, ::1])
def leaders(products: Any, peaks: Any, lane: int, columns: Any, values: Any) -> None:
    """The columns of the k largest products of every sample and the k + 1 largest values, both descending.

    Equal ones by column. ``peaks`` are the maxima of lanes of so many columns. Where there are fewer than k + 1, the
    value is -inf.
    """
    k = columns.shape[1]
    where = np.zeros(k + 1, np.int64)
    for n in range(len(products)):
        row, best = products[n], values[n]
        best[:] = np.float32(-np.inf)
        where[:] = 0
        for part in range(peaks.shape[1]):
            if peaks[n, part] > best[k]:
                some = row[part * lane : (part + 1) * lane]
                for c in range(some.size):
                    if some[c] > best[k]:
                        _keep_best_with(best, where, some[c], part * lane + c)
        columns[n] = where[:k]


@_compile()
def _refresh(row: int, sums: Any, numbers: Any, weights: Any, fast: Any, scalars: Any, changed: Any,
             tables: Any) -> None:  # fmt: skip
    """:meth:`newfound.discovery._evidence.Evidence.refresh_row` where there is no prior."""
    pull, half, constant = tables
    count, dimension = numbers[row, 0], sums.shape[1]
    level = min(count, len(pull) - 1)
    share = level / count
    total, mine, quick, pulls, halves = sums[row], weights[row], fast[row], pull[level], half[level]
    for c in range(dimension):
        mine[c] = (total[c] * share) * pulls[c]
    for c in range(dimension):
        quick[c] = np.float32(mine[c])
    quick[dimension:] = np.float32(0.0)
    quick[dimension + level] = np.float32(1.0)
    bent, length = _bent_squares(mine, halves)
    scalars[row, 0], scalars[row, 1], scalars[row, 2] = 0.0, constant[level] - bent, np.sqrt(length)
    quick[-1] = np.float32(scalars[row, 1])
    changed[row] = True


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})
def _bent_squares(weights: Any, halves: Any) -> tuple[float, float]:
    bent = length = 0.0
    for c in range(weights.size):
        bent += (halves[c] * weights[c]) * weights[c]
        length += weights[c] * weights[c]
    return bent, length


@_compile()
def _at_most(floor: float) -> float:
    """:func:`newfound.discovery._products.at_most`."""
    return max(-3.4e38, floor - abs(floor) * 2.0**-22 - 1e-37)


@_compile()
def _kth(values: Any, peaks: Any, best: Any) -> float:
    """The k-th largest value, where k is the size of ``best``, which is overwritten; -inf where there are fewer."""
    best[:] = np.float32(-np.inf)
    for lane in range(peaks.size):
        if peaks[lane] > best[-1]:
            for c in range(lane, values.size, peaks.size):
                if values[c] > best[-1]:
                    _keep_best(best, values[c])
    return np.float64(best[-1])


@_compile()
def _near(values: Any, peaks: Any, floor: float, error: float, leading: Any, where: Any) -> int:
    """Puts the columns of values from ``floor`` up into ``where``; of more than suit, the leading ones alone."""
    count, limit = 0, np.float32(_at_most(floor))
    for lane in range(peaks.size):
        if peaks[lane] >= limit:
            for c in range(lane, values.size, peaks.size):
                if values[c] >= limit:
                    where[count] = c
                    count += 1
    if count > leading.size:
        limit, left = np.float32(_at_most(_kth(values, peaks, leading) - 2 * error)), 0
        for p in range(count):
            if values[where[p]] >= limit:
                where[left] = where[p]
                left += 1
        count = left
    return count


@_compile()
def _scored(x: Any, where: Any, count: int, numbers: Any, weights: Any, tables: Any, terms: Any, rows: Any, scores: Any,
            start: int) -> tuple[float, int]:  # fmt: skip
    """Writes rows and their canonical scores from ``start`` on; returns the best and its row, of equals the lowest."""
    half, bend, constant = tables
    best, row = -np.inf, -1
    for p in range(count):
        here = where[p]
        score = _log_ratio(x, weights[here], min(numbers[here, 0], len(half) - 1), half, bend, constant, terms)
        rows[start + p], scores[start + p] = here, score
        if row < 0 or score > best or (score == best and here < row):
            best, row = score, here
    return best, row


@_compile()
def _listed(rows: Any, count: int, row: int) -> int:
    """Where the row is among the first ``count``; -1: nowhere."""
    for p in range(count):
        if rows[p] == row:
            return p
    return -1


_SIDE = types.Tuple((_SCALARS, _NUMBERS, _SCALARS, _FAST, _SCALARS, types.boolean[::1]))
_PAIRS = types.Tuple((types.int64[::1], types.int64[::1], _SCORES))
_CUTS = types.UniTuple(types.float64, 4)


@_compile(_ROWS, _FAST, _TABLE, _TABLE, _SIDE, _SIDE, types.UniTuple(_VECTORS, 3), _TABLE, types.float64[::1], _CUTS,
          types.int64, types.int64, types.int64, types.UniTuple(_FAST, 2), types.UniTuple(types.int64[::1], 2),
          types.int64[::1], _NUMBERS, _PAIRS, _PAIRS)  # fmt: skip
def weigh(readings: Any, wide: Any, lengths: Any, bends: Any, categories: Any, candidates: Any, tables: Any,
          constant: Any, reached: Any, cuts: Any, learning: int, k: int, leading: int, values: Any, fresh: Any,
          sizes: Any, told: Any, pairs: Any, rivals: Any) -> int:  # fmt: skip
    """Decides on readings in turn, as :class:`newfound.discovery._weighing.Weighing` does where there is no prior.

    Args:
        categories, candidates: Of each side of the evidence sums, numbers, weights, fast, scalars and changed, with
            room for as many rows more as there are readings.
        tables, constant: pull, half and bend of the model, and its constant.
        reached: The longest and the highest row so far, and gamma and the most of :meth:`Model.error`.
        cuts: The threshold, alone (inf: nothing is doubtful), the even odds, and how far probabilities reach.
        learning: The first row that learns.
        values: Fast values of the readings with both sides, with room for more columns.
        fresh: Rows that have changed since those were multiplied, with room for more.
        sizes: How many rows each side has, how many of them are fresh, and how many pairs and rivals there are.
        told: For every reading, the row it belongs to, whether it founds it, the candidate it founds it with, and the
            candidate that it becomes; -1: none.
        pairs, rivals: Readings, rows and scores of what mattered.

    Returns how many are decided on: fewer than all where there might be no room for pairs.
    """
    sums, numbers, weights, fast, scalars, changed = categories
    pull, half, bend = tables
    threshold, alone, even, reach = cuts
    refreshing, scoring = (pull, half, constant), (half, bend, constant)
    terms, best = np.empty(readings.shape[1]), np.empty(k, np.float32)
    ahead, others = np.empty(max(k, leading), np.float32), np.empty(leading, np.float32)
    lanes, rival_lanes = np.empty(_LANES, np.float32), np.empty(_LANES, np.float32)
    near = np.empty(max(values[0].shape[1], values[1].shape[1]), np.int64)
    for n in range(len(readings)):
        x, y = readings[n], wide[n]
        if sizes[4] + sizes[0] > pairs[0].size or sizes[5] + sizes[1] > rivals[0].size:
            return n
        for r in range(sizes[2]):
            values[0][n, fresh[0][r]] = _dot(y, fast[fresh[0][r]])
        for r in range(sizes[3]):
            values[1][n, fresh[1][r]] = _dot(y, candidates[3][fresh[1][r]])
        mine, theirs = values[0][n, : sizes[0]], values[1][n, : sizes[1]]
        error = reached[2] * (lengths[n] * reached[0] + bends[n] + reached[1] + reached[3])
        peaks, rival_peaks = lanes[: mine.size], rival_lanes[: theirs.size]
        _find_peaks(mine, peaks)
        _find_peaks(theirs, rival_peaks)
        peak, rival_peak = _largest(peaks), _largest(rival_peaks)
        floor = max(peak, rival_peak, min(threshold, even)) - reach - 2 * error
        kth = peak if k == 1 else _kth(mine, peaks, best)
        count = _near(mine, peaks, min(floor, kth - 2 * error), error, ahead, near)
        score, row = _scored(x, near, count, numbers, weights, scoring, terms, pairs[1], pairs[2], sizes[4])
        pairs[0][sizes[4] : sizes[4] + count] = n
        sizes[4] += count
        count, rival, partner = 0, -np.inf, -1
        if rival_peak >= _at_most(floor):
            count = _near(theirs, rival_peaks, floor, error, others, near)
            rival, partner = _scored(
                x, near, count, candidates[1], candidates[2], scoring, terms, rivals[1], rivals[2], sizes[5]
            )
            rivals[0][sizes[5] : sizes[5] + count] = n
            sizes[5] += count
        with_partner = row >= 0 and partner >= 0 and rival > score and rival >= threshold
        joins = row >= 0 and not with_partner and score >= threshold
        founds = row < 0 or with_partner or (not joins and score < alone)
        told[n, 0], told[n, 1], told[n, 2], told[n, 3] = row, founds, -1, -1
        if founds:
            row = sizes[0]
            sizes[0] += 1
            told[n, 0] = row
            numbers[row, 0] = numbers[row, 1] = 1
            for c in range(terms.size):
                sums[row, c] = x[c]
            if with_partner:
                told[n, 2] = partner
                numbers[row, 0] = numbers[row, 1] = 2
                for c in range(terms.size):
                    sums[row, c] = candidates[0][partner, c] + np.float64(x[c])
                values[1][n + 1 :, partner] = np.float32(-np.inf)  # it waits no longer
                listed = _listed(fresh[1], sizes[3], partner)
                if listed >= 0:
                    sizes[3] -= 1
                    fresh[1][listed] = fresh[1][sizes[3]]
            _refresh(row, sums, numbers, weights, fast, scalars, changed, refreshing)
            fresh[0][sizes[2]] = row
            sizes[2] += 1
        elif joins:
            numbers[row, 1] += 1
            if row < learning:
                continue
            numbers[row, 0] += 1
            for c in range(terms.size):
                sums[row, c] += np.float64(x[c])
            _refresh(row, sums, numbers, weights, fast, scalars, changed, refreshing)
            if _listed(fresh[0], sizes[2], row) < 0:
                fresh[0][sizes[2]] = row
                sizes[2] += 1
        else:
            waiting = sizes[1]
            sizes[1] += 1
            told[n, 3] = waiting
            candidates[1][waiting, 0] = candidates[1][waiting, 1] = 1
            for c in range(terms.size):
                candidates[0][waiting, c] = x[c]
            _refresh(waiting, *candidates, refreshing)
            fresh[1][sizes[3]] = waiting
            sizes[3] += 1
            reached[0] = max(reached[0], candidates[4][waiting, 2])
            reached[1] = max(reached[1], abs(candidates[4][waiting, 1]))
            continue
        reached[0], reached[1] = max(reached[0], scalars[row, 2]), max(reached[1], abs(scalars[row, 1]))
    return len(readings)
