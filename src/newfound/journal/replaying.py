"""The journal played again: to check it, to ask what another cut would have found, to go back in time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

import numpy as np

from newfound.discovery.decisions import Decisions
from newfound.errors import JournalError
from newfound.journal.book import Book, decided_on, in_order, lookup_in
from newfound.journal.journal import Journal
from newfound.journal.rows import NEWFOUND, EventRow, Position, SightingRow, Snapshot

_CHUNK = 2_000  # sightings held at a time


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
    """Replay from the genesis, compare every answer and event, and the state with that of the newest snapshot.

    What others write meanwhile is left for the next time.
    """
    newest, end = journal.latest_snapshot(), journal.position()
    book = Book.from_bytes(journal.genesis().state)
    start = book.position
    told = Verified(skipped=start.sightings)
    events = journal.events(since=start.events, limit=max(0, end.events - start.events))
    own = iter([event for event in events if event.actor == NEWFOUND])
    for kind, piece in _pieces(journal, events, start.sightings, newest.position.sightings, end.sightings):
        if kind == "sightings":
            answered = book.observe(decided_on(piece, book.dictionary.dimension))
            out = answered.decisions
            columns = (out.category.tolist(), answered.categories, out.created.tolist(), out.score.tolist())
            for row, *again in zip(piece, *columns, strict=True):
                if [row.part, row.category, row.created, row.score] != again:
                    told.differences.append(
                        f"sighting {row.number} was answered with category {row.category} at {row.score}; replayed, it "
                        f"gets {again[1]} at {again[3]}"
                    )
            told.differences += _improbable(piece, out)
            for change in answered.changes:
                event = next(own, None)
                if event is None or (event.at, event.kind, event.details) != tuple(
                    change[name] for name in ("at", "kind", "details")
                ):
                    told.differences.append(f"replayed, {change} happens; the journal has {event}")
            told.sightings += len(piece)
        else:
            book.apply(piece, lookup_in(journal, book))
            told.events += 1
        if book.position == newest.position and book.to_bytes() != newest.state:
            told.differences.append(f"the snapshot at {book.position} is not what the journal adds up to")
    told.differences += [f"the journal has {event}, which does not happen when replayed" for event in own]
    return told


def _improbable(rows: Sequence[SightingRow], out: Decisions) -> Iterator[str]:
    """The probabilities that are not as they were answered."""
    for name, again in (("probability", out.probability), ("new_probability", out.new_probability)):
        values = [None] * len(rows) if again is None else again.tolist()
        for row, value in zip(rows, values, strict=True):
            before = getattr(row, name)
            # Machines differ in the last bits of an exponential, which nothing is decided on.
            if before != value and (before is None or value is None or not math.isclose(before, value, rel_tol=1e-9)):
                yield f"sighting {row.number} was answered with {name} {before}; replayed, it gets {value}"


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


def _pieces(journal: Journal, events: list[EventRow], start: int, *stops: int) -> Iterator[tuple[str, Any]]:
    """What follows a position, in the journal's order and in pieces that fit into memory; one ends at every stop."""
    told = [event for event in events if event.actor != NEWFOUND]
    for stop in stops:
        for rows in journal.stream(start, stop, _CHUNK):
            after = rows[-1].number + 1
            yield from in_order(rows, [event for event in told if start <= event.at < after], start)
            start = after
    yield from in_order((), [event for event in told if event.at >= start], start)
