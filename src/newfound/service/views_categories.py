"""Questions about categories."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from typing import Any

import numpy as np

from newfound.journal.rows import EventRow
from newfound.service import paging
from newfound.service.core import Service
from newfound.service.space import nearest

NEIGHBOURS = 8
_BINS = 20
_SAMPLE = 2000  # sightings that a histogram is made of, the newest
_EVENTS = 20
_DIGITS = 20  # of a number in a name, when names are sorted


def _in_order(name: str) -> str:
    """A name such that new-2 comes before new-10."""
    return re.sub("[0-9]+", lambda digits: digits[0].zfill(_DIGITS), name.casefold())


# What a list is sorted by; ids break ties, so that a cursor is a place between two categories.
SORTS: dict[str, tuple[type, Callable[[dict[str, Any]], Any]]] = {
    "newest": (int, lambda category: -category["id"]),
    "size": (int, lambda category: -category["count"]),
    "name": (str, lambda category: _in_order(category["name"])),
    "doubt": (float, lambda category: -1.0 if category["doubt"] is None else -1.0 - category["doubt"]),
    "id": (int, lambda category: category["id"]),
}


def listed(
    service: Service, sort: str, origin: str | None, q: str | None, ignored: bool, limit: int, cursor: str | None
) -> dict[str, Any]:
    """A page of living categories; with `ignored`, of those that are ignored too."""
    kind, key = SORTS[sort]
    wanted = (q or "").casefold().strip()
    shelf = service.shelves.now()
    chosen = [
        (key(category), number, category)
        for number, category in shelf.categories.items()
        if (origin is None or category["origin"] == origin)
        and (ignored or not category["ignored"])
        and (wanted in category["name"].casefold() or wanted == str(number))
    ]
    chosen.sort(key=lambda row: row[:2])
    after = paging.decode(cursor, (kind, int))
    start = 0 if after is None else bisect_right(chosen, tuple(after), key=lambda row: row[:2])
    shown = chosen[start : start + limit]
    more = start + limit < len(chosen)
    following = paging.encode(shown[-1][:2]) if more and shown else None
    return paging.page(service.shelves.filled(shelf, [category for *_, category in shown]), len(chosen), following)


def detailed(service: Service, category: int) -> dict[str, Any]:
    """A category with its neighbours, the scores of its sightings, and what happened to it last."""
    shelf = service.shelves.now()
    (found,) = service.shelves.filled(shelf, [shelf.find(category)])
    rows = service.journal.page(shelf.parts.get(found["id"], []), limit=_SAMPLE, newest_first=True)
    scores = [row.score for row in rows if row.score is not None and row.score > -1e29]
    counts, edges = np.histogram(scores, _BINS) if scores else (np.zeros(0, int), np.zeros(0))
    near = nearest(service.space(), found["id"], shelf, NEIGHBOURS)
    ids = {number for number, home in shelf.home.items() if home == found["id"]}
    return found | {
        "neighbours": [{"category": other, "name": shelf.name(other), "score": score} for other, score in near],
        "histogram": {"edges": edges.tolist(), "counts": counts.tolist()},
        "events": [told(event) for event in _about(service, ids)],
    }


def _about(service: Service, ids: set[int]) -> list[EventRow]:
    """The last events of a category, newest first, of the newest thousand."""
    recent = service.journal.events(limit=1000, newest_first=True)
    return [event for event in recent if ids & concerned(event)][:_EVENTS]


def concerned(event: EventRow) -> set[int]:
    """The ids of the categories that an event changed."""
    details = event.details
    ids = {details[name] for name in ("category", "of", "from", "to") if isinstance(details.get(name), int)}
    ids.update(*(details.get(name, ()) for name in ("categories", "merged", "emptied")))
    for change in (*details.get("changes", ()), *details.get("back", ())):
        ids.update(change[name] for name in ("category", "under") if isinstance(change.get(name), int))
    return ids


def told(event: EventRow) -> dict[str, Any]:
    """An event as the API tells it."""
    return {"kind": event.kind, "actor": event.actor, "number": event.number, "time": event.time}
