"""Which edit undo takes back, and which later edits stand in its way.

An edit can be taken back as long as no later edit that stands (that is, has not been taken back itself) has to do with
what it changed:

    rename, ignore, promote   say something of a category
    merge                     says something of all the categories that it makes one of, and shapes them
    move, split               move images out of categories and into one; a split shapes the one that it founds, and
                              both shape what they leave without images and where that lives on

Two edits have to do with each other if they move the same image, or say something of or shape the same category; if one
shapes a category that the other moves images out of or into; or if the later one takes images out of the category that
the earlier one put some into, which without it might have been left empty. All others can change places: what is left
is what the journal without the edit would have come to, in ids and names. So a rename can be taken back whatever is
moved meanwhile, and a move whatever other images are moved from and to where its own were.

``forget`` is never taken back, nor a cut; neither stands in the way of others, and forgotten images stay away. What the
dictionary does by itself stands in nobody's way. But where the book was rebuilt, what would have been without an edit
may not be known any more, and the edit stays: any from before the journal was carried to another model, whose classes
go by it; and a merge from before something was forgotten, of a category that has no part of its own left.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from newfound._arguments import is_whole
from newfound.errors import SettingsError
from newfound.journal.book import Book, Lookup
from newfound.journal.catalogue import Catalogue
from newfound.journal.reading import Reader
from newfound.journal.rows import EventRow

UNDONE = "undone"
CARRIED = "carried"
FOR_GOOD = ("forgotten", "recut", CARRIED)  # kinds that undo passes over: gone for good, or nothing done to a category
_MOVES = ("moved", "split")


class InTheWay(SettingsError):
    """An edit that cannot be taken back as long as a later one stands."""


@dataclass(frozen=True)
class _Touched:
    """What an edit has to do with: numbers of sightings, and ids of categories."""

    images: frozenset[int] = frozenset()
    said: frozenset[int] = frozenset()  # renamed, marked, merged, founded, emptied
    shaped: frozenset[int] = frozenset()  # those of them that came, went or became one
    left: frozenset[int] = frozenset()  # images were moved out of
    joined: frozenset[int] = frozenset()  # images were moved into

    def shared(self, later: _Touched) -> str | None:
        """What a later edit has to do with too, in words; None if the two can change places."""
        images = self.images & later.images
        if images:
            return f"sighting {min(images)}"
        categories = (
            (self.said & later.said)
            | (self.shaped & (later.left | later.joined))
            | ((self.left | self.joined) & later.shaped)
            | (self.joined & later.left)
        )
        return f"category {min(categories)}" if categories else None


def to_take_back(reader: Reader, number: int | None = None, by: str | None = None) -> EventRow:
    """The edit with a number; without one, the last that stands, or the last of an actor.

    Raises:
        InTheWay: A later edit stands in its way.
        SettingsError: It is no edit, has been taken back or never can be, as if it came before the journal was carried
            to another model; or there is none.
    """
    if number is not None and not (is_whole(number) and 0 <= number < reader.position().events):
        raise SettingsError(f"there is no event {number!r} in {reader.name}.")
    carried = _carried(reader)
    if number is not None and number < carried:
        raise SettingsError(
            f"event {number} came before the journal was carried to another model, which goes by what was left of it: "
            "it cannot be taken back. Put it right with another edit."
        )
    undone: dict[int, EventRow] = {}
    later: list[EventRow] = []
    for event in reader.events(since=carried if number is None else number, newest_first=True, derived=False):
        if event.kind == UNDONE:
            undone[event.details["event"]] = event
        if event.number == number:
            _must_stand(event, undone.get(number))
        if event.number in undone or event.kind in (UNDONE, *FOR_GOOD):
            continue
        if event.number == number or (number is None and by in (None, event.actor)):
            _must_be_free(event, later)
            return event
        later.append(event)
    if number is not None:
        raise SettingsError(f"event {number} is not what a person did: there is nothing to take back.")
    if by is None or not later:
        since = " since the journal was carried to another model" if carried else ""
        raise SettingsError(f"there is nothing to undo{since}.")
    raise SettingsError(f"there is nothing of {by} to undo; the last edit is {_called(later[0])}: name that event.")


def must_come_apart(reader: Reader, catalogue: Catalogue, edit: EventRow) -> None:
    """Refuses a merge of which nobody knows any more where its categories would be without it.

    A category whose last part the dictionary took out lives on where that went. Since a book was rebuilt without what
    was forgotten, it knows of no such part.

    Raises:
        SettingsError: It is such a merge.
    """
    if edit.kind != "merged" or not reader.events(since=edit.number, kinds=("forgotten",), limit=1):
        return
    for category in catalogue.without_a_part(edit.details["category"], edit.details["merged"]):
        raise SettingsError(
            f"{_called(edit)}, cannot be taken back: category {category} has no images of its own left, and since some "
            "were forgotten it is not known where those went that it had. Put it right with another edit."
        )


def decided(reader: Reader, numbers: Iterable[int]) -> bool:
    """Whether a person has put all of these sightings somewhere, by moves and splits that stand."""
    left = set(numbers)
    if reader.pinned(left) != left:  # the rule, and quick; what older versions took back stays pinned, though
        return False
    undone: set[int] = set()
    for event in reader.events(kinds=(*_MOVES, UNDONE), newest_first=True, derived=False):
        if event.kind == UNDONE:
            undone.add(event.details["event"])
        elif event.number not in undone:
            left.difference_update(event.details["sightings"])
    return not left


def apply_and_note(book: Book, event: EventRow, lookup: Lookup) -> dict[int, tuple[int, bool]]:
    """As `Book.apply` for an edit that is made now: a move then says which categories it left without images.

    A name that went along with the images is taken back with them.
    """
    if event.kind not in _MOVES:
        return book.apply(event, lookup)
    details, entries = event.details, book.catalogue.entries
    target = details["category"]
    homes = {book.catalogue.resolve(category) for category in _came_from(event)}
    named = target in entries and entries[target].name is not None
    places = book.apply(event, lookup)
    details["emptied"] = sorted(home for home in homes if entries[home].under is not None)
    if not named and entries[target].name is not None:
        details["back"].append({"op": "name", "category": target, "name": None})
    return places


def _carried(reader: Reader) -> int:
    """How many events came before the journal was last carried to another model; 0 if it never was."""
    if reader.model().id == 1:
        return 0
    told = reader.events(kinds=(CARRIED,), newest_first=True, limit=1)
    return told[0].number if told else reader.genesis().position.events  # by an older newfound, which noted nothing


def _must_stand(event: EventRow, undo: EventRow | None) -> None:
    if undo is not None:
        raise SettingsError(f"event {event.number} has been taken back already: {_called(undo)}.")
    if event.kind == UNDONE:
        raise SettingsError(f"event {event.number} took event {event.details['event']} back: do that again instead.")
    if event.kind in FOR_GOOD:
        raise SettingsError(f"{_called(event)}, cannot be taken back.")


def _must_be_free(event: EventRow, later: list[EventRow]) -> None:
    """Refuses an edit that one of the later ones, newest first, stands in the way of."""
    touched = _touched(event)
    for other in later:
        shared = touched.shared(_touched(other))
        if shared is not None:
            raise InTheWay(
                f"{_called(event)}, cannot be taken back: {_called(other)}, came later and has to do with {shared} "
                "too. Take that back first."
            )


def _called(event: EventRow) -> str:
    return f"event {event.number}, {event.kind} by {event.actor}"


def _touched(event: EventRow) -> _Touched:
    details = event.details
    if event.kind not in _MOVES:
        said = frozenset((*details.get("categories", ()), *details.get("merged", ())))
        said |= {details["category"]} if "category" in details else set()
        return _Touched(said=said, shaped=said if event.kind == "merged" else frozenset())
    left, joined = frozenset(_came_from(event)), frozenset({details["category"]})
    shaped = joined if event.kind == "split" else frozenset()
    emptied = details.get("emptied")
    if emptied is None:  # the event of an older newfound: anything may have been emptied
        shaped |= left | joined
    elif emptied:
        shaped |= joined.union(emptied)
    return _Touched(frozenset(details["sightings"]), shaped, shaped, left, joined)


def _came_from(event: EventRow) -> set[int]:
    """The categories that a move took images out of, and what those lived on under."""
    places = [change for change in event.details["back"] if change["op"] in ("place", "under")]
    ids = {change[name] for change in places for name in ("category", "under") if name in change}
    return ids | ({event.details["of"]} if "of" in event.details else set())
