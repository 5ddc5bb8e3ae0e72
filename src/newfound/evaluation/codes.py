"""Labels and ids of any hashable kind become the integers 0..K-1."""

from __future__ import annotations

import numbers
from collections.abc import Hashable, Iterable, Mapping, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from newfound._category_labels import equals_nothing
from newfound.errors import DataError

Codes = NDArray[np.int64]


def factorise(values: Iterable[Hashable], what: str) -> tuple[Codes, list[Any]]:
    """Number the distinct values.

    Two values are the same if Python says that they are equal, so ``1``, ``1.0`` and ``np.int64(1)`` are one
    and ``"1"`` is another. Numbers in arrays and integers in lists take a fast path. Memory grows with how
    many values there are, never with how large they are.

    Returns the code of every value, and the distinct values (as Python objects) in the order of their codes.

    Raises :class:`DataError`, which names the argument as `what`, for values that cannot be labels: None, NaN,
    unhashable objects, tensors, arrays of more than one dimension.
    """
    if hasattr(values, "__array__"):
        array = as_array(values)
        if array.ndim != 1:
            raise DataError(f"{what} has shape {array.shape}; it needs one value for each sample: (N,).")
        if array.dtype.kind in "biu":
            return _factorise_integers(array)
        if array.dtype.kind == "f":
            return _factorise_floats(array, what)
        # datetime64 and its like would lose their unit in tolist().
        return _factorise_objects(array.tolist() if array.dtype.kind in "OUST" else list(array), what)
    if isinstance(values, Set | Mapping):
        raise DataError(f"{what} is a {type(values).__name__}, which has no order; pass a list or an array.")
    if not isinstance(values, Iterable):
        raise DataError(f"{what} is {values!r}; pass a list or an array of labels.")
    return _factorise_list(list(values), what)


def distinct_values(values: Iterable[Hashable], what: str) -> set[Any]:
    """The set of the values, under the rules of :func:`factorise`; here they may come as a set or mapping."""
    if isinstance(values, str | bytes):
        raise DataError(f"{what} is the single text {values!r}; pass a list of labels, such as [{values!r}].")
    return set(factorise(list(values) if isinstance(values, Set | Mapping) else values, what)[1])


def members(values: list[Any], group: set[Any]) -> NDArray[np.bool_]:
    """Which of the distinct values are in a group."""
    return np.array([value in group for value in values], dtype=bool)


def known_classes(classes: list[Any], known: set[Any]) -> NDArray[np.bool_]:
    """Which of the distinct labels are known.

    Raises :class:`DataError` if none can be, as all known ones are of another type: 0 is not "0".
    """
    is_known = members(classes, known)
    if classes and known and not is_known.any() and not set(map(_kind, classes)) & set(map(_kind, known)):
        label, other = classes[0], next(iter(known))
        raise DataError(
            f"labels are of another type than known: {type(label).__name__}, such as {label!r}, and "
            f"{type(other).__name__}, such as {other!r}. Every sample would count as new; give both as the same type."
        )
    return is_known


def own_class(values: list[Any], classes: list[Any]) -> Codes:
    """For each of the distinct predictions the class whose label it is, or -1."""
    code = {label: number for number, label in enumerate(classes)}
    return np.array([code.get(value, -1) for value in values], dtype=np.int64)


def as_array(values: Any) -> NDArray[Any]:
    """An array of values; a tensor may be on any device and want a gradient, of which NumPy takes neither."""
    try:
        return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)
    except ValueError as error:  # lists of different lengths
        raise DataError(f"there must be one value for each sample: {error}") from None


def _kind(value: Any) -> type:
    """What a value can be equal to others of: numbers of all types are one kind, and so are those of text."""
    return next((kind for kind in (numbers.Number, str, bytes) if isinstance(value, kind)), type(value))


def _factorise_integers(array: NDArray[Any]) -> tuple[Codes, list[Any]]:
    if not array.size:
        return np.empty(0, np.int64), []
    if array.dtype != np.uint64:
        array = array.astype(np.int64, copy=False)
    low, high = int(array.min()), int(array.max())
    if high - low > 4 * array.size + 1024:
        return _factorise_sorted(array)
    # A narrow range needs no sort: mark what occurs and number the marks.
    offset = (array - array.dtype.type(low)).astype(np.int64, copy=False)
    occurs = np.zeros(high - low + 1, dtype=bool)
    occurs[offset] = True
    number = np.cumsum(occurs, dtype=np.int64) - 1
    return number[offset], [low + step for step in np.flatnonzero(occurs).tolist()]


def _factorise_floats(array: NDArray[Any], what: str) -> tuple[Codes, list[Any]]:
    missing = np.flatnonzero(np.isnan(array))
    if missing.size:
        raise DataError(f"{what}[{missing[0]}] is NaN, which equals nothing; name it or drop the sample.")
    return _factorise_sorted(array)


def _factorise_sorted(array: NDArray[Any]) -> tuple[Codes, list[Any]]:
    distinct, codes = np.unique(array, return_inverse=True)
    return codes.astype(np.int64, copy=False), distinct.tolist()


def _factorise_list(values: list[Any], what: str) -> tuple[Codes, list[Any]]:
    # Only exact integers: numpy would turn 1 into "1" beside a text, and 2**53 + 1 into 2**53 beside a float.
    if set(map(type, values)) == {int}:
        array = np.asarray(values)
        if array.dtype.kind in "iu":  # else they are too large for 64 bits
            return _factorise_integers(array)
    return _factorise_objects(values, what)


def _factorise_objects(values: list[Any], what: str) -> tuple[Codes, list[Any]]:
    try:
        distinct = list(dict.fromkeys(values))
    except TypeError as error:
        raise DataError(f"{what} holds a value that cannot be a label: {error}.") from None
    for value in distinct:
        if hasattr(value, "__array__") and not isinstance(value, np.generic):
            # Tensors hash by identity: every one would silently be a class of its own.
            raise DataError(f"{what} holds {type(value).__name__} objects; pass one array, or plain values.")
        if value is None:
            # Else all samples without a label or an answer would be one class or one category.
            raise DataError(f"{what} holds None, which is no label; name it or drop the sample.")
        if equals_nothing(value):
            raise DataError(f"{what} holds {value!r}, which equals nothing; name it or drop the sample.")
    number = dict(zip(distinct, range(len(distinct)), strict=True))
    return np.fromiter(map(number.__getitem__, values), np.int64, len(values)), distinct
