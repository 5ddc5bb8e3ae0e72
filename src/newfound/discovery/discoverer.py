"""From images to sightings: an encoder, a dictionary, and names for what was found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from newfound.datasets import is_finite, item_name, iter_source
from newfound.discovery.dictionary import Dictionary
from newfound.errors import SettingsError

if TYPE_CHECKING:
    from newfound.features import Block, Encoder

_EXEMPLARS = 8  # image references kept for each category


@dataclass(frozen=True)
class Sighting:
    """One image and what was decided about it: a score and the cut it was held against.

    `category` is None where nothing was decided: the image could not be read (`error` says why), or `predict` would
    have founded a new category (`is_new`).
    """

    image: Any
    category: int | None
    name: str | None
    is_new: bool
    score: float | None
    cut: float
    runners_up: tuple[tuple[int, float], ...] = ()
    error: str | None = None

    def as_dict(self, index: int = 0) -> dict[str, Any]:
        """Ready for JSON; `index` names an image that has no path."""
        values = {f.name: getattr(self, f.name) for f in fields(self)} | {"image": item_name(self.image, index)}
        values["runners_up"] = [list(pair) for pair in self.runners_up]
        return values if self.error else {k: v for k, v in values.items() if k != "error"}


@dataclass
class Category:
    """A stable id that is never reused, and what is known of it."""

    id: int
    name: str
    origin: str  # "known" or "discovered"
    count: int = 0  # sightings; the images it was taught from are not counted
    exemplars: list[Any] = field(default_factory=list)
    merged_into: int | None = None


class Discoverer:
    """Recognises and discovers on a stream of images; lives in memory.

    `observe` may found categories, `predict` never changes anything. Both take a path, a folder, a PIL image, an
    array, a list of these, or an iterator. A finite source gives a list; an iterator gives an iterator that works as
    it is read. An image that cannot be read gives a sighting with its error, and the stream goes on.
    """

    def __init__(self, encoder: Encoder, dictionary: Dictionary, classes: list[str]) -> None:
        self.encoder, self.dictionary = encoder, dictionary
        self._categories = {i: Category(i, name, "known") for i, name in enumerate(classes)}

    def observe(self, source: Any, *, block: int | None = None) -> list[Sighting] | Iterator[Sighting]:
        """Decide on images in order; what is new founds a category that later images can join.

        `block` images are encoded together: 64 of a finite source, and one of an iterator, so that each is answered
        before the next is asked for. A larger block is faster; the decisions are taken one by one in any case.
        """
        sightings = self._decide(source, block, grow=True)
        return list(sightings) if is_finite(source) else sightings

    def predict(self, source: Any, *, block: int | None = None) -> list[Sighting] | Iterator[Sighting]:
        """Decide on images against the categories as they are; nothing changes."""
        sightings = self._decide(source, block, grow=False)
        return list(sightings) if is_finite(source) else sightings

    def categories(self, *, merged: bool = False) -> list[Category]:
        """All living categories by id; with `merged`, also those that live on under another id."""
        return [c for c in self._categories.values() if merged or c.merged_into is None]

    def category(self, category: int) -> Category:
        """A category by id; a merged one is followed to where it lives now."""
        if category not in self._categories:
            raise SettingsError(f"there is no category {category}; ids go from 0 to {max(self._categories)}.")
        found = self._categories[category]
        return found if found.merged_into is None else self.category(found.merged_into)

    def rename(self, category: int, name: str) -> Category:
        """Give a category a name of one's own."""
        if not name.strip():
            raise SettingsError("a category's name cannot be empty.")
        found = self.category(category)
        found.name = name.strip()
        return found

    def merge(self, categories: Iterable[int]) -> Category:
        """Make one category of several: the known one, else the oldest, lives on; all ids stay valid."""
        if not isinstance(categories, Iterable):
            raise SettingsError(f"merge needs the ids of several categories, such as [7, 9], not {categories!r}.")
        ids = [self.category(c).id for c in categories]
        survivor = self.dictionary.merge(ids)
        self._follow_merges()
        return self._categories[survivor]

    def _decide(self, source: Any, block: int | None, *, grow: bool) -> Iterator[Sighting]:
        if block is None and not is_finite(source):
            block = 1  # an iterator may be a camera: answer each image before asking for the next
        for encoded in self.encoder.stream(iter_source(source), block):
            yield from self._sightings(encoded, grow=grow)

    def _sightings(self, encoded: Block, *, grow: bool) -> list[Sighting]:
        decide = self.dictionary.observe if grow else self.dictionary.predict
        out = decide(encoded.features, runners_up=2)
        if grow:
            for category in np.unique(out.category[out.created]):
                name = self._default_name(int(category))
                self._categories[int(category)] = Category(int(category), name, "discovered")
            self._follow_merges()
        sightings = []
        for item, row, error in zip(encoded.items, encoded.rows, encoded.errors, strict=True):
            if row is None:
                sightings.append(Sighting(item, None, None, False, None, out.cut, error=str(error)))
                continue
            identity = int(out.category[row])
            found = self.category(identity) if identity >= 0 else None
            if grow and found is not None:
                found.count += 1
                if len(found.exemplars) < _EXEMPLARS:
                    found.exemplars.append(item)
            pairs = zip(out.runners_up_category[row], out.runners_up_score[row], strict=True)
            sightings.append(
                Sighting(
                    image=item,
                    category=identity if identity >= 0 else None,
                    name=found.name if found is not None else None,
                    is_new=bool(out.created[row]),
                    score=float(out.score[row]),
                    cut=out.cut,
                    runners_up=tuple((int(c), float(s)) for c, s in pairs if c >= 0),
                )
            )
        return sightings

    def _default_name(self, category: int) -> str:
        return f"new-{category - self.dictionary.known + 1}"

    def _follow_merges(self) -> None:
        """Take over merges that the dictionary made, by itself or when asked."""
        for gone, survivor in self.dictionary.aliases.items():
            old = self._categories[gone]
            if old.merged_into is None:
                new = self._categories[int(self.dictionary.resolve([survivor])[0])]
                new.count += old.count
                if new.name == self._default_name(new.id) and old.name != self._default_name(old.id):
                    new.name = old.name  # a name that a person gave outlives one that nobody did
                new.exemplars = (new.exemplars + old.exemplars)[:_EXEMPLARS]
                old.merged_into = new.id
