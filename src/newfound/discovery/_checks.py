"""What people pass to a Bayesian dictionary becomes valid numbers, or an error that says what is wrong and where."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from newfound.discovery._exact import Float32s, Float64s, Ints
from newfound.discovery._features import as_array
from newfound.discovery._readings import real_rows
from newfound.errors import FeatureError, SettingsError

_LARGEST = 1e9  # of a reading's entries: whitened ones are of the order of 1


def whitened(values: Any, dimension: int) -> Float32s:
    """Readings as float32 rows ``[n, dimension]``. Raises FeatureError for anything that is none."""
    with np.errstate(over="ignore"):  # what float32 cannot hold is far beyond the limit
        array = np.ascontiguousarray(real_rows(values, "reading", dimension), dtype=np.float32)
    far = np.flatnonzero((np.abs(array) > _LARGEST).any(axis=1))
    if far.size:
        raise FeatureError(
            f"reading row {far[0]} of {len(array)} has entries beyond {_LARGEST:g}: was it whitened by the same model?"
        )
    return array


def variances(spread: Any) -> Float64s:
    """The variances of class means, above 0. Raises FeatureError for anything else."""
    array = as_array(spread, "spread").astype(np.float64)
    if array.ndim != 1 or not array.size:
        raise FeatureError(f"spread is one variance for each dimension, got the shape {[*array.shape]}")
    if not ((array > 0.0) & (array <= _LARGEST)).all():
        raise FeatureError(f"a spread is above 0 and at most {_LARGEST:g}, not {array.min():g} or {array.max():g}")
    return array


def labelled(sums: Any, counts: Any, dimension: int) -> tuple[Float64s, Ints]:
    """The sums and numbers of labelled readings, one row for each known category.

    Raises:
        FeatureError: Sums that are not finite numbers ``[K, dimension]``, or too large.
        SettingsError: Not a number of readings, 1 or more, for each.
    """
    rows = real_rows(sums, "sum", dimension).astype(np.float64)
    numbers = np.asarray(counts)
    if numbers.shape != (len(rows),) or (numbers.size and numbers.dtype.kind not in "iu"):
        raise SettingsError(f"counts has one whole number for each of the {len(rows)} known categories")
    if (numbers < 1).any():
        raise SettingsError(f"known category {int(np.argmin(numbers))} has no labelled readings: leave it out")
    if len(rows) and (np.abs(rows) > _LARGEST * numbers[:, None]).any():
        raise FeatureError(f"the mean reading of a known category is beyond {_LARGEST:g}: was it whitened?")
    return rows, numbers.astype(np.int64)


def number(value: Any, name: str, above: float = -math.inf) -> float:
    """The setting ``name`` as a finite number, above a limit if there is one. Raises SettingsError if it is none."""
    try:
        real = float(value)
    except (TypeError, ValueError):
        real = math.nan
    if not (math.isfinite(real) and real > above):
        kind = "a finite number" if above == -math.inf else f"a finite number above {above:g}"
        raise SettingsError(f"{name} is {kind}, not {value!r}")
    return real


def whole(value: Any, name: str) -> int:
    """The setting ``name`` as a whole number from 1 up. Raises SettingsError if it is none."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise SettingsError(f"{name} is a whole number from 1 up, not {value!r}")
    return int(value)
