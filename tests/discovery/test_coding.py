"""How readings become codes, and thresholds radii."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from newfound.discovery import GroupArgmax, SignCode, TopK
from newfound.discovery.coding import coding_from_state, coding_state, radius_of, score_of
from newfound.errors import SettingsError

CODINGS = [SignCode(12), TopK(8, 3), GroupArgmax(6, 2)]


def rows(coding):
    """Readings with many equal values, so that ties are common."""
    row = st.lists(st.integers(-2, 2), min_size=coding.dimension, max_size=coding.dimension)
    return st.lists(row, min_size=1, max_size=6)


def test_a_sign_code_has_a_one_where_a_value_is_above_zero():
    assert SignCode(4).bits(np.array([[0.5, 0.0, -0.1, 1e-30], [-0.0, 0, 0, 0]])).tolist() == [
        [True, False, False, True],
        [False, False, False, False],
    ]


def test_a_top_k_code_has_a_one_at_each_of_the_k_largest_and_ties_go_to_the_lower_index():
    bits = TopK(5, 2).bits(np.array([[1.0, 5.0, -7.0, 4.0, 4.0], [3, 3, 3, 3, 3], [0, 1, 0, 0, 0]]))
    assert [np.flatnonzero(row).tolist() for row in bits] == [[1, 3], [0, 1], [0, 1]]


def test_a_group_code_has_a_one_at_the_largest_of_each_group_and_ties_go_to_the_lower_index():
    bits = GroupArgmax(6, 2).bits(np.array([[1.0, 5.0, -7.0, 4.0, 4.0, 0.0], [0, 0, 0, -3, -2, -1]]))
    assert [np.flatnonzero(row).tolist() for row in bits] == [[1, 3], [0, 5]]


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float16, np.float32])
def test_a_code_does_not_depend_on_the_type_of_the_numbers(dtype):
    values = np.array([[200, 3, 100, 0, 7, 200]])
    assert np.flatnonzero(TopK(6, 3).bits(values.astype(dtype))).tolist() == [0, 2, 5]
    assert np.flatnonzero(GroupArgmax(6, 2).bits(values.astype(dtype))).tolist() == [0, 5]


@pytest.mark.parametrize("coding", CODINGS, ids=repr)
@given(data=st.data())
def test_a_row_has_the_same_code_alone_and_among_others_and_it_is_valid(coding, data):
    readings = np.array(data.draw(rows(coding)))
    together = coding.bits(readings)
    assert [coding.bits(row[None])[0].tolist() for row in readings] == together.tolist()
    assert together.shape == readings.shape
    assert coding.valid(together).all()


@pytest.mark.parametrize(
    ("coding", "span"),
    [(SignCode(12), 12), (TopK(32, 3), 6), (TopK(4, 2), 4), (TopK(4, 3), 2), (GroupArgmax(48, 3), 6)],
    ids=repr,
)
def test_the_span_is_the_distance_of_the_codes_of_opposite_readings(coding, span):
    up = np.arange(1, coding.dimension + 1)[None]  # what is largest in the one is smallest in the other
    assert (coding.bits(up) != coding.bits(-up)).sum() == coding.span == span


@pytest.mark.parametrize("coding", CODINGS, ids=repr)
@given(data=st.data())
def test_no_two_codes_are_further_apart_than_the_span(coding, data):
    bits = coding.bits(np.array(data.draw(rows(coding))))
    assert (bits[:, None] != bits).sum(axis=2).max() <= coding.span


@pytest.mark.parametrize(
    ("coding", "bits", "valid"),
    [
        (SignCode(2), [[0, 0], [1, 1]], [True, True]),
        (TopK(3, 2), [[1, 1, 0], [1, 0, 0], [1, 1, 1]], [True, False, False]),
        (GroupArgmax(4, 2), [[1, 0, 0, 1], [1, 1, 0, 0], [0, 0, 1, 0]], [True, False, False]),
    ],
)
def test_a_row_of_bits_that_no_reading_has_is_not_valid(coding, bits, valid):
    assert coding.valid(np.array(bits, bool)).tolist() == valid


@pytest.mark.parametrize(
    "make",
    [
        lambda: SignCode(0),
        lambda: TopK(4, 0),
        lambda: TopK(4, 4),
        lambda: GroupArgmax(7, 2),
        lambda: GroupArgmax(4, 4),
        lambda: GroupArgmax(4, 0),
    ],
)
def test_a_coding_that_cannot_tell_anything_apart_is_refused(make):
    with pytest.raises(SettingsError):
        make()


def test_every_score_is_a_threshold_that_allows_just_its_distance_however_it_was_computed():
    for span in range(1, 257):
        steps = np.linspace(1, 0, span + 1)
        for distance in range(span + 1):
            spellings = {
                score_of(distance, span),
                (span - distance) / span,
                1 - distance * (1 / span),
                float(steps[distance]),
                float(f"{(span - distance) / span:.12f}"),
            }
            assert {radius_of(t, span) for t in spellings} == {distance}


def test_a_threshold_between_two_scores_allows_the_smaller_distance():
    for span in range(1, 257):
        for distance in range(span):
            assert radius_of(score_of(distance + 0.5, span), span) == distance
            assert radius_of(score_of(distance, span) - 1e-6, span) == distance
            assert radius_of(score_of(distance + 1, span) + 1e-6, span) == distance


@pytest.mark.parametrize("span", [1, 6, 12, 256])
def test_a_threshold_from_zero_down_allows_every_distance(span):
    assert {radius_of(t, span) for t in (0.0, -0.3, -1.0)} == {span}


@pytest.mark.parametrize("coding", CODINGS, ids=repr)
def test_a_coding_goes_through_json_and_back(coding):
    assert coding_from_state(json.loads(json.dumps(coding_state(coding)))) == coding


@pytest.mark.parametrize("state", [{}, {"kind": "Morse"}, {"kind": "TopK", "dimension": 3}, {"kind": "SignCode"}])
def test_a_coding_that_does_not_exist_is_refused(state):
    with pytest.raises(SettingsError, match="damaged"):
        coding_from_state(state)
