"""A block of images decided on, ready to be written: what a book is told and answers, without a database."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from newfound.journal.answers import RUNNERS_UP, Entered, Image, rows_of
from newfound.journal.book import Answered, Book
from newfound.journal.rows import NEWFOUND, EventRow, Position, SightingRow


@dataclass(frozen=True)
class Decided:
    """What a book said to a block. The book has gone on; the journal has not, until this is written and committed.

    Attributes:
        start: how much the journal has to hold for this to be what it would be told: no more and no less.
        rows, events, places: what is to be appended.
        answers: for every image of the block, its new row or that of the same image before.
    """

    start: Position
    rows: list[SightingRow]
    events: list[EventRow]
    places: dict[int, tuple[int, bool]]
    answers: list[Entered]


def decide(
    book: Book,
    images: Sequence[Image],
    half: NDArray[np.float16],
    earlier: Mapping[bytes, SightingRow] | None,
    model: int,
) -> Decided:
    """Decide on images in order; the book takes them in.

    Args:
        half: the readings as they will be stored.
        earlier: the sightings of contents that are in the journal, which are not entered again; None: all are.
        model: the id of who answers.
    """
    start = book.position
    fresh, again = _told_apart(images, earlier)
    if len(fresh) < len(images):
        half = half[fresh]
    answered = book.observe(half.astype(np.float32), runners_up_for(book))
    new = rows_of([images[i] for i in fresh], half, answered, book.catalogue, model, start.sightings)
    row_of: dict[int, SightingRow] = dict(zip(fresh, new, strict=True))
    answers = [
        Entered(row_of[i], repeated=False) if i in row_of
        else Entered(row_of[of] if isinstance(of := again[i], int) else of, repeated=True)
        for i in range(len(images))
    ]  # fmt: skip
    return Decided(start, new, _events(answered, start.events), answered.places, answers)


def runners_up_for(book: Book) -> int:
    """How many runners-up to ask for: parts of one category count once, so more where a person has merged some."""
    return RUNNERS_UP + (4 if book.catalogue.merged else 0)


def _told_apart(
    images: Sequence[Image], earlier: Mapping[bytes, SightingRow] | None
) -> tuple[list[int], dict[int, int | SightingRow]]:
    """The images to enter; and for each other one the earlier sighting of its content, or its place in the block."""
    if earlier is None:
        return list(range(len(images))), {}
    fresh: list[int] = []
    again: dict[int, int | SightingRow] = {}
    first: dict[bytes, int] = {}  # where in this block a content comes first
    for index, image in enumerate(images):
        content = image.content
        if content is not None and content in earlier:
            again[index] = earlier[content]
        elif content is not None and first.setdefault(content, index) != index:
            again[index] = first[content]
        else:
            fresh.append(index)
    return fresh, again


def _events(answered: Answered, first: int) -> list[EventRow]:
    now = time.time()
    return [
        EventRow(first + i, change["at"], change["kind"], NEWFOUND, now, change["details"])
        for i, change in enumerate(answered.changes)
    ]
