"""Promises of the newer systems' rules: they decide and learn as their docstrings say, one by one or in batches."""

from __future__ import annotations

import json

import numpy as np
import pytest
from doc_examples import check_examples
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_dictionary import answers, snapshot

from newfound.discovery import PrototypeDictionary, rules
from newfound.discovery.rules import RuleDictionary
from newfound.discovery.ruling import GaussianExpansion, OnlinePrototypes, ThreeWay, typical_spread
from newfound.errors import FeatureError, SettingsError

NOTHING = np.empty((0, 2))
SOME = [OnlinePrototypes(), ThreeWay(mature=2, limit=0.3), GaussianExpansion(0.3, widest=4.0)]

any_rule = st.one_of(
    st.builds(OnlinePrototypes, st.sampled_from([0.0, 0.5, 0.9, 1.0]), st.sampled_from([0.0, 0.1, 0.4]), st.booleans()),
    st.builds(ThreeWay, st.sampled_from([-0.3, 0.0, 0.2]), st.integers(2, 4), st.floats(0, 3), st.floats(0, 1)),
    st.builds(GaussianExpansion, st.floats(0.05, 1.0), st.floats(0.5, 5.0), st.floats(1.0, 9.0)),
)


class Unfiltered(RuleDictionary):
    """The same, but every prototype is compared exactly."""

    def _pool(self, sample, lifts, k):
        return np.arange(len(self))


@st.composite
def stories(draw):
    """Prototypes, a rule, a threshold and a stream; short whole numbers, so that ties are common."""
    dimension = draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))

    def drawn(n):
        rows = rng.integers(-2, 3, (n, dimension))
        rows[~rows.any(axis=1), 0] = 1
        return rows.astype(float)

    threshold = draw(st.sampled_from([-1.0, 0.0, 0.5, 0.8, 0.95, 1.0]))
    return drawn(draw(st.integers(0, 4))), draw(any_rule), threshold, drawn(draw(st.integers(0, 20)))


def lived_in(rule):
    rng = np.random.default_rng(3)
    d = RuleDictionary(rng.standard_normal((5, 6)), rule, 0.6)
    d.observe(rng.standard_normal((90, 6)))
    d.merge(d.ids[[-1, -3]])
    d.merge([2, d.ids[-2]])
    assert d.counts.max() > 3
    assert len(d) > 8
    return d


def test_the_example_in_the_documentation_runs():
    check_examples(rules)


# Any batching, and what may not change


@settings(max_examples=100, deadline=None)
@given(story=stories(), cuts=st.lists(st.integers(0, 20), max_size=3), runners_up=st.integers(0, 4))
def test_any_batching_gives_what_comparing_everything_one_by_one_gives(story, cuts, runners_up):
    prototypes, rule, threshold, stream = story
    plain = Unfiltered(prototypes, rule, threshold)
    expected = [answer for feature in stream for answer in answers(plain.observe(feature, runners_up))]
    d = RuleDictionary(prototypes, rule, threshold)
    got = [answer for batch in np.split(stream, sorted(cuts)) for answer in answers(d.observe(batch, runners_up))]
    assert got == expected
    assert snapshot(d) == snapshot(plain)


@pytest.mark.parametrize("rule", SOME, ids=repr)
def test_a_long_stream_of_many_dimensions_is_the_same_compared_with_everything(rule):
    rng = np.random.default_rng(5)
    centres = rng.standard_normal((30, 64))
    stream = centres[rng.integers(30, size=400)] + 0.7 * rng.standard_normal((400, 64))
    d, plain = RuleDictionary(centres[:10], rule, 0.6), Unfiltered(centres[:10], rule, 0.6)
    assert answers(d.observe(stream, 3)) == answers(plain.observe(stream, 3))
    assert snapshot(d) == snapshot(plain)


@settings(max_examples=40, deadline=None)
@given(story=stories(), runners_up=st.integers(0, 3))
def test_predict_changes_nothing_and_says_what_observe_will_say(story, runners_up):
    prototypes, rule, threshold, stream = story
    d = RuleDictionary(prototypes, rule, threshold)
    for feature in stream:
        before = snapshot(d)
        (told,) = answers(d.predict(feature, runners_up))
        assert snapshot(d) == before
        (happened,) = answers(d.observe(feature, runners_up))
        assert told[1:] == happened[1:]
        assert told[0] == (-1 if happened[2] else happened[0])


