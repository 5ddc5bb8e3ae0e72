"""A journal and its book, kept together: what is answered is committed, what others commit is followed."""

from __future__ import annotations

import getpass
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from newfound.errors import SettingsError
from newfound.journal import editing
from newfound.journal.book import Answered, Book, Readings, decided_on, feature_bytes, stored
from newfound.journal.journal import Journal, Writer
from newfound.journal.rebuilding import Rebuilding
from newfound.journal.rows import NEWFOUND, EventRow, Position, SightingRow

_RUNNERS_UP = 2
NOWHERE = -1  # the place of a sighting that was forgotten
_SNAPSHOT_EVERY = 5_000  # sightings, or as many as there are categories: the more of them, the longer a snapshot
_WORTH_A_SNAPSHOT = 500  # sightings that the next opening would have to decide on again


@dataclass(frozen=True)
class Image:
    """An image to be entered: what to call it, and the hash of its content, if there is one."""

    name: str | None
    content: bytes | None = None


@dataclass(frozen=True)
class Entered:
    """A sighting in the journal; `repeated` if this very image was there before."""

    row: SightingRow
    repeated: bool


class Keeper:
    """Keeps the book of a journal: any number of them, in any number of processes, may share one journal.

    A change is decided under the journal's lock, after all that others have committed was taken in, and is committed
    before it is answered. If that fails, nothing has changed: the book is read again from the journal.
    """

    def __init__(self, journal: Journal, *, actor: str | None = None) -> None:
        self.journal = journal
        self._actor = actor or _user()
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
            places = book.apply(event, lookup_in(writer, book))
            writer.append((), (event,), places)
        return event

    def places(self, writer: Writer, numbers: Iterable[int]) -> dict[int, int]:
        """The parts that sightings are in.

        Raises:
            SettingsError: A number that no sighting has, or one that was forgotten.
        """
        numbers = sorted(set(numbers))
        rows = {row.number: row for row in writer.sightings(numbers)}
        for number in numbers:
            if number not in rows:
                raise SettingsError(f"there is no sighting {number} in {self.journal.name}.")
            if rows[number].feature is None:
                raise SettingsError(f"sighting {number} has been forgotten, or its image could not be read again.")
        return dict(writer.place(numbers))

    def undo(self) -> EventRow:
        """Take back what a person did last."""

        def make(book: Book, writer: Writer) -> editing.Edit:
            event = editing.last_undoable(
                event for event in writer.events(newest_first=True) if event.actor != NEWFOUND
            )
            left = [row.number for row in writer.sightings(editing.placed(event)) if row.feature is not None]
            return editing.undo(event, writer.place(left))

        return self.edit(make)

    def forget(self, numbers: Iterable[int]) -> EventRow:
        """Erase all that tells of images, for good; the book is rebuilt from what is left, and every id stays valid.

        What the dictionary had learnt from them is unlearnt; a category they were alone in stays, without images.
        """
        with self._writing() as (writer, book):
            gone = sorted(self.places(writer, numbers))
            writer.forget(gone)
            details = {"sightings": gone}
            event = EventRow(
                book.position.events, book.position.sightings, "forgotten", self._actor, time.time(), details
            )  # fmt: skip
            rebuilding = Rebuilding(book, Book.from_bytes(writer.taught()), book.catalogue.known_parts(book.dictionary))
            for rows in writer.stream():
                there = [row.number for row in rows if row.feature is not None]
                rebuilding.admit(rows, writer.place(there), writer.pinned(there))
            self._book = rebuilding.book(Position(book.position.sightings, book.position.events + 1))
            writer.append((), (event,), rebuilding.places | dict.fromkeys(gone, (NOWHERE, True)))
            writer.snapshot(self._book.to_bytes(), genesis=True)
            self._snapshot_at = self._book.position.sightings
        return event

    def rows(self, category: int, **limits: Any) -> list[SightingRow]:
        """The sightings that belong to a category now, in the order of the stream."""
        return self.journal.members(self.book.catalogue.parts(category), **limits)

    def standing(self, numbers: Sequence[int]) -> list[int]:
        """The categories that sightings belong to now; of forgotten ones, what theirs lives on under."""
        with self._lock:
            catalogue, places = self.book.catalogue, self.journal.place(numbers)
            nowhere = [number for number in numbers if places[number] == NOWHERE]
            was_in = {row.number: catalogue.resolve(row.category) for row in self.journal.sightings(nowhere)}
            return [was_in[n] if n in was_in else catalogue.of_part(places[n]) for n in numbers]

    def close(self) -> None:
        """Leave a snapshot for the next opening, where that saves time."""
        with self._lock:
            book = self._book
            if book is not None and book.position.sightings - self._snapshot_at >= _WORTH_A_SNAPSHOT:
                with self._writing() as (writer, current):
                    writer.snapshot(current.to_bytes())
            self.journal.close()

    @contextmanager
    def _writing(self) -> Iterator[tuple[Writer, Book]]:
        with self._lock, self._or_read_again(), self.journal.writing() as writer:
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
        if any(event.kind == "forgotten" for event in events):  # the book was rebuilt without what was forgotten
            self._book = self._from_snapshot(reader)
            sightings, events = reader.tail(self._book.position)
        if sightings or events:
            self._book.fold(sightings, events, lookup_in(reader, self._book))
        return self._book

    def _from_snapshot(self, reader: Journal | Writer) -> Book:
        snapshot = reader.latest_snapshot()
        self._snapshot_at = snapshot.position.sightings
        return Book.from_bytes(snapshot.state)

    def _snapshot_when_due(self, writer: Writer, book: Book) -> None:
        every = max(_SNAPSHOT_EVERY, len(book.dictionary))
        if book.position.sightings - self._snapshot_at >= every:
            writer.snapshot(book.to_bytes())
            self._snapshot_at = book.position.sightings

    def _runners_up(self, book: Book) -> int:
        # Parts of one category count once: ask for more where a person has merged some.
        return _RUNNERS_UP + (4 if book.catalogue.merged else 0)

    def _rows(
        self, images: Sequence[Image], half: NDArray[np.float16], answered: Answered, first: int
    ) -> list[SightingRow]:
        out, catalogue = answered.decisions, self.current.catalogue
        if self._model is None:
            self._model = self.journal.model().id
        now, model = time.time(), self._model
        sure, new = out.probability, out.new_probability
        columns = zip(
            images, out.category.tolist(), answered.categories, out.created.tolist(), out.score.tolist(),
            out.runners_up_category.tolist(), out.runners_up_score.tolist(), feature_bytes(half), strict=True,
        )  # fmt: skip
        return [
            SightingRow(
                number=first + i if first >= 0 else -1,
                image=image.name,
                content=image.content,
                part=part,
                category=category,
                created=created,
                score=score,
                cut=out.cut,
                probability=None if sure is None else float(sure[i]),
                new_probability=None if new is None else float(new[i]),
                runners_up=_distinct(catalogue.of_parts(others), scores, category),
                feature=feature,
                model=model,
                time=now,
            )
            for i, (image, part, category, created, score, others, scores, feature) in enumerate(columns)
        ]


def _distinct(categories: Sequence[int], scores: Sequence[float], answer: int) -> tuple[tuple[int, float], ...]:
    """The best runners-up, a category once, without the answer."""
    best: dict[int, float] = {}
    for category, score in zip(categories, scores, strict=True):
        if category >= 0 and category != answer:
            best.setdefault(category, score)
    return tuple(best.items())[:_RUNNERS_UP]


def lookup_in(reader: Journal | Writer, book: Book) -> Callable[[Sequence[int]], Readings]:
    """How a book looks the readings of older sightings up."""

    def lookup(numbers: Sequence[int]) -> Readings:
        rows: Mapping[int, SightingRow] = {row.number: row for row in reader.sightings(numbers)}
        return decided_on([rows[number] for number in numbers], book.dictionary.dimension)

    return lookup


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container's user may have no name
        return "someone"
