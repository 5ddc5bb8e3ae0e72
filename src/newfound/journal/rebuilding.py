"""A book built anew from sightings whose categories are settled: after some are forgotten, or for another model.

Nothing is decided again. The dictionary that knows the classes takes the sightings in with the answers that stand, in
their order; ids, names, merges and what people moved stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from newfound.journal.book import Book, decided_on
from newfound.journal.catalogue import Catalogue
from newfound.journal.rows import Position, SightingRow
from newfound.journal.writing import Writer

Places = dict[int, tuple[int, bool]]  # of sightings: the part, and whether a person put it there


class Rebuilding:
    """Takes sightings in and gives the new book.

    Args:
        book: the one that stands, whose catalogue says which categories there are.
        taught: a dictionary that has seen nothing, with its catalogue.
        categories: the category of each known part of ``taught``, in the numbering of ``book``.
    """

    def __init__(self, book: Book, taught: Book, categories: Sequence[int]) -> None:
        self._old = book.catalogue
        self._resolve = book.dictionary.resolve
        self._dictionary = taught.dictionary
        self._catalogue = self._old.for_parts(categories)
        self._part_of: dict[int, int] = {}  # the new part of an old one
        for part, category in enumerate(categories):
            # What was promoted becomes one class with all that was merged into it; a class that was known is as it was.
            promoted = category in self._old and self._old.entries[category].promoted
            olds = self._old.parts(category) if promoted else self._old.founded_as(category)
            self._part_of |= dict.fromkeys(olds, part)
        self._absent: list[int] = []

    def admit(self, rows: Sequence[SightingRow], places: Mapping[int, int], pinned: Iterable[int]) -> Places:
        """Take in the next sightings; ``places``: the parts they are in. Those without a feature are absent.

        Returns where they are now.
        """
        present = [row for row in rows if row.feature is not None]
        self._absent += [row.number for row in rows if row.feature is None]
        olds = self._resolve(np.array([places[row.number] for row in present], np.int64))  # all at once: faster
        parts = [self._new_part(old) for old in olds.tolist()]
        stays = set(pinned)
        flags = np.array([row.number in stays for row in present], bool)
        if present:
            readings = decided_on(present, self._dictionary.dimension)
            self._dictionary.admit(readings, np.array(parts, np.int64), flags)
        return {row.number: (part, flag) for row, part, flag in zip(present, parts, flags.tolist(), strict=True)}

    def book(self, position: Position) -> Book:
        """The new book, at a position of the journal."""
        return Book(self._dictionary, self._catalogue, position, self._absent)

    def _new_part(self, old: int) -> int:
        if old not in self._part_of:
            self._part_of[old] = part = self._catalogue.next_part
            self._catalogue.found(part, self._old.owner(old))
        return self._part_of[old]


def without_forgotten(book: Book, writer: Writer) -> Book:
    """The book as it would be without the sightings that have no feature any more, after one more event.

    Where the others are now is written down, if it is another part than before: parts are numbered anew where some are
    gone. The cut stays: a person may have set it since the classes were taught.
    """
    taught = Book.from_bytes(writer.taught())
    taught.dictionary.threshold = book.dictionary.threshold
    rebuilding = Rebuilding(book, taught, book.catalogue.known_parts(book.dictionary))
    for rows in writer.stream():
        there = [row.number for row in rows if row.feature is not None]
        before, pinned = writer.place(there), writer.pinned(there)
        now = rebuilding.admit(rows, before, pinned)
        writer.append((), (), {n: place for n, place in now.items() if place != (before[n], n in pinned)})
    return rebuilding.book(Position(book.position.sightings, book.position.events + 1))


def known_categories(catalogue: Catalogue, classes: Sequence[str]) -> list[int]:
    """The categories that the classes of another run are: known or promoted ones of that name, else new ones.

    Of several with one name the known one counts. A new one is entered into the catalogue.
    """
    named = [(n, e) for n, e in catalogue.entries.items() if e.under is None and e.name is not None]
    by_name = {entry.name: number for number, entry in named if entry.promoted}
    by_name |= {entry.name: number for number, entry in named if entry.known}
    return [by_name[name] if name in by_name else catalogue.teach(name) for name in classes]