@settings(max_examples=40, deadline=None)
@given(story=stories())
def test_a_sample_is_new_exactly_where_its_score_is_below_the_cut(story):
    prototypes, rule, threshold, stream = story
    d = RuleDictionary(prototypes, rule, threshold)
    out = d.observe(stream)
    had_something = np.arange(len(stream)) + d.known > 0
    assert out.cut == threshold
    assert ((out.score >= -1) & (out.score <= 1)).all()
    assert out.created[had_something].tolist() == (out.score < threshold)[had_something].tolist()
    assert out.created[~had_something].all()


@pytest.mark.parametrize("rule", SOME, ids=repr)
def test_at_a_threshold_of_minus_one_nothing_is_ever_new(rule):
    d = RuleDictionary(np.eye(3), rule, -1.0)
    assert not d.observe(np.random.default_rng(0).standard_normal((50, 3))).created.any()


@pytest.mark.parametrize("rule", SOME, ids=repr)
def test_the_threshold_can_be_set_at_any_time(rule):
    d = RuleDictionary([[1.0, 0.0]], rule, 0.5)
    assert d.predict([0.8, 0.6]).category.item() == 0
    d.threshold = 0.9
    assert d.predict([0.8, 0.6]).created.item()
    assert d.predict([0.8, 0.6]).cut == 0.9


def test_rules_that_neither_move_nor_shift_anything_decide_as_the_plain_dictionaries_do():
    rng = np.random.default_rng(1)
    known, stream = rng.standard_normal((4, 6)), rng.standard_normal((200, 6))
    d = RuleDictionary(known, OnlinePrototypes(momentum=1.0), 0.6)
    assert answers(d.observe(stream, 2)) == answers(PrototypeDictionary(known, 0.6).observe(stream, 2))
    for rule in (ThreeWay(limit=0.0), GaussianExpansion(0.3, widest=1.0)):  # with nothing known, nothing is first
        d = RuleDictionary(known[:0], rule, 0.6)
        plain = PrototypeDictionary(known[:0], 0.6, update="running")
        assert answers(d.observe(stream, 2)) == answers(plain.observe(stream, 2))


# OnlinePrototypes


def test_a_confident_sample_pulls_its_prototype_and_another_one_does_not():
    d = RuleDictionary([[1.0, 0.0]], OnlinePrototypes(momentum=0.5, margin=0.2), 0.5)
    assert d.observe([0.6, 0.8]).category.item() == 0  # similarity 0.6: at least 0.5, but not 0.5 + 0.2
    assert d.prototypes.tolist() == [[1.0, 0.0]]
    assert d.observe([0.8, 0.6]).category.item() == 0  # similarity 0.8
    # 0.5 (1, 0) + 0.5 (0.8, 0.6) = (0.9, 0.3), of length sqrt(0.9)
    assert d.prototypes[0] == pytest.approx(np.array([0.9, 0.3]) / np.sqrt(0.9), abs=1e-6)


def test_known_prototypes_stay_if_asked_to_while_discovered_ones_follow():
    d = RuleDictionary([[1.0, 0.0]], OnlinePrototypes(momentum=0.5, margin=0.2, known=False), 0.5)
    out = d.observe([[0.8, 0.6], [-1.0, 0.0], [-0.8, 0.6]])
    assert out.category.tolist() == [0, 1, 1]
    assert d.prototypes[0].tolist() == [1.0, 0.0]
    assert d.prototypes[1] == pytest.approx(np.array([-0.9, 0.3]) / np.sqrt(0.9), abs=1e-6)


def test_a_prototype_that_moved_is_what_later_samples_are_compared_with():
    d = RuleDictionary([[1.0, 0.0]], OnlinePrototypes(momentum=0.0, margin=0.0), 0.7)
    # With momentum 0 a prototype becomes the sample. (0.28, 0.96) has 0.28 with (1, 0), but with (0.8, 0.6)
    # 0.8 * 0.28 + 0.6 * 0.96 = 0.8.
    assert d.observe([[0.8, 0.6], [0.28, 0.96]]).created.tolist() == [False, False]
    assert d.counts.tolist() == [2]


# ThreeWay


def test_what_reaches_a_known_category_is_known_even_if_a_discovered_one_is_nearer():
    d = RuleDictionary([[1.0, 0.0]], ThreeWay(), 0.59)
    d.observe([0.0, 1.0])
    out = d.predict([0.6, 0.8], runners_up=1)
    assert (out.category.item(), out.runners_up_category.item()) == (0, 1)
    assert (out.score.item(), out.runners_up_score.item()) == pytest.approx((0.6, 0.8), abs=1e-6)
    d.threshold = 0.61
    assert d.predict([0.6, 0.8]).category.item() == 1


