"""Promises of undo: an edit that can be taken back leaves no trace, one that cannot changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from newfound.curator import Curator
from newfound.discovery import BayesianDictionary, PrototypeDictionary
from newfound.errors import SettingsError
from newfound.journal import Journal
from newfound.journal.book import Book
from newfound.journal.catalogue import Catalogue
from newfound.journal.editing import undo
from newfound.journal.keeper import Image, Keeper
from newfound.journal.replaying import verify
from newfound.journal.rows import NEWFOUND, EventRow, to_json
from newfound.journal.undoing import InTheWay, to_take_back

KINDS = 8
SEEN = [0, 3, 3, 4, 4, 4, 5, 5, 6]  # sighting by sighting; 0 to 2 are known, so these are their categories too
Edit = Callable[[Curator], Any]


def fixed():
    return PrototypeDictionary(np.eye(KINDS)[:3], 0.8)


def weighing():
    sums = 6.0 * 4 * np.eye(KINDS)[:3]
    return BayesianDictionary(np.full(KINDS, 9.0), sums, [4, 4, 4], 2.0, alone=-6.0)


def curator_of(make=fixed, actor: str | None = "ada") -> Curator:
    """The categories heron, owl, wren, and new-1 to new-4 with 2, 3, 2 and 1 images."""
    journal = Journal.open(None)
    journal.begin("a model", {}, Book(make(), Catalogue(["heron", "owl", "wren"])).to_bytes())
    curator = Curator(journal, actor=actor)
    images = [Image(f"{number}.jpg", bytes([number])) for number in range(len(SEEN))]
    curator.keeper.enter(images, (6.0 if make is weighing else 1.0) * np.eye(KINDS)[SEEN])
    assert curator.keeper.standing(range(len(SEEN))) == SEEN
    return curator


def stands(curator: Curator) -> dict[str, Any]:
    """All that people see: where every image is, what every category is called, and where every id leads."""
    book = curator.keeper.book
    flags = {c: (e.ignored, e.promoted) for c, e in book.catalogue.entries.items() if e.under is None}
    return {
        "images": curator.keeper.standing(range(len(SEEN))),
        "names": {category: book.catalogue.name(category) for category in book.catalogue.living()},
        "flags": flags,
        "ids": {category: book.catalogue.resolve(category) for category in book.catalogue.entries},
    }


categories = st.integers(0, 9)
some_images = st.lists(st.integers(0, len(SEEN) - 1), min_size=1, max_size=4, unique=True)
edits = st.one_of(
    st.builds(lambda c, name: ("rename", c, f"name {name}"), categories, st.integers(0, 10**9)),
    st.builds(lambda c, d: ("merge", [c, d]), categories, categories),
    st.builds(lambda c, numbers: ("split", c, numbers), categories, some_images),
    st.builds(lambda numbers, c: ("move", numbers, c), some_images, categories),
    st.builds(lambda verb, c: (verb, c), st.sampled_from(["ignore", "promote"]), categories),
    st.builds(lambda at: ("undo", at), st.integers(0, 20)),
)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([fixed, weighing]), st.lists(edits, min_size=2, max_size=12))
def test_what_is_taken_back_was_never_there_and_what_is_refused_changes_nothing(make, actions):
    curator = curator_of(make)
    done: list[tuple[Any, ...]] = []  # every edit that was accepted, by the number of its event
    undone: set[int] = set()
    for verb, *given_ in actions:
        events = len(done)
        try:
            getattr(curator, verb)(*given_)
            undone |= set(given_) if verb == "undo" else set()
        except SettingsError:
            assert curator.keeper.journal.position().events == events
        if curator.keeper.journal.position().events > events:  # what is so already, as a merge of one, is none
            done.append((verb, *given_))

    never = curator_of(make)
    for number, (verb, *given_) in enumerate(done):
        if verb == "undo" or (number in undone and verb != "split"):
            continue
        getattr(never, verb)(*given_)
        if number in undone:  # an id that was given out is never given out again
            never.undo()
    assert stands(curator) == stands(never)
    assert verify(curator.keeper.journal).fine
    assert Keeper(curator.keeper.journal).book.to_bytes() == curator.keeper.book.to_bytes()


@pytest.mark.parametrize("edit", [lambda c: c.move([3, 4], 5), lambda c: c.split(4, [3, 4]), lambda c: c.move([3], 4)])
def test_images_that_are_put_back_are_free_again_and_those_of_an_earlier_edit_stay(edit):
    curator = curator_of(weighing)
    curator.move([4], 4)  # it is there, and a person says that it is right
    edit(curator)
    assert 3 in curator.keeper.journal.pinned(range(len(SEEN)))
    curator.undo()
    assert curator.keeper.standing(range(len(SEEN))) == SEEN
    assert curator.keeper.journal.pinned(range(len(SEEN))) == {4}
    assert verify(curator.keeper.journal).fine


def test_an_undo_of_an_older_newfound_leaves_images_where_it_put_them_for_good():
    curator = curator_of(weighing)
    curator.move([3, 4], 5)
    event = to_take_back(curator.keeper.journal)
    for change in event.details["back"]:
        change.pop("pinned", None)
    curator.keeper.edit(lambda _, writer: undo(event, writer.place([3, 4])))
    assert curator.keeper.journal.pinned(range(len(SEEN))) == {3, 4}
    assert verify(curator.keeper.journal).fine


def rename(category: int, name: str = "name") -> Edit:
    return lambda curator: curator.rename(category, f"{name} of {category}")


def merge(*categories: int) -> Edit:
    return lambda curator: curator.merge(categories)


def split(category: int, *numbers: int) -> Edit:
    return lambda curator: curator.split(category, numbers)


def move(category: int, *numbers: int) -> Edit:
    return lambda curator: curator.move(numbers, category)


def ignore(category: int) -> Edit:
    return lambda curator: curator.ignore(category)


def promote(category: int) -> Edit:
    return lambda curator: curator.promote(category)


# Images 1 and 2 are in category 3; 3, 4 and 5 in 4; 6 and 7 in 5; 8 in 6. A split makes category 7.
@pytest.mark.parametrize(
    ("edit", "later", "shared"),
    [
        (rename(3), rename(3, "another name"), "category 3"),
        (rename(3), promote(3), "category 3"),
        (rename(3), merge(3, 4), "category 3"),
        (rename(4), merge(3, 4), "category 4"),
        (rename(3), move(4, 1, 2), "category 3"),  # which is left empty, and takes its name along
        (merge(3, 4), rename(4), "category 3"),  # where 4 lives
        (merge(3, 4), merge(3, 5), "category 3"),
        (merge(3, 4), move(3, 6), "category 3"),
        (merge(3, 4), move(5, 3), "category 3"),
        (split(3, 1), rename(7), "category 7"),
        (split(3, 1), move(7, 6), "category 7"),
        (split(3, 1), move(4, 2), "category 3"),  # without the split, an image would be left in 3
        (move(4, 1), move(5, 1), "sighting 1"),
        (move(4, 1), move(4, 2), "category 3"),
        (move(4, 1), merge(3, 5), "category 3"),
        (move(4, 1), merge(4, 5), "category 4"),
        (move(4, 1), move(5, 3), "category 4"),  # taken out of where the other one went
        (move(4, 1, 2), rename(4), "category 4"),  # where 3 lives on
        (move(4, 1, 2), move(3, 6), "category 4"),
    ],
)
def test_a_later_edit_of_the_same_is_in_the_way_until_it_is_taken_back(edit, later, shared):
    curator = curator_of()
    at_first = stands(curator)
    edit(curator)
    later(curator)
    before = curator.keeper.book.to_bytes()
    with pytest.raises(InTheWay, match=f"event 0, .* by ada, cannot .*: event 1, .* by ada, came later and .*{shared}"):
        curator.undo(0)
    assert curator.keeper.book.to_bytes() == before
    assert curator.keeper.journal.position().events == 2
    curator.undo(1)
    curator.undo(0)
    ids = stands(curator)
    assert {**ids, "ids": {c: ids["ids"][c] for c in at_first["ids"]}} == at_first


@pytest.mark.parametrize(
    ("edit", "later"),
    [
        (rename(3), rename(4)),
        (rename(3), move(3, 3)),
        (rename(3), move(4, 1)),
        (rename(3), split(3, 1)),
        (ignore(3), move(3, 3)),
        (merge(3, 4), merge(5, 6)),
        (merge(3, 4), move(0, 6)),
        (split(4, 3), move(4, 1)),
        (split(4, 3), move(5, 4)),
        (move(4, 1), rename(4)),
        (move(4, 1), rename(3)),
        (move(5, 3), move(5, 4)),  # both from 4 to 5: two people at the doubt queue
        (move(5, 3), move(4, 1)),
    ],
)
def test_other_edits_stand_in_nobodys_way(edit, later):
    curator, alone = curator_of(), curator_of()
    edit(curator)
    later(curator)
    curator.undo(0)
    later(alone)
    ours, theirs = stands(curator), stands(alone)
    assert ours["images"] == theirs["images"]
    assert {c: ours["names"][c] for c in theirs["names"]} == theirs["names"]
    assert verify(curator.keeper.journal).fine


def test_a_name_that_went_along_with_the_last_image_is_taken_back_with_it():
    curator = curator_of()
    curator.rename(6, "tern")
    curator.move([8], 3)
    assert curator.category(3).name == curator.category(6).name == "tern"
    curator.undo()
    assert (curator.category(3).name, curator.category(6).name) == ("new-1", "tern")


def test_a_name_that_went_along_stays_when_there_is_no_image_left_to_take_back():
    curator = curator_of()
    curator.rename(6, "tern")
    curator.move([8], 3)
    curator.forget([8])
    curator.undo()
    assert curator.category(6).name == "tern"


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "event 0 has been taken back already: event 1, undone by ada"),
        (1, "event 1 took event 0 back: do that again"),
        (2, "event 2, forgotten by ada, cannot be taken back"),
        (3, "no event 3"),
        (-1, "no event -1"),
        (10**30, "no event 1"),
    ],
)
def test_what_cannot_be_taken_back_is_refused_in_words(number, words):
    curator = curator_of()
    curator.rename(3, "tern")
    curator.undo()
    curator.forget([8])
    with pytest.raises(SettingsError, match=words) as told:
        curator.undo(number)
    assert not isinstance(told.value, InTheWay)
    assert curator.keeper.journal.position().events == 3


def test_what_newfound_did_by_itself_is_not_for_people_to_take_back():
    journal = curator_of().keeper.journal
    moved = {"parts": [3, 4], "from": 3, "to": 4, "sighting": 1}
    with journal.writing() as writer:
        writer.append((), (EventRow(0, len(SEEN), "moved", NEWFOUND, 0.0, moved),))
    with pytest.raises(SettingsError, match="event 0 is not what a person did"):
        to_take_back(journal, 0)


def test_who_has_a_name_takes_back_what_was_done_in_that_name_and_who_has_none_the_last_edit():
    ada = curator_of()
    bo = Curator(ada.keeper.journal, actor="bo")
    ada.rename(3, "tern")
    bo.rename(4, "gull")
    bo.rename(5, "crow")
    assert ada.undo().details["event"] == 0
    with pytest.raises(SettingsError, match="nothing of ada to undo; the last edit is event 2, renamed by bo: name"):
        ada.undo()
    assert ada.undo(1).details["event"] == 1, "but anything that is asked for by its number"
    assert Curator(ada.keeper.journal).undo().details["event"] == 2
    with pytest.raises(SettingsError, match="there is nothing to undo"):
        ada.undo()


def test_an_edit_tells_its_number_and_one_that_changes_nothing_has_none():
    curator = curator_of()
    curator.rename(3, "tern")
    assert curator.last_edit == 0
    curator.merge([3, 3])
    assert curator.last_edit is None
    curator.ignore(3, 4)
    assert curator.last_edit == 1
    assert curator.undo(curator.last_edit).details["was"] == "ignored"


@pytest.mark.parametrize("make", [fixed, weighing])
@pytest.mark.parametrize(
    "edit",
    [
        lambda curator: curator.rename(3, " tern "),
        lambda curator: curator.rename(0, "heron"),
        lambda curator: curator.ignore(3, 4),
        lambda curator: curator.ignore(5, on=False),
        lambda curator: curator.promote(3),
        lambda curator: curator.move([1, 3], 3),
        lambda curator: curator.move([7], 8),  # where a split has put it
    ],
)
def test_what_is_so_already_is_no_event_and_leaves_all_as_it_is(make, edit):
    curator = curator_of(make)
    curator.rename(3, "tern")
    curator.promote(3)
    curator.ignore(3, 4)
    curator.move([1], 3)
    curator.move([3], 3)
    curator.split(4, [4])
    curator.split(5, [7])
    before = curator.keeper.book.to_bytes()
    edit(curator)
    assert curator.last_edit is None
    assert curator.keeper.journal.position().events == 7
    assert curator.keeper.book.to_bytes() == before
    assert verify(curator.keeper.journal).fine


def test_of_what_is_so_in_part_all_is_an_edit():
    """So that what is said of each image and category stands, even if an earlier edit that said it is taken back."""
    curator = curator_of()
    curator.ignore(3)
    curator.ignore(3, 4)
    curator.move([1], 4)
    curator.move([1, 2], 4)
    assert [event.details.get("sightings", event.details.get("categories")) for event in curator.events()] == [
        [3], [3, 4], [1], [1, 2],
    ]  # fmt: skip


def test_that_an_image_is_right_where_it_is_can_be_said_once_and_again_when_that_was_taken_back():
    curator = curator_of()
    for edit in (0, None):
        curator.move([1], 3)
        assert curator.last_edit == edit
    curator.undo(0)
    curator.move([1], 3)
    assert curator.last_edit == 2


def test_an_image_of_what_was_merged_into_a_category_can_be_put_into_it_for_good():
    curator = curator_of()
    curator.move([1], 3)
    curator.merge([0, 3])
    curator.move([1], 0)  # it was in 0 through the merge alone
    assert curator.last_edit == 2
    curator.move([1], 3)
    assert curator.last_edit is None


def test_of_a_move_of_an_older_newfound_nobody_knows_what_it_emptied():
    """So anything done later to its categories is in the way."""
    curator = curator_of()
    curator.move([1], 4)
    with curator.keeper.journal.writing() as writer:
        old = {name: value for name, value in curator.events()[0].details.items() if name != "emptied"}
        writer._connection.exec_driver_sql("UPDATE events SET details = ? WHERE number = 0", (to_json(old),))
    curator.rename(4, "gull")
    with pytest.raises(InTheWay, match="category 4"):
        curator.undo(0)
    curator.undo(1)
    curator.undo(0)
    assert curator.keeper.standing(range(len(SEEN))) == SEEN
