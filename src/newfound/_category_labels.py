"""Labels: those that people give, and others for what is discovered that can be mistaken for none."""

from __future__ import annotations

import math
import numbers
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from newfound.errors import DataError


class CategoryLabels:
    """The label of each category by its id. No two are the same, and none is the label of what fits none.

    Raises DataError for numbers so large that there may be none for what is discovered.
    """

    def __init__(self, classes: NDArray[Any]) -> None:
        self._numbers = classes.dtype.kind in "iuf"
        self._kind = {"i": np.int64, "u": np.int64, "f": np.float64, "U": np.str_}.get(classes.dtype.kind, object)
        # Above and below there must be room for labels of what is discovered, of which no two are rounded to the same.
        self._most = 2**53 if classes.dtype.kind == "f" else 2**62
        self._names: list[Any] = []
        self._ids: dict[Hashable, int] = {}
        self._new: Any = "new"
        self._taught = len(classes)
        for label in classes.tolist():
            self._check_room(label)
            self._add(label)
        if self._numbers:
            self._new = min(-1, math.ceil(classes.min()) - 1)
        while self._new in self._ids:
            self._new += "*"

    def __len__(self) -> int:
        return len(self._names)

    def of(self, ids: NDArray[np.int64]) -> NDArray[Any]:
        """The labels of ids; of -1, that of what fits none."""
        return np.array([*self._names, self._new], dtype=self._kind)[ids]

    def ids(self, labels: Sequence[Any]) -> NDArray[np.int64]:
        """The ids of labels; one that was not there gets the next."""
        return np.array([self._ids[label] if label in self._ids else self._add(label) for label in labels], np.int64)

    def found(self, last: int) -> None:
        """Gives labels to the categories up to the id ``last`` that have none."""
        while len(self._names) <= last:
            self._add(self._free())

    def check(self, labels: Sequence[Any]) -> None:
        """Raises DataError for labels of another kind than those so far, or that of what fits none."""
        for label in labels:
            if self._numbers != (isinstance(label, numbers.Real) and not isinstance(label, bool | np.bool_)):
                kind = "numbers" if self._numbers else "no numbers"
                raise DataError(f"the label {label!r} is of another kind than the classes so far, which are {kind}.")
            if label == self._new:
                raise DataError(f"{label!r} is how rows that fit no category are predicted: name the class otherwise.")
            self._check_room(label)

    def _check_room(self, label: Any) -> None:
        if self._numbers and not -self._most < label < self._most:
            raise DataError(
                f"the label {label!r} leaves no room for those of discovered categories, which are the numbers above: "
                f"give numbers between {-self._most} and {self._most}, or texts."
            )

    def _free(self) -> Any:
        if self._numbers:
            return math.floor(max(self._names)) + 1
        number = len(self._names) - self._taught + 1
        while f"new-{number}" in self._ids:
            number += 1
        return f"new-{number}"

    def _add(self, label: Any) -> int:
        self._ids[label] = len(self._names)
        self._names.append(label)
        return self._ids[label]


def label_column(y: Any, rows: int) -> NDArray[Any]:
    """One label a row, as Python's own values. Raises DataError if there are more or fewer."""
    if isinstance(y, str | bytes) or not hasattr(y, "__len__"):
        raise DataError(f"the labels are {y!r}; give one for each row.")
    labels = np.empty(len(y), object)
    labels[:] = y.tolist() if hasattr(y, "tolist") else list(y)
    if len(labels) != rows:
        raise DataError(f"there are {rows} rows but {len(labels)} labels.")
    return labels


def one_kind(labels: list[Any]) -> NDArray[Any]:
    """Labels as an array. Raises DataError for those that are not all texts or all numbers, which it would change."""
    try:
        array = np.array(labels)
    except ValueError:  # of different lengths
        array = np.empty((0, 0))
    if array.ndim != 1 or array.tolist() != labels:
        kinds = ", ".join(sorted({type(label).__name__ for label in labels}))
        raise DataError(f"labels must be all texts or all numbers, but here they are {kinds}.")
    return array


def unlabelled(y: Any) -> NDArray[np.bool_]:
    """Which labels are None, NaN or their like."""
    return np.array([label is None or equals_nothing(label) for label in y], bool)


def label_texts(labels: Sequence[Any]) -> list[str]:
    """Labels as text without white space around it. Raises DataError for those that cannot be told apart as such."""
    try:
        distinct = len(set(labels))
    except TypeError as error:
        raise DataError(f"a label must be text, a number or another hashable value: {error}") from None
    missing = unlabelled(labels)
    texts = ["" if missing[i] else str(label).strip() for i, label in enumerate(labels)]
    if "" in texts:
        raise DataError(f"image {texts.index('')} has an empty label; give it one, or leave the image out")
    for text in dict.fromkeys(texts):
        if any("\ud800" <= letter <= "\udfff" for letter in text):  # how Python keeps bytes that are no text
            raise DataError(f"the class {text!r} has a name that is no valid Unicode; rename it")
    if distinct > len(set(texts)):
        first: dict[str, Any] = {}
        one, other = next(
            (first[text], label)
            for text, label in zip(texts, labels, strict=True)
            if first.setdefault(text, label) != label
        )
        raise DataError(
            f"the labels {one!r} and {other!r} differ, but not as text without spaces around it; rename one of them"
        )
    return texts


def equals_nothing(value: Any) -> bool:
    """Whether a value is not even equal to itself: NaN, NaT and their like; pandas.NA does not say so."""
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        return True
