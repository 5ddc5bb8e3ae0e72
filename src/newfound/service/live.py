"""What happens, as it happens: a thread that follows the journal, and streams of events for pages."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool

from newfound.errors import JournalError
from newfound.journal.journal import Journal
from newfound.journal.rows import NEWFOUND, EventRow, Position, SightingRow
from newfound.journal.undoing import UNDONE
from newfound.service.courtesy import Courtesy
from newfound.service.overview import Overview

if TYPE_CHECKING:
    from newfound.service.core import Service
    from newfound.service.shelf import Shelf

log = logging.getLogger("newfound.service")

_POLL = 0.5  # seconds; others may write to the journal
_HEARTBEAT = 15.0
_TOGETHER = 200  # sightings told in one go
_FAR_BEHIND = 5000  # a page that missed more than this is told where things stand, and loads anew


class Follower:
    """Watches the journal's position, whoever writes to it, and wakes all who stream."""

    def __init__(self, journal: Journal, overview: Overview, courtesy: Courtesy) -> None:
        self._journal, self._overview, self._courtesy = journal, overview, courtesy
        self.position = Position(0, 0)
        self._wake = threading.Event()
        self.stopping = False
        self._streams: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()
        self._thread = threading.Thread(target=self._follow, name="newfound-follower", daemon=True)

    def start(self) -> None:
        self.position = self._journal.position()
        self._thread.start()

    def wake(self) -> None:
        """Something was committed here: tell it without waiting for the next look."""
        self._wake.set()

    def end_streams(self) -> None:
        """Let all streams end, so that the server can."""
        self.stopping = True
        self._tell()

    def stop(self) -> None:
        self.end_streams()
        self._wake.set()
        self._thread.join()

    def join(self) -> asyncio.Event:
        """An event that is set whenever there may be something new; to be given to `leave`."""
        news = asyncio.Event()
        self._streams.add((asyncio.get_running_loop(), news))
        return news

    def leave(self, news: asyncio.Event) -> None:
        self._streams = {stream for stream in self._streams if stream[1] is not news}

    def _follow(self) -> None:
        while not self.stopping:
            try:
                now = self._journal.position()
                if now != self.position or not self._overview.complete:
                    self._overview.catch_up()
                    self.position = now
                    self._tell()
            except JournalError as error:  # a lost database may come back
                log.error("%s", error)
            except Exception:  # pages would wait in vain for a thread that has ended
                log.exception("the journal could not be followed")
            self._wake.wait(_POLL)
            self._courtesy.stand_back()  # first the answers, and only then the news of them
            self._wake.clear()

    def _tell(self) -> None:
        for loop, news in tuple(self._streams):
            if not loop.is_closed():
                loop.call_soon_threadsafe(news.set)


def parse_position(text: str | None) -> Position | None:
    """The position in a Last-Event-ID; None if there is none that can be read."""
    seen, separator, happened = (text or "").partition("-")
    if not separator or not all(part.isascii() and part.isdigit() and len(part) < 16 for part in (seen, happened)):
        return None
    return Position(int(seen), int(happened))


async def stream(service: Service, since: Position | None) -> AsyncIterator[str]:
    """Server-sent events from a position on, or from now; ends when the service does."""
    follower = service.follower
    news = follower.join()
    try:
        now = await run_in_threadpool(service.journal.position)
        at = since if since is not None and since <= now and since.events <= now.events else now
        if now.sightings - at.sightings > _FAR_BEHIND:
            at = now
        yield _message("position", at, {"sightings": now.sightings, "events": now.events})
        while not follower.stopping:
            news.clear()
            messages, at, more = await run_in_threadpool(_news, service, at)
            for message in messages:
                yield message
            if more:
                continue
            try:
                await asyncio.wait_for(news.wait(), _HEARTBEAT)
            except asyncio.TimeoutError:
                yield ": still here\n\n"
    finally:
        follower.leave(news)


def _news(service: Service, at: Position) -> tuple[list[str], Position, bool]:
    """What follows a position, in the journal's order; where that ends, and whether there is more."""
    now = service.journal.position()
    if now == at:
        return [], at, False
    events = service.journal.events(since=at.events)
    stop = min(now.sightings, at.sightings + _TOGETHER)
    rows = [row for rows in service.journal.stream(at.sightings, stop, features=False) for row in rows]
    events = [event for event in events if event.at <= stop]
    # A new category must be on the shelf; for a sighting of an old one an older shelf will do.
    fresh = bool(events) or any(row.created for row in rows)
    told = _Telling(service, at, service.shelves.now(fresh=fresh))
    for event in events:
        while told.position.sightings < event.at and rows:
            told.sighting(rows.pop(0))
        told.event(event)
    for row in rows:
        told.sighting(row)
    told.changed_categories()
    return told.messages, told.position, told.position.sightings < now.sightings


class _Telling:
    """Messages in order; each names the position after it, which a page that comes back goes on from."""

    def __init__(self, service: Service, at: Position, shelf: Shelf) -> None:
        from newfound.service.views_sightings import Teller

        self.position = at
        self.messages: list[str] = []
        self._shelf, self._shelves = shelf, service.shelves
        self._teller = Teller(service, self._shelf)
        self._changed: dict[int, None] = {}

    def sighting(self, row: SightingRow) -> None:
        self.position = Position(row.number + 1, self.position.events)
        if row.forgotten:
            return
        (told,) = self._teller.rows([row])
        if row.created:
            self._changed[told["category"]] = None
        self.messages.append(_message("sighting", self.position, told))

    def event(self, event: EventRow) -> None:
        from newfound.service.views_categories import concerned

        self.position = Position(self.position.sightings, event.number + 1)
        self._changed.update(dict.fromkeys(concerned(event)))
        if event.actor != NEWFOUND:
            edit = {"kind": event.kind, "actor": event.actor, "number": event.number}
            if event.kind == UNDONE:
                edit["undoes"] = event.details["event"]
            self.messages.append(_message("edit", self.position, edit))

    def changed_categories(self) -> None:
        """Each category once, as it stands now, however often it changed; of one that lives elsewhere, where."""
        home = self._shelf.home
        for number in self._changed:
            if home.get(number, number) != number:
                self.messages.append(_message("gone", self.position, {"id": number, "category": home[number]}))
        changed = [self._shelf.find(number) for number in self._changed if number in self._shelf.home]
        for category in self._shelves.filled(self._shelf, changed):
            self.messages.append(_message("category", self.position, category))
        where = {"sightings": self.position.sightings, "events": self.position.events}
        self.messages.append(_message("position", self.position, where))


def _message(kind: str, at: Position, data: dict[str, Any]) -> str:
    return f"event: {kind}\nid: {at.sightings}-{at.events}\ndata: {json.dumps(data, allow_nan=False)}\n\n"
