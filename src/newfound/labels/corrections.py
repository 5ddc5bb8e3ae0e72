"""From what a tool says to what a person would have done here: rename, merge, move, and new categories.

Labels are read as a person means them. If all that was in a discovered category got a name that no category has, it is
renamed; if it got the name of another, the two are merged; if only some of it did, those are moved, or split off. What
was observed after the last sighting that the file speaks of does not count: the file could not know of it. A known
class is renamed only where the tool has renamed the class itself; its images are moved, never merged away by
inference, because what it was taught from is not in the file.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from newfound.curator import Curator
from newfound.labels.findings import Findings, unnamed
from newfound.labels.told import Corrections, Told
from newfound.sightings import Category


@dataclass(frozen=True)
class Step:
    """One label, and what makes it true.

    Attributes:
        name: What the category is called in the end.
        category: The category that images go to; None for a new one.
        merged: Categories that become one with it.
        moved: Sightings that go there, by the category they are in.
        before: What the category is called now.
    """

    name: str
    category: int | None
    before: str | None = None
    merged: tuple[int, ...] = ()
    moved: dict[int, list[int]] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """What will change, for people."""
        told = []
        where = f"category {self.category} ({self.before})"
        count = sum(map(len, self.moved.values()))
        images = f"{count} image{'s' * (count != 1)}"
        sources = ", ".join(map(str, self.moved))
        if self.category is None:
            told.append(f"split {images} off {sources} as a new category {self.name}")
        elif self.before != self.name:
            told.append(f"rename {where} to {self.name}")
        if self.merged:
            told.append(f"merge {', '.join(map(str, self.merged))} into {self.category} ({self.name})")
        if self.moved and self.category is not None:
            told.append(f"move {images} from {sources} to {self.category} ({self.name})")
        return told

    def apply(self, curator: Curator) -> None:
        """Do it, each part an event of its own."""
        home, rest = self.category, dict(self.moved)
        if home is None:
            source = next(iter(rest))
            home = curator.split(source, rest.pop(source)).id
        if self.merged:
            home = curator.merge([home, *self.merged]).id
        if rest:
            curator.move([number for numbers in rest.values() for number in numbers], home)
        if curator.category(home).name != self.name:  # also where a category that was left has brought its name along
            curator.rename(home, self.name)


def plan(
    findings: Findings, corrections: Corrections, categories: Iterable[Category]
) -> tuple[list[Step], list[int]]:  # fmt: skip
    """What to do so that every sighting has the label that the tool gives it; nothing where it has.

    Args:
        categories: all of the journal, also those that live on under another id.

    Returns:
        The steps, and the sightings that stay where they are in spite of their label: they cannot be moved.
    """
    planning = _Planning(findings, corrections, list(categories))
    return planning.steps(), sorted(planning.stuck)


class _Planning:
    def __init__(self, findings: Findings, corrections: Corrections, categories: list[Category]) -> None:
        self._all = {category.id: category for category in categories}
        self._living = {category.id: category for category in categories if category.merged_into is None}
        self._renamed = {
            self._home(number): name.strip()
            for number, name in corrections.names.items()
            if number in self._all and name.strip() not in ("", self._living[self._home(number)].name)
        }
        self._known = {c.id for c in categories if c.origin == "known"}
        self._taught = findings.taught
        self._by_name, self._by_former_name = self._names(), self._former_names()
        self._told = corrections.told
        self._fixed = findings.fixed
        self.stuck: list[int] = []  # what should be moved, and cannot be
        self._in: dict[int, list[int]] = defaultdict(list)  # of each category, the sightings the file could know of
        last = max(corrections.told, default=-1)
        for number, category in findings.numbers():
            if number <= last:
                self._in[category].append(number)

    def steps(self) -> list[Step]:
        """Names that the tool gave to categories first, then every label that sightings shall have."""
        steps = [Step(name, home, self._living[home].name) for home, name in self._renamed.items()]
        left = self._left()
        groups: dict[tuple[int | None, str], dict[int, list[int]]] = {}  # by target: sightings by where they are
        for category, numbers in self._in.items():
            for number in numbers:
                told = self._told.get(number)
                if told is None or (target := self._target(told, category)) is None:
                    continue
                home, name = target
                groups.setdefault((None if home in left else home, name), {}).setdefault(category, []).append(number)
        more = [self._step(home, name, sources, left) for (home, name), sources in groups.items()]
        return steps + [step for step in more if step.merged or step.moved or step.before not in (None, step.name)]

    def _left(self) -> set[int]:
        """The discovered categories in which no sighting stays: they live on elsewhere, and their names are free."""
        return {
            category
            for category, numbers in self._in.items()
            if category not in self._known and not any(self._stays(number, category) for number in numbers)
        }

    def _step(self, home: int | None, name: str, sources: dict[int, list[int]], left: set[int]) -> Step:
        whole = [c for c, numbers in sources.items() if c in left and len(numbers) == len(self._in[c])]
        moved = {
            category: free
            for category, numbers in sources.items()
            if category not in whole and (free := self._movable(numbers))
        }
        if home is None and whole:
            home = whole.pop(0)
        before = None if home is None else self._called(home)
        return Step(name, home, before, tuple(whole), moved)

    def _movable(self, numbers: list[int]) -> list[int]:
        self.stuck += [number for number in numbers if number in self._fixed]
        return [number for number in numbers if number not in self._fixed]

    def _stays(self, number: int, category: int) -> bool:
        """Whether nothing is said of a sighting, or that it is where it belongs."""
        told = self._told.get(number)
        return told is None or self._target(told, category) is None

    def _target(self, told: Told, category: int) -> tuple[int | None, str] | None:
        """The category that is meant, None for one that is not there yet, and its name; None if nothing changes."""
        label = told.label.strip()
        if not label or label == told.was:
            return None
        if told.category is not None and told.category in self._all:
            home = self._home(told.category)
            return None if home == category else (home, self._called(home))
        if label == self._called(category):
            return None
        meant = self._by_name.get(label)
        if meant is None and told.was is None:
            meant = self._by_former_name.get(label)  # the tool has perhaps never heard of the name it has now
        return None if meant == category else (meant, label if meant is None else self._called(meant))

    def _called(self, category: int) -> str:
        """The name that it has after the categories themselves are renamed."""
        return self._renamed.get(category, self._living[category].name)

    def _names(self) -> dict[str, int]:
        """Which living category a name means: of several, the oldest."""
        names: dict[str, int] = {}
        for number in self._living:
            names.setdefault(self._called(number), number)
        return names

    def _former_names(self) -> dict[str, int]:
        """Where what was called so lives on: under the name of what it was merged with, or that a person gave it."""
        names: dict[str, int] = {}
        for number, category in self._all.items():
            names.setdefault(category.name, self._home(number))
        for number in self._all:
            if number >= self._taught:
                names.setdefault(unnamed(number, self._taught), self._home(number))
        return names

    def _home(self, category: int) -> int:
        while (under := self._all[category].merged_into) is not None:
            category = under
        return category