def test_discovered_categories_have_a_cut_of_their_own_and_scores_are_relative_to_it():
    d = RuleDictionary([[1.0, 0.0]], ThreeWay(offset=-0.1), 0.85)
    d.observe([-1.0, 0.0])
    assert d.cuts == pytest.approx([0.85, 0.75])
    out = d.predict([[-0.8, 0.6], [0.8, 0.6]])
    assert out.category.tolist() == [1, -1]  # 0.8 is enough for the discovered one, not for the known one
    assert out.score == pytest.approx([0.8 + 0.1, 0.8], abs=1e-6)


@pytest.mark.parametrize(
    ("rule", "cut"),
    [
        (ThreeWay(mature=3, width=1.0, limit=0.3), 0.5692),
        (ThreeWay(mature=3, width=0.0, limit=0.3), 0.6846),
        (ThreeWay(mature=3, width=1.0, limit=0.05), 0.55),
        (ThreeWay(mature=3, width=9.0, limit=0.05), 0.45),
        (ThreeWay(mature=4, width=1.0, limit=0.3), 0.5),
    ],
    ids=["lowest member", "mean member", "limited above", "limited below", "not mature"],
)
def test_mature_categories_set_the_cut_of_discovered_ones(rule, cut):
    # (0.6, 0.8) joins (0, 1) with 0.8. The prototype is then (0.6, 1.8) / sqrt(3.6), and (-0.6, 0.8) joins with
    # (-0.36 + 1.44) / sqrt(3.6) = 0.5692. Mean 0.6846, standard deviation 0.1154, one below the mean: 0.5692.
    d = RuleDictionary(NOTHING, rule, 0.5)
    assert d.observe([[0.0, 1.0], [0.6, 0.8], [-0.6, 0.8]]).category.tolist() == [0, 0, 0]
    assert d.cuts == pytest.approx([cut], abs=1e-4)
    d.observe([0.0, -1.0])
    assert d.cuts == pytest.approx([cut, cut], abs=1e-4)  # the young go by what the mature have shown


def test_each_mature_category_counts_alike_and_known_ones_keep_the_threshold():
    # One sample joins the first category, with 0.8, and two join the second, both with 1.
    e = np.eye(5)
    d = RuleDictionary(e[4:], ThreeWay(mature=2, width=0.0, limit=0.5), 0.5)
    assert d.observe([e[2], 0.8 * e[2] + 0.6 * e[3], e[0], e[0], e[0]]).category.tolist() == [1, 1, 2, 2, 2]
    assert d.cuts == pytest.approx([0.5, 0.9, 0.9], abs=1e-6)  # (1 + 0.8) / 2


# GaussianExpansion


@pytest.mark.parametrize(
    ("rule", "second", "cut"),
    [
        # |(0, 1) + (0.6, 0.8)|^2 = 3.6, so the scatter is 2 - 3.6 / 2 = 0.2.
        (GaussianExpansion(0.5, prior=2.0, widest=9.0), [0.6, 0.8], 1 - 0.5 * (2 + 0.2 / 0.5) / 3),
        (GaussianExpansion(0.05, prior=2.0, widest=9.0), [0.6, 0.8], 1 - 0.5 * (2 + 0.2 / 0.05) / 3),
        (GaussianExpansion(0.05, prior=2.0, widest=1.5), [0.6, 0.8], 1 - 0.5 * 1.5),
        (GaussianExpansion(0.5, prior=2.0, widest=9.0), [0.0, 1.0], 1 - 0.5 * 2 / 3),
        (GaussianExpansion(0.5, prior=2.0, widest=1.25), [0.0, 1.0], 1 - 0.5 * 0.8),
        (GaussianExpansion(0.5, prior=1e9, widest=9.0), [0.0, 1.0], 0.5),
    ],
    ids=["narrower", "wider", "at its widest", "one point", "at its narrowest", "prior only"],
)
def test_a_category_reaches_as_far_as_its_members_and_the_prior_say(rule, second, cut):
    d = RuleDictionary(NOTHING, rule, 0.5)
    d.observe([0.0, 1.0])
    assert d.cuts.tolist() == [0.5]
    assert d.observe(second).category.item() == 0
    assert d.cuts == pytest.approx([cut], abs=1e-6)


