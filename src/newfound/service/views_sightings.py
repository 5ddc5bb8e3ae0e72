"""Questions about sightings."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from newfound.journal.book import decided_on
from newfound.journal.keeper import NOWHERE
from newfound.journal.rows import SightingRow
from newfound.service import paging
from newfound.service.core import Service
from newfound.service.doubting import is_doubtful
from newfound.service.images_store import shown_name
from newfound.service.problems import Problem
from newfound.service.shelf import Shelf
from newfound.service.space import distances
from newfound.sightings import Sighting

_SORTED = 5000  # sightings of a category that are sorted by likeness, the newest


class Teller:
    """Tells sightings as the API does, with the names of one moment."""

    def __init__(self, service: Service, shelf: Shelf) -> None:
        self._service, self._shelf = service, shelf

    def rows(self, rows: Sequence[SightingRow]) -> list[dict[str, Any]]:
        """Sightings of the journal, with the categories they are in now."""
        places = self._service.journal.place([row.number for row in rows])
        return [self._row(row, places[row.number]) for row in rows]

    def _row(self, row: SightingRow, part: int) -> dict[str, Any]:
        owner = self._shelf.owner
        # One that came after this shelf was put up has the category that it was answered with.
        category = owner[part] if part != NOWHERE and part < len(owner) else row.category
        return {
            "number": row.number,
            "image": shown_name(row.image),
            "category": category,
            "name": self._shelf.categories[category]["name"] if category in self._shelf.categories else None,
            "is_new": row.created,
            "score": row.score,
            "cut": row.cut,
            "probability": row.probability,
            "new_probability": row.new_probability,
            "runners_up": [list(pair) for pair in row.runners_up],
            "runners_up_probability": list(row.runners_up_probability),
            "repeated": False,
            "time": row.time,
            "doubtful": is_doubtful(row),
            "moved": row.number in self._service.overview.decided,
            "error": None,
        }


def answered(
    service: Service, sightings: Sequence[Sighting], names: Sequence[str | None], times: Mapping[int, float]
) -> list[dict[str, Any]]:
    """What `observe` or `predict` has said, in the order of the request; `times` by number, of those entered."""
    told = []
    for index, (sighting, name) in enumerate(zip(sightings, names, strict=True)):
        below = sighting.score is not None and sighting.cut is not None and sighting.score < sighting.cut
        values = sighting.as_dict(index) | {
            "number": sighting.number,
            "image": name,
            "runners_up": [list(pair) for pair in sighting.runners_up],
            "runners_up_probability": list(sighting.runners_up_probability),
            "repeated": sighting.repeated,
            "time": None if sighting.number is None else times.get(sighting.number),
            "doubtful": below and not sighting.is_new,
            "moved": sighting.number in service.overview.decided,
            "index": index,
        }
        told.append({"probability": None, "new_probability": None, "error": None} | values)
    return told


def found(service: Service, number: int) -> SightingRow:
    """A sighting by number. Raises Problem 404 if there is none."""
    rows = service.journal.sightings([number])
    if not rows:
        raise Problem(404, f"there is no sighting {number}.")
    return rows[0]


def listed(
    service: Service, category: int | None, since: int | None, doubtful: bool, new: bool, newest: bool, limit: int,
    cursor: str | None,
) -> dict[str, Any]:  # fmt: skip
    """A page of sightings by number."""
    shelf = service.shelves.now()
    after = paging.decode(cursor, int)
    if category is not None:
        rows, total = _of_category(service, shelf, category, since, doubtful, new, newest, limit, after)
    elif doubtful or new:
        rows, total = _of_numbers(service, _chosen(service, doubtful, new), since, newest, limit, after)
    else:
        rows, total = _of_all(service, since or 0, newest, limit, after)
    following = paging.encode(rows[limit - 1].number) if len(rows) > limit else None
    return paging.page(Teller(service, shelf).rows(rows[:limit]), total, following)


def _of_all(service: Service, since: int, newest: bool, limit: int, after: int | None) -> tuple[list[SightingRow], int]:
    end = service.journal.position().sightings
    if newest:
        stop = end if after is None else min(after, end)
        numbers = range(max(since, stop - limit - 1), max(stop, 0))
    else:
        start = since if after is None else max(since, after + 1)
        numbers = range(start, min(start + limit + 1, end))
    rows = service.journal.sightings(numbers)
    return rows[::-1] if newest else rows, max(0, end - since)


def _chosen(service: Service, doubtful: bool, new: bool) -> list[int]:
    with service.overview.lock:
        if doubtful and new:  # a founder is never doubtful
            return []
        return list(service.overview.doubtful if doubtful else service.overview.created)


def _of_numbers(
    service: Service, numbers: list[int], since: int | None, newest: bool, limit: int, after: int | None
) -> tuple[list[SightingRow], int]:
    numbers = numbers[bisect_left(numbers, since or 0) :]
    if newest:
        stop = len(numbers) if after is None else bisect_left(numbers, after)
        some = numbers[max(0, stop - limit - 1) : stop][::-1]
    else:
        start = 0 if after is None else bisect_right(numbers, after)
        some = numbers[start : start + limit + 1]
    rows = {row.number: row for row in service.journal.sightings(some)}
    return [rows[number] for number in some if number in rows], len(numbers)


def _of_category(
    service: Service, shelf: Shelf, category: int, since: int | None, doubtful: bool, new: bool, newest: bool,
    limit: int, after: int | None,
) -> tuple[list[SightingRow], int]:  # fmt: skip
    home = shelf.find(category)["id"]
    parts = shelf.parts.get(home, [])
    if doubtful or new:
        chosen = _chosen(service, doubtful, new)
        places, here = service.journal.place(chosen), set(parts)
        mine = [number for number in chosen if places.get(number) in here]
        return _of_numbers(service, mine, since, newest, limit, after)
    if since is not None and not newest:
        after = max(since - 1, -1 if after is None else after)
    rows = service.journal.page(parts, after=after, limit=limit + 1, newest_first=newest)
    if since is None:
        return rows, shelf.categories[home]["count"]
    return [row for row in rows if row.number >= since], service.journal.count_members(parts, since=since)


class LikenessOrder:
    """The sightings of categories, the most typical first; kept as long as the journal stands still."""

    def __init__(self, service: Service, keep: int = 32) -> None:
        self._service, self._keep = service, keep
        self._turn = threading.Lock()
        self._orders: OrderedDict[tuple[object, int], list[int]] = OrderedDict()

    def page(self, category: int, outliers: bool, limit: int, cursor: str | None) -> dict[str, Any]:
        """A page of a category's newest 5,000 sightings by likeness to it, or by unlikeness."""
        shelf = self._service.shelves.now()
        home = shelf.find(category)["id"]
        start = paging.decode(cursor, int) or 0
        order = self._order(shelf, home)
        order = order[::-1] if outliers else order
        some = order[max(0, start) : max(0, start) + limit]
        rows = {row.number: row for row in self._service.journal.sightings(some)}
        following = paging.encode(start + limit) if start + limit < len(order) else None
        told = Teller(self._service, shelf).rows([rows[number] for number in some if number in rows])
        return paging.page(told, shelf.categories[home]["count"], following)

    def _order(self, shelf: Shelf, home: int) -> list[int]:
        key = (shelf.position, home)
        order = self._orders.get(key)
        if order is None:
            order = self._sorted(shelf.parts.get(home, []))
            with self._turn:
                self._orders[key] = order
                while len(self._orders) > self._keep:
                    self._orders.popitem(last=False)
        return order

    def _sorted(self, parts: list[int]) -> list[int]:
        journal = self._service.journal
        numbers = [row.number for row in journal.page(parts, limit=_SORTED, newest_first=True)]
        rows = [row for row in journal.sightings(numbers) if row.feature is not None]
        if not rows:
            return []
        dimension = self._service.discoverer.dictionary.dimension
        far = distances(self._service.space(), parts, decided_on(rows, dimension))
        return [rows[i].number for i in np.argsort(far, kind="stable").tolist()]
