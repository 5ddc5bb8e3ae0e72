"""Promises of sequential leader clustering, checked against a loop that is obviously right."""

from __future__ import annotations

import json

import numpy as np
import pytest
from doc_examples import check_examples
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_dictionary import PlainBook, answers, snapshot

from newfound.discovery import LeaderDictionary, PrototypeDictionary, lead, leaders
from newfound.errors import FeatureError, SettingsError


class PlainLeaders(PlainBook):
    """Leader clustering as one would write it down; the similarity of two vectors is the prototype dictionary's."""

    def __init__(self, rows, owners, known, threshold):
        super().__init__(map(unit, rows), owners, known)
        self.threshold = threshold

    def observe_one(self, feature, runners_up, grow=True):
        scores = [similarity(row, feature) for row in self.rows]
        score = max(scores, default=-1.0)
        created = not scores or score < self.threshold
        category = -1 if created else self.owners[scores.index(score)]
        others = []
        for negative, row in sorted((-s, row) for row, s in enumerate(scores)):
            if self.owners[row] not in [category, *[c for c, _ in others]]:
                others.append((self.owners[row], -negative))
        others = (others + [(-1, -1.0)] * runners_up)[:runners_up]
        if grow:
            category = self.enter(category, created, unit(feature))
        return category, score, created, others


def unit(row):
    return PrototypeDictionary([row]).prototypes[0]


def similarity(row, feature):
    return PrototypeDictionary([row], -1.0).predict(feature).score.item()


@st.composite
def stories(draw):
    """Leaders and owners, a threshold and a stream; short whole numbers, so that ties are common."""
    dimension = draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))

    def drawn(n):
        rows = rng.integers(-2, 3, (n, dimension))
        rows[~rows.any(axis=1), 0] = 1
        return rows.astype(float)

    known = draw(st.integers(0, 4))
    rows = draw(st.integers(0, 9)) if known else 0
    owners = rng.integers(known, size=rows) if known else np.zeros(0, int)
    threshold = draw(st.sampled_from([-1.0, 0.0, 0.5, 0.8, 0.95, 1.0]))
    return drawn(rows), owners, known, threshold, drawn(draw(st.integers(0, 15)))


def both(story):
    rows, owners, known, threshold, stream = story
    return LeaderDictionary(rows, owners, known, threshold), PlainLeaders(rows, owners, known, threshold), stream


def test_the_example_in_the_documentation_runs():
    check_examples(leaders)


@settings(max_examples=60)
@given(story=stories(), cuts=st.lists(st.integers(0, 15), max_size=3), runners_up=st.integers(0, 4))
def test_any_batching_gives_what_a_plain_loop_gives_one_by_one(story, cuts, runners_up):
    d, plain, stream = both(story)
    expected = [plain.observe_one(feature, runners_up) for feature in stream]
    parts = np.split(stream, sorted(c % (len(stream) + 1) for c in cuts))
    assert [a for part in parts for a in answers(d.observe(part, runners_up))] == expected
    assert dict(zip(d.ids.tolist(), d.counts.tolist(), strict=True)) == plain.counts
    assert d.owners.tolist() == plain.owners
    assert d.seen == len(stream)


@settings(max_examples=30)
@given(story=stories(), runners_up=st.integers(0, 3))
def test_predict_tells_each_feature_what_it_would_be_told_alone_and_changes_nothing(story, runners_up):
    d, plain, stream = both(story)
    half = len(stream) // 2
    d.observe(stream[:half])
    for feature in stream[:half]:
        plain.observe_one(feature, 0)
    before = snapshot(d)
    out = answers(d.predict(stream, runners_up))
    assert out == [plain.observe_one(feature, runners_up, grow=False) for feature in stream]
    assert snapshot(d) == before


