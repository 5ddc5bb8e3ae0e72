"""The bookkeeping of dictionaries in which a category may own several rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from newfound.discovery._categories import Categories, Register
from newfound.discovery._edits import integers
from newfound.discovery._exact import Ints
from newfound.discovery._rows import Rows
from newfound.errors import SettingsError


class Owned(Register):
    """Categories that own the rows 0, 1, ... of a search; what a row is and how it is searched, heirs say."""

    def _own(self, owners: Any, rows: int, categories: Categories) -> None:
        """Begins with these categories and the ids that own the rows.

        Raises:
            SettingsError: Not one living category for each row, or a discovered one without any row.
        """
        self._categories = categories
        self._owners = Rows(_living(owners, rows, categories.ids.view))
        if not np.isin(self.ids[self.known :], self.owners).all():
            raise SettingsError("a discovered category of this state owns nothing: it is damaged")

    def _add_rows(self, number: int) -> None:
        """Gives that many new rows to the categories that are about to be founded, one each."""
        first = self._categories.next_id
        self._owners.append(np.arange(first, first + number))

    def _enter(self, ids: Ints, created: NDArray[np.bool_]) -> Ints:
        """Counts samples as members of ``ids``, or of new categories if ``created``; returns their ids.

        Samples may be members of what samples before them found.
        """
        chosen = self._categories.enter(self._categories.places(ids), created)
        return self.ids[chosen]

    @property
    def owners(self) -> Ints:
        """The id of the category that each row belongs to, a read-only view."""
        return self._owners.frozen

    def merge(self, ids: Iterable[int]) -> int:
        """Makes one category of several, which owns all their rows, and returns the id it lives on under.

        That is the known one, else the lowest. An id merged before stands for the one it lives on under, so
        merging the same ids again changes nothing.

        Raises:
            SettingsError: No ids, an id that was never given out, or two known categories.
        """
        group = self._categories.rows_to_merge(ids)
        survivor = int(self.ids[group[0]])
        self._unite([group])
        return survivor

    def _unite(self, groups: list[list[int]]) -> None:
        """Merges each group of categories into its first, which then owns all their rows."""
        owners = self._owners.view
        for home, *others in groups:
            owners[np.isin(owners, self.ids[others])] = self.ids[home]
        self._categories.unite(groups)

    def _book(self) -> dict[str, Any]:
        """The part of a state that is kept here."""
        return {**self._categories.state(), "owners": self._owners.view.copy(), "seen": self._seen}


def categories_for(known: Any) -> Categories:
    """So many known categories.

    Raises:
        SettingsError: Not a number from 0 up.
    """
    if not isinstance(known, int | np.integer) or known < 0:
        raise SettingsError(f"known is the number of known categories, from 0 up, not {known!r}")
    return Categories(int(known))


def majority(groups: Ints, targets: Any) -> Ints:
    """For each of the groups 0, 1, ..., the class that most of its samples have, of equals the lowest.

    Args:
        groups: ``[n]``, the group of each sample; none is empty.
        targets: ``[n]``, the class of each sample.

    Raises:
        SettingsError: Targets that are not one class, 0 or above, for each sample.
    """
    classes = integers(targets, len(groups), "target", "sample")
    if (classes < 0).any():
        raise SettingsError(f"target {classes.min()}: classes are numbered from 0 up")
    pairs, votes = np.unique(np.stack([groups, classes], axis=1), axis=0, return_counts=True)
    order = np.lexsort((pairs[:, 1], -votes, pairs[:, 0]))
    group, winner = pairs[order].T
    return winner[np.diff(group, prepend=-1) > 0]


def _living(owners: Any, rows: int, ids: Ints) -> Ints:
    """``owners`` as an array, each one of the living ``ids``."""
    array = integers(owners, rows, "owner", "row")
    strangers = np.flatnonzero(~np.isin(array, ids))
    if strangers.size:
        row = strangers[0]
        raise SettingsError(f"row {row} belongs to category {array[row]}, but there is no such category")
    return array
