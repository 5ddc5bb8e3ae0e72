"""From readings to codes: rows of bits, compared by how many of them differ (the Hamming distance)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from newfound.errors import SettingsError

Bits = NDArray[np.bool_]

_SLACK = 1e-9  # far more than (1 - t) * span is rounded by, far less than a step of the distance


class Coding(Protocol):
    """How a row of real values becomes a row of as many bits."""

    @property
    def dimension(self) -> int:
        """The length of a reading, and of its code."""

    @property
    def span(self) -> int:
        """The largest distance that two codes can have: their score is 1 - distance / span, from 1 down to 0."""

    def bits(self, readings: NDArray[Any]) -> Bits:
        """The codes of finite readings ``[n, dimension]``; each row's depends on that row alone."""

    def valid(self, bits: Bits) -> NDArray[np.bool_]:
        """For each row, whether it could be the code of a reading."""


@dataclass(frozen=True)
class SignCode:
    """A bit for each value: whether it is above zero (SMILE, PHE).

    Raises:
        SettingsError: A length below 1.
    """

    length: int

    def __post_init__(self) -> None:
        if not _whole(self.length) or self.length < 1:
            raise SettingsError(f"a sign code of length {self.length}: it has at least one bit")

    @property
    def dimension(self) -> int:
        return self.length

    @property
    def span(self) -> int:
        return self.length

    def bits(self, readings: NDArray[Any]) -> Bits:
        return readings > 0

    def valid(self, bits: Bits) -> NDArray[np.bool_]:
        return np.ones(len(bits), bool)


@dataclass(frozen=True)
class TopK:
    """The set of the k largest values, of equal ones those with the lower index (RankStat).

    Two sets that share s members differ in 2 (k - s) bits; if k is more than half of the dimension, some are shared.

    Raises:
        SettingsError: A k that is not between 1 and dimension - 1: every reading would have the same code.
    """

    dimension: int
    k: int

    def __post_init__(self) -> None:
        if not (_whole(self.dimension, self.k) and 1 <= self.k < self.dimension):
            raise SettingsError(f"the top k={self.k} of {self.dimension} values: k lies between 1 and dimension - 1")

    @property
    def span(self) -> int:
        return 2 * min(self.k, self.dimension - self.k)

    def bits(self, readings: NDArray[Any]) -> Bits:
        # Ascending and stable from the right: the last k are the largest, of equal ones those further left.
        order = np.argsort(readings[:, ::-1], axis=1, kind="stable")
        bits = np.zeros(readings.shape, bool)
        np.put_along_axis(bits, self.dimension - 1 - order[:, -self.k :], True, axis=1)
        return bits

    def valid(self, bits: Bits) -> NDArray[np.bool_]:
        return bits.sum(axis=1) == self.k


@dataclass(frozen=True)
class GroupArgmax:
    """The winner of each of several equal parts, of equal values the one with the lower index (WTA).

    Two codes differ in two bits for every part that has another winner.

    Raises:
        SettingsError: The dimension cannot be cut into so many equal parts of at least two values.
    """

    dimension: int
    groups: int

    def __post_init__(self) -> None:
        whole = _whole(self.dimension, self.groups) and self.groups >= 1
        if not whole or self.dimension % self.groups or self.dimension < 2 * self.groups:
            raise SettingsError(
                f"{self.groups} groups of {self.dimension} values: they are equal parts of at least two values each"
            )

    @property
    def span(self) -> int:
        return 2 * self.groups

    def bits(self, readings: NDArray[Any]) -> Bits:
        winners = self._parts(readings).argmax(axis=2)
        return (np.arange(self.dimension // self.groups) == winners[:, :, None]).reshape(readings.shape)

    def valid(self, bits: Bits) -> NDArray[np.bool_]:
        return (self._parts(bits).sum(axis=2) == 1).all(axis=1)

    def _parts(self, rows: NDArray[Any]) -> NDArray[Any]:
        return rows.reshape(len(rows), self.groups, self.dimension // self.groups)


def _whole(*values: Any) -> bool:
    return all(isinstance(value, int | np.integer) for value in values)


def score_of(distance: Any, span: int) -> Any:
    """The score of a distance, or of an array of distances: 1 - distance / span."""
    return 1.0 - distance / span


def radius_of(threshold: float, span: int) -> int:
    """The largest distance that a threshold allows: floor((1 - threshold) * span), but no more than the span.

    A threshold that was meant as a score, however it was computed, allows the distance of that score.
    """
    return min(span, math.floor((1.0 - threshold) * span + _SLACK))


_CODINGS = {kind.__name__: kind for kind in (SignCode, TopK, GroupArgmax)}


def coding_state(coding: Any) -> dict[str, Any]:
    """What a coding is, as plain values."""
    return {"kind": type(coding).__name__, **asdict(coding)}


def coding_from_state(state: Mapping[str, Any]) -> Coding:
    """The coding whose :func:`coding_state` this is.

    Raises:
        SettingsError: There is no such coding.
    """
    settings = dict(state)
    try:
        return _CODINGS[settings.pop("kind")](**settings)
    except (KeyError, TypeError):
        raise SettingsError(f"no coding is described by {dict(state)}: this state of a dictionary is damaged") from None
