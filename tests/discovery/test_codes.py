"""What a person who brings codes can rely on."""

from __future__ import annotations

import json

import numpy as np
import pytest
from doc_examples import check_examples
from hypothesis import given
from hypothesis import strategies as st

from newfound.discovery import CodeDictionary, SignCode, TopK, codes, majority_codes
from newfound.errors import FeatureError, SettingsError


def answers(out):
    pairs = [list(zip(*row, strict=True)) for row in zip(out.runners_up_category, out.runners_up_score, strict=True)]
    return list(zip(out.category.tolist(), out.score.tolist(), out.created.tolist(), pairs, strict=True))


def snapshot(dictionary):
    return {k: v.tobytes() if isinstance(v, np.ndarray) else v for k, v in dictionary.state().items()}


def test_the_example_in_the_documentation_runs():
    check_examples(codes)


def test_a_code_goes_to_the_nearest_within_the_radius_and_ties_to_the_oldest():
    # Distances of 1100 to 1110, 1000 and 0000: 1, 1, 2; the first two are tied, the first row is class 1's.
    d = CodeDictionary([[1, 1, 1, 0], [1, 0, 0, 0], [0, 0, 0, 0]], [1, 0, 0], 2, SignCode(4), 0.75)
    out = d.observe([1, 1, -1, -1], runners_up=2)
    assert (out.category.tolist(), out.score.tolist(), out.created.tolist()) == ([1], [0.75], [False])
    assert out.runners_up_category.tolist() == [[0, -1]]
    assert out.runners_up_score.tolist() == [[0.75, -1.0]]


def test_of_two_classes_with_the_same_code_the_first_row_wins_and_the_other_is_its_runner_up():
    d = CodeDictionary([[1, 0], [1, 0]], [1, 0], 2, SignCode(2))
    out = d.observe([[1, -1]], runners_up=1)
    assert (out.category.tolist(), out.runners_up_category.tolist()) == ([1], [[0]])
    assert out.runners_up_score.tolist() == [[1.0]]


def test_a_founder_reports_how_near_it_came_and_to_whom():
    # 1111 is 3 bits from 1000 (class 0) and 2 from 0011 (class 1): the scores are 1 - 3/4 and 1 - 2/4.
    d = CodeDictionary([[1, 0, 0, 0], [0, 0, 1, 1]], [0, 1], 2, SignCode(4))
    out = d.observe([1, 1, 1, 1], runners_up=3)
    assert (out.category.tolist(), out.score.tolist(), out.created.tolist()) == ([2], [0.5], [True])
    assert out.runners_up_category.tolist() == [[1, 0, -1]]
    assert out.runners_up_score.tolist() == [[0.5, 0.25, -1.0]]


def test_a_sample_meets_the_founders_before_it_and_not_those_after_it():
    # Radius 2 of 6 bits, known 000000. 110000 is 2 away and joins it. 111000 is 3 away and founds. Now the same 110000
    # is 1 away from the founder.
    d = CodeDictionary(np.zeros((1, 6)), [0], 1, SignCode(6), 1 - 2 / 6)
    joins, founds = [1, 1, -1, -1, -1, -1], [1, 1, 1, -1, -1, -1]
    out = d.observe([joins, founds, joins])
    assert out.category.tolist() == [0, 1, 1]
    assert out.score.tolist() == [1 - 2 / 6, 1 - 3 / 6, 1 - 1 / 6]


@pytest.mark.parametrize("threshold", [-1.0, -0.5, 0.0])
def test_a_closed_set_takes_everything(threshold):
    d = CodeDictionary([[0, 0, 0]], [0], 1, SignCode(3), threshold)
    out = d.observe([[1, 1, 1], [0, 0, 0]])
    assert (out.category.tolist(), out.score.tolist(), out.cut) == ([0, 0], [0.0, 1.0], threshold)


def test_without_any_code_the_first_reading_founds_with_the_score_of_nothing():
    d = CodeDictionary(np.empty((0, 3)), [], 2, SignCode(3), -1.0)
    assert answers(d.predict([1, 1, 1], 1)) == [(-1, -1.0, True, [(-1, -1.0)])]
    assert answers(d.observe([[1, 1, 1], [-1, -1, -1]], 1)) == [
        (2, -1.0, True, [(-1, -1.0)]),
        (2, 0.0, False, [(-1, -1.0)]),
    ]
    assert (len(d), d.known, d.counts.tolist()) == (3, 2, [0, 0, 2])


def test_the_threshold_can_be_set_between_batches():
    d = CodeDictionary([[0, 0, 0, 0]], [0], 1, SignCode(4))
    assert d.observe([1, -1, -1, -1]).category.tolist() == [1]
    d.threshold = 0.5
    assert d.radius == 2
    assert d.observe([[1, 1, 1, -1], [0, 0, 0, 1]]).category.tolist() == [1, 0]
    with pytest.raises(SettingsError, match="threshold"):
        d.threshold = 1.5


