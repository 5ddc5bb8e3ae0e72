"""What a person who brings embeddings can rely on."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from doc_examples import check_examples
from hypothesis import given, settings
from hypothesis import strategies as st

from newfound.discovery import PrototypeDictionary, prototypes
from newfound.errors import FeatureError, SettingsError

AXES = np.eye(4, dtype=np.float32)


def turned(degrees: float, axis: int = 0) -> np.ndarray:
    """A unit vector that far from one axis towards the next."""
    vector = np.zeros(4)
    vector[axis], vector[axis + 1] = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    return vector


def test_the_example_in_the_documentation_runs():
    check_examples(prototypes)


def test_new_ids_follow_the_known_ones_in_order_of_creation():
    p = PrototypeDictionary(AXES[:2], 0.9)
    out = p.observe([AXES[0], AXES[3], AXES[1], AXES[2], turned(10, 2), AXES[3]])
    assert out.category.tolist() == [0, 2, 1, 3, 3, 2]
    assert out.created.tolist() == [False, True, False, True, False, False]
    assert out.cut == 0.9
    assert len(out) == 6
    assert len(p) == 4
    assert p.known == 2
    assert p.counts.tolist() == [1, 1, 2, 2]
    assert p.seen == 6


def test_equal_similarity_goes_to_the_lowest_id():
    p = PrototypeDictionary([AXES[1], AXES[0], AXES[0]], 0.5)
    assert p.observe([AXES[0], turned(45)]).category.tolist() == [1, 0]


@pytest.mark.parametrize("update", ["fixed", "running"])
@pytest.mark.parametrize("runners_up", [0, 1])
def test_similarities_that_are_clipped_to_the_same_value_are_equal(update, runners_up):
    long, longer = 1 + 4e-6, 1 + 9e-6
    p = PrototypeDictionary([[long, 0], [longer, 0]], 0.5, update=update)
    assert p.observe([[longer, 0]], runners_up).category.tolist() == [0]
    q = PrototypeDictionary([[longer, 0], [long, 0]], -1.0, update=update)
    out = q.observe([[-longer, 0]], runners_up)
    assert out.category.tolist() == [0]
    assert out.score.tolist() == [-1.0]


def test_a_score_equal_to_the_threshold_is_not_new_and_the_next_number_above_it_is():
    p = PrototypeDictionary(AXES[:1])
    score = float(p.predict(turned(30)).score[0])
    p.threshold = score
    assert not p.predict(turned(30)).created[0]
    p.threshold = np.nextafter(score, 1)
    assert p.predict(turned(30)).created[0]


def test_a_founder_reports_the_best_similarity_it_had_before_it_founded():
    p = PrototypeDictionary(AXES[:1], 0.9)
    out = p.observe([turned(60), turned(60)])
    assert out.score[0] == pytest.approx(0.5)
    assert out.score[1] == pytest.approx(1.0)
    assert out.category.tolist() == [1, 1]


def test_an_empty_dictionary_starts_with_its_first_sample_at_any_threshold():
    for threshold in (-1.0, 0.0, 1.0):
        p = PrototypeDictionary(np.empty((0, 4)), threshold)
        assert p.predict(AXES[:2], 1).category.tolist() == [-1, -1]
        out = p.observe(AXES[:1], runners_up=1)
        assert (out.category[0], out.score[0], out.created[0]) == (0, -1.0, True)
        assert (out.runners_up_category.tolist(), out.runners_up_score.tolist()) == ([[-1]], [[-1.0]])
        assert p.known == 0


def test_a_threshold_of_minus_one_never_finds_anything_new():
    long = np.float32(1 + 9e-6)  # counts as a unit vector: its product with the opposite is below -1
    p = PrototypeDictionary([[long, 0]], -1.0)
    out = p.observe([[-long, 0]])
    assert out.score[0] == -1.0
    assert not out.created[0]


def test_scores_are_never_beyond_one():
    long = np.float32(1 + 9e-6)
    assert PrototypeDictionary([[long, 0]]).predict([[long, 0]]).score[0] == 1.0


def test_runners_up_are_the_next_best_and_for_a_founder_the_best():
    p = PrototypeDictionary(AXES[:3], 0.95)
    out = p.observe([turned(10), turned(40)], runners_up=2)
    assert out.category.tolist() == [0, 3]
    assert out.runners_up_category.tolist() == [[1, 2], [0, 1]]
    assert out.runners_up_score[0] == pytest.approx([np.sin(np.radians(10)), 0])
    assert out.runners_up_score[1] == pytest.approx([np.cos(np.radians(40)), np.sin(np.radians(40))])
    few = PrototypeDictionary(AXES[:1], 0.5).observe(AXES[0], runners_up=2)
    assert few.runners_up_category.tolist() == [[-1, -1]]
    assert few.runners_up_score.tolist() == [[-1.0, -1.0]]


def test_runners_up_are_not_there_unless_asked_for():
    assert PrototypeDictionary(AXES).observe(AXES).runners_up_category.shape == (4, 0)


def test_running_prototypes_are_the_direction_of_their_members_sum_and_known_ones_stay():
    p = PrototypeDictionary(AXES[2:3], 0.8, update="running")
    p.observe([turned(0), turned(30), turned(10, 2)])
    assert p.prototypes[1] == pytest.approx(turned(15), abs=1e-6)
    assert p.prototypes[0].tolist() == AXES[2].tolist()
    fixed = PrototypeDictionary(AXES[2:3], 0.8)
    fixed.observe([turned(0), turned(30)])
    assert fixed.prototypes[1].tolist() == turned(0).tolist()


def test_members_that_cancel_out_leave_a_running_prototype_where_it_was():
    p = PrototypeDictionary(np.empty((0, 2)), -1.0, update="running")
    p.observe([[1.0, 0.0], [-1.0, 0.0]])
    assert p.prototypes.tolist() == [[1.0, 0.0]]
    assert p.counts.tolist() == [2]


def test_unit_rows_keep_their_bits_and_others_are_normalised():
    unit = np.array([[0.6, 0.8], [0.6000001, 0.8], [1 + 9.8e-6, 0], [1 - 9.8e-6, 0]], np.float32)
    assert PrototypeDictionary(unit).prototypes.tobytes() == unit.tobytes()
    assert PrototypeDictionary([[1 + 1.1e-5, 0], [1 - 1.1e-5, 0]]).prototypes.tolist() == [[1, 0], [1, 0]]
    scaled = PrototypeDictionary([[3e-300, 4e-300], [3e200, 4e200], [1e-45, 0]]).prototypes
    assert scaled[:2] == pytest.approx(np.array([[0.6, 0.8]] * 2))
    assert scaled[2].tolist() == [1.0, 0.0]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False).filter(bool), min_size=1, max_size=9))
def test_normalising_twice_is_normalising_once(row):
    once = PrototypeDictionary([row]).prototypes
    assert np.linalg.norm(once.astype(np.float64)) == pytest.approx(1, abs=1.1e-5)
    assert PrototypeDictionary(once).prototypes.tobytes() == once.tobytes()


@settings(max_examples=100, deadline=None)
@given(st.integers(-300, 300), st.integers(1, 40))
def test_rows_at_the_edge_of_the_tolerance_are_not_changed_by_saving(steps, dimension):
    row = np.full(dimension, (1 + 1e-5 * (1 + steps / 1e5)) / np.sqrt(dimension))
    once = PrototypeDictionary([row]).prototypes
    assert PrototypeDictionary(once).prototypes.tobytes() == once.tobytes()


@pytest.mark.parametrize("kind", ["float16", "float32", "float64", "int8", "longdouble"])
def test_features_of_any_real_type_are_taken(kind):
    p = PrototypeDictionary(AXES, 0.5)
    assert p.observe((AXES * 3).astype(kind)).category.tolist() == [0, 1, 2, 3]


def test_torch_tensors_are_taken_also_those_that_carry_gradients_or_half_precision():
    torch = pytest.importorskip("torch")
    p = PrototypeDictionary(torch.eye(4), 0.5)
    assert p.observe(torch.eye(4, requires_grad=True) * 2).category.tolist() == [0, 1, 2, 3]
    assert p.observe(torch.eye(4, dtype=torch.bfloat16)).category.tolist() == [0, 1, 2, 3]
    assert p.observe(torch.eye(4, dtype=torch.float64)[2]).category.tolist() == [2]


def test_features_passed_in_are_not_written_to():
    features = (AXES * 3).copy()
    p = PrototypeDictionary(np.empty((0, 4)), 0.5)
    p.observe(features)
    assert features.tolist() == (AXES * 3).tolist()
    features[:] = 7
    assert p.prototypes.tolist() == AXES.tolist()


def test_a_single_feature_and_none_at_all_are_batches_too():
    p = PrototypeDictionary(AXES, 0.5)
    assert p.observe(AXES[2]).category.tolist() == [2]
    for nothing in (np.empty((0, 4)), []):
        out = p.observe(nothing, runners_up=2)
        assert len(out) == 0
        assert out.runners_up_category.shape == (0, 2)
    assert p.seen == 1


BAD = {
    "NaN": ([[1, 0, 0, 0], [0, np.nan, 0, 0]], "row 1 of 2 is NaN or infinite"),
    "infinity": ([[1, 0, 0, 0], [0, 1, 0, 0], [np.inf, 1, 0, 0]], "row 2 of 3 is NaN or infinite"),
    "zero": ([[0, 0, 0, 0]], "row 0 of 1 is zero"),
    "dimension": ([[1, 0, 0]], "has 3 dimensions, but this dictionary was made for 4"),
    "single dimension": ([1, 0, 0], "has 3 dimensions, but this dictionary was made for 4"),
    "shape": (np.ones((2, 2, 4)), r"shape \[2, 2, 4\]"),
    "ragged": ([[1, 0, 0, 0], [1]], "rows of the same length"),
    "text": ([["a", "b", "c", "d"]], "must be real numbers"),
    "complex": (np.ones((1, 4), complex), "must be real numbers"),
    "None": (None, "must be real numbers"),
}


@pytest.mark.parametrize(("features", "message"), BAD.values(), ids=BAD)
@pytest.mark.parametrize("verb", ["observe", "predict"])
def test_a_bad_batch_is_refused_by_name_and_changes_nothing(features, message, verb):
    p = PrototypeDictionary(AXES[:1], 0.5)
    with pytest.raises(FeatureError, match=message):
        getattr(p, verb)(features)
    assert (len(p), p.seen, p.counts.tolist()) == (1, 0, [0])


@pytest.mark.parametrize("bad", [np.ones(4), np.ones((2, 0)), [[np.nan]], [[0.0, 0.0]], None])
def test_bad_prototypes_are_refused(bad):
    with pytest.raises(FeatureError, match="prototype"):
        PrototypeDictionary(bad)


@pytest.mark.parametrize("threshold", [1.0001, -1.0001, np.nan, np.inf, "0.7x", None])
def test_a_threshold_outside_minus_one_to_one_is_refused_when_made_and_when_set(threshold):
    with pytest.raises(SettingsError, match="threshold is a similarity"):
        PrototypeDictionary(AXES, threshold)
    p = PrototypeDictionary(AXES, 0.7)
    with pytest.raises(SettingsError, match="threshold is a similarity"):
        p.threshold = threshold
    assert p.threshold == 0.7


@pytest.mark.parametrize(
    "setting", [{"update": "moving"}, {"merge_every": 0}, {"merge_every": 2.5}, {"merge_at": 1.5}, {"merge_at": np.nan}]
)
def test_settings_that_cannot_be_are_refused(setting):
    with pytest.raises(SettingsError, match=next(iter(setting))):
        PrototypeDictionary(AXES, **setting)


def test_a_negative_number_of_runners_up_is_refused():
    with pytest.raises(SettingsError, match="runners_up"):
        PrototypeDictionary(AXES).observe(AXES, runners_up=-1)


def test_what_is_shown_cannot_be_written_to():
    p = PrototypeDictionary(AXES)
    for shown in (p.prototypes, p.counts, p.ids):
        with pytest.raises(ValueError, match="read-only"):
            shown[0] = 0


def test_memory_stays_within_1_6_times_the_prototypes_while_growing(nothing_compiled_aside):
    rng = np.random.default_rng(0)
    tracemalloc.start()
    p = PrototypeDictionary(rng.standard_normal((10, 256)), 0.9)
    for _ in range(40):
        features = rng.standard_normal((97, 256)).astype(np.float32)
        p.observe(features)
        del features
        if len(p) > 500:  # before that, Python's own objects count
            assert tracemalloc.get_traced_memory()[0] <= 1.6 * len(p) * 256 * 4
    tracemalloc.stop()
    assert len(p) == 10 + 40 * 97


def test_the_representation_says_what_it_holds():
    p = PrototypeDictionary(AXES[:2], 0.75)
    p.observe(AXES)
    expected = "PrototypeDictionary(2 known and 2 discovered categories, dimension=4, threshold=0.75, update='fixed')"
    assert repr(p) == expected
