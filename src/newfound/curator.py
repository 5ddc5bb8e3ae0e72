"""What people do with what was discovered: look at categories, name, merge, split, move, undo, forget.

It needs the journal and nothing else: no model, no images.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from newfound._arguments import whole, whole_or_none
from newfound.datasets import item_name
from newfound.errors import JournalError, SettingsError
from newfound.images import content_of
from newfound.journal import editing, undoing
from newfound.journal.book import Book
from newfound.journal.journal import Journal
from newfound.journal.keeper import Keeper
from newfound.journal.rows import EventRow, SightingRow
from newfound.journal.writing import Writer
from newfound.remote_files import is_url
from newfound.sightings import Category, Sighting

if TYPE_CHECKING:
    from newfound.naming import Proposal

EXEMPLARS = 8  # images shown of each category


class Curator:
    """The categories of a journal, for people: what each edit does is committed before it returns, and can be undone.

    Args:
        journal: what was opened with :meth:`Journal.open`, and is not empty.
        actor: who renames, merges and moves, and undoes what was done in that name; without it, the user's name.

    Attributes:
        last_edit: the number of the event that the last edit made here is, for `undo`; None if there was nothing to
            change.
    """

    def __init__(self, journal: Journal, *, actor: str | None = None) -> None:
        if journal.empty:
            raise JournalError(f"{journal.name} is empty: nothing has been discovered with it yet.")
        self.keeper = Keeper(journal, actor=actor)
        self.last_edit: int | None = None
        self._named = actor  # the user's name tells nobody apart: a service has one for all who use it
        self._items: dict[int, Any] = {}  # images that were given as objects, by number: some of each category
        self._shown: Counter[int] = Counter()  # how many of each those are

    def categories(self, *, merged: bool = False) -> list[Category]:
        """All living categories by id; with `merged`, also those that live on under another id."""
        with self.keeper.still() as book:
            counts = book.catalogue.counts(book.dictionary)
            chosen = book.catalogue.entries if merged else book.catalogue.living()
            return [self._category(book, number, counts.get(number, 0)) for number in chosen]

    def category(self, category: int) -> Category:
        """A category by id; a merged one is followed to where it lives now."""
        with self.keeper.still() as book:
            number = book.catalogue.resolve(category)
            return self._category(book, number, book.catalogue.counts(book.dictionary)[number])

    def sightings(self, category: int | None = None, *, limit: int | None = None, offset: int = 0) -> list[Sighting]:
        """What the journal holds, in order: all of it, or what belongs to a category now."""
        limit, offset = whole_or_none(limit, "limit"), whole(offset, "offset")
        if category is not None:
            rows = self.keeper.rows(category, limit=limit, offset=offset)
        else:
            stop = None if limit is None else offset + limit
            rows = list(chain.from_iterable(self.keeper.journal.stream(offset, stop, features=False)))
        return self._told(rows)

    def stream(self, *, chunk: int = 1000) -> Iterator[Sighting]:
        """All that the journal holds, in order, as `sightings` gives it, with at most `chunk` in memory at once."""
        for rows in self.keeper.journal.stream(chunk=whole(chunk, "chunk", 1), features=False):
            yield from self._told(rows)

    def standing(self, sightings: Iterable[Sighting]) -> list[int | None]:
        """Where sightings live now, after all that was moved and merged since they were answered.

        Args:
            sightings: what `observe` has given; those with an error have no category.
        """
        given = list(sightings) if isinstance(sightings, Iterable) else [sightings]
        if wrong := [one for one in given if not isinstance(one, Sighting)]:
            raise SettingsError(f"{wrong[0]!r} is no sighting: give those that `observe` returned.")
        numbers = [sighting.number for sighting in given]
        now = iter(self.keeper.standing([number for number in numbers if number is not None]))
        return [None if number is None else next(now) for number in numbers]

    def rename(self, category: int, name: str) -> Category:
        """Give a category a name of one's own."""
        self._edit(lambda book, _: editing.rename(book.catalogue, category, name))
        return self.category(category)

    def merge(self, categories: Iterable[int]) -> Category:
        """Make one category of several: the known one, else the oldest, lives on; all ids stay valid.

        Each keeps its place in the search, so that what looks like any of them is recognised.
        """
        event = self._edit(lambda book, _: editing.merge(book.catalogue, categories))
        return self.category(event.details["category"])

    def split(self, category: int, images: Iterable[Any]) -> Category:
        """Make a new category of some images of one.

        Args:
            images: sightings, their numbers, or images: paths, or what else can be observed.
        """
        numbers = self._numbers(images)

        def make(book: Book, writer: Writer) -> editing.Edit:
            places = self.keeper.places(writer, numbers)
            return editing.split(book.catalogue, places, category, writer.pinned(places))

        return self.category(self._edit(make).details["category"])

    def move(self, images: Iterable[Any], category: int) -> Category:
        """Say that images belong to a category; they stay there. See `split` for what names an image.

        Of images that are there already it says that they are right, which is an edit too, unless it was said before.
        """
        numbers = self._numbers(images)

        def make(book: Book, writer: Writer) -> editing.Edit:
            home = book.catalogue.resolve(category)  # refuses an id that was never given out
            places = self.keeper.places(writer, numbers)
            kind, details = editing.move(book.catalogue, places, home, writer.pinned(places))
            if undoing.decided(writer, places) and book.catalogue.stay(places.values(), home):
                details["changes"] = []
            return kind, details

        return self.category(self._edit(make).details["category"])

    def ignore(self, *categories: int, on: bool = True) -> None:
        """Mark categories as junk, which takes in more of its kind; or, with `on` False, no longer."""
        self._edit(lambda book, _: editing.flag(book.catalogue, categories, "ignored", on))

    def promote(self, *categories: int, on: bool = True) -> None:
        """Mark named discoveries as classes to be taught when the run is continued; or no longer."""
        self._edit(lambda book, _: editing.flag(book.catalogue, categories, "promoted", on))

    def undo(self, event: int | None = None) -> EventRow:
        """Take back one edit: rename, merge, split, move, ignore or promote. Again: the one before it.

        Args:
            event: the number of the edit (`last_edit`, `events`). Without it, the last edit in the name of `actor`;
                where none was given, the last one, whoever made it.

        Raises:
            InTheWay: A later edit that stands has to do with the same images or categories, and has to be taken back
                first; `newfound.journal.undoing` says which do.
            SettingsError: There is no such edit, or it has been taken back already; there is nothing to undo.
        """
        return self.keeper.undo(event, by=self._named if event is None else None)

    def events(self, *, limit: int | None = None) -> list[EventRow]:
        """All that happened to categories, oldest first: by people, and by the dictionary itself."""
        return self.keeper.journal.events(limit=whole_or_none(limit, "limit"))

    def propose_names(self, vocabulary: str | os.PathLike[str] | Iterable[str], **options: Any) -> list[Proposal]:
        """Names for discovered categories out of a list of words, by CLIP; changes nothing: `newfound.naming.propose`.

        `newfound.naming.give_names` gives categories the names that are sure enough.
        """
        from newfound.naming import propose

        return propose(self, vocabulary, **options)

    def forget(self, images: Iterable[Any], *, also: Callable[[list[bytes]], None] | None = None) -> EventRow:
        """Erase images from the journal for good: their names, features and answers. Every id stays valid.

        What was learnt from them is unlearnt. This cannot be undone; see `split` for what names an image. One that was
        entered several times is forgotten each time.

        Args:
            also: erases what else is kept of contents that no other sighting has, given by their hashes. Called
                first: as long as the journal has an image, giving it again finishes what was interrupted.
        """
        numbers = self._numbers(images, every=True)
        if also is not None:
            also(self._contents_only_of(numbers))
        event = self.keeper.forget(numbers)
        for number in numbers:
            self._items.pop(number, None)
        return event

    def close(self) -> None:
        """Close the journal. Nothing is lost without it, but the next opening may take longer."""
        self.keeper.close()

    def __enter__(self) -> Curator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _edit(self, make: Callable[[Book, Writer], editing.Edit]) -> EventRow:
        event = self.keeper.edit(make)
        self.last_edit = event.number if event.details["changes"] else None
        return event

    def _told(self, rows: Sequence[SightingRow]) -> list[Sighting]:
        """Sightings as they stand now."""
        now = self.keeper.standing([row.number for row in rows])
        name = self.keeper.book.catalogue.name
        return [Sighting.of(r, self._item(r), name(c), category=c) for r, c in zip(rows, now, strict=True)]

    def _category(self, book: Book, number: int, count: int) -> Category:
        entry = book.catalogue.entries[number]
        return Category(
            id=number,
            name=book.catalogue.name(number),
            origin="known" if entry.known else "discovered",
            count=count,
            merged_into=entry.under,
            ignored=entry.ignored,
            promoted=entry.promoted,
            _show=lambda: self._exemplars(number),
        )

    def _exemplars(self, category: int) -> list[Any]:
        """Images of a category, of the first ones those that there is something to show of."""
        items = (self._item(row) for row in self.keeper.rows(category, limit=8 * EXEMPLARS))
        return [item for item in items if item is not None][:EXEMPLARS]

    def _item(self, row: SightingRow) -> Any:
        if row.forgotten:  # perhaps by another process
            self._items.pop(row.number, None)
        return self._items.get(row.number, row.image)

    def _numbers(self, images: Iterable[Any], *, every: bool = False) -> list[int]:
        """The numbers of sightings, given as such, as sightings, or as images: their first ones, or `every` one."""
        if isinstance(images, (str, bytes, os.PathLike, Sighting, int)) or not isinstance(images, Iterable):
            images = [images]
        numbers: list[int] = []
        for image in images:
            if isinstance(image, Sighting) and image.number is not None:
                numbers.append(image.number)
            elif isinstance(image, int | np.integer):
                numbers.append(int(image))
            else:
                numbers += self._numbers_of(image)[: None if every else 1]
        return numbers

    def _contents_only_of(self, numbers: Sequence[int]) -> list[bytes]:
        journal, named = self.keeper.journal, set(numbers)
        contents = {row.content for row in journal.sightings(numbers) if row.content is not None}
        return sorted(contents - {row.content for row in journal.alike(contents) if row.number not in named})

    def _numbers_of(self, image: Any) -> list[int]:
        content, name = content_of(image), reference(image) or item_name(image, 0)
        found = self.keeper.journal.alike([content]) if content is not None else []
        rows = found or self.keeper.journal.named([name])
        if not rows:
            raise SettingsError(
                f"{name} is not in {self.keeper.journal.name}: give the path that it was observed under, or its number "
                "(`newfound categories RUN show ID` has both), or observe it first."
            )
        return [row.number for row in rows]


def reference(item: Any) -> str | None:
    """What a journal calls an image: its URL or whole path, or where a picture in memory says it is from, if any."""
    if is_url(item):
        return str(item)
    if isinstance(item, (str, os.PathLike)):
        return os.path.abspath(os.fsdecode(item))
    source = getattr(item, "filename", None)
    return source if isinstance(source, str) and source else None
