"""What people do to categories, as events: changes to apply, and what would take them back.

An event is never edited. Its details hold ``changes``, which the book applies, and ``back``, which undo makes the
changes of an event of its own. There are five changes:

    name   {category, name}                     a name, None for the one it has until it gets one
    under  {category, under}                    lives on under another category, None for its own id
    flag   {category, flag, on}                 ignored or promoted
    cut    {cut}                                what scores are held against from now on
    place  {sightings, sources, category}       sightings belong to a category; one that is not there yet is founded

``sources`` are the parts that sightings come from, which undo looks up when it is asked for: they may have moved since.
Sightings that a person puts somewhere stay there, whatever the dictionary thinks of them later. To put them back frees
them again, but for those that a person had put there: their numbers are ``pinned`` (in journals of before, all stay).
What is so already, all of it, has no changes, and becomes no event.
"""

from __future__ import annotations

import getpass
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from newfound.errors import SettingsError
from newfound.journal.catalogue import Catalogue
from newfound.journal.rows import NEWFOUND, EventRow
from newfound.journal.undoing import UNDONE

Edit = tuple[str, dict[str, Any]]  # an event's kind and details


def person(name: str | None) -> str:
    """Who edits: the name that is given, else the user's.

    Raises:
        SettingsError: It is newfound, the actor of what happens by itself: a replay would pass the edits over.
    """
    if name is not None and not isinstance(name, str):
        raise SettingsError(f"actor is {name!r}; give the name of a person, as text.")
    if name == NEWFOUND:
        raise SettingsError(f"{NEWFOUND!r} is who changes things by itself; give the name of a person.")
    try:
        name = name or getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container's user may have no name
        return "someone"
    return f"user {name}" if name == NEWFOUND else name


def rename(catalogue: Catalogue, category: int, name: str) -> Edit:
    """Give a category a name of one's own."""
    if not isinstance(name, str):
        raise SettingsError(f"a category's name is text, not {name!r}.")
    if not name.strip():
        raise SettingsError("a category's name cannot be empty.")
    if any(unicodedata.category(letter) == "Cc" for letter in name.strip()):
        raise SettingsError(f"a category's name is one line of text, without control characters: {name!r}.")
    category, name = catalogue.resolve(category), name.strip()
    before = catalogue.entries[category].name
    return "renamed", {
        "category": category,
        "name": name,
        "changes": [] if name == before else [{"op": "name", "category": category, "name": name}],
        "back": [{"op": "name", "category": category, "name": before}],
    }


def merge(catalogue: Catalogue, categories: Iterable[int]) -> Edit:
    """Make one category of several: the known one, else the oldest, lives on."""
    if not isinstance(categories, Iterable):
        raise SettingsError(f"merge needs the ids of several categories, such as [7, 9], not {categories!r}.")
    homes = sorted({catalogue.resolve(category) for category in categories})
    if not homes:
        raise SettingsError("merge needs the ids of the categories to make one of.")
    known = [category for category in homes if catalogue.entries[category].known]
    if len(known) > 1:
        raise SettingsError(f"categories {known[0]} and {known[1]} are both known: known ones stay apart.")
    survivor = (known or homes)[0]
    others = [category for category in homes if category != survivor]
    changes: list[dict[str, Any]] = [{"op": "under", "category": other, "under": survivor} for other in others]
    back: list[dict[str, Any]] = [{"op": "under", "category": other, "under": None} for other in others]
    names = (catalogue.entries[other].name for other in others)
    name = next((name for name in names if name is not None), None)
    if catalogue.entries[survivor].name is None and name is not None:  # a name that a person gave outlives
        changes.append({"op": "name", "category": survivor, "name": name})
        back.append({"op": "name", "category": survivor, "name": None})
    marked = any(catalogue.entries[other].promoted for other in others)
    if marked and not known and not catalogue.entries[survivor].promoted:
        changes.append({"op": "flag", "category": survivor, "flag": "promoted", "on": True})
        back.append({"op": "flag", "category": survivor, "flag": "promoted", "on": False})
    return "merged", {"category": survivor, "merged": others, "changes": changes, "back": back}


