"""The books of a dictionary that changes its mind: who belongs where, on which evidence, and what was moved when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from newfound.discovery._categories import Categories
from newfound.discovery._evidence import Evidence, Grown
from newfound.discovery._exact import Float32s, Float64s, Ints
from newfound.discovery._rows import Rows
from newfound.errors import SettingsError

_KINDS = ("moved", "merged", "dissolved")


@dataclass(frozen=True)
class Event:
    """Something that a dictionary changed by itself after it had answered.

    Attributes:
        kind: ``"moved"``: one sighting now belongs to another category. ``"merged"``: two categories became one.
            ``"dissolved"``: a category was left without members.
        at: How many samples had been observed.
        sighting: The sample that was moved, counted from 0 over the whole stream; None for whole categories.
        source: The id that the sighting had, or that lives on under ``target`` from now on.
        target: The id that holds now.
    """

    kind: str
    at: int
    sighting: int | None
    source: int
    target: int


class Candidates:
    """Doubtful sightings that wait for a second one of their kind, oldest first: a row of evidence each."""

    def __init__(self, evidence: Evidence, sightings: Ints, homes: Ints, lapsed: Ints) -> None:
        self.evidence = evidence
        self.sightings, self.homes = Rows(sightings), Rows(homes)  # numbers in the stream, ids they were answered with
        self.lapsed = Rows(lapsed)  # those that waited in vain: they are no evidence for the category they have

    def append(self, reading: Float32s, sighting: int, home: int) -> int:
        self.sightings.append(np.array([sighting]))
        self.homes.append(np.array([home]))
        return self.evidence.append(reading.astype(np.float64), 1)

    def extend(self, grown: Grown, sightings: Ints, homes: Ints) -> Ints:
        """Several more, each with its row of evidence; returns their rows."""
        rows = np.arange(len(self.evidence), len(self.evidence) + len(grown))
        self.told_of(sightings, homes)
        self.evidence.grow(rows, grown)
        return rows

    def told_of(self, sightings: Ints, homes: Ints) -> None:
        """Several more, whose rows of evidence are there already."""
        self.sightings.append(sightings)
        self.homes.append(homes)

    def keep(self, left: NDArray[np.bool_]) -> None:
        self.evidence.keep(left)
        self.sightings.keep(left)
        self.homes.keep(left)

    def lapse(self, before: int) -> None:
        """Ends the waiting of sightings with a lower number: they stay what they were answered with."""
        late = self.sightings.view < before
        if late.any():
            self.lapsed.append(self.sightings.view[late])
            self.keep(~late)

    def no_evidence(self, sightings: Ints) -> NDArray[np.bool_]:
        """Which of these sightings wait, or did in vain."""
        return np.isin(sightings, self.sightings.view) | np.isin(sightings, self.lapsed.view)

    def settle(self, sightings: Ints) -> None:
        """Strikes these sightings off: they are evidence from now on."""
        self.keep(~np.isin(self.sightings.view, sightings))
        self.lapsed.keep(~np.isin(self.lapsed.view, sightings))


class Memory:
    """The last ``limit`` sightings: their readings, the ids of the categories they belong to (or of aliases), and
    whether they are pinned there: a person has said so.

    ``notes`` are ``width`` numbers that second thoughts have found out about each, to be spared the next time; NaN:
    nothing yet. They change no answer and are in no state.
    """

    def __init__(self, limit: int, readings: Float32s, homes: Ints, pinned: NDArray[np.bool_], width: int) -> None:
        self.limit, self.width = limit, width
        self._readings, self._homes, self._pinned = Rows(readings), Rows(homes), Rows(pinned)
        self._notes = Rows(np.full((len(homes), width), np.nan))

    def _last(self, column: Rows) -> NDArray[Any]:
        return column.view[-self.limit :] if self.limit else column.view[:0]

    @property
    def readings(self) -> Float32s:
        return self._last(self._readings)

    @property
    def homes(self) -> Ints:
        return self._last(self._homes)

    @property
    def pinned(self) -> NDArray[np.bool_]:
        return self._last(self._pinned)

    @property
    def notes(self) -> Float64s:
        return self._last(self._notes)

    def append(self, readings: Float32s, homes: Ints, pinned: NDArray[np.bool_]) -> None:
        if not self.limit:
            return
        self._readings.append(readings[-self.limit :])
        self._homes.append(homes[-self.limit :])
        self._pinned.append(pinned[-self.limit :])
        self._notes.append(np.full((len(homes[-self.limit :]), self.width), np.nan))
        if len(self._homes) > 2 * self.limit:  # seldom enough that dropping the oldest costs little
            left = np.arange(len(self._homes)) >= len(self._homes) - self.limit
            for column in (self._readings, self._homes, self._pinned, self._notes):
                column.keep(left)

    def rehome(self, places: Any, home: int) -> None:
        """Remembered sightings belong to ``home`` from now on; what was noted about them is void."""
        self.homes[places] = home
        self.notes[places] = np.nan


@dataclass
class Ledger:
    """Everything about the categories that changes with the stream."""

    categories: Categories
    evidence: Evidence
    candidates: Candidates
    memory: Memory
    events: list[Event]
    learn_known: bool

    def learns(self, rows: Any) -> Any:
        """Whether what joins these categories is evidence for them."""
        return (rows >= self.categories.known) | self.learn_known

    def rows(self, ids: Ints) -> Ints:
        """The rows of the categories that ``ids`` live on under."""
        return np.searchsorted(self.categories.ids.view, self.categories.resolve(ids))

    def shift(self, row: int, reading: Float32s, by: int) -> None:
        """Takes a reading in (``by`` 1) or out (-1), as evidence if the category learns; without a refresh."""
        self.evidence.members[row] += by
        if self.learns(row):
            self.evidence.counts[row] += by
            self.evidence.sums[row] += by * reading.astype(np.float64)

    def record_move(self, sighting: int, source: int, target: int, at: int, seen: int) -> None:
        """Writes down that a sighting, one of ``seen``, now belongs to the living category ``target``."""
        rows = self.rows(np.array([source, target]))
        np.add.at(self.categories.counts.view, rows, [-1, 1])
        place = sighting - seen + len(self.memory.homes)
        if 0 <= place < len(self.memory.homes):
            self.memory.rehome(place, target)
        if source != target:
            self.events.append(Event("moved", at, sighting, source, target))

    def unite(self, groups: list[list[int]]) -> None:
        """Merges each group of rows into its first, evidence and all, one group after the other.

        A known category that does not learn keeps its own evidence.
        """
        for home, *others in groups:
            self.evidence.members[home] += self.evidence.members[others].sum()
            if self.learns(home):
                self.evidence.counts[home] += self.evidence.counts[others].sum()
                for other in others:
                    self.evidence.sums[home] += self.evidence.sums[other]
        self.evidence.refresh(np.array(sorted({group[0] for group in groups}), np.int64))
        self.evidence.keep(self.categories.unite(groups))

    def state(self) -> dict[str, Any]:
        """Everything, as arrays (copies) and plain values."""
        numbers = [
            [_KINDS.index(e.kind), e.at, -1 if e.sighting is None else e.sighting, e.source, e.target]
            for e in self.events
        ]
        return {
            **self.categories.state(),
            "sums": self.evidence.sums.copy(),
            "evidence": self.evidence.counts.copy(),
            "members": self.evidence.members.copy(),
            "waiting": self.candidates.evidence.sums.astype(np.float32),
            "waiting_sightings": self.candidates.sightings.view.copy(),
            "waiting_homes": self.candidates.homes.view.copy(),
            "remembered": self.memory.readings.copy(),
            "remembered_homes": self.memory.homes.copy(),
            "pinned": self.memory.pinned.copy(),
            "lapsed": self.candidates.lapsed.view.copy(),
            "events": np.array(numbers, np.int64).reshape(-1, 5),
        }

    def restore(self, state: Mapping[str, Any], seen: int) -> None:
        """Becomes the ledger whose :meth:`state` this is, with the settings of this one.

        Raises:
            SettingsError: The parts do not fit together.
            KeyError: Something is missing.
        """
        model, prior = self.evidence.model, self.evidence.prior
        part: dict[str, NDArray[Any]] = {}
        for name in ("sums", "waiting", "remembered"):
            part[name] = rows = np.asarray(state[name], np.float64)
            if rows.ndim != 2 or rows.shape[1] != model.dimension or not np.isfinite(rows).all():
                raise SettingsError(f"{name} of this state are not {model.dimension} numbers a row: it is damaged")
        for name in ("evidence", "members", "waiting_sightings", "waiting_homes", "remembered_homes", "events"):
            part[name] = np.asarray(state[name], np.int64)
            if part[name].shape[1:] != ((5,) if name == "events" else ()):
                raise SettingsError(f"{name} of this state has the shape {[*part[name].shape]}: it is damaged")
        # States that were written before people could move sightings have neither.
        pinned = np.asarray(state.get("pinned", np.zeros(len(part["remembered"]), bool)), bool)
        lapsed = np.asarray(state.get("lapsed", []), np.int64)
        self.categories = Categories.from_state(state)
        living, waiting = self.categories.ids.view, part["waiting_sightings"]
        homes = np.concatenate([part["waiting_homes"], part["remembered_homes"]])
        kinds, at, moved, source, target = part["events"].T
        if not (
            len(living) == len(part["sums"]) == len(part["evidence"]) == len(part["members"])
            and len(waiting) == len(part["waiting"]) == len(part["waiting_homes"])
            and len(part["remembered"]) == len(part["remembered_homes"]) == min(self.memory.limit, seen)
            and pinned.shape == part["remembered_homes"].shape
            and (part["evidence"] >= 1).all()
            and (part["members"] >= part["evidence"]).all()
            and self.categories.counts.view.sum() == seen
            and (self.categories.counts.view >= 0).all()
            and (np.diff(waiting, prepend=-1) > 0).all()
            and (waiting < seen).all()
            and (np.diff(lapsed, prepend=-1) > 0).all()
            and (lapsed < seen).all()
            and _between(homes, 0, self.categories.next_id)
            and _between(kinds, 0, len(_KINDS))
            and _between(at, 1, seen + 1)
            and _between(moved, -1, seen)
            and _between(np.concatenate([source, target]), 0, self.categories.next_id)
        ):
            raise SettingsError("the categories, evidence and memory of this state do not fit together: it is damaged")
        self.evidence = Evidence(model, prior, part["sums"], part["evidence"], part["members"])
        ones = np.ones(len(waiting), np.int64)
        rows_waiting = Evidence(model, prior, part["waiting"], ones, ones)
        self.candidates = Candidates(rows_waiting, waiting, part["waiting_homes"], lapsed)
        readings = part["remembered"].astype(np.float32)
        self.memory = Memory(self.memory.limit, readings, part["remembered_homes"], pinned, self.memory.width)
        self.events = [
            Event(_KINDS[kind], at, None if sighting < 0 else sighting, source, target)
            for kind, at, sighting, source, target in part["events"].tolist()
        ]


def _between(values: Ints, low: int, high: int) -> bool:
    return bool(((values >= low) & (values < high)).all())
