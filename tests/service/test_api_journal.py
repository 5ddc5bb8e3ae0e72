"""What the service asks the journal: pages of parts, and facts."""

from __future__ import annotations

import numpy as np
import pytest

from newfound.discovery import BayesianDictionary, PrototypeDictionary
from newfound.journal import Journal, SightingRow
from newfound.service.space import nearest, space_of


@pytest.fixture
def journal():
    """Twelve sightings in the parts 0, 1, 2 in turn; 0 and 3 were moved to part 1 later."""
    with Journal.open(None) as journal:
        journal.begin("model", {}, b"genesis")
        rows = [
            SightingRow(n, None, None, n % 3, n % 3, n < 3, 0.5, 0.4, None, None, ((7, 0.25),), b"", 1, 100.0 + n)
            for n in range(12)
        ]
        with journal.writing() as writer:
            writer.append(rows, (), {0: (1, True), 3: (1, False)})
        yield journal


def test_a_page_has_the_members_of_parts_by_number_wherever_they_were_answered(journal):
    def numbers(parts, **limits):
        return [row.number for row in journal.page(parts, **limits)]

    assert numbers([1]) == [0, 1, 3, 4, 7, 10]
    assert numbers([0]) == [6, 9]
    assert numbers([1], limit=3) == [0, 1, 3]
    assert numbers([1], limit=2, after=3) == [4, 7]
    assert numbers([1], limit=3, after=7, newest_first=True) == [4, 3, 1]
    assert numbers([0, 2], newest_first=True) == [11, 9, 8, 6, 5, 2]
    assert numbers([]) == []
    assert journal.count_members([1], since=3) == 4


class _Shelf:
    owner = (0, 1, 2)


def test_categories_are_near_by_the_cosine_of_their_prototypes():
    dictionary = PrototypeDictionary([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]])
    found = nearest(space_of(dictionary), 0, _Shelf(), 8)
    assert [category for category, _ in found] == [1, 2]
    assert [score for _, score in found] == pytest.approx([0.6, 0.0], abs=1e-6)


def test_categories_are_near_by_the_log_ratio_that_the_dictionary_itself_gives():
    sums, counts = np.array([[50.0, 0.0], [30.0, 10.0], [-20.0, 5.0]]), [10, 10, 5]
    dictionary = BayesianDictionary(spread=[9.0, 4.0], sums=sums, counts=counts)
    found = dict(nearest(space_of(dictionary), 0, _Shelf(), 8))
    told = dictionary.predict(sums[:1] / 10, runners_up=2)
    own = dict(zip(told.runners_up_category[0].tolist(), told.runners_up_score[0].tolist(), strict=True))
    assert found == pytest.approx(own, rel=1e-5)
