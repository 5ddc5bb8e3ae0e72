"""From sightings to lines, sorted images and a summary."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from newfound._words import counted
from newfound.errors import NewfoundError
from newfound.outputs.sorting import Sorter
from newfound.outputs.tables import COLUMNS
from newfound.outputs.writers import Writer

if TYPE_CHECKING:
    from newfound.sightings import Sighting
    from newfound.sources import Item


@dataclass
class Tally:
    """What a stream has been so far."""

    predict: bool
    known: set[int]  # the ids of the classes that the run was taught
    images: int = 0  # decided on, without those that were seen before
    recognised: int = 0  # images of known classes
    discovered: set[int] = field(default_factory=set)  # other categories that were met
    new: int = 0  # images that founded a category, or would have
    seen_before: int = 0
    errors: int = 0
    first_error: str = ""
    unsorted: int = 0
    first_unsorted: str = ""
    incomplete: int = 0  # files in watched folders that were still being written

    @property
    def met(self) -> bool:
        """Whether there was anything to look at, readable or not."""
        return bool(self.images or self.seen_before or self.errors)

    def add(self, sighting: Sighting) -> None:
        """Count an image that was read."""
        if sighting.repeated and not self.predict:
            self.seen_before += 1
            return
        self.images += 1
        self.new += sighting.is_new
        if sighting.category in self.known:
            self.recognised += 1
        elif sighting.category is not None:
            self.discovered.add(sighting.category)

    def add_error(self, error: str) -> None:
        """Count an image that could not be read."""
        self.errors += 1
        self.first_error = self.first_error or error

    def add_unsorted(self, error: str) -> None:
        """Count an image that could not be put into its category's folder."""
        self.unsorted += 1
        self.first_unsorted = self.first_unsorted or error

    def as_dict(self) -> dict[str, Any]:
        """For machines."""
        found = {} if self.predict else {"discovered_categories": len(self.discovered), "new_categories": self.new}
        counts = {
            "images": self.images, "in_known_classes": self.recognised, "in_others": self.images - self.recognised,
            **found, "seen_before": self.seen_before, "errors": self.errors, "unsorted": self.unsorted,
            "incomplete": self.incomplete,
        }  # fmt: skip
        texts = {"first_error": self.first_error, "first_unsorted": self.first_unsorted}
        return counts | {key: text for key, text in texts.items() if text}

    def describe(self) -> str:
        """For people, in a line."""
        parts = [f"{counted(self.seen_before, 'image')}, all seen before"] if self.seen_before else []
        if self.images or not (self.seen_before or self.errors):
            parts = [f"{counted(self.images, 'image')}: {self.recognised} in known classes, {self._others()}"]
            parts += [f"{self.seen_before} seen before"] * bool(self.seen_before)
        if self.errors:
            parts.append(f"{self.errors} could not be read, the first: {self.first_error}")
        if self.unsorted:
            parts.append(f"{self.unsorted} could not be sorted, the first: {self.first_unsorted}")
        if self.incomplete:
            parts.append(f"{self.incomplete} not complete yet")
        return "; ".join(parts)

    def _others(self) -> str:
        others = self.images - self.recognised
        if self.predict:
            found = f"{others - self.new} in discovered ones, " if self.discovered else ""
            return f"{found}{self.new} unlike any of them"
        if not others:
            return "none in new categories"
        if len(self.discovered) <= self.new:  # all of those that were met were founded here
            return f"{others} in {counted(self.new, 'new category', 'new categories')}"
        met = counted(len(self.discovered), "discovered category", "discovered categories")
        return f"{others} in {met}, {self.new} of them new"


class Answers:
    """Writes what is decided about each image, sorts the image, and counts.

    Args:
        repeat: whether images that were seen before are written too.
        done: is called with 1 for each image.
    """

    def __init__(
        self, writer: Writer, sorter: Sorter | None, tally: Tally, done: Callable[[int], None], *, repeat: bool
    ) -> None:
        self._writer, self._sorter, self.tally, self._done, self._repeat = writer, sorter, tally, done, repeat

    def add(self, item: Item, sighting: Sighting) -> None:
        """What was decided about an item, or why it could not be read."""
        if sighting.error is not None:
            if item.try_later is None or not item.try_later(item):
                self.refuse(item, sighting.error)
            return
        self.tally.add(sighting)
        if self._repeat or not sighting.repeated:
            self._writer.write(_beside(item) | sighting.as_dict() | {"image": item.name})
        self._done(1)
        if self._sorter is not None:
            try:
                self._sorter.put(item.image, item.name, sighting.category, sighting.name)
            except NewfoundError as error:
                self.tally.add_unsorted(str(error))

    def refuse(self, item: Item, error: str) -> None:
        """An item that could not be read."""
        self.tally.add_error(error)
        self._writer.write(_beside(item) | {"image": item.name, "error": error})
        self._done(1)


def _beside(item: Item) -> dict[str, Any]:
    """What its sender wrote, but for what it calls as we do: answers sent in again are not taken for new ones."""
    return {name: value for name, value in item.extra.items() if name not in COLUMNS[:-1]}
