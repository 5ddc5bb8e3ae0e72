"""What a discoverer answers: sightings of images, and the categories they belong to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

from newfound.datasets import item_name
from newfound.journal.rows import SightingRow


@dataclass(frozen=True)
class Sighting:
    """One image and what was decided about it: a score and the cut it was held against.

    `category` is None where nothing was decided: the image could not be read (`error` says why), or `predict` would
    have founded a new category (`is_new`). A dictionary that weighs evidence also says how probable its answer is, and
    how probable it is that the image is of no category there was, and in `runners_up_probability` that it is of each of
    the runners-up; that is empty where an older newfound entered the image. Where the score is below the cut and the
    image is not new, the answer is doubtful: a second image like it would found a category.

    `number` is its place in the journal. An image whose very content is in the journal already is `repeated`: nothing
    was decided anew, and the sighting says what was decided then and where the image is now.
    """

    image: Any
    category: int | None
    name: str | None
    is_new: bool
    score: float | None
    cut: float | None  # None only where all about the image was forgotten
    runners_up: tuple[tuple[int, float], ...] = ()
    error: str | None = None
    probability: float | None = None
    new_probability: float | None = None
    number: int | None = None
    repeated: bool = False
    runners_up_probability: tuple[float, ...] = ()

    def as_dict(self, index: int = 0) -> dict[str, Any]:
        """Ready for JSON; `index` names an image that has no path."""
        values = {f.name: getattr(self, f.name) for f in fields(self)} | {"image": item_name(self.image, index)}
        values["runners_up"] = [list(pair) for pair in self.runners_up]
        values["runners_up_probability"] = list(self.runners_up_probability) or None
        values["repeated"] = self.repeated or None
        optional = ("error", "probability", "new_probability", "runners_up_probability", "number", "repeated")
        return {k: v for k, v in values.items() if v is not None or k not in optional}

    @classmethod
    def of(cls, row: SightingRow, image: Any, name: str | None, **changes: Any) -> Sighting:
        """The sighting that a row of the journal tells of; one without a category has -1 there."""
        category = row.category if row.category >= 0 else None
        told: dict[str, Any] = {
            "category": category,
            "is_new": row.created,
            "number": row.number if row.number >= 0 else None,
            **changes,
        }
        return cls(
            image=image,
            name=name,
            score=row.score,
            cut=row.cut,
            runners_up=row.runners_up,
            probability=row.probability,
            new_probability=row.new_probability,
            runners_up_probability=row.runners_up_probability,
            **told,
        )


@dataclass
class Category:
    """A stable id that is never reused, and what is known of it."""

    id: int
    name: str
    origin: str  # "known" or "discovered"
    count: int = 0  # sightings; the images it was taught from are not counted
    merged_into: int | None = None
    ignored: bool = False
    promoted: bool = False
    _show: Callable[[], list[Any]] = field(default=list, repr=False, compare=False)

    @property
    def exemplars(self) -> list[Any]:
        """Some of its images, oldest first, as they were given or, from an older session, by name."""
        return self._show()

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON, without the exemplars."""
        return {f.name: getattr(self, f.name) for f in fields(self) if not f.name.startswith("_")}