@settings(max_examples=30)
@given(story=stories(), data=st.data())
def test_after_a_merge_and_a_restart_all_leaders_of_the_merged_belong_to_the_survivor(story, data):
    d, plain, stream = both(story)
    half = len(stream) // 2
    d.observe(stream[:half])
    for feature in stream[:half]:
        plain.observe_one(feature, 0)
    discovered = d.ids[d.known :].tolist()
    if discovered:
        known = data.draw(st.lists(st.sampled_from(range(d.known)), max_size=1)) if d.known else []
        some = known + data.draw(st.lists(st.sampled_from(discovered), min_size=1, unique=True))
        assert d.merge(some) == min(some)
        plain.merge(some)
        assert d.resolve(some).tolist() == [min(some)] * len(some)
    e = LeaderDictionary.from_state(d.state())
    assert snapshot(e) == snapshot(d)
    expected = [plain.observe_one(feature, 3) for feature in stream[half:]]
    assert answers(d.observe(stream[half:], 3)) == expected
    assert answers(e.observe(stream[half:], 3)) == expected
    assert snapshot(e) == snapshot(d)
    assert dict(zip(d.ids.tolist(), d.counts.tolist(), strict=True)) == plain.counts


def test_a_batch_of_many_real_features_equals_single_ones():
    rng = np.random.default_rng(0)
    stream = rng.standard_normal((600, 16))
    known, owners = rng.standard_normal((30, 16)), rng.integers(0, 5, 30)
    d, e = (LeaderDictionary(known, owners, 5, 0.5) for _ in range(2))
    whole = answers(d.observe(stream, 2))
    assert [a for row in stream for a in answers(e.observe(row, 2))] == whole
    assert snapshot(d) == snapshot(e)
    assert len(d) > 50


def test_a_class_is_recognised_near_any_of_its_leaders_and_is_not_its_own_runner_up():
    d = LeaderDictionary([[1, 0, 0], [0, 1, 0], [0, 0, 1]], [1, 0, 1], 2, 0.9)
    out = d.observe([[0, 0.1, 1], [1, 0.1, 0], [-1, 0, 0]], runners_up=2)
    assert out.category.tolist() == [1, 1, 2]
    assert out.runners_up_category.tolist() == [[0, -1], [0, -1], [0, 1]]
    assert out.runners_up_score[0].tolist() == [pytest.approx(0.1 / 1.01**0.5), -1.0]
    assert out.cut == 0.9
    assert d.counts.tolist() == [0, 2, 1]
    assert d.owners.tolist() == [1, 0, 1, 2]
    assert d.leaders[3].tolist() == [-1, 0, 0]


def test_runners_up_are_found_behind_many_leaders_of_one_category():
    degrees = np.radians([*range(20), 60, 90])
    rows = np.stack([np.cos(degrees), np.sin(degrees)], axis=1)
    d = LeaderDictionary(rows, [0] * 20 + [1, 2], 3, 0.5)
    assert d.predict([1, 0], runners_up=2).runners_up_category.tolist() == [[1, 2]]


def test_the_threshold_can_be_set_between_batches():
    d = LeaderDictionary([[1, 0]], [0], 1, 0.9)
    d.threshold = 0.5
    assert d.threshold == 0.5
    assert d.observe([0.6, 0.8]).category.tolist() == [0]
    d.threshold = 0.7
    assert d.observe([0.6, 0.8]).category.tolist() == [1]
    with pytest.raises(SettingsError, match="threshold"):
        d.threshold = 2


def test_without_a_leader_the_first_feature_leads_with_the_score_of_nothing():
    d = LeaderDictionary(np.empty((0, 2)), [], 3, -1.0)
    assert answers(d.predict([1, 0], 1)) == [(-1, -1.0, True, [(-1, -1.0)])]
    assert d.observe([[1, 0], [0, 1]]).category.tolist() == [3, 3]
    assert (len(d), d.known, d.dimension) == (4, 3, 2)
    assert len(d.observe([])) == 0