def test_zero_rows_and_torch_tensors_are_fine():
    torch = pytest.importorskip("torch")
    d = CodeDictionary([[0, 0, 0]], [0], 1, SignCode(3))
    for dtype in (torch.float32, torch.bfloat16, torch.float64):
        assert d.predict(torch.zeros(2, 3, dtype=dtype)).category.tolist() == [0, 0]
    assert len(d.observe([])) == 0
    assert len(d.observe(np.empty((0, 3)))) == 0


@pytest.mark.parametrize(
    ("readings", "message"),
    [
        ([[1.0, 2.0]], "2 dimensions"),
        ([[1, 2, 3], [1, np.nan, 3]], "row 1 of 2 is NaN"),
        ([[1, np.inf, 3]], "infinite"),
        ([["a", "b", "c"]], "real numbers"),
        (np.zeros((1, 1, 3)), "shape"),
        ([[1, 2, 3], [1, 2]], "same length"),
    ],
)
def test_readings_that_cannot_be_decided_on_are_refused_and_nothing_changes(readings, message):
    d = CodeDictionary([[0, 0, 0]], [0], 1, SignCode(3))
    d.observe([1, 1, 1])
    before = snapshot(d)
    for decide in (d.observe, d.predict):
        with pytest.raises(FeatureError, match=message):
            decide(readings)
    with pytest.raises(SettingsError, match="runners_up"):
        d.observe([1, -1, 1], runners_up=-1)
    assert snapshot(d) == before


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([[0, 1, 2]], [0], 1, SignCode(3)), FeatureError, "row 0 of 1 has other values"),
        (([[0, 1]], [0], 1, SignCode(3)), FeatureError, "2 bits"),
        (([0, 1, 0], [0], 1, SignCode(3)), FeatureError, "shape"),
        (([[0, 1, 0], [1, 1, 0]], [0, 0], 1, TopK(3, 1)), FeatureError, "row 1 of 2 cannot"),
        ((np.array([[8]], np.uint8), [0], 1, SignCode(3)), FeatureError, "beyond"),
        (([[0, 1, 0]], [1], 1, SignCode(3)), SettingsError, "no such category"),
        (([[0, 1, 0]], [-1], 1, SignCode(3)), SettingsError, "no such category"),
        (([[0, 1, 0]], [0, 0], 1, SignCode(3)), SettingsError, "one owner"),
        (([[0, 1, 0]], [0.0], 1, SignCode(3)), SettingsError, "integers"),
        (([[0, 1, 0]], [0], -1, SignCode(3)), SettingsError, "known"),
        (([[0, 1, 0]], [0], 1, SignCode(3), np.nan), SettingsError, "threshold"),
    ],
)
def test_what_cannot_be_a_dictionary_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        CodeDictionary(*arguments)


@pytest.mark.parametrize("length", [1, 7, 8, 9, 16, 17, 32, 33, 64, 65, 128, 130, 192, 250, 256, 300])
def test_bits_and_packed_bits_are_the_same_codes(length):
    bits = np.random.default_rng(length).random((5, length)) < 0.5
    packed = np.packbits(bits, axis=1, bitorder="little")
    for given_codes in (bits, bits.astype(np.uint8), bits.tolist(), packed):
        d = CodeDictionary(given_codes, range(5), 5, SignCode(length))
        assert d.codes.tolist() == bits.tolist()
    readings = np.where(bits, 1.0, -1.0)
    opposite = CodeDictionary(bits[:1], [0], 1, SignCode(length)).predict(-readings[0])
    assert opposite.score.tolist() == [0.0], "every single bit counts"


def test_state_goes_through_safetensors_and_json_and_does_not_follow_the_dictionary(tmp_path):
    numpy = pytest.importorskip("safetensors.numpy")
    rng = np.random.default_rng(0)
    d = CodeDictionary(rng.random((4, 20)) < 0.5, [0, 1, 1, 0], 2, SignCode(20), 0.8)
    d.observe(rng.standard_normal((30, 20)))
    d.merge([3, 5])
    state, before = d.state(), snapshot(d)
    more = rng.standard_normal((50, 20))
    later = answers(d.observe(more, 2))
    arrays = {name: value for name, value in state.items() if isinstance(value, np.ndarray)}
    numpy.save_file(arrays, tmp_path / "state.safetensors")
    rest = json.loads(json.dumps({name: value for name, value in state.items() if name not in arrays}))
    e = CodeDictionary.from_state({**numpy.load_file(tmp_path / "state.safetensors"), **rest})
    assert snapshot(e) == before
    assert answers(e.observe(more, 2)) == later


