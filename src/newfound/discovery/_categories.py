"""Who is who among the rows of a dictionary: ids, members, and the aliases that merges leave behind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from newfound.discovery._edits import Given, Moves, given, moves
from newfound.discovery._exact import Ints
from newfound.discovery._features import one_row
from newfound.discovery._rows import Rows
from newfound.discovery.decisions import Decisions
from newfound.errors import SettingsError


class Categories:
    """The categories behind the rows 0, 1, ... of a dictionary, in ascending order of their ids.

    The known ones come first and have the ids 0 .. ``known`` - 1. Every new one gets the next id; no id is
    used twice.
    """

    def __init__(self, known: int) -> None:
        self.known = known
        self.next_id = known
        self.ids = Rows(np.arange(known, dtype=np.int64))
        self.counts = Rows(np.zeros(known, np.int64))
        self.aliases: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self.ids)

    def enter(self, rows: Ints, created: NDArray[np.bool_]) -> Ints:
        """Counts samples as members of ``rows``, or of new categories if ``created``; returns their rows."""
        founded = int(created.sum())
        chosen = rows.copy()
        chosen[created] = np.arange(len(self), len(self) + founded)
        self.ids.append(np.arange(self.next_id, self.next_id + founded))
        self.next_id += founded
        self.counts.append(np.zeros(founded, np.int64))
        np.add.at(self.counts.view, chosen, 1)
        return chosen

    def places(self, ids: Ints) -> Ints:
        """The rows of living ids, and of those to come if they are founded one after the other."""
        later = ids - self.next_id
        return np.where(later < 0, np.searchsorted(self.ids.view, ids), len(self) + later)

    def move(self, moves: Moves) -> None:
        """Counts sightings as members of another category, a new one if they found it."""
        if moves.founds:
            self.ids.append(np.array([self.next_id]))
            self.counts.append(np.zeros(1, np.int64))
            self.next_id += 1
        np.subtract.at(self.counts.view, moves.sources, 1)
        self.counts.view[moves.target] += len(moves.sources)

    def resolve(self, ids: Any) -> Ints:
        """The ids under which ``ids`` live on; -1 stays -1.

        Raises:
            SettingsError: Not integers, or an id that was never given out.
        """
        array = np.asarray(ids)
        if array.size and array.dtype.kind not in "iu":
            raise SettingsError(f"category ids are integers, not {array.dtype}")
        unheard = array[(array < -1) | (array >= self.next_id)]
        if unheard.size:
            raise SettingsError(f"there is no category {unheard[0]}: ids so far are 0 to {self.next_id - 1}")
        names, inverse = np.unique(array, return_inverse=True)
        homes = np.array([self._home(name) for name in names.tolist()], np.int64)
        return homes[inverse].reshape(array.shape)

    def _home(self, name: int) -> int:
        while name in self.aliases:
            name = self.aliases[name]
        return name

    def _aliases_end_with_the_living(self) -> bool:
        """Whether no chain of aliases is a circle or leads to an id that was never given out."""
        leads_to = np.arange(self.next_id)
        for old, new in self.aliases.items():
            if not 0 <= new < self.next_id:
                return False
            leads_to[old] = new
        for _ in range(len(self.aliases).bit_length()):  # each round doubles the steps taken at once
            leads_to = leads_to[leads_to]
        return bool(np.isin(leads_to, self.ids.view).all())

    def rows_to_merge(self, ids: Iterable[int]) -> list[int]:
        """The distinct rows that ``ids`` live on under, ascending.

        Raises:
            SettingsError: No ids, ids that were never given out, or two known categories.
        """
        if not isinstance(ids, Iterable):
            raise SettingsError(f"merge needs the ids of several categories, such as [7, 9], not {ids!r}")
        homes = np.unique(self.resolve(list(ids)))
        if not homes.size or homes[0] < 0:
            raise SettingsError("merge needs the ids of the categories to make one of")
        if homes[1:].size and homes[1] < self.known:
            raise SettingsError(f"categories {homes[0]} and {homes[1]} are both known: known ones stay apart")
        return np.searchsorted(self.ids.view, homes).tolist()

    def unite(self, groups: list[list[int]]) -> NDArray[np.bool_]:
        """Merges each group of rows into its first, one group after the other; returns which rows are left."""
        ids, counts = self.ids.view, self.counts.view
        left = np.ones(len(self), bool)
        for home, *others in groups:
            counts[home] += counts[others].sum()
            left[others] = False
            self.aliases.update(dict.fromkeys(ids[others].tolist(), int(ids[home])))
        self.ids.keep(left)
        self.counts.keep(left)
        return left

    def state(self) -> dict[str, Any]:
        """Everything, as arrays (copies) and plain values."""
        return {
            "known": self.known,
            "next_id": self.next_id,
            "ids": self.ids.view.copy(),
            "counts": self.counts.view.copy(),
            "aliases": np.array(list(self.aliases.items()), np.int64).reshape(-1, 2),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Categories:
        """The categories whose :meth:`state` this is.

        Raises:
            SettingsError: The parts do not fit together.
        """
        categories = cls(int(state["known"]))
        categories.next_id = int(state["next_id"])
        categories.ids = Rows(np.asarray(state["ids"], np.int64))
        categories.counts = Rows(np.asarray(state["counts"], np.int64))
        aliases = np.asarray(state["aliases"], np.int64).reshape(-1, 2)
        categories.aliases = dict(zip(*aliases.T.tolist(), strict=True))
        ids = categories.ids.view
        given = np.append(ids, [*categories.aliases, -1])
        if not (
            np.array_equal(ids[: categories.known], np.arange(categories.known))
            and (np.diff(ids) > 0).all()
            and len(ids) == len(categories.counts)
            and np.array_equal(np.sort(given), np.arange(-1, categories.next_id))
            and categories._aliases_end_with_the_living()
        ):
            raise SettingsError("the ids, counts and aliases of this state contradict each other: it is damaged")
        return categories


class Register(ABC):
    """What a dictionary says of its categories, and is told of them, whatever they are made of."""

    _categories: Categories
    _seen = 0

    def __len__(self) -> int:
        """The number of living categories, known and discovered."""
        return len(self._categories)

    @property
    def known(self) -> int:
        """The number of known categories."""
        return self._categories.known

    @property
    def seen(self) -> int:
        """How many samples have been observed."""
        return self._seen

    @property
    def ids(self) -> Ints:
        """The ids of the living categories, ascending: those of ``counts``."""
        return self._categories.ids.frozen

    @property
    def counts(self) -> Ints:
        """How many observed samples each living category has, its founder included; a read-only view."""
        return self._categories.counts.frozen

    @property
    def aliases(self) -> dict[int, int]:
        """For every id that was merged away or dissolved, the one it lives on under (or did, before that one went)."""
        return dict(self._categories.aliases)

    @overload
    def resolve(self, ids: int) -> int: ...
    @overload
    def resolve(self, ids: Sequence[int] | NDArray[Any]) -> Ints: ...
    def resolve(self, ids: Any) -> Any:
        """The ids under which categories live on: their own, or after merges another's; -1 stays -1.

        Raises:
            SettingsError: An id that was never given out.
        """
        homes = self._categories.resolve(ids)
        return homes if homes.ndim else int(homes)

    def reassign(
        self, numbers: Any, features: Any, sources: Any, target: int | None = None, pinned: Any = None
    ) -> int:
        """Puts sightings where a person says that they belong, and returns the id of that category.

        Members move, and evidence as far as the dictionary learns from members. A discovered category that is left
        without any dissolves: its id becomes an alias of the target. A known one stays. Sightings that belong to the
        target already stay as they are.

        Args:
            numbers: ``[m]``: which ones, counted from 0 over the whole stream, in any order.
            features: ``[m, D]``: what they were decided on.
            sources: ``[m]``: the ids that they belong to now, or aliases of these.
            target: The id that they belong to, or an alias of it. None: they found a category, which gets the next id.
            pinned: ``[m]``: whether a person has put the sighting there, rather than taken back that somebody had put
                it elsewhere; None: all of them.

        Raises:
            FeatureError: Features that :meth:`observe` would refuse; nothing has changed then.
            SettingsError: Lengths that do not fit, repeated numbers or unseen ones, ids that were never given out, or
                sources that cannot be right; nothing has changed then.
        """
        readings = self._read(features)
        told = moves(self._categories, self._seen, len(readings), numbers, sources, target, pinned)
        survivor = self._categories.next_id if told.founds else int(self.ids[told.target])
        self._rehome(told, readings[told.order])
        return survivor

    def admit(self, features: Any, categories: Any, pinned: Any = None) -> None:
        """Takes in samples whose answers are given, in order, as if they had been observed and answered so.

        Nothing merges or is reconsidered on the way. How samples are cut into calls changes nothing.

        Args:
            features: ``[n, D]``.
            categories: ``[n]``: the id of each. The next id founds its category.
            pinned: ``[n]``: whether a person has put the sample there; None: nobody has.

        Raises:
            FeatureError: Features that :meth:`observe` would refuse; nothing has changed then.
            SettingsError: Lengths that do not fit, or an id that is neither living nor the next; nothing has changed.
        """
        readings = self._read(features)
        self._take_in(readings, given(self._categories, len(readings), categories, pinned))
        self._seen += len(readings)

    def learn_one(self, x: Any, y: int | None = None) -> int:
        """Takes in one sample of a stream and returns its category's id, as river's estimators learn.

        Args:
            x: What :meth:`observe` takes a row of: D numbers, or river's ``{name: number}``, whose values are taken in
                the order in which it holds them.
            y: The id that it belongs to, as a person says; the next id founds a category. None: it is decided on.

        Raises:
            FeatureError: A sample that :meth:`observe` would refuse; nothing has changed then.
            SettingsError: An id that was never given out and is not the next; nothing has changed then.
        """
        row = one_row(x)
        if y is None:
            return int(self.observe(row).category[0])
        home = y if y == self._categories.next_id else self.resolve(y)
        self.admit(row, [home], [True])
        return home

    def predict_one(self, x: Any) -> int:
        """The id that one sample would be answered with as things stand, -1 if it would found a category; nothing
        changes. ``x`` and errors are those of :meth:`learn_one`."""
        return int(self.predict(one_row(x)).category[0])

    def __copy__(self) -> Register:
        return self.copy()  # a shallow one would share the arrays that grow, and each would damage the other

    @abstractmethod
    def copy(self) -> Register:
        """An independent dictionary that is the same in every bit."""

    @abstractmethod
    def observe(self, features: Any, runners_up: int = 0) -> Decisions:
        """Decides on each reading in turn, and founds a category where none is near enough."""

    @abstractmethod
    def predict(self, features: Any, runners_up: int = 0) -> Decisions:
        """What each reading alone would be told as things stand; nothing changes."""

    @abstractmethod
    def _read(self, features: Any) -> NDArray[Any]:
        """Features as the checked rows that the dictionary works with."""

    @abstractmethod
    def _rehome(self, moves: Moves, readings: NDArray[Any]) -> None:
        """Applies :meth:`reassign`; the readings are in the order of the moves."""

    @abstractmethod
    def _take_in(self, readings: NDArray[Any], given: Given) -> None:
        """Applies :meth:`admit`, without counting what was seen."""

    def _repr(self, details: str) -> str:
        discovered = len(self) - self.known
        return f"{type(self).__name__}({self.known} known and {discovered} discovered categories, {details})"
