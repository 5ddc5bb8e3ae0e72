"""What a journal holds, as plain values, and how they look in its tables."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from newfound.errors import JournalError

NEWFOUND = "newfound"  # the actor of derived events: what the dictionary did by itself

_answer = attrgetter("content", "part", "category", "created", "score", "cut", "probability", "new_probability")
to_json = json.JSONEncoder(separators=(",", ":")).encode

Packed = tuple[Any, ...]  # a sighting as a row of the table
NUMBER, CONTENT = 0, 2  # places in it

_BYTE = re.compile(r"\\udc([89a-f][0-9a-f])")  # one that is no UTF-8, in a name, as `as_text` spells it


class Damaged(JournalError):
    """What a journal has of a sighting or an event cannot be read."""

    def __init__(self, which: str, why: str) -> None:
        super().__init__(f"{which} is damaged in the journal: {why}. Put a backup of the journal in its place.")


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """How much of a journal: the first so many sightings and events."""

    sightings: int
    events: int


@dataclass(slots=True)  # not frozen, which takes six times as long to make: there is one for every image
class SightingRow:
    """One observed image and the answer it got. A forgotten one keeps its number, part, category, created, model, time.

    Attributes:
        number: 0, 1, 2, ... without gaps: the journal's order.
        content: a hash of the image's bytes.
        part: of the dictionary, as answered; where the sighting is now is its place.
        runners_up: (category, score) of those that came next.
        runners_up_probability: of each of them; none where the dictionary has none, or an older newfound wrote the row.
        feature: float16, little endian.
        model: the id of the model that answered. In a journal that was carried to another, features are of the newest.
    """

    number: int
    image: str | None
    content: bytes | None
    part: int
    category: int
    created: bool
    score: float | None
    cut: float | None
    probability: float | None
    new_probability: float | None
    runners_up: tuple[tuple[int, float], ...]
    feature: bytes | None
    model: int
    time: float
    runners_up_probability: tuple[float, ...] = ()

    @property
    def forgotten(self) -> bool:
        """Whether all that told of the image was erased: only then is there no score."""
        return self.score is None


@dataclass(frozen=True, slots=True)
class EventRow:
    """What a person or the dictionary did, after `at` sightings."""

    number: int
    at: int
    kind: str
    actor: str
    time: float
    details: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The whole state at a position; the fold starts at the genesis."""

    position: Position
    state: bytes
    genesis: bool


@dataclass(frozen=True, slots=True)
class Model:
    """Who gave features and answers."""

    id: int
    fingerprint: str
    about: dict[str, Any]
    time: float


def pack_sighting(row: SightingRow) -> Packed:
    """As a row of the table, in the order of its columns."""
    image = None if row.image is None else as_text(row.image)
    told = pack_runners_up(row.runners_up, row.runners_up_probability)
    return (row.number, image, *_answer(row), told, row.feature, row.model, row.time)


def pack_runners_up(pairs: Sequence[tuple[int, float]], probabilities: Sequence[float]) -> str:
    """Runners-up as JSON: [category, score, probability] of each, or [category, score] where there are none.

    By hand: an encoder takes as long as the database does.
    """
    entries = [(*pair, p) for pair, p in zip(pairs, probabilities, strict=True)] if probabilities else pairs
    told = [",".join(map(str, entry)) for entry in entries]
    text = f"[{','.join([f'[{numbers}]' for numbers in told])}]"
    return to_json(entries) if "n" in text else text  # inf and nan are spelled otherwise


def unpack_sighting(row: Sequence[Any]) -> SightingRow:
    """The inverse of `pack_sighting`. Raises Damaged if it was not made by that."""
    try:
        runners_up, probabilities = unpack_runners_up(row[10])
    except (ValueError, TypeError, LookupError, OverflowError):
        raise Damaged(f"sighting {row[NUMBER]}", f"its runners-up are {row[10]!r}") from None
    return SightingRow(*row[:5], bool(row[5]), *row[6:10], runners_up, *row[11:], probabilities)  # type: ignore[call-arg]


def unpack_runners_up(text: str | None) -> tuple[tuple[tuple[int, float], ...], tuple[float, ...]]:
    """The inverse of `pack_runners_up`; a forgotten sighting has none. Raises what JSON raises, or Python."""
    entries = json.loads(text) if text else ()
    if entries and len(entries[0]) > 2:
        return tuple([(c, s) for c, s, _ in entries]), tuple([float(p) for _, _, p in entries])
    return tuple([(c, s) for c, s in entries]), ()


def pack_event(row: EventRow) -> tuple[Any, ...]:
    """As a row of the table, in the order of its columns."""
    return row.number, row.at, as_text(row.kind), as_text(row.actor), row.time, to_json(row.details)


def unpack_event(row: Sequence[Any]) -> EventRow:
    """The inverse of `pack_event`. Raises Damaged if it was not made by that."""
    try:
        return EventRow(*row[:5], json.loads(row[5]))  # type: ignore[call-arg]
    except (ValueError, TypeError):
        raise Damaged(f"event {row[0]}", f"its details are {row[5]!r}") from None


def as_text(name: str) -> str:
    """The name as every database can hold it: what is no Unicode text, as file names may be, is spelled out."""
    if "\0" in name:  # PostgreSQL has no such character
        name = name.replace("\0", "\\0")
    return name if name.isascii() else name.encode("utf-8", "backslashreplace").decode()


def as_path(text: str) -> str:
    """The path that a name in the journal stands for, to open it: the inverse of `as_text`.

    What is there under the very name is meant by it, though another file might be spelled so.
    """
    if _BYTE.search(text) is None or os.path.exists(text):
        return text
    return _BYTE.sub(lambda found: chr(0xDC00 + int(found[1], 16)), text)
