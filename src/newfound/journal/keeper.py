"""A journal and its book, kept together: what is answered is committed, what others commit is followed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import zip_longest
from typing import Any, TypeVar

import numpy as np

from newfound.errors import JournalError, SettingsError
from newfound.journal import editing, undoing
from newfound.journal.answers import Entered, Image, packed_rows
from newfound.journal.book import Book, lookup_in, stored
from newfound.journal.due import Due
from newfound.journal.entering import Aside, Block, Decided, Earlier, decide, runners_up_for
from newfound.journal.journal import Journal
from newfound.journal.rebuilding import without_forgotten
from newfound.journal.rows import EventRow, SightingRow, unpack_sighting
from newfound.journal.state import to_bytes
from newfound.journal.writing import Writer

T = TypeVar("T")

BLOCK = 256  # sightings committed together, where nobody says how many
NOWHERE = -1  # the place of a sighting that was forgotten
_WORTH_A_SNAPSHOT = 500  # sightings that the next opening would have to decide on again
_TRUSTING = 16  # blocks after which nobody else is expected to write: what is then void costs reading the book again


class Keeper:
    """Keeps the book of a journal: any number of them, in any number of processes, may share one journal.

    A change is decided under the journal's lock, after all that others have committed was taken in, and is committed
    before it is answered. If that fails, nothing has changed: the book is read again from the journal. What is refused
    before it is begun costs no such reading.

    Raises:
        SettingsError: An actor that is called newfound, as what the dictionary does by itself is.
    """

    def __init__(self, journal: Journal, *, actor: str | None = None) -> None:
        self.journal = journal
        self._actor = editing.person(actor)
        self._book: Book | None = None
        self._due = Due()
        self._model: int | None = None  # who answers
        self._alone = 0  # blocks entered here since anybody else wrote
        self._refusal: SettingsError | None = None  # of what was not begun
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
            decided = decide(book, images, half, None if again else _earlier(writer, images), self._answers_as())
            self._write(writer, decided, self._state_when_due(book, decided))
        return decided.answers

    def enter_all(
        self, images: Sequence[Image], readings: Any, *, block: int = BLOCK, again: bool = False
    ) -> list[Entered]:
        """As `enter` with one block after the other, each committed by itself; returns when all are. It is faster.

        While a block is being written and committed the next is decided on, as long as nobody else writes. That is
        written only if the journal then holds nothing else; else it is decided on anew. If a commit fails, all blocks
        before it are in the journal, where giving the images again finds them.
        """
        readings, model = np.asarray(readings, np.float32), self._answers_as()
        blocks = [Block(images[at : at + block], readings[at : at + block]) for at in range(0, len(images), block)]
        answers: list[Entered] = []
        earlier = None  # of the images of the block that is decided on next
        with self._lock, self._or_read_again(), Aside() as aside:
            for here, after, then in zip_longest(blocks, blocks[1:], blocks[2:]):
                decided, state = aside.take(), None
                if decided is not None:
                    state = self._state_when_due(self.current, decided)
                    if after is not None:
                        aside.start(self.current, after, decided, earlier, model)
                with self._taking_up(decided, aside) as (writer, book, stands):
                    if decided is None or not stands:
                        earlier = None if again else _earlier(writer, here.images)
                        decided = decide(book, here.images, here.half, earlier, model)
                        state = self._state_when_due(book, decided)
                        if after is not None and self._alone >= _TRUSTING:
                            earlier = None if again else _earlier(writer, after.images)
                            aside.start(book, after, decided, earlier, model)
                    self._write(writer, decided, state)
                    if then is not None and aside.busy:
                        then.prepare()
                        earlier = None if again else _earlier(writer, then.images)
                answers += decided.answers
        return answers

    def predict(self, readings: Any, cut: float | None = None) -> list[SightingRow]:
        """What images would be told as things stand, or with another cut, as rows without a number."""
        half = stored(readings)
        with self._lock:
            book = self.book
            before = book.dictionary.threshold
            try:
                book.dictionary.threshold = before if cut is None else cut
                answered = book.predict(half.astype(np.float32), runners_up_for(book))
            finally:
                book.dictionary.threshold = before
            rows = packed_rows([Image(None)] * len(half), half, answered, self._answers_as(), -1)
        return [unpack_sighting(row) for row in rows]

    def edit(self, make: Callable[[Book, Writer], editing.Edit]) -> EventRow:
        """Commit what a person does; ``make`` says what, from the book as it is under the lock."""
        with self._writing() as (writer, book):
            with self._not_begun():
                kind, details = make(book, writer)
            event = self._event(book, kind, details)
            # What is so already, as after a merge of one, is nothing to record or to undo; an undo always is.
            if details["changes"] or kind == undoing.UNDONE:
                places = undoing.apply_and_note(book, event, lookup_in(writer, book))
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

    def undo(self, event: int | None = None, *, by: str | None = None) -> EventRow:
        """Take an edit back: the one with this number, else the last one, or the last of an actor; see `undoing`."""

        def make(book: Book, writer: Writer) -> editing.Edit:
            edit = undoing.to_take_back(writer, event, by)
            undoing.must_come_apart(writer, book.catalogue, edit)
            left = [row.number for row in writer.sightings(editing.placed(edit)) if row.feature is not None]
            return editing.undo(edit, writer.place(left))

        return self.edit(make)

    def forget(self, numbers: Iterable[int]) -> EventRow:
        """Erase all that tells of images, for good; the book is rebuilt from what is left, and every id stays valid.

        What the dictionary had learnt from them is unlearnt; a category they were alone in stays, without images.

        Raises:
            SettingsError: No numbers, one that no sighting has, or one that is forgotten already.
        """
        left = self.journal.sweep()  # of what somebody forgot who was killed before the log was overwritten
        with self._writing() as (writer, book):
            with self._not_begun():
                gone = self._to_forget(writer, numbers, left)
            writer.forget(gone)
            event = self._event(book, "forgotten", {"sightings": gone})
            self._book = without_forgotten(book, writer)
            writer.append((), (event,), dict.fromkeys(gone, (NOWHERE, True)))
            writer.snapshot(self._book.to_bytes(), genesis=True)
            self._due.kept(self._book.position.sightings)
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
            if book is not None and book.position.sightings - self._due.at >= _WORTH_A_SNAPSHOT:
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
    def _taking_up(self, decided: Decided | None, aside: Aside) -> Iterator[tuple[Writer, Book, bool]]:
        """As `_writing`, for what may have been decided on before the lock was held: whether it stands, in addition."""
        if decided is None:
            with self._writing() as (writer, book):
                yield writer, book, False
            return
        with self.journal.writing() as writer:
            stands = writer.position() == decided.start
            if not stands:
                aside.drop()
                self._book, self._alone = None, 0  # it is ahead of a journal that went another way
            yield writer, self.current if stands else self._caught_up(writer), stands

    def _write(self, writer: Writer, decided: Decided, state: dict[str, Any] | None) -> None:
        writer.append_packed(decided.rows, decided.events, decided.answered.places)
        if state is not None:
            start = time.perf_counter()
            writer.snapshot(to_bytes(state))
            self._due.saving = time.perf_counter() - start
        self._alone += 1

    @contextmanager
    def _or_read_again(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            if error is not self._refusal:
                self._book = None  # it may be ahead of what was committed
            raise
        finally:
            self._refusal = None

    @contextmanager
    def _not_begun(self) -> Iterator[None]:
        """What is refused inside the block has changed nothing, so that the book stands."""
        try:
            yield
        except SettingsError as refusal:
            self._refusal = refusal
            raise

    def _caught_up(self, reader: Journal | Writer) -> Book:
        if self._book is None:
            self._book = self._from_snapshot(reader)
        if reader.position() == self._book.position:
            return self._book
        self._alone = 0
        sightings, events = reader.tail(self._book.position)
        while any(event.kind == "forgotten" for event in events):  # the book was rebuilt without what was forgotten
            self._book = self._from_snapshot(reader)
            sightings, events = reader.tail(self._book.position)
        start = time.thread_time()
        self._book.fold(sightings, events, lookup_in(reader, self._book))
        self._due.decided += time.thread_time() - start
        return self._book

    def _from_snapshot(self, reader: Journal | Writer) -> Book:
        snapshot = reader.latest_snapshot()
        self._due.kept(snapshot.position.sightings)
        return Book.from_bytes(snapshot.state)

    def _named(self, writer: Writer, numbers: Iterable[int]) -> list[SightingRow]:
        numbers, count = sorted(set(numbers)), writer.position().sightings
        for number in numbers:
            if not 0 <= number < count:
                raise SettingsError(f"there is no sighting {number} in {self.journal.name}.")
        return writer.sightings(numbers)

    def _to_forget(self, writer: Writer, numbers: Iterable[int], left: bool) -> list[int]:
        rows = self._named(writer, numbers)
        for row in rows:
            if row.forgotten:
                but = " SQLite's log still holds some of it, as others are reading: try again without them." * left
                raise SettingsError(f"sighting {row.number} has been forgotten already.{but}")
        if not rows:
            raise SettingsError("name the images to forget.")
        return [row.number for row in rows]

    def _state_when_due(self, book: Book, decided: Decided) -> dict[str, Any] | None:
        """What to keep as a snapshot, if it is time for one after this was decided."""
        if not decided.images:  # of what was seen before nothing will be decided again
            return None
        self._due.decided += decided.seconds
        if self._due.now:
            self._due.kept(self.journal.snapshot_position().sightings)  # another writer may have left one
        if not self._due.now:
            return None
        self._due.kept(book.position.sightings)
        return book.state()

    def _event(self, book: Book, kind: str, details: dict[str, Any]) -> EventRow:
        return EventRow(book.position.events, book.position.sightings, kind, self._actor, time.time(), details)

    def _answers_as(self) -> int:
        """The id of the model that answers."""
        if self._model is None:
            self._model = self.journal.model().id
        return self._model


def _earlier(writer: Writer, images: Sequence[Image]) -> Earlier:
    """The first sightings of the images that were seen before, by their content."""
    return {**writer.find([image.content for image in images if image.content is not None])}
