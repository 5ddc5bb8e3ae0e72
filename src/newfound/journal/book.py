"""What a journal adds up to: a dictionary, and the categories that people know its parts by.

The book is a fold: it starts from a genesis and takes in sightings and events in the journal's order. The same journal
gives the same book, bit for bit, however it is cut into pieces, because a dictionary's answers do not depend on how
samples are batched.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from newfound import discovery
from newfound.discovery import _torch
from newfound.discovery.decisions import Decisions
from newfound.discovery.dictionary import Dictionary
from newfound.discovery.standing import events_of
from newfound.errors import FeatureError, JournalError, SettingsError
from newfound.journal.catalogue import FLAGS, Catalogue
from newfound.journal.reading import Reader
from newfound.journal.rows import NEWFOUND, Damaged, EventRow, Position, SightingRow
from newfound.journal.state import from_bytes, to_bytes

Readings = NDArray[np.float32]
Lookup = Callable[[Sequence[int]], Readings]  # of older sightings, by their numbers

_DICTIONARIES: dict[str, Any] = {
    cls.__name__: cls
    for cls in (
        discovery.BayesianDictionary,
        discovery.CodeDictionary,
        discovery.LeaderDictionary,
        discovery.PrototypeDictionary,
        discovery.RuleDictionary,
    )
}


_TOGETHER = 1 << 14  # numbers that PyTorch rounds without asking other threads for help


def stored(readings: Any) -> NDArray[np.float16]:
    """Readings as a journal stores them: what is decided on is what is stored."""
    limit = np.finfo(np.float16).max
    clipped = np.clip(np.asarray(readings, np.float32), -limit, limit)
    torch = _torch.module()
    if torch is None or clipped.ndim != 2:
        return clipped.astype(np.float16)
    half = np.empty(clipped.shape, np.float16)  # the processor rounds as NumPy does, many times as fast
    step = max(1, _TOGETHER // max(1, clipped.shape[1]))
    for start in range(0, len(half), step):
        torch.from_numpy(half[start : start + step]).copy_(torch.from_numpy(clipped[start : start + step]))
    return half


def feature_bytes(readings: NDArray[np.float16]) -> list[bytes]:
    """Each row of stored readings as bytes."""
    data, size = readings.astype("<f2", copy=False).tobytes(), readings.shape[1] * 2
    return [data[start : start + size] for start in range(0, len(data), size)]


def decided_on(rows: Sequence[SightingRow], dimension: int) -> Readings:
    """The readings that sightings were decided on.

    Raises:
        JournalError: A sighting that was forgotten has none; those of one may be damaged.
    """
    for row in rows:
        if row.feature is None:
            raise JournalError(f"sighting {row.number} was forgotten: nothing is left to decide on.")
        if not isinstance(row.feature, bytes | memoryview):  # SQLite keeps whatever is put into a column
            raise Damaged(f"sighting {row.number}", f"its feature is {row.feature!r}, no bytes")
        if len(row.feature) != 2 * dimension:
            raise Damaged(f"sighting {row.number}", f"its feature has {len(row.feature)} bytes, not {2 * dimension}")
    data = b"".join(row.feature for row in rows if row.feature is not None)
    readings = np.frombuffer(data, "<f2").reshape(len(rows), dimension).astype(np.float32)
    if not np.isfinite(readings).all():
        row = rows[int(np.isfinite(readings).all(1).argmin())]
        raise Damaged(f"sighting {row.number}", "its feature has numbers that are NaN or infinite")
    return readings


@dataclass(frozen=True)
class Answered:
    """What the book said to a block: the decisions, the categories, and what the dictionary changed by itself."""

    decisions: Decisions
    categories: list[int]  # -1 where `predict` would found one
    others: list[int]  # those of the runners-up, one sample's after the other's
    changes: list[dict[str, Any]]  # with a kind, how many sightings came before, and details

    @property
    def places(self) -> dict[int, tuple[int, bool]]:
        """The parts that sightings were moved to; none is there for good."""
        moved = (change["details"] for change in self.changes if change["kind"] == "moved")
        return {details["sighting"]: (details["parts"][1], False) for details in moved}


class Book:
    """A dictionary and its catalogue at a position of the journal."""

    def __init__(
        self,
        dictionary: Dictionary,
        catalogue: Catalogue,
        position: Position = Position(0, 0),  # noqa: B008 (frozen)
        absent: Iterable[int] = (),
    ) -> None:
        self.dictionary, self.catalogue, self.position = dictionary, catalogue, position
        self._absent = sorted(absent)  # numbers that this dictionary has never heard of

    def observe(self, readings: Readings, runners_up: int = 0) -> Answered:
        """Decides on a block of sightings, the next ones of the journal; new categories get the next ids."""
        decisions = self.dictionary.observe(readings, runners_up)
        for part in np.unique(decisions.category[decisions.created]).tolist():
            self.catalogue.found(part)
        categories = self.catalogue.of_parts(decisions.category.tolist())
        changes = [self._change(event) for event in events_of(self.dictionary)]
        self.catalogue.follow(self.dictionary)
        self.position = Position(self.position.sightings + len(readings), self.position.events + len(changes))
        return Answered(decisions, categories, self._others(decisions), changes)

    def predict(self, readings: Readings, runners_up: int = 0) -> Answered:
        """What each reading alone would be told as things stand; nothing changes."""
        decisions = self.dictionary.predict(readings, runners_up)
        categories = self.catalogue.of_parts(decisions.category.tolist())
        return Answered(decisions, categories, self._others(decisions), [])

    def _others(self, decisions: Decisions) -> list[int]:
        return self.catalogue.of_parts(decisions.runners_up_category.ravel().tolist())  # at once, which is faster

    def apply(self, event: EventRow, lookup: Lookup) -> dict[int, tuple[int, bool]]:
        """Takes in what a person did. Returns the parts that sightings are in from now on, and whether for good."""
        places: dict[int, tuple[int, bool]] = {}
        for change in event.details.get("changes", ()):
            match change["op"]:
                case "name":
                    self.catalogue.entries[change["category"]].name = change["name"]
                case "under" if change["under"] is None:
                    self.catalogue.stand_alone(change["category"])
                case "under":
                    self.catalogue.put_under(change["category"], change["under"])
                case "flag" if change["flag"] in FLAGS:
                    setattr(self.catalogue.entries[change["category"]], change["flag"], change["on"])
                case "cut":
                    self.dictionary.threshold = change["cut"]
                case "place":
                    part = self._place(change, lookup)
                    stay = _staying(change)
                    places |= {number: (part, number in stay) for number in change["sightings"]}
                case other:
                    raise JournalError(f"event {event.number} holds {other!r}, unknown to this newfound: update it.")
        self.position = Position(self.position.sightings, self.position.events + 1)
        return places

    def fold(self, sightings: Sequence[SightingRow], events: Iterable[EventRow], lookup: Lookup) -> None:
        """Takes in what follows in the journal, in its order; what the dictionary did by itself comes by itself."""
        for kind, piece in in_order(sightings, events, self.position.sightings):
            if kind == "sightings":
                self.observe(decided_on(piece, self.dictionary.dimension))
            else:
                self.apply(piece, lookup)

    def number_here(self, number: int) -> int:
        """The number that the dictionary knows a sighting by: it never heard of those that are absent."""
        return number - bisect_left(self._absent, number)

    def _number_in_journal(self, here: int) -> int:
        number = here
        while (shifted := here + bisect_right(self._absent, number)) != number:
            number = shifted
        return number

    def _change(self, event: discovery.Event) -> dict[str, Any]:
        details: dict[str, Any] = {"parts": [event.source, event.target]}
        details["from"], details["to"] = self.catalogue.of_parts((event.source, event.target))
        if event.sighting is not None:
            details["sighting"] = self._number_in_journal(event.sighting)
        return {"kind": event.kind, "at": self._number_in_journal(event.at - 1) + 1, "details": details}

    def _place(self, change: Mapping[str, Any], lookup: Lookup) -> int:
        category, numbers = change["category"], change["sightings"]
        exists = category in self.catalogue
        if exists:
            self.catalogue.put_under(category, None)
        target = self.catalogue.living_part(category) if exists else None
        here = [self.number_here(number) for number in numbers]
        stay = _staying(change)
        pinned = [number in stay for number in numbers]
        part = self.dictionary.reassign(here, lookup(numbers), change["sources"], target, pinned)
        if target is None:
            self.catalogue.found(part, category)
        self.catalogue.follow(self.dictionary)
        return part

    def state(self) -> dict[str, Any]:
        """All that the book is, as arrays and plain values of its own: what comes later does not change them."""
        return {
            "dictionary": {"kind": type(self.dictionary).__name__, **self.dictionary.state()},
            "catalogue": self.catalogue.state(),
            "position": {"sightings": self.position.sightings, "events": self.position.events},
            "absent": np.array(self._absent, np.int64),
        }

    def to_bytes(self) -> bytes:
        """All that the book is."""
        return to_bytes(self.state())

    @classmethod
    def from_bytes(cls, data: bytes) -> Book:
        """The book whose :meth:`to_bytes` this is, bit for bit.

        Raises:
            JournalError: Bytes that are damaged, or a dictionary that this newfound does not have.
        """
        state = from_bytes(data)
        try:
            kind = state["dictionary"].pop("kind")
            if kind not in _DICTIONARIES:
                raise JournalError(f"this journal was kept with a {kind}, unknown to this newfound: update it.")
            return cls(
                _DICTIONARIES[kind].from_state(state["dictionary"]),
                Catalogue.from_state(state["catalogue"]),
                Position(**state["position"]),
                state["absent"].tolist(),
            )
        except (SettingsError, FeatureError, KeyError, TypeError) as error:
            raise JournalError(f"a snapshot in this journal is damaged ({error}).") from error


def _staying(change: Mapping[str, Any]) -> set[int]:
    """The sightings of a place that a person wants to stay there; see `editing`."""
    return set(change.get("pinned", change["sightings"]))


def lookup_in(reader: Reader, book: Book) -> Lookup:
    """How a book looks the readings of older sightings up."""

    def lookup(numbers: Sequence[int]) -> Readings:
        rows = {row.number: row for row in reader.sightings(numbers)}
        return decided_on([rows[number] for number in numbers], book.dictionary.dimension)

    return lookup


def in_order(sightings: Sequence[SightingRow], events: Iterable[EventRow], start: int) -> Iterable[tuple[str, Any]]:
    """Sightings in runs, and persons' events one by one, in the journal's order; ``start``: the first number."""
    done = 0
    for event in events:
        if event.actor == NEWFOUND:
            continue
        before = event.at - start
        if before > done:
            yield "sightings", sightings[done:before]
            done = before
        yield "event", event
    if done < len(sightings):
        yield "sightings", sightings[done:]
