"""What was taken back is said in words: the edit, its categories by id and name, and how many images."""

from __future__ import annotations

import numpy as np
import pytest

from newfound.cli._undone import undone
from newfound.curator import Curator
from newfound.discovery import PrototypeDictionary
from newfound.journal import Journal
from newfound.journal.book import Book
from newfound.journal.catalogue import Catalogue
from newfound.journal.keeper import Image

SEEN = [0, 0, 0, 2, 2, 3, 4]  # sighting by sighting: heron three times, new-1 twice, new-2 and new-3 once


@pytest.fixture
def curator() -> Curator:
    journal = Journal.open(None)
    journal.begin("a model", {}, Book(PrototypeDictionary(np.eye(8)[:2], 0.8), Catalogue(["heron", "owl"])).to_bytes())
    curator = Curator(journal, actor="ada")
    curator.keeper.enter([Image(f"{number}.jpg") for number in range(len(SEEN))], np.eye(8)[SEEN])
    assert curator.keeper.standing(range(len(SEEN))) == SEEN
    return curator


@pytest.mark.parametrize(
    ("verb", "given", "told"),
    [
        ("rename", (2, "tern"), "renamed (event 0, by ada): category 2 is new-1 again, no longer tern"),
        ("merge", ([0, 2],), "merged (event 0, by ada): category 2 (new-1) is apart from category 0 (heron) again"),
        ("merge", ([4, 2, 3],), "merged (event 0, by ada): categories 3 (new-2), 4 (new-3) are apart from category 2"),
        ("move", ([0, 1], 1), "2 images are back in category 0 (heron), out of category 1 (owl)"),
        ("move", ([0, 3], 1), "2 images are back in categories 0 (heron), 2 (new-1), out of category 1 (owl)"),
        ("move", ([0], 0), "1 image stays in category 0 (heron), no longer by a person's word"),
        ("split", (0, [0]), "1 image is back in category 0 (heron), out of category 5 (new-4)"),
        ("ignore", (2, 3), "ignored (event 0, by ada): categories 2 (new-1), 3 (new-2) are no longer ignored"),
    ],
)
def test_every_kind_of_edit_is_told(curator, verb, given, told):
    getattr(curator, verb)(*given)
    assert told in undone(curator, curator.undo())


def test_a_mark_that_was_taken_off_is_there_again(curator):
    curator.ignore(2)
    curator.ignore(2, 3, on=False)
    assert undone(curator, curator.undo()).endswith(": category 2 (new-1) is ignored again")


def test_images_that_are_forgotten_are_not_said_to_be_back(curator):
    curator.move([0], 1)
    curator.forget([0])
    assert undone(curator, curator.undo()).endswith("its images have been forgotten, so nothing was put back")


def test_of_many_categories_the_first_are_named(curator):
    for number in (0, 1, 2):
        curator.split(0, [number])
    curator.ignore(*range(2, 8))
    assert "7" not in (told := undone(curator, curator.undo()))
    assert "6 (new-5) and 1 more are no longer ignored" in told
