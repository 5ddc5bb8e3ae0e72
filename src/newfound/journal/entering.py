"""A block of images decided on, ready to be written: what a book is told and answers, without a database."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from newfound.discovery import _torch
from newfound.journal.answers import RUNNERS_UP, Entered, Image, packed_rows
from newfound.journal.book import Answered, Book, Readings, stored
from newfound.journal.rows import CONTENT, NEWFOUND, EventRow, Packed, Position, SightingRow

Earlier = dict[bytes, SightingRow | Packed]  # sightings of contents


@dataclass
class Block:
    """Images, and what was read off each."""

    images: Sequence[Image]
    readings: Readings

    @cached_property
    def half(self) -> NDArray[np.float16]:
        """The readings as they will be stored."""
        return stored(self.readings)

    def prepare(self) -> None:
        """Do beforehand what deciding on the block begins with."""
        self.half  # noqa: B018  (kept from now on)


@dataclass
class Decided:
    """What a book said to a block. The book has gone on; the journal has not, until this is written and committed.

    Rows and answers are made when they are asked for: by the thread that writes, while another decides on what is next.

    Attributes:
        start: how much the journal has to hold for this to be what it would be told: no more and no less.
        images, half: what is new in the block, and `fresh` where in it.
        again: where in the block the other images are; the same image before, or where in the block that is.
        answered: what the book said to what is new, and `model` who answers.
        seconds: of the processor that deciding took.
    """

    start: Position
    images: Sequence[Image]
    half: NDArray[np.float16]
    fresh: list[int]
    again: dict[int, int | SightingRow | Packed]
    answered: Answered
    model: int
    seconds: float

    @cached_property
    def rows(self) -> list[Packed]:
        """The sightings to be appended."""
        return packed_rows(self.images, self.half, self.answered, self.model, self.start.sightings)

    @cached_property
    def events(self) -> list[EventRow]:
        """What the dictionary did by itself, to be appended."""
        now, first = time.time(), self.start.events
        return [
            EventRow(first + i, change["at"], change["kind"], NEWFOUND, now, change["details"])
            for i, change in enumerate(self.answered.changes)
        ]

    @property
    def answers(self) -> list[Entered]:
        """For every image of the block, its new row or that of the same image before."""
        answers = list(map(Entered, self.rows, repeat(False)))
        if not self.again:
            return answers
        answer_of = dict(zip(self.fresh, answers, strict=True))
        for i, of in self.again.items():
            answer_of[i] = Entered(answer_of[of].told if isinstance(of, int) else of, True)
        return [answer_of[i] for i in range(len(answer_of))]

    def among(self, images: Sequence[Image]) -> Earlier:
        """The new rows of contents that are those of other images, too."""
        contents = {image.content for image in self.images}.intersection(image.content for image in images)
        if not contents - {None}:  # nearly always
            return {}
        return {row[CONTENT]: row for row in self.rows if row[CONTENT] is not None}


class Aside:
    """Decides on a block in a thread of its own, while the one before it is being written.

    Until it is taken or dropped, the book belongs to that thread.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1)
        torch = _torch.module()
        if torch is not None:  # one thread: a team of them would wait for the core that writes
            threads = torch.get_num_threads()
            self._thread.submit(torch.set_num_threads, 1).result()
            self._thread.submit(torch.get_num_threads).result()  # a thread's number counts from when it first asks
            torch.set_num_threads(threads)  # what other threads begin with has changed too
        self._next: Future[Decided] | None = None

    @property
    def busy(self) -> bool:
        """Whether there is something to take."""
        return self._next is not None

    def start(self, book: Book, block: Block, before: Decided, earlier: Earlier | None, model: int) -> None:
        """Decide on the block that follows ``before``; ``earlier`` as for `decide`, perhaps without those of before."""
        if earlier is not None:
            earlier = before.among(block.images) | earlier
        self._next = self._thread.submit(lambda: decide(book, block.images, block.half, earlier, model))

    def take(self) -> Decided | None:
        """What was decided last, when it is; None if nothing was. Raises what deciding on it raised."""
        future, self._next = self._next, None
        return None if future is None else future.result()

    def drop(self) -> None:
        """Let go of what is being decided, and wait until the book is free."""
        future, self._next = self._next, None
        if future is not None:
            future.exception()

    def __enter__(self) -> Aside:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown()


def decide(
    book: Book,
    images: Sequence[Image],
    half: NDArray[np.float16],
    earlier: Earlier | None,
    model: int,
) -> Decided:
    """Decide on images in order; the book takes them in.

    Args:
        half: the readings as they will be stored.
        earlier: the sightings of contents that are in the journal, which are not entered again; None: all are.
        model: the id of who answers.
    """
    start, began = book.position, time.thread_time()
    fresh, again = _told_apart(images, earlier)
    if again:
        images, half = [images[i] for i in fresh], half[fresh]
    answered = book.observe(half.astype(np.float32), runners_up_for(book))
    return Decided(start, images, half, fresh, again, answered, model, time.thread_time() - began)


def runners_up_for(book: Book) -> int:
    """How many runners-up to ask for: parts of one category count once, so more where a person has merged some."""
    return RUNNERS_UP + (4 if book.catalogue.merged else 0)


def _told_apart(
    images: Sequence[Image], earlier: Earlier | None
) -> tuple[list[int], dict[int, int | SightingRow | Packed]]:
    """The images to enter; and for each other one the earlier sighting of its content, or its place in the block."""
    contents = [image.content for image in images]
    if earlier is None or (earlier.keys().isdisjoint(contents) and len(set(contents)) == len(contents)):
        return list(range(len(images))), {}
    fresh: list[int] = []
    again: dict[int, int | SightingRow | Packed] = {}
    first: dict[bytes, int] = {}  # where in this block a content comes first
    for index, content in enumerate(contents):
        if content is not None and content in earlier:
            again[index] = earlier[content]
        elif content is not None and first.setdefault(content, index) != index:
            again[index] = first[content]
        else:
            fresh.append(index)
    return fresh, again
