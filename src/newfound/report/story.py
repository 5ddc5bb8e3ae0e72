"""What a report tells: a stream in its order, and what was decided about each image."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from newfound.errors import DataError

if TYPE_CHECKING:
    from newfound.evaluation import StreamResult
    from newfound.run import Run


@dataclass(frozen=True)
class Group:
    """A category and the positions in the stream of the images that it holds."""

    id: int
    name: str
    known: bool
    members: tuple[int, ...]
    majority: str | None  # the true class that most members have, if labels are known
    purity: float | None  # the share of members that have it

    def __len__(self) -> int:
        return len(self.members)


@dataclass(frozen=True, eq=False)
class Story:
    """A run and one stream that it was shown; the lists have one entry an image, in the order of the stream.

    Attributes:
        title: the report's heading.
        run: what decided.
        items: the images, in any form that `open_image` takes.
        labels: their true classes, or None if nobody knows them.
        categories: the ids of where they stand in the end; None for an image that could not be read.
        created: whether the image founded a category, if not always the one it ends in.
        scores: the similarity or log ratio that each decision was made on; None for an image that could not be read.
        names: the name of every category by id.
        known_count: ids below it are known classes, all others discovered.
        table: the scores by method, the run's own first; may be empty.
        true_categories: how many classes the stream really holds, if that is known.
        notes: further lines on how the results were made.
        threshold: the cut that decided; None for the run's own.

    Raises:
        DataError: if the lists are not of the same length, or a category has no name.
    """

    title: str
    run: Run
    items: Sequence[Any]
    labels: list[str] | None
    categories: list[int | None]
    created: list[bool]
    scores: list[float | None]
    names: dict[int, str]
    known_count: int
    table: list[tuple[str, StreamResult]] = field(default_factory=list)
    true_categories: int | None = None
    notes: list[str] = field(default_factory=list)
    threshold: float | None = None

    @property
    def cut(self) -> float:
        """What scores were held against."""
        return self.run.threshold if self.threshold is None else self.threshold

    def __post_init__(self) -> None:
        for name in ("labels", "categories", "created", "scores"):
            given = getattr(self, name)
            if given is not None and len(given) != len(self.items):
                raise DataError(f"a story of {len(self.items)} images has {len(given)} {name}; each image needs one.")
        nameless = sorted({c for c in self.categories if c is not None} - self.names.keys())
        if nameless:
            raise DataError(f"the story gives category {nameless[0]} no name.")

    @cached_property
    def groups(self) -> list[Group]:
        """Every category that holds an image, the largest first."""
        members: dict[int, list[int]] = {}
        for position, category in enumerate(self.categories):
            if category is not None:
                members.setdefault(category, []).append(position)
        groups = [self._group(category, held) for category, held in members.items()]
        return sorted(groups, key=lambda group: (-len(group), group.id))

    @property
    def known(self) -> list[Group]:
        return [group for group in self.groups if group.known]

    @property
    def discovered(self) -> list[Group]:
        return [group for group in self.groups if not group.known]

    @property
    def decided(self) -> int:
        """How many images could be read."""
        return sum(category is not None for category in self.categories)

    def describe(self, position: int) -> str:
        """What to call an image: its file's name or its place in the stream, and its true class."""
        item = self.items[position]
        name = PurePath(item).name if isinstance(item, (str, os.PathLike)) else f"image {position + 1}"
        return name if self.labels is None else f"{name}, {self.labels[position]}"

    def _group(self, category: int, members: list[int]) -> Group:
        majority, purity = None, None
        if self.labels is not None:
            # Of equally frequent classes the first by name, so that a report does not depend on the stream's order.
            counted = Counter(self.labels[i] for i in members)
            majority = min(counted, key=lambda label: (-counted[label], label))
            purity = counted[majority] / len(members)
        known = category < self.known_count
        return Group(category, self.names[category], known, tuple(members), majority, purity)
