"""Labels become codes by Python's own equality, on the fast paths too."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from newfound.evaluation.codes import distinct_values, factorise

hashables = st.recursive(
    st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=2),
    max_leaves=3,
)
integer_types = ["bool", "int8", "uint8", "int16", "int32", "int64", "uint64"]
number_arrays = st.one_of(
    st.sampled_from(integer_types).flatmap(lambda dtype: hnp.arrays(dtype, st.integers(0, 30))),
    hnp.arrays(hnp.floating_dtypes(endianness="="), st.integers(0, 30), elements={"allow_nan": False}),
)


def assert_coded(values: list, codes: np.ndarray, distinct: list) -> None:
    assert len(distinct) == len(set(values))
    assert [distinct[code] for code in codes] == values


@given(st.lists(hashables, max_size=30))
def test_lists_of_anything_hashable(values):
    assert_coded(values, *factorise(values, "values"))


@given(st.lists(st.integers(-3, 3) | st.integers(2**53 - 1, 2**53 + 1) | st.integers(), max_size=30))
def test_lists_of_integers_narrow_wide_and_beyond_64_bits(values):
    assert_coded(values, *factorise(values, "values"))


@given(number_arrays)
def test_arrays_of_numbers(array):
    codes, distinct = factorise(array, "values")
    assert_coded(array.tolist(), codes, distinct)
    assert codes.dtype == np.int64


@pytest.mark.parametrize("ends", [(-(2**63), 2**63 - 1), (0, 2**64 - 1), (2**64 - 3, 2**64 - 1), (-(2**63), 3 - 2**63)])
def test_integers_at_the_ends_of_their_type_do_not_overflow(ends):
    array = np.array([ends[1], ends[0], ends[1]], dtype=np.uint64 if ends[0] >= 0 else np.int64)
    assert_coded(array.tolist(), *factorise(array, "values"))


def test_dates_of_an_array_do_not_become_integers():
    dates = np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[ns]")
    assert distinct_values(dates, "known") == set(dates)
    assert distinct_values(dates, "known").isdisjoint(dates.astype(np.int64).tolist())


def test_text_keeps_a_trailing_nul_that_numpy_would_drop():
    assert len(factorise(["a", "a\0"], "values")[1]) == 2
