"""The journal played again: to check it, to ask what another cut would have found, to go back in time."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby, takewhile
from operator import attrgetter
from typing import Any

import numpy as np

from newfound.errors import JournalError
from newfound.journal.answers import Image, packed_rows
from newfound.journal.book import Answered, Book, decided_on, in_order, lookup_in, stored
from newfound.journal.entering import runners_up_for
from newfound.journal.journal import Journal
from newfound.journal.keeper import NOWHERE
from newfound.journal.rebuilding import Places
from newfound.journal.rows import NEWFOUND, Damaged, EventRow, Position, SightingRow, Snapshot, unpack_sighting

_CHUNK = 2_000  # sightings held at a time
_ROUNDED = ("probability", "new_probability")  # machines differ in the last bits; nothing is decided on these
_ANSWER = ("part", "category", "created", "score", "cut", *_ROUNDED, "runners_up", "runners_up_probability")


@dataclass
class Verified:
    """What a replay from the genesis came to.

    Attributes:
        sightings, events: how many were replayed.
        skipped: sightings before the genesis, which was rebuilt after some were forgotten or for another model.
        differences: what is not as the journal says; none if all is well.
    """

    sightings: int = 0
    events: int = 0
    skipped: int = 0
    differences: list[str] = field(default_factory=list)

    @property
    def fine(self) -> bool:
        return not self.differences


def verify(journal: Journal) -> Verified:
    """Replay from the genesis; compare every answer, event and place, and the state with that of the newest snapshot.

    Of sightings before the genesis it compares how many each category has. What cannot be replayed it does not see:
    names and hashes of images, times, and a journal whose end was cut off after its newest snapshot. What others write
    meanwhile is left for the next time; if they forget something, there is another genesis to start from. At what is
    damaged so that it cannot be read, it stops.
    """
    while True:
        genesis = journal.genesis()
        told = Verified(skipped=genesis.position.sightings)
        try:
            _verify(journal, genesis, told)
        except Damaged as error:
            told.differences.append(f"{error} What follows cannot be replayed.")
        except JournalError:  # what was forgotten just now cannot be replayed
            if journal.genesis().position == genesis.position:
                raise
            continue
        if journal.genesis().position == genesis.position:
            return told


def _verify(journal: Journal, genesis: Snapshot, told: Verified) -> None:
    newest, (end, places, tally) = journal.latest_snapshot(), journal.standing()
    book = Book.from_bytes(genesis.state)
    start = book.position
    events = journal.events(since=start.events, limit=end.events - start.events)
    own = iter([event for event in events if event.actor == NEWFOUND])
    moved: Places = {}
    stops = newest.position.sightings, end.sightings
    for kind, piece in _pieces(journal, events, start.sightings, *stops, blocks=True):
        if kind == "sightings":
            due = book.position.sightings
            if not piece or (piece[0].number, piece[-1].number) != (due, due + len(piece) - 1):
                told.differences.append(f"sightings are missing after {due} of them: what follows cannot be replayed")
                return
            answered, again = _answered_again(book, piece)
            told.differences += _otherwise(piece, again)
            for change in answered.changes:
                event = next(own, None)
                if event is None or (event.at, event.kind, event.details) != tuple(
                    change[name] for name in ("at", "kind", "details")
                ):
                    told.differences.append(f"replayed, {change} happens; the journal has {event}")
            moved |= answered.places
            told.sightings += len(piece)
        else:
            if (here := Position(piece.at, piece.number)) != book.position:
                told.differences.append(f"event {piece.number} came at {here}; replayed, it comes at {book.position}")
            moved |= book.apply(piece, lookup_in(journal, book))
            told.events += 1
        if book.position == newest.position and not _is(newest.state, book):
            told.differences.append(f"the snapshot at {book.position} is not what the journal adds up to")
    told.differences += [f"the journal has {event}, which does not happen when replayed" for event in own]
    told.differences += _misplaced(places, moved, start.sightings)
    if told.fine:  # else more of the same
        told.differences += _miscounted(book, tally)
    if told.fine and (book.position != end or newest.position > end):
        told.differences.append(
            f"the journal ends at {end} and its newest snapshot is of {newest.position}; replayed, it ends at "
            f"{book.position}"
        )


def _is(state: bytes, book: Book) -> bool:
    """Whether a snapshot is of a book, however the newfound that took it has spelled it."""
    now = book.to_bytes()
    try:
        return state == now or Book.from_bytes(state).to_bytes() == now
    except Exception:  # damaged bytes may come to anything
        return False


def _answered_again(book: Book, rows: Sequence[SightingRow]) -> tuple[Answered, list[SightingRow]]:
    """What the book says to a block of the journal, also as rows."""
    asked = runners_up_for(book)
    readings = decided_on(rows, book.dictionary.dimension)
    answered = book.observe(readings, asked)
    images = [Image(row.image, row.content) for row in rows]
    packed = packed_rows(images, stored(readings), answered, rows[0].model, rows[0].number)
    return answered, list(map(unpack_sighting, packed))


def _otherwise(rows: Sequence[SightingRow], again: Sequence[SightingRow]) -> Iterator[str]:
    """The answers that are not as they were given."""
    for row, other in zip(rows, again, strict=True):
        names = [name for name in _ANSWER if not _same(name, getattr(row, name), getattr(other, name))]
        if names:
            before, now = (", ".join(f"{name} {getattr(one, name)}" for name in names) for one in (row, other))
            yield f"sighting {row.number} was answered with {before}; replayed, it gets {now}"


def _same(name: str, before: Any, now: Any) -> bool:
    if name == "runners_up_probability":  # an older newfound wrote none
        return not before or (len(before) == len(now) and all(map(_close, before, now)))
    if before == now or name not in _ROUNDED or before is None or now is None:
        return bool(before == now)
    return _close(before, now)


def _close(before: float, now: float) -> bool:
    return math.isclose(before, now, rel_tol=1e-9)


def _misplaced(places: Places, moved: Places, start: int) -> Iterator[str]:
    """The places that are not as they were replayed; of sightings before the genesis only what moved since is known."""
    for number in sorted(moved.keys() | {number for number in places if number >= start}):
        there, now = places.get(number), moved.get(number)
        if there != now:
            told = [f"in part {p[0]}{' for good' * p[1]}" if p else "where it was answered" for p in (there, now)]
            yield f"sighting {number} is {told[0]}; replayed, it is {told[1]}"


def _miscounted(book: Book, tally: Mapping[int, int]) -> Iterator[str]:
    """The categories that have more or fewer sightings than the dictionary knows of; ``tally``: those of each part."""
    catalogue, there = book.catalogue, Counter[int]()
    for part, count in tally.items():
        there[catalogue.of_part(part) if 0 <= part < catalogue.next_part else NOWHERE] += count
    for category, count in catalogue.counts(book.dictionary).items():
        if there[category] != count:
            yield f"category {category} has {there[category]} sightings; replayed, it has {count}"


@dataclass(frozen=True)
class WhatIf:
    """What a stream would have come to with another cut."""

    cut: float
    sightings: int
    numbers: list[int]
    categories: list[int]  # as they stand at the end of the replay, by the numbers; only ids of this replay
    known: int  # ids below this are the known classes
    found: int  # distinct categories of the sightings, the known ones that were seen included
    discovered: int


def what_if(
    journal: Journal, cut: float | None = None, *, until: float | None = None, count: int | None = None
) -> WhatIf:
    """Decide on the recorded stream again, without what people did, from stored features alone.

    Args:
        cut: what to hold scores against; None for the one of the genesis.
        until: only sightings before this time (seconds since 1970).
        count: only so many sightings.

    Sightings that were forgotten are left out.
    """
    book = Book.from_bytes(journal.taught())
    if cut is not None:
        book.dictionary.threshold = cut
    numbers: list[int] = []
    given: list[np.ndarray] = []
    moved: dict[int, int] = {}
    for rows in journal.stream(0, count, _CHUNK):
        kept = [row for row in rows if row.feature is not None and (until is None or row.time < until)]
        answered = book.observe(decided_on(kept, book.dictionary.dimension))
        given.append(answered.decisions.category)
        moved |= {number: part for number, (part, _) in answered.places.items()}
        numbers += [row.number for row in kept]
    now = np.concatenate([np.empty(0, np.int64), *given])
    now[list(moved)] = list(moved.values())  # the replay numbers its sightings itself
    now = book.dictionary.resolve(now)
    known, distinct = book.dictionary.known, np.unique(now)
    return WhatIf(
        cut=float(book.dictionary.threshold),
        sightings=len(numbers),
        numbers=numbers,
        categories=now.tolist(),
        known=known,
        found=len(distinct),
        discovered=int((distinct >= known).sum()),
    )


def as_of(journal: Journal, until: float) -> Book:
    """The book as it was before a time (seconds since 1970), with what people had done by then.

    It ends before the first sighting or event of that time or later, in the journal's order, whatever the clocks of
    several writers say.

    Raises:
        JournalError: The journal was rebuilt later than that, after something was forgotten or for another model.
    """
    end, genesis = journal.position(), journal.genesis()
    book = Book.from_bytes(genesis.state)
    if _made(journal, genesis) >= until:
        raise JournalError(
            f"{journal.name} was rebuilt after {genesis.position.sightings} sightings, when something was forgotten or "
            "it was carried to another model: it cannot go back further than that."
        )
    events = journal.events(since=book.position.events, limit=max(0, end.events - book.position.events))
    for kind, piece in _pieces(journal, events, book.position.sightings, end.sightings):
        if kind == "event":
            if piece.time >= until:
                break
            book.apply(piece, lookup_in(journal, book))
            continue
        kept = list(takewhile(lambda row: row.time < until, piece))
        if kept:
            book.observe(decided_on(kept, book.dictionary.dimension))
        if len(kept) < len(piece):
            break
    return book


def _made(journal: Journal, genesis: Snapshot) -> float:
    """When a journal was rebuilt; one that never was began before everything."""
    if genesis.position == Position(0, 0):
        return -float("inf")
    times = [journal.model().time]
    times += [row.time for row in journal.sightings([genesis.position.sightings - 1])]
    if genesis.position.events:
        times += [event.time for event in journal.events(since=genesis.position.events - 1, limit=1)]
    return max(times)


def _pieces(
    journal: Journal, events: list[EventRow], start: int, *stops: int, blocks: bool = False
) -> Iterator[tuple[str, Any]]:
    """What follows a position, in the journal's order and in pieces that fit into memory; one ends at every stop.

    Args:
        blocks: sightings in the blocks that they were written in.
    """
    told = deque(event for event in events if event.actor != NEWFOUND)
    for stop in stops:
        chunks = journal.stream(start, stop, _CHUNK)
        for rows in _written_together(chunks) if blocks else chunks:
            after = rows[-1].number + 1
            between = []
            while told and told[0].at < after:
                between.append(told.popleft())
            yield from in_order(rows, between, start)
            start = after
    yield from in_order((), told, start)


def _written_together(chunks: Iterable[list[SightingRow]]) -> Iterator[list[SightingRow]]:
    """Sightings by block: those of one have one time. Which parts runners-up were of was looked up at a block's end."""
    for _, rows in groupby(chain.from_iterable(chunks), key=attrgetter("time")):
        yield list(rows)