def test_the_same_similarity_is_inside_a_wide_category_and_outside_a_narrow_one():
    e = np.eye(5)
    d = RuleDictionary(e[4:], GaussianExpansion(0.1, widest=2.0), 0.6)
    d.observe([e[0], 0.8 * e[0] + 0.6 * e[1], e[2], e[2]])
    # Scatters 0.2 and 0, ratios (2 + 2) / 3 and 2 / 3: the cuts are 1 - 0.4 * 4 / 3 and 1 - 0.4 * 2 / 3.
    assert d.cuts == pytest.approx([0.6, 0.4667, 0.7333], abs=1e-4)
    wide, narrow = d.prototypes[1:]
    out = d.predict([0.55 * wide + np.sqrt(1 - 0.55**2) * e[3], 0.55 * narrow + np.sqrt(1 - 0.55**2) * e[3]])
    assert out.category.tolist() == [1, -1]
    assert out.score == pytest.approx([0.55 + 0.6 - 0.4667, 0.55 + 0.6 - 0.7333], abs=1e-4)
    assert d.predict(0.61 * e[4] + np.sqrt(1 - 0.61**2) * wide).category.item() == 0  # known comes first


def test_the_typical_spread_is_the_pooled_variance_within_classes():
    # (1, 0), (0, 1): mean (0.5, 0.5), squared distances 0.5 + 0.5. (2, 0), (3, 4) are (1, 0), (0.6, 0.8) as unit
    # vectors: mean (0.8, 0.4), 0.2 + 0.2. Together 1.4 / (5 - 3); a class of one sample adds nothing.
    features = [[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [3.0, 4.0], [0.0, -1.0]]
    assert typical_spread(features, ["a", "b", "a", "b", "c"]) == pytest.approx(0.7)


def test_a_spread_that_labelled_features_do_not_show_is_refused():
    with pytest.raises(SettingsError, match="give it as a number"):
        typical_spread(np.eye(3), [0, 1, 2])
    with pytest.raises(SettingsError, match="one target for each of 3"):
        typical_spread(np.eye(3), [0, 1])
    with pytest.raises(FeatureError, match="row 1"):
        typical_spread([[1.0, 0.0], [0.0, 0.0]], [0, 0])


# Merging and ids


@pytest.mark.parametrize("rule", SOME, ids=repr)
def test_merged_categories_live_on_as_one_and_no_id_is_used_again(rule):
    d = RuleDictionary(np.eye(4)[:1], rule, 0.9)
    assert d.observe(np.eye(4)[[1, 2, 3]]).category.tolist() == [1, 2, 3]
    assert d.merge([3, 1]) == 1
    assert (d.ids.tolist(), d.counts.tolist(), d.aliases, d.resolve([3, 2])[0]) == ([0, 1, 2], [0, 2, 1], {3: 1}, 1)
    assert d.prototypes[1] == pytest.approx(np.array([0, 1, 0, 1]) / np.sqrt(2), abs=1e-6)
    before = snapshot(d)
    assert d.merge([1, 3]) == 1
    assert snapshot(d) == before
    assert d.observe([[0.0, 1.0, 0.0, 1.0], [0.0, 0.0, 0.0, -1.0]]).category.tolist() == [1, 4]
    assert d.seen == 5


@pytest.mark.parametrize("rule", SOME, ids=repr)
def test_a_known_category_takes_others_in_and_keeps_its_prototype(rule):
    d = RuleDictionary(np.eye(3)[:2], rule, 0.9)
    d.observe([[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]])
    assert d.merge([1, 2]) == 1
    assert d.prototypes.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, -1]]
    assert d.observe([0.0, 0.0, -1.0]).category.item() == 3
    assert d.counts.tolist() == [0, 1, 2]
    with pytest.raises(SettingsError, match="both known"):
        d.merge([0, 1])


def test_a_merged_category_reaches_as_far_as_one_that_had_all_its_members():
    d = RuleDictionary(NOTHING, GaussianExpansion(0.5, prior=2.0, widest=9.0), 0.95)
    assert d.observe([[0.0, 1.0], [0.6, 0.8]]).created.all()
    d.merge([0, 1])
    d.threshold = 0.5
    assert d.cuts == pytest.approx([0.6])  # as in "narrower" above: 1 - 0.5 * 2.4 / 3


def test_founders_that_were_merged_have_no_similarities_to_go_by():
    d = RuleDictionary(NOTHING, ThreeWay(mature=2, limit=1.0), 0.95)
    d.observe([[0.0, 1.0], [0.6, 0.8]])
    d.merge([0, 1])
    assert d.cuts.tolist() == [0.95]


