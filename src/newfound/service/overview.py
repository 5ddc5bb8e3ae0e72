"""What there is to tell of categories without asking the journal for their sightings: kept up to date as it grows."""

from __future__ import annotations

import threading
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from newfound.journal.journal import Journal
from newfound.journal.keeper import NOWHERE
from newfound.journal.rows import NEWFOUND, EventRow, Position
from newfound.journal.undoing import UNDONE
from newfound.service.courtesy import Courtesy
from newfound.service.doubting import is_borderline
from newfound.service.scanning import Facts, joined, of_rows, scan

EXEMPLARS = 6
RECENT = 50  # sightings of a category that its doubt is a share of


@dataclass
class PartFacts:
    """What is known of the sightings in one part of the dictionary: the oldest, the newest, how doubtful of late."""

    first: int | None = None  # its number
    first_time: float | None = None
    last_time: float | None = None
    recent: deque[bool] = field(default_factory=lambda: deque(maxlen=RECENT))
    exemplars: list[int] = field(default_factory=list)

    def add(self, facts: Facts) -> None:
        """Take in sightings, one at least, that are newer than all before."""
        if self.first is None:
            self.first, self.first_time = int(facts.number[0]), float(facts.time[0])
        self.last_time = float(facts.time[-1])
        self.recent.extend(facts.borderline[-RECENT:].tolist())
        self.exemplars += facts.number[: EXEMPLARS - len(self.exemplars)].tolist()


class Overview:
    """The facts of every part, and the numbers of those sightings that people look for.

    The first `catch_up` reads all facts of the journal once, which takes seconds for a million; later ones read what
    is new. Those who ask in the meantime get the numbers that have been read so far, and `of_parts` looks for itself.

    Attributes:
        parts: the facts of parts that have any sighting; empty until the first look is complete.
        position: how much of the journal has been taken in.
        created, doubtful: the numbers of sightings that founded a category, and that are below the cut.
        borderline: those worth a second look that no person has decided on.
        decided: sightings that a person has put where they are.
    """

    def __init__(self, journal: Journal, margin: float, courtesy: Courtesy) -> None:
        self._journal, self._margin, self._courtesy = journal, margin, courtesy
        self._turn = threading.Lock()  # one thread reads the journal
        self.lock = threading.Lock()  # held for moments, to read or change what is below
        self._begin()

    def _begin(self) -> None:
        self.parts: dict[int, PartFacts] = {}
        self._early: dict[int, PartFacts] = {}  # those asked for before the first look was complete
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
        if at_first:  # also if an earlier look came to no end
            with self.lock:
                self._begin()
        looked: list[Facts] = []
        for facts, stop in scan(self._journal, self.position.sightings, now.sightings, self._margin):
            with self.lock:
                self._note(facts)
                if not at_first:
                    _add(self.parts, facts)
                self.position = Position(stop, self.position.events)
            looked.append(facts)
            if at_first:
                self._courtesy.stand_back()
        for event in events:
            self._follow(event)
        parts: dict[int, PartFacts] = {}
        if at_first and looked:  # the facts tell where everything is now
            _add(parts, joined(looked))
        elif not at_first:
            for part in sorted(self._touched(events)):
                parts[part] = self._read(part)
        with self.lock:
            self.parts.update(parts)
            self._early.clear()
            self.borderline = [number for number in self.borderline if number not in self.decided]
            self.position = now

    def of_parts(self, parts: Iterable[int]) -> list[PartFacts]:
        """The facts of those of the parts that have any; as long as the first look lasts, they are read for these."""
        if self.complete:
            with self.lock:
                return [self.parts[part] for part in parts if part in self.parts]
        early = [self._early.get(part) or self._early.setdefault(part, self._read(part)) for part in parts]
        return [facts for facts in early if facts.first is not None]

    def _note(self, facts: Facts) -> None:
        """Keep the numbers that people look for."""
        self.created += facts.number[facts.created].tolist()
        self.doubtful += facts.number[facts.doubtful].tolist()
        self.borderline += [n for n in facts.number[facts.borderline].tolist() if n not in self.decided]

    def _follow(self, event: EventRow) -> None:
        """What a person has decided on is no longer in doubt, unless it is taken back."""
        if event.actor == NEWFOUND:
            return
        if event.kind in ("moved", "split"):
            self._moves[event.number] = event.details["sightings"]
            with self.lock:
                self.decided.update(event.details["sightings"])
        elif event.kind == UNDONE and event.details["event"] in self._moves:
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
        now = set(self._journal.place(placed).values()) if placed else set()
        return (parts | now) - {NOWHERE}

    def _read(self, part: int) -> PartFacts:
        """The facts of a part as the journal has them: the oldest sightings and the newest, by index."""
        oldest = self._journal.page([part], limit=EXEMPLARS)
        newest = self._journal.page([part], limit=RECENT, newest_first=True)[::-1]
        facts = PartFacts()
        if oldest:
            facts.add(of_rows(oldest, part, self._margin))
            facts.last_time = newest[-1].time
            facts.recent = deque((is_borderline(row, self._margin) for row in newest), maxlen=RECENT)
        return facts


def _add(parts: dict[int, PartFacts], facts: Facts) -> None:
    for part, mine in facts.by_part():
        parts.setdefault(part, PartFacts()).add(mine)


def _holds(numbers: list[int], number: int) -> bool:
    at = bisect_left(numbers, number)
    return at < len(numbers) and numbers[at] == number