@pytest.mark.parametrize("features", [[[1.0, 2.0, 3.0]], [[1, np.nan]], [[np.inf, 0]], [[1, 0], [0, 0]]])
def test_features_that_cannot_be_decided_on_are_refused_and_nothing_changes(features):
    d = LeaderDictionary([[1, 0]], [0], 1, 0.9)
    d.observe([0, 1])
    before = snapshot(d)
    for decide in (d.observe, d.predict):
        with pytest.raises(FeatureError):
            decide(features)
    with pytest.raises(SettingsError, match="runners_up"):
        d.observe([-1, 0], runners_up=-1)
    assert snapshot(d) == before


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (([[0, 0]], [0], 1), FeatureError),
        (([[1, 0]], [1], 1), SettingsError),
        (([[1, 0]], [0, 0], 1), SettingsError),
        (([[1, 0]], [0], "one"), SettingsError),
        (([[1, 0]], [0], 1, 7), SettingsError),
    ],
)
def test_what_cannot_be_a_dictionary_is_refused(arguments, error):
    with pytest.raises(error):
        LeaderDictionary(*arguments)


def test_state_goes_through_safetensors_and_json(tmp_path):
    numpy = pytest.importorskip("safetensors.numpy")
    rng = np.random.default_rng(1)
    d = LeaderDictionary(rng.standard_normal((4, 6)), [0, 1, 1, 0], 2, 0.6)
    d.observe(rng.standard_normal((30, 6)))
    d.merge([3, 5])
    state = d.state()
    arrays = {name: value for name, value in state.items() if isinstance(value, np.ndarray)}
    numpy.save_file(arrays, tmp_path / "state.safetensors")
    rest = json.loads(json.dumps({name: value for name, value in state.items() if name not in arrays}))
    e = LeaderDictionary.from_state({**numpy.load_file(tmp_path / "state.safetensors"), **rest})
    more = rng.standard_normal((50, 6))
    assert answers(e.observe(more, 2)) == answers(d.observe(more, 2))
    assert snapshot(e) == snapshot(d)
    for missing in state:
        with pytest.raises(SettingsError, match=missing):
            LeaderDictionary.from_state({name: value for name, value in state.items() if name != missing})
    with pytest.raises(SettingsError):
        LeaderDictionary.from_state({**state, "leaders": state["leaders"][:-1]})


def test_a_copy_goes_its_own_way_and_says_what_it_is():
    d = LeaderDictionary([[1, 0]], [0], 1, 0.9)
    e = d.copy()
    e.observe([0, 1])
    assert (len(d), d.seen, len(e), e.seen) == (1, 0, 2, 1)
    assert repr(e) == "LeaderDictionary(1 known and 1 discovered categories, 2 leaders, dimension=2, threshold=0.9)"


def test_a_leader_belongs_to_the_class_most_of_its_members_have_and_ties_go_to_the_lower_class():
    at = np.radians([0, 90, 10, 5, 95, 180])
    features = np.stack([np.cos(at), np.sin(at)], axis=1)
    # At cos 20 degrees, 0 leads 10 and 5 (classes 2, 1, 1), 90 leads 95 (classes 3, 0: a tie), 180 leads itself.
    rows, owners = lead(features, [2, 3, 1, 1, 0, 4], np.cos(np.radians(20)))
    assert np.allclose(rows, features[[0, 1, 5]])
    assert owners.tolist() == [1, 0, 4]


def test_leading_is_what_an_empty_dictionary_does():
    features = np.random.default_rng(2).standard_normal((200, 8))
    groups = LeaderDictionary(np.empty((0, 8)), [], 0, 0.6).observe(features).category
    rows, owners = lead(features, groups, 0.6)
    assert owners.tolist() == list(range(len(rows)))
    assert LeaderDictionary(rows, owners, len(rows), 0.6).predict(features[:1]).category.tolist() == [0]


def test_features_and_targets_that_do_not_fit_are_refused():
    with pytest.raises(SettingsError, match="one target"):
        lead([[1, 0]], [0, 1], 0.5)
    with pytest.raises(FeatureError):
        lead([[np.nan, 0]], [0], 0.5)
    with pytest.raises(SettingsError, match="threshold"):
        lead([[1, 0]], [0], 3)
    rows, owners = lead(np.empty((0, 4)), [], 0.5)
    assert (rows.shape, owners.shape) == ((0, 4), (0,))
