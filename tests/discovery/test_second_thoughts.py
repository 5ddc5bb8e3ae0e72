"""What a dictionary changes by itself after it has answered, and what it says about it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from newfound.discovery import BayesianDictionary, Event
from newfound.errors import SettingsError

NONE = np.empty((0, 1)), []


def line(*places: float) -> np.ndarray:
    return np.array(places, np.float32)[:, None]


def two_crowds(seed: int = 0, samples: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Readings of two classes in eight dimensions, in random order, and their classes."""
    rng = np.random.default_rng(seed)
    means = rng.standard_normal((2, 8)) * 3
    classes = rng.integers(0, 2, samples)
    return (means[classes] + rng.standard_normal((samples, 8))).astype(np.float32), classes


def test_an_early_mistake_is_moved_once_there_is_more_evidence_and_recorded():
    # 2.3 joins the only category there is, though it is of the crowd around 4.2 that comes later.
    d = BayesianDictionary([25.0], *NONE, threshold=0.0, reconsider_every=10)
    out = d.observe(line(0.0, 2.3, 4.2, 4.2, 4.1, 4.2, 4.3, 0.0, -0.1, 0.1))
    assert out.category.tolist() == [0, 0, 1, 1, 1, 1, 1, 0, 0, 0]
    assert d.drain_events() == [Event("moved", 10, 1, 0, 1)]
    assert d.counts.tolist() == [4, 6]
    # The evidence moved too: a fit is that of a dictionary which had been told so at once.
    told = BayesianDictionary([25.0], [[0.0], [23.3]], [4, 6])
    assert d.predict(line(3.0), 1).score == pytest.approx(told.predict(line(3.0), 1).score, rel=1e-6)


def test_on_two_gaussians_second_thoughts_leave_fewer_categories_and_purer_ones():
    readings, classes = two_crowds()

    def purity(now):
        return sum(np.bincount(classes[now == c]).max() for c in np.unique(now)) / len(now)

    plain = BayesianDictionary(np.full(8, 9.0), np.empty((0, 8)), [], threshold=8.0)
    at_once = plain.observe(readings).category
    wiser = BayesianDictionary(np.full(8, 9.0), np.empty((0, 8)), [], threshold=8.0, reconsider_every=20, merge_at=0.0)
    now = wiser.observe(readings).category.copy()
    for event in wiser.drain_events():
        if event.kind == "moved":
            now[event.sighting] = event.target
    now = wiser.resolve(now)
    assert len(wiser) == 2 < len(plain)
    assert purity(now) == 1.0 >= purity(at_once)


def test_a_category_left_without_members_dissolves_into_where_its_last_one_went():
    d = BayesianDictionary([25.0], *NONE, threshold=4.0, reconsider_every=4, reconsider_at=-5.0)
    out = d.observe(line(0.0, 2.0, 2.0, 2.0))
    assert out.category.tolist() == [0, 1, 2, 3]
    d = BayesianDictionary([25.0], *NONE, threshold=1.0, reconsider_every=4, reconsider_at=-5.0)
    out = d.observe(line(0.0, 2.6, 2.6, 2.6))
    assert out.category.tolist() == [0, 1, 1, 1]
    assert d.drain_events() == [Event("moved", 4, 0, 0, 1), Event("dissolved", 4, None, 0, 1)]
    assert d.aliases == {0: 1}  # a lower id may now live on under a higher one
    assert d.resolve(out.category).tolist() == [1, 1, 1, 1]
    assert (d.ids.tolist(), d.counts.tolist()) == ([1], [4])
    assert d.observe(line(90.0)).category.tolist() == [2]  # the id 0 is not used again
    assert d.copy().aliases == {0: 1}


def test_events_are_given_once():
    d = BayesianDictionary([25.0], *NONE, threshold=1.0, reconsider_every=4, reconsider_at=-5.0)
    d.observe(line(0.0, 2.6, 2.6, 2.6))
    assert len(d.drain_events()) == 2
    assert d.drain_events() == []


