"""What `newfound categories RUN undo` says: which edit was taken back, of which categories and how many images."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from newfound._words import counted

if TYPE_CHECKING:
    from newfound.curator import Curator
    from newfound.journal.rows import EventRow

_NAMED = 5  # categories of a long list


def undone(curator: Curator, undo: EventRow) -> str:
    """A line on what `Curator.undo` has just done."""
    (edit,) = curator.keeper.journal.events(since=undo.details["event"], limit=1)
    return f"undone: {edit.kind} (event {edit.number}, by {edit.actor}): {_told(curator, edit, undo)}"


def _told(curator: Curator, edit: EventRow, undo: EventRow) -> str:
    names = {category.id: category.name for category in curator.categories(merged=True)}
    details = edit.details
    match edit.kind:
        case "renamed":
            category = details["category"]
            return f"category {category} is {names[category]} again, no longer {details['name']}"
        case "merged":
            others = _listed(details["merged"], names)
            return f"{others} {_are(details['merged'])} apart from {_listed([details['category']], names)} again"
        case "moved" | "split":
            return _images(curator, details["category"], undo.details["changes"], names)
        case mark:
            changed = [back["category"] for back in details["back"] if back["on"] != details["on"]]
            again = f"no longer {mark}" if details["on"] else f"{mark} again"
            return f"{_listed(changed, names)} {_are(changed)} {again}"


def _images(curator: Curator, target: int, changes: Iterable[dict[str, Any]], names: dict[int, str]) -> str:
    placed = [change for change in changes if change["op"] == "place"]
    if not placed:
        return "its images have been forgotten, so nothing was put back"
    count = sum(len(change["sightings"]) for change in placed)
    homes = sorted({curator.category(change["category"]).id for change in placed})
    if homes == [target]:
        where = _listed(homes, names)
        return f"{counted(count, 'image stays', 'images stay')} in {where}, no longer by a person's word"
    left = _listed([target], names)
    return f"{counted(count, 'image is', 'images are')} back in {_listed(homes, names)}, out of {left}"


def _listed(categories: list[int], names: dict[int, str]) -> str:
    """`category 7 (heron)`, `categories 7 (heron), 9 (new-2)`; of a long list the first ones."""
    told = ", ".join(f"{category} ({names[category]})" for category in categories[:_NAMED])
    more = f" and {len(categories) - _NAMED} more" if len(categories) > _NAMED else ""
    return f"{'category' if len(categories) == 1 else 'categories'} {told}{more}"


def _are(categories: list[int]) -> str:
    return "is" if len(categories) == 1 else "are"
