"""What a person can rely on who lets evidence decide."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from doc_examples import check_examples
from hypothesis import given, settings
from hypothesis import strategies as st

from newfound.discovery import BayesianDictionary, PrototypeDictionary, bayesian
from newfound.errors import FeatureError, SettingsError

NONE = np.empty((0, 1)), []


def line(*places: float) -> np.ndarray:
    return np.array(places, np.float32)[:, None]


def lived_in(**options) -> BayesianDictionary:
    rng = np.random.default_rng(3)
    options = {"alone": -6.0, "reconsider_every": 20, "merge_at": 0.0, "concentration": 1.0, "memory": 30} | options
    d = BayesianDictionary(np.full(4, 4.0), rng.standard_normal((3, 4)) * 8, [4, 4, 4], 1.0, **options)
    d.observe(rng.standard_normal((75, 4)) * 2.5)
    assert d.aliases
    assert d.candidates
    return d


def test_the_example_in_the_documentation_runs():
    check_examples(bayesian)


def test_a_stream_by_hand_in_one_dimension():
    # psi = 3; the known category has n = 1, S = 4: N(3, 7/4); never seen: N(0, 4).
    # x = 2: 1/2 log(16/7) - 2/7 + 1/2 = 0.6276.
    # x = -4: 1/2 log(16/7) - 49 / (7/2) + 16/8 = -11.5867, so it founds N(-3, 7/4).
    # x = 2 again: the known one is fixed, so the same. x = -3 with the founder: 1/2 log(16/7) + 9/8 = 1.5383.
    d = BayesianDictionary([3.0], [[4.0]], [1])
    out = d.observe(line(2, -4, 2, -3))
    assert out.category.tolist() == [0, 1, 0, 1]
    assert out.created.tolist() == [False, True, False, False]
    assert out.score == pytest.approx([0.6276, -11.5867, 0.6276, 1.5383], abs=1e-4)
    assert out.cut == 0.0
    # p(category) = e^0.6276 / (1 + e^0.6276) = 0.65195; the founder is new with 1 / (1 + e^-11.5867)
    assert out.probability[:2] == pytest.approx([0.65195, 0.99999], abs=1e-5)
    assert out.new_probability[0] == pytest.approx(1 - 0.65195, abs=1e-5)
    assert (d.known, d.seen, len(d), d.counts.tolist()) == (1, 4, 2, [2, 2])
    # two members, S = -7: m = -21/7 = -3, v = 1 + 3/7; x = -3: 1/2 log(4 / (10/7)) + 9/8 = 1.6398
    assert d.predict(line(-3)).score[0] == pytest.approx(1.6398, abs=1e-4)


def test_known_categories_learn_only_if_told_to():
    x = line(2.5)
    for learn in (False, True):
        d = BayesianDictionary([9.0], [[2.0]], [1], learn_known=learn)
        before = d.predict(x).score[0]
        d.observe(x)
        assert (d.predict(x).score[0] > before) == learn
        assert d.counts.tolist() == [1]


def test_a_doubtful_sample_gets_the_best_category_and_is_no_evidence_for_it():
    d = BayesianDictionary([25.0], [[0.0]], [9], 1.0, alone=-9.0, learn_known=True)
    before = d.predict(line(1.0)).score[0]
    out = d.observe(line(4.0))
    assert (out.category[0], out.created[0], out.doubtful[0]) == (0, False, True)
    assert -9.0 <= out.score[0] < 1.0
    assert d.predict(line(1.0)).score[0] == before
    assert (d.counts.tolist(), d.candidates, len(d)) == ([1], 1, 1)


def test_a_second_sample_of_its_kind_founds_a_category_with_a_candidate_which_moves_there():
    d = BayesianDictionary([25.0], [[0.0]], [9], 1.0, alone=-9.0)
    out = d.observe(line(4.0, 4.1))
    assert out.category.tolist() == [0, 1]
    assert out.created.tolist() == [False, True]
    assert out.score[1] < 1.0  # of the best category: a candidate is none
    assert out.probability[1] == out.new_probability[1] > 0.5
    events = d.drain_events()
    assert [(e.kind, e.at, e.sighting, e.source, e.target) for e in events] == [("moved", 2, 0, 0, 1)]
    assert (d.counts.tolist(), d.candidates) == ([0, 2], 0)
    told = BayesianDictionary([25.0], [[0.0], [float(np.float32(4.1)) + 4.0]], [9, 2])
    assert d.predict(line(4.0)).score[0] == told.predict(line(4.0)).score[0]


def test_a_sample_that_is_far_from_all_founds_alone_and_the_first_of_all_too():
    d = BayesianDictionary([25.0], [[0.0]], [9], 1.0, alone=-9.0)
    assert d.observe(line(30.0)).created.tolist() == [True]
    empty = BayesianDictionary([25.0], *NONE, 1.0, alone=-1e9)
    assert empty.predict(line(0.0), 1).category.tolist() == [-1]
    out = empty.observe(line(0.0), 1)
    assert (out.category[0], out.created[0], out.score[0], out.probability[0]) == (0, True, -1e30, 1.0)
    assert (out.runners_up_category.tolist(), out.runners_up_score.tolist()) == ([[-1]], [[-1e30]])
    json.dumps(out.score.tolist(), allow_nan=False)


def test_equal_log_ratios_go_to_the_lowest_id_and_to_a_category_before_a_candidate():
    d = BayesianDictionary([9.0], [[3.0], [3.0]], [1, 1])
    assert d.observe(line(2.0)).category.tolist() == [0]
    same = BayesianDictionary([9.0], [[3.0]], [1], 50.0, alone=-1e9)
    same.observe(line(3.0))  # a candidate that is exactly the category
    same.threshold = 0.5
    assert same.observe(line(3.0)).created.tolist() == [False]


def test_a_score_equal_to_the_threshold_joins_and_the_next_number_above_it_does_not():
    d = BayesianDictionary([9.0], [[3.0]], [1])
    d.threshold = score = float(d.predict(line(1.0)).score[0])
    assert not d.predict(line(1.0)).created[0]
    d.threshold = math.nextafter(score, math.inf)
    assert d.predict(line(1.0)).created[0]


def test_the_prior_prefers_categories_with_more_members_and_asks_more_of_all_the_larger_its_concentration():
    # With a cap of 1 both count as one reading, at 1 and at 2: means 0.9 and 1.8, and 1.3 is nearer to the first. The
    # second has 30 members: log(30 / 1) = 3.4 makes up for that.
    plain = BayesianDictionary([9.0], [[1.0], [60.0]], [1, 30], cap=1).predict(line(1.3), 1)
    prior = BayesianDictionary([9.0], [[1.0], [60.0]], [1, 30], cap=1, concentration=2.0).predict(line(1.3), 1)
    assert (plain.category[0], prior.category[0]) == (0, 1)
    assert prior.score[0] - plain.runners_up_score[0, 0] == pytest.approx(math.log(30) - math.log(2))
    yor = BayesianDictionary([9.0], [[1.0], [60.0]], [1, 30], cap=1, concentration=2.0, discount=0.5)
    shift = yor.predict(line(1.3)).score[0] - plain.runners_up_score[0, 0]
    assert shift == pytest.approx(math.log(29.5) - math.log(2 + 0.5 * 2))
    yor.observe(line(1.3))  # joins the second one, which has 31 members now, and does not learn
    again = yor.predict(line(1.3)).score[0] - plain.runners_up_score[0, 0]
    assert again == pytest.approx(math.log(30.5) - math.log(3))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 9999), st.sampled_from([0.3, 1.0, 20.0]), st.floats(-5, 5), st.none() | st.floats(-9, 9))
def test_probabilities_are_the_softmax_of_the_log_ratios_and_of_a_new_category(seed, temperature, threshold, even_at):
    rng = np.random.default_rng(seed)
    sums = rng.standard_normal((6, 3)) * 4
    d = BayesianDictionary(np.full(3, 4.0), sums, [2] * 6, threshold, temperature=temperature, even_at=even_at)
    out = d.predict(rng.standard_normal((9, 3)) * 2, runners_up=6)
    fits = np.where(out.runners_up_category >= 0, out.runners_up_score, -np.inf)
    first = np.where(out.created, -np.inf, out.score)
    even = threshold if even_at is None else even_at
    logits = (np.column_stack([first, fits]) - even) / temperature
    odds = np.exp(logits - np.maximum(logits.max(axis=1), 0)[:, None])
    new = np.exp(-np.maximum(logits.max(axis=1), 0))
    total = odds.sum(axis=1) + new
    assert out.new_probability == pytest.approx(new / total, abs=1e-6)
    assert out.runners_up_probability == pytest.approx(odds[:, 1:] / total[:, None], abs=1e-6)
    assert out.probability == pytest.approx(np.where(out.created, new, odds[:, 0]) / total, abs=1e-6)
    every = out.runners_up_probability.sum(axis=1) + out.new_probability + np.where(out.created, 0, out.probability)
    assert (every <= 1 + 1e-9).all()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 9999), st.sampled_from([0.3, 2.0, 20.0]), st.floats(0.05, 3), st.floats(-9, 9), st.booleans())
def test_the_odds_of_a_new_category_are_straightened_and_categories_share_the_rest_as_before(
    seed, temperature, slope, shift, doubting
):
    rng = np.random.default_rng(seed)
    args = np.full(3, 4.0), rng.standard_normal((6, 3)) * 4, [2] * 6, 3.0
    options = {"temperature": temperature, "even_at": 0.0, "alone": -50.0 if doubting else None}
    plain = BayesianDictionary(*args, **options)
    other = BayesianDictionary(*args, **options, new_slope=slope, new_shift=shift)
    readings = rng.standard_normal((40, 3)) * 3
    one, two = plain.observe(readings, runners_up=46), other.observe(readings, runners_up=46)  # all there can be
    for name in ("category", "score", "created", "runners_up_category", "runners_up_score"):
        assert getattr(one, name).tolist() == getattr(two, name).tolist(), "probabilities decide nothing"
    known = 1 - one.new_probability
    with np.errstate(divide="ignore"):
        odds = np.clip(np.log(one.new_probability / known), -16, 16)  # e^-16 is out of reach
    new = 1 / (1 + np.exp(-(slope * odds + shift)))
    assert two.new_probability == pytest.approx(new, abs=1e-6)
    left = np.divide(1 - new, known, where=known > 0, out=np.zeros_like(known))
    # Where all are out of reach, the nearest one has the rest.
    answers = np.where(known > 0, one.probability * left, 1 - new)
    assert two.probability[~two.created] == pytest.approx(answers[~two.created], abs=1e-6)
    assert two.probability[two.created] == pytest.approx(new[two.created], abs=1e-6)
    near = known > 0
    shared = one.runners_up_probability[near] * left[near, None]
    assert two.runners_up_probability[near] == pytest.approx(shared, abs=1e-6)
    every = two.runners_up_probability.sum(axis=1) + two.new_probability + np.where(two.created, 0, two.probability)
    assert every == pytest.approx(np.ones(40))


@pytest.mark.parametrize("slope", [0.3, 1.0, 30.0])
def test_what_fits_a_category_far_better_than_a_new_one_is_hardly_new_and_what_has_no_rival_is(slope):
    d = BayesianDictionary([9.0], [[50.0], [-50.0]], [10, 10], alone=-1e6, even_at=0.0, new_slope=slope, new_shift=0.1)
    near, far = (d.predict(line(at)).new_probability[0] for at in (4.9, 1e4))
    assert 0.0 <= near < 0.5 < far <= 1.0, (near, far)
    empty = BayesianDictionary([9.0], np.empty((0, 1)), [], new_slope=slope, new_shift=-3.0)
    assert empty.predict(line(1.0)).new_probability.tolist() == [1.0]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 9999), st.floats(-20, 20))
def test_where_odds_are_even_changes_no_answer(seed, even_at):
    rng = np.random.default_rng(seed)
    readings = rng.standard_normal((60, 3)) * 3
    args = np.full(3, 4.0), rng.standard_normal((4, 3)) * 4, [2] * 4, 3.0
    plain, other = (
        BayesianDictionary(*args, alone=-2.0, reconsider_every=20, even_at=even) for even in (None, even_at)
    )
    one, two = plain.observe(readings, runners_up=2), other.observe(readings, runners_up=2)
    for name in ("category", "score", "created", "runners_up_category", "runners_up_score"):
        assert getattr(one, name).tolist() == getattr(two, name).tolist()
    assert plain.drain_events() == other.drain_events()


def test_a_state_of_before_odds_had_a_place_of_their_own_gives_the_probabilities_it_gave():
    d = BayesianDictionary([9.0], [[50.0]], [10], 5.0, temperature=2.0)
    state = d.state()
    assert (state.pop("even_at"), state.pop("new_slope"), state.pop("new_shift")) == (None, 1.0, 0.0)
    again = BayesianDictionary.from_state(state)
    assert again.predict(line(3.0)).probability == d.predict(line(3.0)).probability
    later = {"even_at": 1.0, "new_slope": 0.4, "new_shift": -1.0}
    kept = BayesianDictionary.from_state(BayesianDictionary([9.0], [[50.0]], [10], 5.0, **later).state())
    assert {name: kept.state()[name] for name in later} == later


def test_probabilities_are_shared_among_the_nearest_when_categories_are_many():
    d = BayesianDictionary([9.0], np.zeros((100, 1)), [1] * 100, temperature=10.0)
    out = d.predict(line(0.0))
    assert 32 * out.probability[0] + out.new_probability[0] == pytest.approx(1)


def test_other_dictionaries_have_no_probabilities_and_no_doubts():
    out = PrototypeDictionary(np.eye(2), 0.9).observe([[1.0, 0.0], [0.7, 0.7]])
    assert out.probability is out.new_probability is out.runners_up_probability is None
    assert out.doubtful.tolist() == [False, False]


def test_predict_changes_nothing_and_says_what_observe_would_of_each_alone():
    d = lived_in()
    readings = np.random.default_rng(8).standard_normal((40, 4)) * 3
    before = d.state()
    out = d.predict(readings, 2)
    for name, value in d.state().items():
        assert np.asarray(value).tobytes() == np.asarray(before[name]).tobytes()
    for x, category, created, score, p in zip(
        readings, out.category, out.created, out.score, out.probability, strict=True
    ):
        one = d.copy().observe(x, 2)
        assert (one.created[0], one.score[0], one.probability[0]) == (created, score, p)
        assert category == (-1 if created else one.category[0])


def test_state_goes_through_safetensors_and_json_and_back(tmp_path):
    numpy = pytest.importorskip("safetensors.numpy")
    d = lived_in()
    state = d.state()
    arrays = {name: value for name, value in state.items() if isinstance(value, np.ndarray)}
    numpy.save_file(arrays, tmp_path / "state.safetensors")
    rest = json.loads(json.dumps({name: value for name, value in state.items() if name not in arrays}))

    e = BayesianDictionary.from_state({**numpy.load_file(tmp_path / "state.safetensors"), **rest})

    more = np.random.default_rng(4).standard_normal((60, 4)) * 2.5
    a, b = d.observe(more), e.observe(more)
    assert a.category.tolist() == b.category.tolist()
    assert a.score.tobytes() == b.score.tobytes()
    assert d.drain_events() == e.drain_events() != []


def test_a_copy_goes_its_own_way():
    d = lived_in()
    before = d.state()
    other = d.copy()
    other.threshold = 9.0
    other.observe(np.random.default_rng(6).standard_normal((50, 4)))
    assert d.threshold == 1.0
    for name, value in d.state().items():
        assert np.asarray(value).tobytes() == np.asarray(before[name]).tobytes()


def test_a_state_with_something_missing_is_refused_by_name():
    state = lived_in().state()
    late = {"pinned", "lapsed", "even_at", "new_slope", "new_shift"}  # which older states do not have
    for missing in state.keys() - late:
        with pytest.raises(SettingsError, match=missing):
            BayesianDictionary.from_state({name: value for name, value in state.items() if name != missing})


DAMAGE = {
    "a sum too few": lambda s: s.update(sums=s["sums"][:-1]),
    "sums of another dimension": lambda s: s.update(sums=s["sums"][:, :-1]),
    "a sum that is no number": lambda s: s["sums"].__setitem__((1, 2), np.nan),
    "a category without evidence": lambda s: s["evidence"].__setitem__(-1, 0),
    "fewer members than evidence": lambda s: s["members"].__setitem__(0, 0),
    "a sighting that is not counted": lambda s: s.update(seen=s["seen"] + 1),
    "a negative count": lambda s: s["counts"].__setitem__(slice(0, 2), [-1, s["counts"][:2].sum() + 1]),
    "a candidate from the future": lambda s: s["waiting_sightings"].__setitem__(-1, s["seen"]),
    "a candidate without a reading": lambda s: s.update(waiting=s["waiting"][:-1]),
    "a home that never was": lambda s: s["remembered_homes"].__setitem__(0, s["next_id"]),
    "a memory cut short": lambda s: s.update({name: s[name][1:] for name in ("remembered", "remembered_homes")}),
    "an event of no kind": lambda s: s["events"].__setitem__((0, 0), 3),
    "an alias of itself": lambda s: s["aliases"].__setitem__((0, 1), s["aliases"][0, 0]),
    "aliases in a circle": lambda s: s["aliases"].__setitem__((slice(0, 2), 1), s["aliases"][1::-1, 0]),
    "a cap of 0": lambda s: s.update(cap=0),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_state_is_refused(damage):
    state = lived_in().state()
    BayesianDictionary.from_state(state)
    damage(state)
    with pytest.raises(SettingsError):
        BayesianDictionary.from_state(state)


def test_a_person_can_merge_and_the_evidence_adds_up():
    d = BayesianDictionary([9.0], [[0.0]], [5], 3.0)
    d.observe(line(5.0, 5.5, -20.0))
    assert d.merge([2, 1]) == 1
    told = BayesianDictionary([9.0], [[0.0], [10.5]], [5, 2])
    assert d.predict(line(5.0)).score[0] == told.predict(line(5.0)).score[0]
    assert d.merge([1, 0]) == 0
    assert (d.resolve([0, 1, 2, 3]).tolist(), d.counts.tolist()) == ([0, 0, 0, 3], [2, 1])
    fixed = BayesianDictionary([9.0], [[0.0]], [5])
    assert d.predict(line(0.5)).score[0] == fixed.predict(line(0.5)).score[0]  # it keeps its own evidence
    assert d.drain_events() == []
    with pytest.raises(SettingsError, match="no category 9"):
        d.merge([0, 9])


def test_a_learning_known_category_takes_the_evidence_of_what_is_merged_into_it():
    d = BayesianDictionary([9.0], [[0.0]], [1], 3.0, learn_known=True)
    d.observe(line(5.0))
    d.merge([0, 1])
    told = BayesianDictionary([9.0], [[5.0]], [2])
    assert d.predict(line(2.0)).score[0] == told.predict(line(2.0)).score[0]


BAD = {
    "NaN": ([[1.0, 2.0], [np.nan, 0.0]], "row 1 of 2 is NaN or infinite"),
    "dimension": ([[1.0]], "has 1 dimensions, but this dictionary was made for 2"),
    "far": ([[1.0, 2e9]], "row 0 of 1 has entries beyond"),
    "too far for float32": ([[1.0, 1e300]], "row 0 of 1 has entries beyond"),
    "text": ([["a", "b"]], "must be real numbers"),
}


@pytest.mark.parametrize(("readings", "message"), BAD.values(), ids=BAD)
@pytest.mark.parametrize("verb", ["observe", "predict"])
def test_a_bad_batch_is_refused_by_name_and_changes_nothing(readings, message, verb):
    d = BayesianDictionary([1.0, 2.0], [[1.0, 0.0]], [3])
    with pytest.raises(FeatureError, match=message):
        getattr(d, verb)(readings)
    assert (len(d), d.seen, d.counts.tolist()) == (1, 0, [0])


@pytest.mark.parametrize(
    "setting",
    [{"threshold": np.nan}, {"threshold": "x"}, {"cap": 0}, {"cap": 2.5}, {"alone": "x"}, {"alone": np.inf},
     {"temperature": 0.0}, {"even_at": np.nan}, {"concentration": 0.0}, {"discount": 1.0}, {"discount": -0.1},
     {"reconsider_every": 0}, {"reconsider_at": None}, {"memory": 0}, {"merge_at": 0.0}, {"learn_known": "no"},
     {"new_slope": 0.0}, {"new_shift": np.inf}],
)  # fmt: skip
def test_settings_that_cannot_be_are_refused_by_name(setting):
    with pytest.raises(SettingsError, match=next(iter(setting))):
        BayesianDictionary([1.0], *NONE, **setting)


def test_parts_that_do_not_fit_are_refused():
    for spread in ([], [[1.0]], [0.0], [-1.0], [np.nan], ["a"]):
        with pytest.raises(FeatureError, match="spread"):
            BayesianDictionary(spread, np.empty((0, 1)), [])
    with pytest.raises(FeatureError, match="sum"):
        BayesianDictionary([1.0], [[1.0, 2.0]], [1])
    for counts in ([1, 2], [0], [1.5]):
        with pytest.raises(SettingsError, match="known categor"):
            BayesianDictionary([1.0], [[1.0]], counts)


@pytest.mark.parametrize("start", [0.0, -30.0])
def test_below_alone_the_threshold_leaves_no_room_for_doubt_wherever_it_came_from(start):
    readings = np.random.default_rng(0).standard_normal((200, 2)) * [3.0, 3.0]
    d = BayesianDictionary([9.0, 9.0], [[20.0, 0.0]], [4], start, alone=-10.0)
    d.threshold = -12.0
    again = BayesianDictionary.from_state(d.state())
    out, same = d.observe(readings), again.observe(readings)
    plain = BayesianDictionary([9.0, 9.0], [[20.0, 0.0]], [4], -12.0, alone=None).observe(readings)
    assert out.category.tolist() == same.category.tolist() == plain.category.tolist()
    assert out.created.sum() > 1
    assert not out.doubtful.any()


def test_a_single_reading_none_at_all_and_tensors_are_batches_too():
    torch = pytest.importorskip("torch")
    d = BayesianDictionary([9.0, 9.0], [[20.0, 0.0]], [4])
    assert d.observe([5.0, 0.0]).category.tolist() == [0]
    assert d.observe(torch.tensor([[5.0, 0.0]])).category.tolist() == [0]
    assert len(d.observe(np.empty((0, 2)), 3)) == 0
    assert d.seen == 2


def test_the_representation_says_what_it_holds():
    d = BayesianDictionary([9.0], [[0.0]], [5], 0.5)
    d.observe(line(9.0))
    assert repr(d) == "BayesianDictionary(1 known and 1 discovered categories, dimension=1, threshold=0.5)"