def test_a_copy_goes_its_own_way():
    d = CodeDictionary([[0, 0, 0]], [0], 1, SignCode(3))
    e = d.copy()
    e.observe([1, 1, 1])
    assert (len(d), d.seen, len(e), e.seen) == (1, 0, 2, 1)


def lived_in():
    d = CodeDictionary(np.eye(3), [0, 0, 1], 2, TopK(3, 1))
    e = CodeDictionary(np.zeros((1, 3)), [0], 1, SignCode(3))
    e.observe([[1, 1, 1], [1, -1, 1], [-1, 1, 1]])
    e.merge([2, 3])
    return d, e


def test_a_state_with_something_missing_is_refused_by_name():
    for d in lived_in():
        for missing in d.state():
            with pytest.raises(SettingsError, match=missing):
                CodeDictionary.from_state({name: value for name, value in d.state().items() if name != missing})


DAMAGE = {
    "a code too few": lambda s: s.update(codes=s["codes"][:-1]),
    "an owner too few": lambda s: s.update(owners=s["owners"][:-1]),
    "an owner that was merged away": lambda s: s["owners"].__setitem__(-1, 3),
    "a discovered category without a code": lambda s: s["owners"].__setitem__(1, 0),
    "another coding": lambda s: s.update(coding={"kind": "TopK", "dimension": 3, "k": 1}),
    "an id used again": lambda s: s.update(next_id=s["next_id"] - 1),
    "a threshold of 3": lambda s: s.update(threshold=3.0),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_state_is_refused(damage):
    state = lived_in()[1].state()
    CodeDictionary.from_state(state)
    damage(state)
    with pytest.raises((SettingsError, FeatureError)):
        CodeDictionary.from_state(state)


def test_ids_resolve_like_those_of_prototypes():
    _, d = lived_in()
    assert d.resolve(3) == 2
    assert isinstance(d.resolve(3), int)
    assert d.resolve([[0, 3], [-1, 1]]).tolist() == [[0, 2], [-1, 1]]
    assert d.aliases == {3: 2}
    assert d.observe([-1, -1, 1]).category.tolist() == [4], "no id is used again"
    with pytest.raises(SettingsError, match="no category 9"):
        d.resolve(9)
    with pytest.raises(SettingsError, match="needs the ids"):
        d.merge([])


def test_a_dictionary_says_what_it_is():
    assert repr(lived_in()[1]) == (
        "CodeDictionary(1 known and 2 discovered categories, 4 codes, coding=SignCode(length=3), threshold=1)"
    )


def test_a_code_belongs_to_the_class_most_of_its_samples_have_and_ties_go_to_the_lower_class():
    bits = [[1, 1], [0, 1], [1, 1], [0, 1], [1, 1], [0, 0]]
    # 11 has the classes 2, 1, 2; 01 has 3 and 0, a tie; 00 has 5.
    found, owners = majority_codes(bits, [2, 3, 1, 0, 2, 5])
    assert found.tolist() == [[True, True], [False, True], [False, False]]
    assert found.dtype == bool
    assert owners.tolist() == [2, 0, 5]


@given(
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 3)), max_size=30),
    st.sampled_from([1, 3, 70]),
)
def test_majority_codes_are_those_of_a_plain_count(pairs, width):
    bits = np.array([[[p >> 2 & 1, p >> 1 & 1, p & 1][i % 3] for i in range(width)] for p, _ in pairs], int)
    bits = bits.reshape(len(pairs), width)
    targets = [t for _, t in pairs]
    votes: dict[tuple, list[int]] = {}
    for row, target in zip(bits.tolist(), targets, strict=True):
        votes.setdefault(tuple(row), []).append(target)
    found, owners = majority_codes(bits, np.array(targets, int))
    assert found.astype(int).tolist() == [list(code) for code in votes]
    assert owners.tolist() == [max(sorted(set(v)), key=v.count) for v in votes.values()]


@pytest.mark.parametrize("targets", [[0], [0, 1, 2], [0.5, 1.5], [0, -1]])
def test_targets_that_are_not_a_class_a_sample_are_refused(targets):
    with pytest.raises(SettingsError, match="target"):
        majority_codes([[0, 1], [1, 0]], targets)


@pytest.mark.parametrize("coding", ["sign", SignCode, 12])
def test_a_coding_that_is_none_is_refused(coding):
    with pytest.raises(SettingsError, match="SignCode"):
        CodeDictionary([[1, 0]], [0], known=1, coding=coding)


def test_a_single_id_is_no_merge():
    d = CodeDictionary([[1, 0]], [0], known=1, coding=SignCode(2))
    with pytest.raises(SettingsError, match="several"):
        d.merge(0)


@pytest.mark.parametrize("wrong", [1.5, "4", None])
def test_a_length_is_a_whole_number(wrong):
    with pytest.raises(SettingsError):
        SignCode(wrong)
