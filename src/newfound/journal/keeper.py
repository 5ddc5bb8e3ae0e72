"""A journal and its book, kept together: what is answered is committed, what others commit is followed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from newfound.errors import JournalError, SettingsError
from newfound.journal import editing
from newfound.journal.answers import RUNNERS_UP, Entered, Image, rows_of
from newfound.journal.book import Answered, Book, lookup_in, stored
from newfound.journal.journal import Journal, Writer
from newfound.journal.rebuilding import Rebuilding
from newfound.journal.rows import NEWFOUND, EventRow, Position, SightingRow

T = TypeVar("T")

NOWHERE = -1  # the place of a sighting that was forgotten
_SNAPSHOT_EVERY = 5_000  # sightings, or as many as there are categories: the more of them, the longer a snapshot
_WORTH_A_SNAPSHOT = 500  # sightings that the next opening would have to decide on again


class Keeper:
    """Keeps the book of a journal: any number of them, in any number of processes, may share one journal.

    A change is decided under the journal's lock, after all that others have committed was taken in, and is committed
    before it is answered. If that fails, nothing has changed: the book is read again from the journal.

    Raises:
        SettingsError: An actor that is called newfound, as what the dictionary does by itself is.
    """

    def __init__(self, journal: Journal, *, actor: str | None = None) -> None:
        self.journal = journal
        self._actor = editing.person(actor)
        self._book: Book | None = None
        self._snapshot_at = 0
        self._model: int | None = None  # who answers
        self._lock = threading.RLock()

    @property
    def book(self) -> Book:
        """The book as the journal stands now."""
        with self._lock, self._or_read_again():
            return self._caught_up(self.journal)

    @property
    def current(self) -> Book:
        """The book as it was when the journal was last asked or written to, without asking again."""
        return self._book or self.book

    def enter(self, images: Sequence[Image], readings: Any, *, again: bool = False) -> list[Entered]:
        """Decide on images in order, and commit. One that was seen before is not entered again, unless ``again``."""
        half = stored(readings)
        with self._writing() as (writer, book):
            earlier = {} if again else writer.find([i.content for i in images if i.content is not None])
            fresh: list[int] = []
            first: dict[bytes, int] = {}  # where in this block a content comes first
            for index, image in enumerate(images):
                if image.content is None or again:
                    fresh.append(index)
                elif image.content not in earlier and image.content not in first:
                    first[image.content] = index
                    fresh.append(index)
            number, event = book.position.sightings, book.position.events
            answered = book.observe(half[fresh].astype(np.float32), self._runners_up(book))
            rows = self._rows([images[i] for i in fresh], half[fresh], answered, number)
            now = time.time()
            events = [
                EventRow(event + i, change["at"], change["kind"], NEWFOUND, now, change["details"])
                for i, change in enumerate(answered.changes)
            ]
            writer.append(rows, events, answered.places)
            self._snapshot_when_due(writer, book)
        entered = {index: Entered(row, repeated=False) for index, row in zip(fresh, rows, strict=True)}
        for index, image in enumerate(images):
            if index not in entered and image.content is not None:
                row = earlier[image.content] if image.content in earlier else entered[first[image.content]].row
                entered[index] = Entered(row, repeated=True)
        return [entered[index] for index in range(len(images))]

    def predict(self, readings: Any, cut: float | None = None) -> list[SightingRow]:
        """What images would be told as things stand, or with another cut, as rows without a number."""
        half = stored(readings)
        with self._lock:
            book = self.book
            before = book.dictionary.threshold
            try:
                book.dictionary.threshold = before if cut is None else cut
                answered = book.predict(half.astype(np.float32), self._runners_up(book))
            finally:
                book.dictionary.threshold = before
            return self._rows([Image(None)] * len(half), half, answered, -1)

    def edit(self, make: Callable[[Book, Writer], editing.Edit]) -> EventRow:
        """Commit what a person does; ``make`` says what, from the book as it is under the lock."""
        with self._writing() as (writer, book):
            kind, details = make(book, writer)
            event = EventRow(
                book.position.events, book.position.sightings, kind, self._actor, time.time(), details
            )  # fmt: skip
            # What is so already, as after a merge of one, is nothing to record or to undo; an undo always is.
            if details["changes"] or kind == editing.UNDONE:
                places = book.apply(event, lookup_in(writer, book))
                writer.append((), (event,), places)
        return event

    def places(self, writer: Writer, numbers: Iterable[int]) -> dict[int, int]:
        """The parts that sightings are in.

        Raises:
            SettingsError: A number that no sighting has, or one that was forgotten.
        """
        rows = self._named(writer, numbers)
        for row in rows:
            if row.feature is None:
                raise SettingsError(f"sighting {row.number} has been forgotten, or its image could not be read again.")
        return writer.place(row.number for row in rows)

    def undo(self) -> EventRow:
        """Take back what a person did last."""

        def make(book: Book, writer: Writer) -> editing.Edit:
            event = editing.last_undoable(writer.events(newest_first=True, derived=False))
            left = [row.number for row in writer.sightings(editing.placed(event)) if row.feature is not None]
            return editing.undo(event, writer.place(left))

        return self.edit(make)

    def forget(self, numbers: Iterable[int]) -> EventRow:
        """Erase all that tells of images, for good; the book is rebuilt from what is left, and every id stays valid.

        What the dictionary had learnt from them is unlearnt; a category they were alone in stays, without images.

        Raises:
            SettingsError: No numbers, one that no sighting has, or one that is forgotten already.
        """
        with self._writing() as (writer, book):
            rows = self._named(writer, numbers)
            for row in rows:
                if row.forgotten:
                    raise SettingsError(f"sighting {row.number} has been forgotten already.")
            if not rows:
                raise SettingsError("name the images to forget.")
            gone = [row.number for row in rows]
            writer.forget(gone)
            details = {"sightings": gone}
            event = EventRow(
                book.position.events, book.position.sightings, "forgotten", self._actor, time.time(), details
            )  # fmt: skip
            rebuilding = Rebuilding(book, Book.from_bytes(writer.taught()), book.catalogue.known_parts(book.dictionary))
            for some in writer.stream():
                there = [row.number for row in some if row.feature is not None]
                rebuilding.admit(some, writer.place(there), writer.pinned(there))
            self._book = rebuilding.book(Position(book.position.sightings, book.position.events + 1))
            writer.append((), (event,), rebuilding.places | dict.fromkeys(gone, (NOWHERE, True)))
            writer.snapshot(self._book.to_bytes(), genesis=True)
            self._snapshot_at = self._book.position.sightings
        return event

    def rows(self, category: int, **limits: Any) -> list[SightingRow]:
        """The sightings that belong to a category now, in the order of the stream."""
        with self._at_once(lambda book: self.journal.members(book.catalogue.parts(category), **limits)) as (_, rows):
            return rows

    def standing(self, numbers: Sequence[int]) -> list[int]:
        """The categories that sightings belong to now; of forgotten ones, what theirs lives on under."""
        with self._at_once(lambda _: self.journal.place(numbers)) as (book, places):
            resolve, of_part = book.catalogue.resolve, book.catalogue.of_part
            nowhere = [number for number in numbers if places[number] == NOWHERE]
            was_in = {row.number: resolve(row.category) for row in self.journal.sightings(nowhere)}
            return [was_in[n] if n in was_in else of_part(places[n]) for n in numbers]

    @contextmanager
    def still(self) -> Iterator[Book]:
        """The book as the journal stands now, which no other thread changes inside the block."""
        with self._lock:
            yield self.book

    @contextmanager
    def _at_once(self, ask: Callable[[Book], T]) -> Iterator[tuple[Book, T]]:
        """The book, and what the journal says: asked again if others have moved something in between."""
        with self._lock:
            while True:
                book = self.book
                told = ask(book)
                if self.journal.position().events == book.position.events:
                    break
            yield book, told

    def close(self) -> None:
        """Leave a snapshot for the next opening, where that saves time and can be done."""
        with self._lock:
            book = self._book
            if book is not None and book.position.sightings - self._snapshot_at >= _WORTH_A_SNAPSHOT:
                with suppress(JournalError), self._writing() as (writer, current):
                    writer.snapshot(current.to_bytes())
            self._book = None
            self.journal.close()

    @contextmanager
    def _writing(self) -> Iterator[tuple[Writer, Book]]:
        with self._lock, self._or_read_again():
            if self._book is None:
                self._caught_up(self.journal)  # what may take long holds nobody up
            with self.journal.writing() as writer:
                yield writer, self._caught_up(writer)

    @contextmanager
    def _or_read_again(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._book = None  # it may be ahead of what was committed
            raise

    def _caught_up(self, reader: Journal | Writer) -> Book:
        if self._book is None:
            self._book = self._from_snapshot(reader)
        sightings, events = reader.tail(self._book.position)
        while any(event.kind == "forgotten" for event in events):  # the book was rebuilt without what was forgotten
            self._book = self._from_snapshot(reader)
            sightings, events = reader.tail(self._book.position)
        if sightings or events:
            self._book.fold(sightings, events, lookup_in(reader, self._book))
        return self._book

    def _from_snapshot(self, reader: Journal | Writer) -> Book:
        snapshot = reader.latest_snapshot()
        self._snapshot_at = snapshot.position.sightings
        return Book.from_bytes(snapshot.state)

    def _named(self, writer: Writer, numbers: Iterable[int]) -> list[SightingRow]:
        numbers, count = sorted(set(numbers)), writer.position().sightings
        for number in numbers:
            if not 0 <= number < count:
                raise SettingsError(f"there is no sighting {number} in {self.journal.name}.")
        return writer.sightings(numbers)

    def _snapshot_when_due(self, writer: Writer, book: Book) -> None:
        every = max(_SNAPSHOT_EVERY, len(book.dictionary))
        if book.position.sightings - self._snapshot_at < every:
            return
        self._snapshot_at = writer.snapshot_position().sightings  # another writer may have left one
        if book.position.sightings - self._snapshot_at >= every:
            writer.snapshot(book.to_bytes())
            self._snapshot_at = book.position.sightings

    def _runners_up(self, book: Book) -> int:
        # Parts of one category count once: ask for more where a person has merged some.
        return RUNNERS_UP + (4 if book.catalogue.merged else 0)

    def _rows(
        self, images: Sequence[Image], half: NDArray[np.float16], answered: Answered, first: int
    ) -> list[SightingRow]:
        if self._model is None:
            self._model = self.journal.model().id
        return rows_of(images, half, answered, self.current.catalogue, self._model, first)
