"""Who is who: the categories that people know by their ids and names, and the parts of the dictionary behind them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from newfound.discovery.dictionary import Dictionary
from newfound.errors import JournalError, SettingsError

FLAGS = ("ignored", "promoted")


@dataclass
class Entry:
    """What is known of a category apart from its images.

    Attributes:
        name: The name it was taught or given; None as long as nobody gave one.
        known: Whether it was taught.
        under: The category it lives on under, after a merge or when its last image went there.
        ignored: Whether it holds what nobody wants to look at.
        promoted: Whether it is to be taught when the run is continued.
    """

    name: str | None
    known: bool
    under: int | None = None
    ignored: bool = False
    promoted: bool = False


class Catalogue:
    """Categories 0, 1, 2, ..., whose ids are never used again, and the category of every part.

    A part is an id of the dictionary. A category has one part, unless a person merged several: then each keeps its own
    place in the search, so that a male and a female mallard are both recognised as what they were merged to, and the
    merge can be undone without a trace.
    """

    def __init__(self, classes: Iterable[str]) -> None:
        self.entries = {number: Entry(name, known=True) for number, name in enumerate(classes)}
        self.taught = len(self.entries)
        self._category_of: list[int] = list(self.entries)  # of each part, as it was founded
        self._living: dict[int, int] = dict.fromkeys(self.entries, 1)  # how many parts a category was founded with live
        self._below: dict[int, set[int]] = {}  # the categories that live on directly under one
        self._gone: dict[int, int] = {}  # parts that left the dictionary, in that order, and the part each went to

    @property
    def next_id(self) -> int:
        return len(self.entries)

    @property
    def next_part(self) -> int:
        return len(self._category_of)

    @property
    def merged(self) -> bool:
        """Whether any category lives on under another."""
        return any(self._below.values())

    def __contains__(self, category: object) -> bool:
        return category in self.entries

    def resolve(self, category: int) -> int:
        """The id that a category lives on under.

        Raises:
            SettingsError: An id that was never given out.
        """
        try:
            while (under := self.entries[category].under) is not None:
                category = under
        except (KeyError, TypeError):  # a list, say, where one id is asked for
            given = repr(category) if isinstance(category, Iterable) else category
            raise SettingsError(f"there is no category {given}; ids go from 0 to {self.next_id - 1}.") from None
        return int(category)  # NumPy's whole numbers too, which JSON does not know

    def of_part(self, part: int) -> int:
        """The category that a part belongs to now: if it left the dictionary, that of the part it went to."""
        return self.resolve(self._category_of[self._heir(part)])

    def of_parts(self, parts: Iterable[int]) -> list[int]:
        """The categories that parts belong to now; -1 stays -1."""
        owners, gone = self._category_of, self._gone
        heirs = [self._heir(part) if part in gone else part for part in parts] if gone else parts
        founded = [owners[part] if part >= 0 else -1 for part in heirs]
        return [self.resolve(c) if c >= 0 else -1 for c in founded] if self.merged else founded

    def parts(self, category: int) -> list[int]:
        """All parts, living or not, whose sightings belong to a category (or what it lives on under)."""
        family = set(self._family(self.resolve(category)))
        return [part for part in range(self.next_part) if self._category_of[self._heir(part)] in family]

    def living_part(self, category: int) -> int | None:
        """The part that images moved to a category join: its own, else the oldest; None if none is left."""
        living = [part for part in self.parts(category) if part not in self._gone]
        own = [part for part in living if self._category_of[part] == category]
        return next(iter(own or living), None)

    def stay(self, parts: Iterable[int], category: int) -> bool:
        """Whether images in these parts would all stay in theirs if they were moved to a category."""
        target = self.living_part(category)
        return all(self._heir(part) == target for part in parts)

    def name(self, category: int) -> str:
        """The name of a category, or the one it goes by until it gets one."""
        return self.entries[category].name or f"new-{category - self.taught + 1}"

    def living(self) -> list[int]:
        """The categories that live under their own id, ascending."""
        return [category for category, entry in self.entries.items() if entry.under is None]

    def counts(self, dictionary: Dictionary) -> dict[int, int]:
        """How many sightings each living category has."""
        counts = dict.fromkeys(self.living(), 0)
        for part, count in zip(dictionary.ids.tolist(), dictionary.counts.tolist(), strict=True):
            counts[self.of_part(part)] += count
        return counts

    def found(self, part: int, category: int | None = None) -> int:
        """Enters a new part of the dictionary, as a new category or as a part of one."""
        if part != self.next_part:
            raise JournalError(f"part {part} cannot follow part {self.next_part - 1}: this is a fault in newfound.")
        if category is None:
            category = self.next_id
        if category == self.next_id:
            self.entries[category] = Entry(None, known=False)
        self._category_of.append(category)
        self._living[category] = self._living.get(category, 0) + 1
        return category

    def teach(self, name: str) -> int:
        """Enters a known category that has no part yet; returns its id."""
        category = self.next_id
        self.entries[category] = Entry(name, known=True)
        return category

    def for_parts(self, categories: Iterable[int]) -> Catalogue:
        """The same categories for a dictionary whose known parts are these ones; they are known from now on."""
        other = Catalogue(())
        other.taught = self.taught
        other.entries = {number: replace(entry) for number, entry in self.entries.items()}
        other._below = {number: set(below) for number, below in self._below.items()}
        for part, category in enumerate(categories):
            other.found(part, category)
            other.entries[category].known, other.entries[category].promoted = True, False
        return other

    def owner(self, part: int) -> int:
        """The category that a part, or the one it went to, was founded as, whatever that lives on under."""
        return self._category_of[self._heir(part)]

    def known_parts(self, dictionary: Dictionary) -> list[int]:
        """The categories of the parts that a dictionary was taught."""
        return self._category_of[: dictionary.known]

    def founded_as(self, category: int) -> list[int]:
        """The parts that were founded as a category."""
        return [part for part, owner in enumerate(self._category_of) if owner == category]

    def without_a_part(self, category: int, merged: Iterable[int]) -> list[int]:
        """Of a category and what was merged into it, those that would have no part if they stood alone."""
        families = {other: set(self._family(other)) for other in merged}
        families[category] = set(self._family(category)).difference(*families.values())
        return [one for one, family in families.items() if not any(self._living.get(c) for c in family)]

    def put_under(self, category: int, under: int | None) -> None:
        """Makes a category live on under another, or under its own id again."""
        entry = self.entries[category]
        if entry.under is not None:
            self._below[entry.under].discard(category)
        entry.under = under
        if under is not None:
            self._below.setdefault(under, set()).add(category)

    def stand_alone(self, category: int) -> None:
        """Makes a category live under its own id again, if it still has a part; else where its last one went."""
        self.put_under(category, None)
        family = set(self._family(category))
        if not any(self._living.get(c) for c in family):
            went = [part for part in self._gone if self._category_of[part] in family]
            home = self.of_part(went[-1]) if went else category
            self.put_under(category, None if home == category else home)

    def follow(self, dictionary: Dictionary) -> None:
        """Takes over what has left the dictionary: a category without a part lives on where its last one went.

        A name that a person gave outlives one that nobody did. Parts are followed in the order in which they left, so
        that it does not matter how often this is called.
        """
        for part, target in islice(dictionary.aliases.items(), len(self._gone), None):
            owner = self._category_of[part]
            home, goes_to = self.resolve(owner), self.of_part(target)
            self._gone[part] = target
            self._living[owner] -= 1
            if home == goes_to or any(self._living.get(c) for c in self._family(home)):
                continue
            self.put_under(home, goes_to)
            if self.entries[goes_to].name is None:
                self.entries[goes_to].name = self.entries[home].name

    def _heir(self, part: int) -> int:
        while part in self._gone:
            part = self._gone[part]
        return part

    def _family(self, category: int) -> Iterator[int]:
        waiting = [category]
        while waiting:
            yield (one := waiting.pop())
            waiting += self._below.get(one, ())

    def state(self) -> dict[str, Any]:
        """Everything, as arrays and plain values."""
        plain = Entry(None, known=False)
        told = {str(number): vars(entry).copy() for number, entry in self.entries.items() if entry != plain}
        return {
            "taught": self.taught,
            "categories": self.next_id,
            "entries": told,  # those of which there is anything to tell
            "category_of": np.array(self._category_of, np.int64),
            "gone": np.array(list(self._gone.items()), np.int64).reshape(-1, 2),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Catalogue:
        """The catalogue whose :meth:`state` this is."""
        self = cls(())
        told = state["entries"]
        self.entries = {
            number: Entry(**told[str(number)]) if str(number) in told else Entry(None, known=False)
            for number in range(state["categories"])
        }
        self.taught = state["taught"]
        self._category_of = state["category_of"].tolist()
        self._gone = dict(state["gone"].tolist())
        for part, owner in enumerate(self._category_of):
            self._living[owner] = self._living.get(owner, 0) + (part not in self._gone)
        for number, entry in self.entries.items():
            if entry.under is not None:
                self._below.setdefault(entry.under, set()).add(number)
        return self
