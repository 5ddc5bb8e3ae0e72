"""What people pass as readings or codes becomes checked rows, or an error that says what is wrong and where."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from newfound.discovery._features import as_array, as_rows
from newfound.discovery.coding import Bits, Coding
from newfound.errors import FeatureError


def real_rows(values: Any, what: str, dimension: int) -> NDArray[Any]:
    """Finite rows ``[n, dimension]`` of an array, a torch tensor or nested lists; a single ``[dimension]`` is one row.

    Raises:
        FeatureError: Not numbers, the wrong shape, or a row that is NaN or infinite.
    """
    array = as_rows(values, what, dimension)
    bad = np.flatnonzero(~np.isfinite(array).all(axis=1))
    if bad.size:
        raise FeatureError(
            f"{what} row {bad[0]} of {len(array)} is NaN or infinite: leave it out, or look at what computed it"
        )
    return array


def bit_rows(values: Any) -> Bits:
    """Rows of bits ``[n, length]`` of zeros and ones, or of False and True.

    Raises:
        FeatureError: Anything else.
    """
    array = as_array(values, "code")
    if array.ndim != 2 or array.shape[1] == 0:
        raise FeatureError(f"codes must be an array of shape [number, length], got the shape {list(array.shape)}")
    bits = array.astype(bool)
    if (bits != array).any():
        row = int((bits != array).any(axis=1).argmax())
        raise FeatureError(f"code row {row} of {len(array)} has other values than 0 and 1")
    return bits


def code_rows(values: Any, coding: Coding) -> Bits:
    """Rows of bits that ``coding`` can give, from bits or from bits packed eight to a byte, lowest first.

    Raises:
        FeatureError: The wrong shape, or a row that cannot be the code of a reading.
    """
    array, octets = as_array(values, "code"), -(-coding.dimension // 8)
    if array.dtype == np.uint8 and array.ndim == 2 and array.shape[1] == octets:
        array = np.unpackbits(array, axis=1, bitorder="little")
        if array[:, coding.dimension :].any():
            raise FeatureError(f"packed codes have bits beyond the {coding.dimension} of {coding}")
        array = array[:, : coding.dimension]
    bits = bit_rows(array)
    if bits.shape[1] != coding.dimension:
        raise FeatureError(f"a code has {bits.shape[1]} bits, but those of {coding} have {coding.dimension}")
    wrong = np.flatnonzero(~coding.valid(bits))
    if wrong.size:
        raise FeatureError(f"code row {wrong[0]} of {len(bits)} cannot be a code of {coding}")
    return bits
