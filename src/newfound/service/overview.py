"""What there is to tell of categories without asking the journal for their sightings: kept up to date as it grows."""

from __future__ import annotations

import threading
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from newfound.journal.journal import Journal
from newfound.journal.keeper import NOWHERE
from newfound.journal.reading import Fact
from newfound.journal.rows import NEWFOUND, EventRow, Position
from newfound.service.doubting import is_borderline, is_doubtful

EXEMPLARS = 6
RECENT = 50  # sightings of a category that its doubt is a share of


@dataclass
class PartFacts:
    """What is known of the sightings in one part of the dictionary: the oldest, the newest, how doubtful of late."""

    first: Fact | None = None
    last_time: float | None = None
    recent: deque[bool] = field(default_factory=lambda: deque(maxlen=RECENT))
    exemplars: list[int] = field(default_factory=list)

    def add(self, fact: Fact, borderline: bool) -> None:
        """Take in a sighting that is newer than all before."""
        self.first = self.first or fact
        self.last_time = fact.time
        self.recent.append(borderline)
        if len(self.exemplars) < EXEMPLARS:
            self.exemplars.append(fact.number)


class Overview:
    """The facts of every part, and the numbers of those sightings that people look for.

    The first `catch_up` reads all facts of the journal once, which takes seconds for a million; later ones read what
    is new. Those who ask in the meantime get what has been read so far.

    Attributes:
        position: how much of the journal has been taken in.
        created, doubtful: the numbers of sightings that founded a category, and that are below the cut.
        borderline: those worth a second look that no person has decided on.
        decided: sightings that a person has put where they are.
    """

    def __init__(self, journal: Journal, margin: float) -> None:
        self._journal, self._margin = journal, margin
        self._turn = threading.Lock()  # one thread reads the journal
        self.lock = threading.Lock()  # held for moments, to read or change what is below
        self._begin()

    def _begin(self) -> None:
        self.parts: dict[int, PartFacts] = {}
        self.created: list[int] = []
        self.doubtful: list[int] = []
        self.borderline: list[int] = []
        self.decided: set[int] = set()
        self._moves: dict[int, list[int]] = {}  # of persons, by the event's number
        self.position = Position(0, 0)
        self.complete = False

    def catch_up(self) -> None:
        """Take in what is new; returns at once while another thread reads the journal for the first time."""
        if not self._turn.acquire(blocking=self.complete):
            return
        try:
            now = self._journal.position()
            if now != self.position:
                self._take_in(now)
            self.complete = True
        finally:
            self._turn.release()

    def _take_in(self, now: Position) -> None:
        events = self._journal.events(since=self.position.events)[: now.events - self.position.events]
        if self.complete and any(event.kind == "forgotten" for event in events):
            with self.lock:
                self._begin()
            events = self._journal.events()[: now.events]
        at_first = not self.complete
        for facts in self._journal.facts(self.position.sightings, now.sightings):
            with self.lock:
                for fact in facts:
                    self._add(fact)
                self.position = Position(facts[-1].number + 1, self.position.events)
        for event in events:
            self._follow(event)
        if not at_first:  # at first, the facts tell where everything is now
            for part in sorted(self._touched(events)):
                self._read_again(part)
        with self.lock:
            self.borderline = [number for number in self.borderline if number not in self.decided]
            self.position = now

    def _add(self, fact: Fact) -> None:
        if fact.score is None:  # it was forgotten
            return
        borderline = is_borderline(fact, self._margin)
        self.parts.setdefault(fact.part, PartFacts()).add(fact, borderline)
        if fact.created:
            self.created.append(fact.number)
        if is_doubtful(fact):
            self.doubtful.append(fact.number)
        if borderline and fact.number not in self.decided:
            self.borderline.append(fact.number)

    def _follow(self, event: EventRow) -> None:
        """What a person has decided on is no longer in doubt, unless it is taken back."""
        if event.actor == NEWFOUND:
            return
        if event.kind in ("moved", "split"):
            self._moves[event.number] = event.details["sightings"]
            with self.lock:
                self.decided.update(event.details["sightings"])
        elif event.kind == "undone" and event.details["event"] in self._moves:
            again = self._moves.pop(event.details["event"])
            rows = self._journal.sightings(again)
            still = {number for numbers in self._moves.values() for number in numbers}
            with self.lock:
                self.decided.difference_update(set(again) - still)
                for row in rows:
                    there = _holds(self.borderline, row.number)
                    if row.number not in self.decided and not there and is_borderline(row, self._margin):
                        insort(self.borderline, row.number)

    def _touched(self, events: Iterable[EventRow]) -> set[int]:
        """The parts that sightings have left or joined."""
        parts: set[int] = set()
        placed: set[int] = set()
        for event in events:
            parts.update(event.details["parts"] if event.actor == NEWFOUND else ())
            for change in event.details.get("changes", ()):
                if change["op"] == "place":
                    parts.update(change["sources"])
                    placed.update(change["sightings"])
        return (parts | set(self._journal.place(placed).values())) - {NOWHERE}

    def _read_again(self, part: int) -> None:
        """The facts of a part that sightings have left or joined out of order."""
        oldest = self._journal.page([part], limit=EXEMPLARS)
        newest = self._journal.page([part], limit=RECENT, newest_first=True)
        facts = PartFacts(exemplars=[row.number for row in oldest])
        if oldest:
            row = oldest[0]
            facts.first = Fact(row.number, part, row.created, row.score, row.cut, row.runners_up, row.time)
            facts.last_time = newest[0].time
            facts.recent.extend(is_borderline(row, self._margin) for row in reversed(newest))
        with self.lock:
            self.parts[part] = facts


def _holds(numbers: list[int], number: int) -> bool:
    at = bisect_left(numbers, number)
    return at < len(numbers) and numbers[at] == number
