"""Answers as given, and as they stand after all second thoughts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from newfound.discovery import BayesianDictionary, Event, PrototypeDictionary, events_of, standing


def line(*places: float) -> np.ndarray:
    return np.array(places, np.float32)[:, None]


def test_a_sighting_that_was_moved_stands_where_it_went():
    # As in test_second_thoughts.py: 2.3 joins the only category there is, then the crowd around 4.2 comes.
    d = BayesianDictionary([25.0], np.empty((0, 1)), [], threshold=0.0, reconsider_every=10)
    given_ = d.observe(line(0.0, 2.3, 4.2, 4.2, 4.1, 4.2, 4.3, 0.0, -0.1, 0.1)).category
    before = given_.copy()
    assert standing(d, given_, events_of(d)).tolist() == [0, 1, 1, 1, 1, 1, 1, 0, 0, 0]
    assert np.array_equal(given_, before), "what was answered stays answered"


def test_moves_are_followed_in_order_and_then_merges():
    d = BayesianDictionary([25.0], np.empty((0, 1)), [], threshold=4.0)
    d.observe(line(0.0, 9.0, -9.0))
    assert d.ids.tolist() == [0, 1, 2]
    d.merge([1, 2])
    moves = [Event("moved", 3, 0, 0, 2), Event("moved", 3, 1, 1, 2), Event("moved", 3, 1, 2, 0)]
    assert standing(d, np.array([0, 1, 2]), moves).tolist() == [1, 0, 1]


def test_a_dictionary_that_never_changes_its_mind_has_no_events_and_its_answers_stand():
    d = PrototypeDictionary(np.eye(3)[:2], threshold=0.5)
    answers = d.observe(np.eye(3)[[0, 2, 1, 2]]).category
    assert events_of(d) == []
    assert np.array_equal(standing(d, answers, []), answers)


def test_events_are_told_once():
    d = BayesianDictionary([25.0], np.empty((0, 1)), [], threshold=0.0, reconsider_every=10)
    d.observe(line(0.0, 2.3, 4.2, 4.2, 4.1, 4.2, 4.3, 0.0, -0.1, 0.1))
    assert events_of(d)
    assert events_of(d) == []


@settings(max_examples=25)
@given(st.integers(0, 9999), st.sampled_from([None, -12.0]), st.sampled_from([None, 0.0]), st.integers(1, 40))
def test_the_answers_that_stand_are_what_the_dictionary_counts(seed, alone, merge_at, size):
    rng = np.random.default_rng(seed)
    d = BayesianDictionary(np.full(3, 6.0), rng.standard_normal((2, 3)) * 9, [4, 4], 1.0, alone=alone,
                           reconsider_every=15, reconsider_at=-3.0, merge_at=merge_at)  # fmt: skip
    readings = (rng.standard_normal((6, 3))[rng.integers(0, 6, 80)] * 2.5 + rng.standard_normal((80, 3)))
    parts = [readings[i : i + size] for i in range(0, len(readings), size)]
    answers, events = [], []
    for part in parts:
        answers.append(d.observe(part).category)
        events += events_of(d)
    now = standing(d, np.concatenate(answers), events)
    assert set(now.tolist()) <= set(d.ids.tolist())
    assert [(now == category).sum() for category in d.ids] == d.counts.tolist()


@pytest.mark.parametrize("every", [None, 10])
def test_only_second_thoughts_move_what_was_no_candidate(every):
    d = BayesianDictionary([25.0], np.empty((0, 1)), [], threshold=0.0, reconsider_every=every)
    d.observe(line(0.0, 2.3, 4.2, 4.2, 4.1, 4.2, 4.3, 0.0, -0.1, 0.1))
    assert bool(events_of(d)) == (every is not None)
