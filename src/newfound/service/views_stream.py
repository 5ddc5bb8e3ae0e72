"""The stream as a whole: how it grew, what is in doubt, and what another cut would have made of it."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import OrderedDict
from typing import Any

from newfound.journal.replaying import what_if
from newfound.service import paging
from newfound.service.core import Service
from newfound.service.problems import Problem
from newfound.service.views_sightings import Teller

_POINTS = 400
REPLAYED = 20_000  # sightings, the first ones
_KEPT = 256  # answers to what-if
_CANDIDATES = 3
_PATIENCE = 20.0  # seconds that a question waits for the one before it


def timeline(service: Service) -> dict[str, list[int]]:
    """How many categories had been seen after so many sightings, of those that are there now."""
    shelf = service.shelves.now()
    total = shelf.position.sightings
    seen = sorted(shelf.first.values())
    found = sorted(n for category, n in shelf.first.items() if shelf.categories[category]["origin"] == "discovered")
    steps = min(_POINTS - 1, total)
    counts = sorted({round(total * step / steps) for step in range(steps + 1)}) if steps else [0]
    return {
        "sightings": counts,
        "categories": [bisect_left(seen, count) for count in counts],
        "discovered": [bisect_left(found, count) for count in counts],
    }


def in_doubt(service: Service, limit: int, cursor: str | None) -> dict[str, Any]:
    """A page of sightings worth a second look, newest first, each with the categories it may belong to."""
    shelf = service.shelves.now()
    after = paging.decode(cursor, int)
    with service.overview.lock:
        numbers = service.overview.borderline
        stop = len(numbers) if after is None else bisect_left(numbers, after)
        some, total = numbers[max(0, stop - limit) : stop], len(numbers)
    rows = [row for row in service.journal.sightings(some) if row.score is not None][::-1]
    told = Teller(service, shelf).rows(rows)
    for sighting in told:
        scores: dict[int, float | None] = {sighting["category"]: sighting["score"]}
        for category, score in sighting["runners_up"]:
            scores.setdefault(shelf.home.get(category, category), score)
        sighting["candidates"] = [
            {"category": category, "name": shelf.categories[category]["name"], "score": score}
            for category, score in list(scores.items())[:_CANDIDATES]
            if category in shelf.categories
        ]
    following = paging.encode(some[0]) if stop > limit and some else None
    return paging.page(told, total, following)


class WhatIfs:
    """What other cuts would have found, replayed one at a time and remembered."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._turn = threading.Lock()  # a replay takes a processor; more at once would take all of them
        self._known: OrderedDict[tuple[float, int, int], dict[str, Any]] = OrderedDict()

    def ask(self, cut: float) -> dict[str, Any]:
        """How many categories the first 20,000 sightings would have had.

        Raises:
            SettingsError: A cut that this dictionary cannot have.
        """
        if not self._turn.acquire(timeout=_PATIENCE):
            raise Problem(503, "other cuts are being replayed: ask again.", Retry_After="5")
        try:
            position = self._service.journal.position()
            count = min(position.sightings, REPLAYED)
            key = (cut, count, position.events if self._forgot(position.events) else 0)
            if key not in self._known:
                told = what_if(self._service.journal, cut, count=count)
                self._known[key] = {
                    "cut": cut, "categories": told.found, "discovered": told.discovered, "sightings": told.sightings,
                }  # fmt: skip
                while len(self._known) > _KEPT:
                    self._known.popitem(last=False)
            return self._known[key]
        finally:
            self._turn.release()

    def _forgot(self, events: int) -> bool:
        """Whether sightings were taken out: then the same count is not the same stream."""
        return events > 0 and bool(self._service.journal.events(kinds=["forgotten"], limit=1))