def split(catalogue: Catalogue, places: Mapping[int, int], category: int, pinned: Collection[int] = ()) -> Edit:
    """Make a new category of some sightings of one; ``places`` and ``pinned`` as for `move`."""
    home = catalogue.resolve(category)
    if not places:
        raise SettingsError(f"name the images of category {home} to split off.")
    for number, part in places.items():
        if catalogue.of_part(part) != home:
            raise SettingsError(
                f"sighting {number} is in category {catalogue.of_part(part)}, not in {home}: move it, or split that."
            )
    _, details = move(catalogue, places, catalogue.next_id, pinned)
    return "split", details | {"of": home}


def move(catalogue: Catalogue, places: Mapping[int, int], category: int, pinned: Collection[int] = ()) -> Edit:
    """Say that sightings belong to a category.

    Args:
        places: the parts that they are in.
        pinned: those of them that a person has put there.
    """
    if not places:
        raise SettingsError("name the images to move.")
    target = catalogue.resolve(category) if category != catalogue.next_id else category
    numbers = sorted(places)
    came_from: dict[int, list[int]] = {}
    for number in numbers:
        came_from.setdefault(catalogue.owner(places[number]), []).append(number)
    back: list[dict[str, Any]] = []
    for owner, group in came_from.items():
        stay = [number for number in group if number in pinned]
        back.append({"op": "place", "sightings": group, "category": owner, "pinned": stay})
        if (under := catalogue.entries[owner].under) is not None:  # merged: it gets its own back, and stays merged
            back.append({"op": "under", "category": owner, "under": under})
    return "moved", {
        "category": target,
        "sightings": numbers,
        "changes": [place(places, target)],
        "back": back,
    }


def place(places: Mapping[int, int], category: int) -> dict[str, Any]:
    numbers = sorted(places)
    sources = [places[number] for number in numbers]
    return {"op": "place", "sightings": numbers, "sources": sources, "category": category}


def flag(catalogue: Catalogue, categories: Iterable[int], name: str, on: bool) -> Edit:
    """Ignore or promote categories, or stop doing so."""
    homes = sorted({catalogue.resolve(category) for category in categories})
    if not homes:
        raise SettingsError("name the categories.")
    for category in homes:
        entry = catalogue.entries[category]
        if entry.known:
            raise SettingsError(f"category {category} ({entry.name}) is known; only discovered ones can be {name}.")
        if name == "promoted" and on and entry.name is None:
            raise SettingsError(
                f"category {category} has no name of its own yet, and a class needs one: rename it first."
            )
        if name == "promoted" and on:
            _must_be_one_of_a_kind(catalogue, category)
    before = {category: getattr(catalogue.entries[category], name) for category in homes}
    changes = [{"op": "flag", "category": c, "flag": name, "on": on} for c in homes]
    return name, {
        "categories": homes,
        "on": on,
        "changes": [] if set(before.values()) == {on} else changes,
        "back": [{"op": "flag", "category": c, "flag": name, "on": was} for c, was in before.items()],
    }


def _must_be_one_of_a_kind(catalogue: Catalogue, category: int) -> None:
    """Refuses to promote a second category of one name: two classes would be taught as one."""
    entries = catalogue.entries
    for other, entry in entries.items():
        taken = entry.name == entries[category].name and (entry.known or entry.promoted) and entry.under is None
        if taken and other != category:
            raise SettingsError(f"category {other} is called {entry.name} already: merge the two, or rename one.")


def recut(before: float, cut: float) -> Edit:
    """Hold scores against another cut from now on."""
    return "recut", {"before": before, "cut": cut, "changes": [{"op": "cut", "cut": cut}]}


def undo(event: EventRow, where: Mapping[int, int]) -> Edit:
    """Take an event back; ``where`` are the parts that the sightings it placed, and that are still there, are in.

    If it placed some and none is left, nothing changes: a name that went along stays where the category lives now.
    """
    changes = []
    nothing_left = bool(placed(event)) and not where
    for change in () if nothing_left else event.details["back"]:
        if change["op"] == "place":
            left = {number: where[number] for number in change["sightings"] if number in where}
            if not left:
                continue
            stay = {"pinned": [n for n in change["pinned"] if n in left]} if "pinned" in change else {}
            change = place(left, change["category"]) | stay
        changes.append(change)
    if event.kind == "merged":  # its last part may have gone to one of those that were merged into it
        changes.append({"op": "under", "category": event.details["category"], "under": None})
    return UNDONE, {"event": event.number, "was": event.kind, "changes": changes}


def placed(event: EventRow) -> list[int]:
    """The sightings that taking an event back would place."""
    return [number for change in event.details["back"] if change["op"] == "place" for number in change["sightings"]]
