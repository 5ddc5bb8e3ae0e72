"""All categories at one moment, ready to be shown: made from the book in one go, so that readers hold no lock."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from newfound.curator import Curator
from newfound.journal.book import Book
from newfound.journal.rows import Position
from newfound.service.overview import EXEMPLARS, Overview, PartFacts
from newfound.service.problems import Problem

_COSTLY = 0.02  # seconds: a shelf that took longer may be shown a little longer
_LAG = 10  # so many times as long as it took


@dataclass(frozen=True)
class Shelf:
    """The categories of a moment.

    Attributes:
        categories: the living ones by id, each as the API tells it.
        home: for every id that was ever given out, the living one it is found under.
        parts: of each living category.
        owner: the living category of each part.
        first: the number of the first sighting of each category that has one.
        whole: whether it tells of all sightings; not while the journal is looked at for the first time.
    """

    position: Position
    cut: float
    categories: dict[int, dict[str, Any]]
    home: dict[int, int]
    parts: dict[int, list[int]]
    owner: list[int]
    first: dict[int, int]
    whole: bool

    def find(self, category: int) -> dict[str, Any]:
        """A category by any id it ever had. Raises Problem 404 for an id that was never given out."""
        if category not in self.home:
            raise Problem(404, f"there is no category {category}.")
        return self.categories[self.home[category]]

    def name(self, category: int | None) -> str | None:
        return None if category is None else self.find(category)["name"]


class Shelves:
    """Gives the newest shelf, and makes a new one when the journal has grown.

    With thousands of categories that takes longer than a request should, so that under load a shelf may be some
    tenths of a second old; what a person changed is always on it.
    """

    def __init__(self, curator: Curator, overview: Overview) -> None:
        self._curator, self._overview = curator, overview
        self._turn = threading.Lock()
        self._shelf: Shelf | None = None
        self._fresh_until = 0.0

    @contextmanager
    def still(self) -> Iterator[Book]:
        """The book, which does not change inside the block; to be held for moments."""
        with self._curator.keeper.still() as book:
            yield book

    def filled(self, shelf: Shelf, shown: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Categories of a shelf with what there is to tell of their sightings, looked up if it is not whole."""
        if shelf.whole:
            return list(shown)
        return [one | _seen(self._overview.of_parts(shelf.parts.get(one["id"], ()))) for one in shown]

    def now(self, *, fresh: bool = False) -> Shelf:
        """The categories as they stand; with `fresh`, however long that takes."""
        with self._turn:
            position = self._curator.keeper.journal.position()
            shelf = self._shelf
            if shelf is not None and shelf.position.events == position.events:
                same = shelf.whole and shelf.position.sightings == position.sightings
                if same or (not fresh and time.monotonic() < self._fresh_until):
                    return shelf
            start = time.monotonic()
            self._overview.catch_up()
            whole = self._overview.complete
            with self.still() as book, self._overview.lock:
                self._shelf = _put_up(book, self._overview.parts, whole)
            took = time.monotonic() - start
            self._fresh_until = time.monotonic() + (_LAG * took if took > _COSTLY else 0.0)
            return self._shelf


def _put_up(book: Book, facts: dict[int, PartFacts], whole: bool) -> Shelf:
    catalogue = book.catalogue
    owner = [catalogue.of_part(part) for part in range(catalogue.next_part)]
    parts: dict[int, list[int]] = {}
    for part, category in enumerate(owner):
        parts.setdefault(category, []).append(part)
    categories: dict[int, dict[str, Any]] = {}
    first: dict[int, int] = {}
    for number, count in catalogue.counts(book.dictionary).items():
        entry = catalogue.entries[number]
        there = [facts[part] for part in parts.get(number, ()) if part in facts]
        firsts = [some.first for some in there if some.first is not None]
        if firsts:
            first[number] = min(firsts)
        categories[number] = {
            "id": number,
            "name": catalogue.name(number),
            "origin": "known" if entry.known else "discovered",
            "count": count,
            "merged_into": entry.under,
            "ignored": entry.ignored,
            "promoted": entry.promoted,
            "named": entry.name is not None,
            **_seen(there),
        }
    home = {category: catalogue.resolve(category) for category in catalogue.entries}
    return Shelf(book.position, book.dictionary.threshold, categories, home, parts, owner, first, whole)


def _seen(there: Sequence[PartFacts]) -> dict[str, Any]:
    """What is told of the sightings of a category, whose parts have these facts."""
    recent = sum(len(some.recent) for some in there)
    return {
        "first_seen": min((some.first_time for some in there if some.first_time is not None), default=None),
        "last_seen": max((some.last_time for some in there if some.last_time is not None), default=None),
        "doubt": sum(sum(some.recent) for some in there) / recent if recent else None,
        "exemplars": sorted(number for some in there for number in some.exemplars)[:EXEMPLARS],
    }
