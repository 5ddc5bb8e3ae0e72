"""From images to sightings: an encoder, a dictionary, and names for what was found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from newfound.datasets import is_finite, item_name, iter_source
from newfound.discovery._ledger import Event
from newfound.discovery.decisions import Decisions
from newfound.discovery.dictionary import Dictionary
from newfound.discovery.standing import events_of, standing
from newfound.errors import SettingsError

if TYPE_CHECKING:
    from newfound.features import Block, Encoder

_EXEMPLARS = 8  # image references kept for each category


@dataclass(frozen=True)
class Sighting:
    """One image and what was decided about it: a score and the cut it was held against.

    `category` is None where nothing was decided: the image could not be read (`error` says why), or `predict` would
    have founded a new category (`is_new`). A dictionary that weighs evidence also says how probable its answer is, and
    how probable it is that the image is of no category there was. Where the score is below the cut and the image is
    not new, the answer is doubtful: a second image like it would found a category.
    """

    image: Any
    category: int | None
    name: str | None
    is_new: bool
    score: float | None
    cut: float
    runners_up: tuple[tuple[int, float], ...] = ()
    error: str | None = None
    probability: float | None = None
    new_probability: float | None = None

    def as_dict(self, index: int = 0) -> dict[str, Any]:
        """Ready for JSON; `index` names an image that has no path."""
        values = {f.name: getattr(self, f.name) for f in fields(self)} | {"image": item_name(self.image, index)}
        values["runners_up"] = [list(pair) for pair in self.runners_up]
        optional = ("error", "probability", "new_probability")
        return {k: v for k, v in values.items() if v is not None or k not in optional}


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
        self.events: list[Event] = []  # all that the dictionary has changed by itself, in order
        self._shown: dict[int, Any] = {}  # exemplars by their number in the stream: the dictionary may move them

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

    def standing(self, sightings: Iterable[Sighting]) -> list[int | None]:
        """Where sightings live now, after all that was moved and merged since they were answered.

        Args:
            sightings: what `observe` has given, from its first image on; those with an error have no category.
        """
        given = [s.category for s in sightings]
        readable = [category for category in given if category is not None]
        now = iter(standing(self.dictionary, np.array(readable, np.int64), self.events).tolist())
        return [None if category is None else next(now) for category in given]

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
        first = self.dictionary.seen
        out = (self.dictionary.observe if grow else self.dictionary.predict)(encoded.features, runners_up=2)
        if grow:
            self._enter(encoded, out, first)
        sightings = [
            self._sighting(item, row, error, out)
            for item, row, error in zip(encoded.items, encoded.rows, encoded.errors, strict=True)
        ]
        if grow:
            self._change_mind()
        return sightings

    def _sighting(self, item: Any, row: int | None, error: Exception | None, out: Decisions) -> Sighting:
        if row is None:
            return Sighting(item, None, None, False, None, out.cut, error=str(error))
        identity = int(out.category[row])
        pairs = zip(out.runners_up_category[row], out.runners_up_score[row], strict=True)
        return Sighting(
            image=item,
            category=identity if identity >= 0 else None,
            name=self.category(identity).name if identity >= 0 else None,  # as it was when the image was answered
            is_new=bool(out.created[row]),
            score=float(out.score[row]),
            cut=out.cut,
            runners_up=tuple((int(c), float(s)) for c, s in pairs if c >= 0),
            probability=None if out.probability is None else float(out.probability[row]),
            new_probability=None if out.new_probability is None else float(out.new_probability[row]),
        )

    def _enter(self, encoded: Block, out: Decisions, first: int) -> None:
        """Write down what was answered to a block whose first image is number `first`."""
        for category in np.unique(out.category[out.created]).tolist():
            self._categories[category] = Category(category, self._default_name(category), "discovered")
        for item, row in zip(encoded.items, encoded.rows, strict=True):
            if row is not None:
                self._count(self._categories[int(out.category[row])], item, first + row)

    def _change_mind(self) -> None:
        """Follow what the dictionary has moved, merged and dissolved by itself."""
        events = events_of(self.dictionary)
        self.events += events
        for event in events:
            if event.sighting is None:
                self._take_in(self._categories[event.source], self._categories[event.target])
            else:
                source, item = self._categories[event.source], self._shown.pop(event.sighting, None)
                source.count -= 1
                source.exemplars = [image for image in source.exemplars if image is not item]
                self._count(self._categories[event.target], item, event.sighting)
        self._follow_merges()

    def _count(self, category: Category, item: Any, number: int) -> None:
        category.count += 1
        if item is not None and len(category.exemplars) < _EXEMPLARS:
            category.exemplars.append(item)
            self._shown[number] = item

    def _default_name(self, category: int) -> str:
        return f"new-{category - self.dictionary.known + 1}"

    def _follow_merges(self) -> None:
        """Take over merges that the dictionary made, by itself or when asked."""
        for gone, survivor in self.dictionary.aliases.items():
            if self._categories[gone].merged_into is None:
                self._take_in(self._categories[gone], self._categories[int(self.dictionary.resolve([survivor])[0])])

    def _take_in(self, old: Category, new: Category) -> None:
        new.count += old.count
        if new.name == self._default_name(new.id) and old.name != self._default_name(old.id):
            new.name = old.name  # a name that a person gave outlives one that nobody did
        new.exemplars = (new.exemplars + old.exemplars)[:_EXEMPLARS]
        old.merged_into = new.id
