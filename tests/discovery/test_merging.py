"""Merging keeps what was given out valid."""

from __future__ import annotations

import numpy as np
import pytest

from newfound.discovery import PrototypeDictionary
from newfound.errors import SettingsError


def at(*degrees: float) -> np.ndarray:
    """Unit vectors in the plane."""
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def angles(p: PrototypeDictionary) -> list[float]:
    x, y = p.prototypes.astype(np.float64).T
    return np.degrees(np.arctan2(y, x)).round(3).tolist()


def cosine(degrees: float) -> float:
    return float(np.cos(np.radians(degrees)))


def test_twins_are_merged_after_every_so_many_samples_and_the_lower_id_lives_on():
    p = PrototypeDictionary(at(180), cosine(4), merge_every=4, merge_at=cosine(6))
    out = p.observe(at(0, 5, 90, 0, 5))
    assert out.category.tolist() == [1, 2, 3, 1, 1]
    assert p.aliases == {2: 1}
    assert p.ids.tolist() == [0, 1, 3]
    assert len(p) == 3
    assert p.resolve(out.category).tolist() == [1, 1, 3, 1, 1]


def test_the_merged_prototype_is_weighted_by_members_not_by_founders():
    p = PrototypeDictionary(at(180), cosine(4), merge_every=4, merge_at=cosine(6))
    p.observe(at(0, 0, 0, 5))
    assert angles(p) == [180, pytest.approx(1.25, abs=0.01)]
    assert p.counts.tolist() == [0, 4]


def test_running_prototypes_merge_into_the_direction_of_all_members():
    p = PrototypeDictionary(at(180), cosine(4), update="running", merge_every=4, merge_at=cosine(8))
    p.observe(at(0, 2, 7, 7))
    assert angles(p) == [180, 4]
    p.observe(at(7))
    assert angles(p) == [180, pytest.approx(4.6, abs=0.01)]


def test_only_mutual_nearest_are_merged_and_known_ones_never():
    p = PrototypeDictionary(at(0), cosine(2), merge_every=3, merge_at=cosine(10))
    p.observe(at(3, 6, 8.5))  # 6 and 8.5 are nearest to each other; 3 is near 6 and near the known 0
    assert p.aliases == {3: 2}
    assert p.ids.tolist() == [0, 1, 2]


def test_ids_are_not_used_again_after_a_merge():
    p = PrototypeDictionary(at(180), cosine(4), merge_every=2, merge_at=cosine(6))
    assert p.observe(at(0, 5)).category.tolist() == [1, 2]
    assert p.observe(at(90)).category.tolist() == [3]


def test_a_person_can_merge_discovered_categories_and_ids_follow_chains():
    p = PrototypeDictionary(at(180), 0.99)
    p.observe(at(0, 40, 80, 120))
    assert p.merge([3, 2]) == 2
    assert p.merge([1, 3]) == 1
    assert p.aliases == {3: 2, 2: 1}
    assert p.resolve(3) == 1
    assert isinstance(p.resolve(3), int)
    assert p.resolve([[0, 1], [2, 4]]).tolist() == [[0, 1], [1, 4]]
    assert p.resolve([-1]).tolist() == [-1]
    assert p.ids.tolist() == [0, 1, 4]
    assert p.counts.tolist() == [0, 3, 1]
    assert angles(p)[1] == pytest.approx(40.893, abs=0.001)  # one part at 0 degrees, two at 60


def test_merging_again_changes_nothing():
    p = PrototypeDictionary(at(180), 0.99)
    p.observe(at(0, 40))
    p.merge([1, 2])
    before = p.prototypes.tobytes()
    assert p.merge([1, 2]) == 1
    assert p.merge([2]) == 1
    assert p.prototypes.tobytes() == before
    assert p.counts.tolist() == [0, 2]


@pytest.mark.parametrize("update", ["fixed", "running"])
def test_a_known_category_takes_discovered_ones_in_and_stays_what_it_is(update):
    p = PrototypeDictionary(at(180, 90), 0.99, update=update)
    p.observe(at(0, 40, 90))
    assert p.merge([2, 1, 3]) == 1
    assert p.prototypes.tobytes() == PrototypeDictionary(at(180, 90)).prototypes.tobytes()
    assert p.counts.tolist() == [0, 3]
    assert p.observe(at(0)).category.tolist() == [4]


def test_a_running_category_goes_on_from_the_members_of_both():
    p = PrototypeDictionary(at(180), cosine(20), update="running")
    p.observe(at(0, 30))
    p.merge([1, 2])
    assert angles(p) == [180, 15]
    p.observe(at(15, 15))
    assert angles(p) == [180, 15]
    assert p.counts.tolist() == [0, 4]


@pytest.mark.parametrize(
    ("ids", "message"),
    [([], "needs the ids"), ([0, 1], "both known"), ([2, 9], "no category 9"), ([-1], "needs"), ([0.5], "integers")],
)
def test_merges_that_cannot_be_are_refused_and_change_nothing(ids, message):
    p = PrototypeDictionary(at(180, 90), 0.99)
    p.observe(at(0, 40))
    with pytest.raises(SettingsError, match=message):
        p.merge(ids)
    assert len(p) == 4
    assert p.aliases == {}


def test_an_id_that_was_never_given_out_is_refused():
    p = PrototypeDictionary(at(180))
    with pytest.raises(SettingsError, match="no category 1"):
        p.resolve([0, 1])


def test_a_merge_at_minus_one_takes_even_opposites_whose_product_is_below_it():
    long = 1 + 9e-6
    p = PrototypeDictionary(np.empty((0, 2)), 0.5, merge_every=2, merge_at=-1.0)
    p.observe([[long, 0], [-long, 0]])
    assert p.aliases == {1: 0}
    assert p.prototypes.tolist() == [[np.float32(long), 0]]  # nothing is left of their sum: the survivor's stays