def test_a_single_sighting_attracts_nobody_in_second_thoughts_and_a_known_category_does():
    # Two singles side by side: neither may join the other, though reconsider_at asks for nothing.
    d = BayesianDictionary([25.0], *NONE, threshold=50.0, reconsider_every=2, reconsider_at=-1e6)
    d.observe(line(0.0, 0.1))
    assert d.drain_events() == []
    k = BayesianDictionary([25.0], [[0.0]], [1], threshold=50.0, reconsider_every=1, reconsider_at=-1e6)
    k.observe(line(0.1))
    assert k.drain_events() == [Event("moved", 1, 0, 1, 0), Event("dissolved", 1, None, 1, 0)]


def test_only_the_last_sightings_are_looked_at_again():
    for memory, moved in ((4, 1), (3, 0)):
        d = BayesianDictionary([25.0], *NONE, threshold=1.0, reconsider_every=4, reconsider_at=-5.0, memory=memory)
        d.observe(line(0.0, 2.6, 2.6, 2.6))
        assert sum(event.kind == "moved" for event in d.drain_events()) == moved


def test_what_moves_to_a_known_category_that_does_not_learn_leaves_it_as_it_is():
    k = BayesianDictionary([25.0], [[0.0]], [1], threshold=50.0, reconsider_every=1, reconsider_at=-1e6)
    before = k.predict(line(1.0)).score[0]
    k.observe(line(0.1))
    assert k.predict(line(1.0)).score[0] == before
    learning = BayesianDictionary(
        [25.0], [[0.0]], [1], threshold=50.0, reconsider_every=1, reconsider_at=-1e6, learn_known=True
    )
    learning.observe(line(0.1))
    assert learning.predict(line(1.0)).score[0] != before


def test_a_candidate_that_fits_what_it_was_answered_with_becomes_evidence_without_an_event():
    options = {"threshold": 0.5, "alone": -50.0, "reconsider_at": -4.0}
    d = BayesianDictionary([25.0], [[0.0]], [9], learn_known=True, reconsider_every=1, **options)
    out = d.observe(line(3.0))
    assert out.doubtful.tolist() == [True]
    assert (d.candidates, d.drain_events(), d.counts.tolist()) == (0, [], [1])
    fixed = BayesianDictionary([25.0], [[0.0]], [9], **options)
    fixed.observe(line(3.0))
    assert d.predict(line(3.0)).score[0] > fixed.predict(line(3.0)).score[0]


def test_twins_merge_after_second_thoughts_and_the_lower_id_lives_on():
    # As long as each is alone, a threshold of 2 keeps them apart; explained as one they gain 1.3.
    d = BayesianDictionary([25.0], *NONE, threshold=2.0, reconsider_every=2, merge_at=1.0)
    out = d.observe(line(0.0, 1.0))
    assert out.category.tolist() == [0, 1]
    assert d.drain_events() == [Event("merged", 2, None, 1, 0)]
    assert (d.aliases, d.counts.tolist()) == ({1: 0}, [2])


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 9999), st.sampled_from([None, -30.0]))
def test_ids_stay_valid_whatever_happens(seed, alone):
    rng = np.random.default_rng(seed)
    readings = rng.standard_normal((80, 4)) * 2
    d = BayesianDictionary(np.full(4, 3.0), readings[:2] * 3, [3, 3], threshold=1.0, alone=alone, reconsider_every=7,
                           merge_at=0.5)  # fmt: skip
    given = []
    for x in readings:
        out = d.observe(x)
        assert out.created[0] == (out.category[0] not in given and out.category[0] >= 2)
        given.append(int(out.category[0]))
        assert np.isin(d.resolve(given), d.ids).all()
        assert d.counts.sum() == d.seen
        assert (d.counts >= 0).all()
    created = [c for c in dict.fromkeys(given) if c >= 2]
    assert created == list(range(2, 2 + len(created)))


def test_merging_without_second_thoughts_is_refused():
    with pytest.raises(SettingsError, match="reconsider_every"):
        BayesianDictionary([1.0], *NONE, merge_at=0.0)
