"""What people say of sightings, checked against the books before anything changes: where they belong, or belonged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from newfound.discovery._exact import Ints
from newfound.errors import SettingsError

if TYPE_CHECKING:
    from newfound.discovery._categories import Categories


@dataclass(frozen=True)
class Moves:
    """Sightings on their way to where they belong, in the order of the stream.

    Attributes:
        order: Where each was among those given.
        numbers: Their numbers in the stream, ascending.
        sources: The rows of the categories that they belonged to.
        target: The row of the one that they belong to from now on; the first free one if they found it.
        founds: Whether they found it.
        pinned: Which of them a person wants to stay there.
    """

    order: Ints
    numbers: Ints
    sources: Ints
    target: int
    founds: bool
    pinned: NDArray[np.bool_]

    @property
    def leaving(self) -> NDArray[np.bool_]:
        """Which of them do not belong there already."""
        return self.sources != self.target

    def emptied(self, left: Ints, known: int) -> list[list[int]]:
        """Target and source for each discovered source of whose members none is ``left``: the two become one."""
        sources = np.unique(self.sources[self.leaving])
        return [[self.target, row] for row in sources.tolist() if row >= known and not left[row]]


@dataclass(frozen=True)
class Given:
    """Samples whose answers are given, in the order of the stream.

    Attributes:
        ids: Their categories.
        rows: The rows of these, those that are founded on the way included.
        created: Which samples found theirs.
        pinned: Which ones a person has put there.
    """

    ids: Ints
    rows: Ints
    created: NDArray[np.bool_]
    pinned: NDArray[np.bool_]


def moves(
    categories: Categories, seen: int, readings: int, numbers: Any, sources: Any, target: Any, pinned: Any
) -> Moves:
    """Moves of so many sightings, of ``seen`` in all; a target of None is a category that they found.

    Raises:
        SettingsError: Lengths that do not fit, numbers that are repeated or were not seen, ids that were never given
            out, more sightings than a source has, or none to found a category.
    """
    given = integers(numbers, readings, "number", "feature")
    order = np.argsort(given, kind="stable")
    stay = _flags(pinned, readings, otherwise=True)[order]
    ascending = given[order]
    unseen = ascending[(ascending < 0) | (ascending >= seen)]
    if unseen.size:
        raise SettingsError(f"there is no sighting {unseen[0]}: {seen} were observed, and numbers begin with 0")
    again = ascending[1:][np.diff(ascending) == 0]
    if again.size:
        raise SettingsError(f"sighting {again[0]} is named twice: name each one once")
    rows = _rows(categories, integers(sources, readings, "source", "feature")[order])
    leave = np.bincount(rows, minlength=len(categories))
    short = np.flatnonzero(leave > categories.counts.view)
    if short.size:
        row = short[0]
        raise SettingsError(
            f"{leave[row]} sightings are said to be of category {categories.ids.view[row]}, which has "
            f"{categories.counts.view[row]}: where do they belong now?"
        )
    if target is None:
        if not readings:
            raise SettingsError("a category is founded by one sighting or more: name them, or a target")
        return Moves(order, ascending, rows, len(categories), True, stay)
    if np.ndim(target):
        raise SettingsError(f"the target is one category, or None for a new one, not {target!r}")
    return Moves(order, ascending, rows, int(_rows(categories, np.asarray(target)[None])[0]), False, stay)


def _rows(categories: Categories, ids: Ints) -> Ints:
    homes = categories.resolve(ids)
    if (homes < 0).any():
        raise SettingsError("there is no category -1: ids are numbers from 0 up")
    return categories.places(homes)


def given(categories: Categories, readings: int, ids: Any, pinned: Any) -> Given:
    """The answers to so many samples; an id that is the next one when its turn comes founds that category.

    Raises:
        SettingsError: Lengths that do not fit, or an id that is neither living nor the next.
    """
    names = integers(ids, readings, "category", "feature")
    highest = np.maximum.accumulate(np.append(categories.next_id - 1, names))[:-1]
    created = names > highest
    wrong = np.flatnonzero(np.where(
        names < categories.next_id, ~np.isin(names, categories.ids.view), created & (names != highest + 1)
    ))  # fmt: skip
    if wrong.size:
        i = wrong[0]
        raise SettingsError(
            f"sample {i} is said to be of category {names[i]}, which is neither living nor the next, {highest[i] + 1}"
        )
    return Given(names, categories.places(names), created, _flags(pinned, readings, otherwise=False))


def _flags(pinned: Any, number: int, *, otherwise: bool) -> NDArray[np.bool_]:
    flags = np.full(number, otherwise) if pinned is None else np.asarray(pinned)
    if flags.shape != (number,) or (flags.size and flags.dtype != bool):
        raise SettingsError(f"pinned is True or False for each of {number} samples, or None")
    return flags.astype(bool)


def integers(values: Any, number: int, what: str, of: str) -> Ints:
    """So many whole numbers, one ``what`` for each ``of``. Raises SettingsError for anything else."""
    array = np.asarray(values)
    if array.shape != (number,):
        raise SettingsError(f"there must be one {what} for each {of}, {number} in all, got the shape {[*array.shape]}")
    if array.size and array.dtype.kind not in "iu":
        raise SettingsError(f"{what}s are integers, not {array.dtype}")
    return array.astype(np.int64)
