"""What people pass becomes float32 unit rows and valid settings, or an error that says what is wrong and where."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from newfound.discovery import _compiled
from newfound.discovery._exact import UNIT_TOLERANCE, Float32s, Ints, chunk_rows, largest_entries, normalised
from newfound.errors import FeatureError, SettingsError


def unit_rows(values: Any, what: str, dimension: int | None = None) -> Float32s:
    """Float32 unit rows ``[n, D]`` of an array, a torch tensor or nested lists.

    Args:
        values: Numbers of any real type, ``[n, D]``; with a given ``dimension`` also a single ``[D]``.
        what: What to call a row in an error, for instance ``"feature"``.
        dimension: The D that is expected; None takes any.

    Raises:
        FeatureError: Not numbers, the wrong shape, or a row that is NaN, infinite or zero.
    """
    return _normalise(as_rows(values, what, dimension), what)


def as_rows(values: Any, what: str, dimension: int | None = None) -> NDArray[Any]:
    """Real numbers ``[n, D]``; arguments and errors are those of :func:`unit_rows`, but any values will do."""
    array = as_array(values, what)
    if dimension is not None and array.ndim == 1:
        array = array.reshape(1, -1) if array.size else array.reshape(0, dimension)
    if array.ndim != 2 or array.shape[1] == 0:
        raise FeatureError(f"{what}s must be an array of shape [number, dimension], got the shape {list(array.shape)}")
    if dimension is not None and array.shape[1] != dimension:
        raise FeatureError(
            f"a {what} has {array.shape[1]} dimensions, but this dictionary was made for {dimension}: "
            "were they computed by the same model?"
        )
    return array


def one_row(x: Any) -> NDArray[Any]:
    """One sample as a row ``[1, D]``: D numbers, or the values of ``{name: number}`` in its order.

    Raises:
        FeatureError: Not numbers, or not those of one sample.
    """
    row = as_array(list(x.values()) if isinstance(x, Mapping) else x, "feature")
    if row.ndim != 1 or not row.size:
        raise FeatureError(f"one sample is a row of numbers, or {{name: number}}, not of the shape {list(row.shape)}")
    return row[None]


def as_array(values: Any, what: str) -> NDArray[Any]:
    """Real numbers of any shape. Raises FeatureError for anything else."""
    if hasattr(values, "detach"):  # a torch tensor, recognised without importing torch
        values = values.detach().cpu()
        # bfloat16 has no counterpart in numpy; short floats are exact in float32.
        values = (values.float() if values.dtype.itemsize < 4 else values).numpy()
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise FeatureError(f"{what}s must be rows of the same length: {error}") from None
    if array.dtype.kind not in "fiub":
        raise FeatureError(f"{what}s must be real numbers, got values of type {array.dtype}")
    return array


def _normalise(array: NDArray[Any], what: str) -> Float32s:
    with np.errstate(over="ignore"):  # what float32 cannot hold is normalised from the original below
        rows = np.ascontiguousarray(array, dtype=np.float32)
    kernels = _compiled.kernels(rows.size) if array.dtype.itemsize <= 4 else None
    if kernels is not None and array.dtype.kind == "f":
        unit = _normalise_compiled(rows, array, kernels)
        if unit is not None:
            return unit
        rows = np.ascontiguousarray(array, dtype=np.float32)  # all over again, to say the same of what is wrong
    suspects = _not_clearly_unit(rows)
    if not suspects.size:
        return rows
    if np.shares_memory(rows, array):
        rows = rows.copy()
    step = chunk_rows(rows.shape[1])
    for start in range(0, len(suspects), step):
        some = suspects[start : start + step]
        original = array[some].astype(np.float64)
        largest = largest_entries(original)
        _refuse(some[~np.isfinite(largest[:, 0])], what, "NaN or infinite", len(array))
        _refuse(some[largest[:, 0] == 0], what, "zero, which has no direction", len(array))
        rows[some] = normalised(original, largest)
    return rows


def _normalise_compiled(rows: Float32s, array: NDArray[Any], kernels: Any) -> Float32s | None:
    """The rows, which are those of the ``array`` exactly, normalised; None where one of them has no direction."""
    done = 0
    if not rows.flags.writeable:
        rows = rows.copy()
    elif np.shares_memory(rows, array):
        done = kernels.to_unit(rows, rows.view(np.int32), UNIT_TOLERANCE, 0, False)
        if done == len(rows):
            return rows
        rows = rows.copy()
    return rows if kernels.to_unit(rows, rows.view(np.int32), UNIT_TOLERANCE, done, True) == len(rows) else None


def _not_clearly_unit(rows: Float32s) -> Ints:
    """The rows that need a closer look.

    A quick sum of squares in float64 decides most: its error is far below the margin left to the tolerance,
    so what passes here is what :func:`normalised` would return as it is. NaN does not pass.
    """
    squares = np.empty(len(rows))
    step = chunk_rows(rows.shape[1])
    memory = np.empty((min(step, len(rows)), rows.shape[1]))
    for start in range(0, len(rows), step):
        part = slice(start, start + step)
        wide = memory[: len(rows[part])]
        wide[:] = rows[part]
        with np.errstate(all="ignore"):
            np.einsum("ij,ij->i", wide, wide, out=squares[part])
    return np.flatnonzero(~(np.abs(squares - 1.0) < 1.9 * UNIT_TOLERANCE))


def _refuse(bad: Ints, what: str, why: str, total: int) -> None:
    if bad.size:
        raise FeatureError(f"{what} row {bad[0]} of {total} is {why}: leave it out, or look at what computed it")


def cosine(value: Any, name: str) -> float:
    """The setting ``name`` as a number from -1 to 1.

    Raises:
        SettingsError: It is none.
    """
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if not -1.0 <= number <= 1.0:  # which NaN is not
        raise SettingsError(f"{name} is a similarity, from -1 to 1, not {value!r}")
    return number