# State


@pytest.mark.parametrize("rule", SOME, ids=repr)
def test_state_goes_through_safetensors_and_json_and_back(rule, tmp_path):
    numpy = pytest.importorskip("safetensors.numpy")
    d = lived_in(rule)
    state = d.state()
    arrays = {name: value for name, value in state.items() if isinstance(value, np.ndarray)}
    numpy.save_file(arrays, tmp_path / "state.safetensors")
    rest = json.loads(json.dumps({name: value for name, value in state.items() if name not in arrays}))
    again = RuleDictionary.from_state({**numpy.load_file(tmp_path / "state.safetensors"), **rest})
    assert again.rule == rule
    assert snapshot(again) == snapshot(d)
    more = np.random.default_rng(4).standard_normal((60, 6))
    assert answers(again.observe(more, 2)) == answers(d.observe(more, 2))
    assert snapshot(again) == snapshot(d)


@pytest.mark.parametrize("rule", SOME, ids=repr)
def test_a_copy_goes_its_own_way(rule):
    d = lived_in(rule)
    before = snapshot(d)
    copy = d.copy()
    copy.threshold = 0.99
    copy.observe(np.random.default_rng(6).standard_normal((20, 6)))
    assert snapshot(d) == before
    assert len(copy) > len(d)


def test_a_state_with_something_missing_is_refused_by_name():
    state = lived_in(SOME[1]).state()
    for missing in state:
        with pytest.raises(SettingsError, match=missing):
            RuleDictionary.from_state({name: value for name, value in state.items() if name != missing})


DAMAGE = {
    "a row too few": lambda s: s.update(prototypes=s["prototypes"][:-1]),
    "a sum too few": lambda s: s.update(sums=s["sums"][:-1]),
    "sums of another dimension": lambda s: s.update(sums=s["sums"][:, :-1]),
    "memberships of another kind": lambda s: s.update(membership=s["membership"][:, :-1]),
    "a membership that is no number": lambda s: s["membership"].__setitem__((0, 0), np.nan),
    "a rule that does not exist": lambda s: s["rule"].update(kind="Roulette"),
    "a rule with another's setting": lambda s: s["rule"].update(spread=0.5),
    "a rule with a setting that cannot be": lambda s: s["rule"].update(mature=0),
    "a threshold of 3": lambda s: s.update(threshold=3.0),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_state_is_refused(damage):
    state = lived_in(SOME[1]).state()
    RuleDictionary.from_state(state)
    damage(state)
    with pytest.raises(SettingsError):
        RuleDictionary.from_state(state)


# Settings


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: OnlinePrototypes(momentum=1.1), "momentum is a number from 0 to 1, not 1.1"),
        (lambda: OnlinePrototypes(margin=-0.1), "margin is a number from 0 to 2, not -0.1"),
        (lambda: OnlinePrototypes(known="no"), "known is True or False, not 'no'"),
        (lambda: ThreeWay(offset=np.nan), "offset is a number from -2 to 2, not nan"),
        (lambda: ThreeWay(mature=1), "mature is a number of members, from 2 up, not 1"),
        (lambda: ThreeWay(width=np.inf), "width is a number from 0 up, not inf"),
        (lambda: ThreeWay(limit="far"), "limit is a number from 0 to 2, not 'far'"),
        (lambda: GaussianExpansion(0.0), "spread is a number above 0, 2 at most, not 0.0"),
        (lambda: GaussianExpansion(0.5, prior=0.0), "prior is a number above 0, not 0.0"),
        (lambda: GaussianExpansion(0.5, widest=0.9), "widest is a number from 1 up, not 0.9"),
        (lambda: RuleDictionary(np.eye(2), "ThreeWay"), "such as ThreeWay\\(\\), not 'ThreeWay'"),
        (lambda: RuleDictionary(np.eye(2), ThreeWay(), 1.5), "threshold is a similarity"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_with_its_value(make, complaint):
    with pytest.raises(SettingsError, match=complaint):
        make()


@pytest.mark.parametrize("rule", SOME, ids=repr)
def test_a_batch_with_a_bad_row_changes_nothing(rule):
    d = lived_in(rule)
    before = snapshot(d)
    with pytest.raises(FeatureError, match="row 1"):
        d.observe([np.ones(6), np.full(6, np.nan)])
    assert snapshot(d) == before
