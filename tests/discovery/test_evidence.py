"""The arithmetic of the two-covariance model is that of the Gaussians it stands for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from newfound.discovery._evidence import Evidence, Prior
from newfound.discovery._model import Model
from newfound.discovery._products import Products, Readings
from newfound.discovery._unions import Explanations, unions

FIRST = np.array([0])  # the first reading, or the first row


def model(dimension: int, seed: int = 0, cap: int = 30) -> Model:
    return Model(np.random.default_rng(seed).uniform(0.1, 6.0, dimension), cap)


def evidence(of: Model, sums, counts, prior: Prior | None = None) -> Evidence:
    numbers = np.array(counts, np.int64)
    return Evidence(of, prior or Prior(), np.array(sums, np.float64), numbers, numbers)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), st.integers(1, 30), st.integers(0, 999))
def test_a_log_ratio_is_that_of_the_predictive_densities(dimension, n, seed):
    rng, of = np.random.default_rng(seed), model(dimension, seed)
    members, x = rng.standard_normal((n, dimension)) * 2, rng.standard_normal(dimension) * 2
    psi, total = of.spread, members.sum(axis=0)
    mean, variance = psi * total / (n * psi + 1), 1 + psi / (n * psi + 1)
    seen = multivariate_normal(mean, np.diag(variance)).logpdf(x)
    never = multivariate_normal(np.zeros(dimension), np.diag(1 + psi)).logpdf(x)
    got = evidence(of, [total], [n]).scores(x[None], FIRST, FIRST)[0]
    assert got == pytest.approx(seen - never, rel=1e-9, abs=1e-9)


def test_a_log_ratio_by_hand_in_one_dimension():
    # psi = 3, n = 1, S = 4: m = 12 / 4 = 3, v = 1 + 3 / 4 = 7 / 4; never seen: N(0, 4). At x = 2:
    # -1/2 log(7/4) - (2 - 3)^2 / (2 * 7/4) + 1/2 log 4 + 2^2 / (2 * 4) = 1/2 log(16/7) - 2/7 + 1/2
    got = evidence(Model(np.array([3.0]), 30), [[4.0]], [1]).scores(np.array([[2.0]]), FIRST, FIRST)
    assert got[0] == pytest.approx(0.5 * math.log(16 / 7) - 2 / 7 + 0.5)


def test_beyond_the_cap_only_the_mean_counts():
    of, x = model(3, cap=5), np.array([1.0, -2.0, 0.5])
    rows = evidence(of, [[5.0, 10.0, -5.0], [50.0, 100.0, -50.0]], [5, 50])
    few, many = rows.scores(x[None], np.array([0, 0]), np.array([0, 1]))
    assert few == many


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 9), st.integers(2, 40), st.integers(0, 999))
def test_leaving_a_member_out_is_removing_it_by_hand(dimension, n, seed):
    rng, of = np.random.default_rng(seed), model(dimension, seed)
    members = rng.integers(-4, 5, (n, dimension)).astype(np.float32)  # sums of whole numbers are exact
    total, rest = members.sum(axis=0), members[1:].sum(axis=0)
    out = evidence(of, [total], [n]).scores_without(members[:1], np.array([0]), np.array([True]))
    assert out[0] == evidence(of, [rest], [n - 1]).scores(members, FIRST, FIRST)[0]


def test_without_its_only_member_nothing_is_left_of_a_category_but_all_of_one_that_does_not_learn():
    rows = evidence(model(2), [[1.0, 2.0]], [1])
    x = np.array([[1.0, 2.0]], np.float32)
    assert rows.scores_without(x, np.array([0]), np.array([True]))[0] == -np.inf
    rows.members[0] += 1
    fixed = rows.scores_without(x, np.array([0]), np.array([False]))[0]
    assert fixed == rows.scores(x, FIRST, FIRST)[0]


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 9), st.integers(1, 29), st.integers(0, 999))
def test_the_gain_of_uniting_a_category_with_a_single_reading_is_their_log_ratio(dimension, n, seed):
    rng, of = np.random.default_rng(seed), model(dimension, seed)
    total, x = rng.standard_normal(dimension) * n, rng.standard_normal(dimension) * 2
    gain = Explanations(of, np.array([total, x]), np.array([n, 1])).gains(np.array([0]), np.array([1]))
    assert gain[0] == pytest.approx(evidence(of, [total], [n]).scores(x[None], FIRST, FIRST)[0], rel=1e-9, abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 6), st.integers(0, 999), st.floats(-20, 20))
def test_no_pair_that_gains_enough_is_overlooked(dimension, seed, at_least):
    rng, of = np.random.default_rng(seed), model(dimension, seed, cap=4)
    counts = rng.integers(1, 7, 12)
    rows = Explanations(of, rng.standard_normal((12, dimension)) * counts[:, None], counts)
    low, high = np.triu_indices(12, 1)
    gains = rows.gains(low, high)
    found = set(zip(*(part.tolist() for part in rows.near(at_least)), strict=True))
    gains = dict(zip(zip(low.tolist(), high.tolist(), strict=True), gains.tolist(), strict=True))
    assert {pair for pair, gain in gains.items() if gain >= at_least} <= found
    assert all(gains[pair] >= at_least - 1e-6 for pair in found)


def test_the_pair_that_gains_most_merges_first_and_what_it_becomes_can_merge_again():
    of = Model(np.array([100.0]), 30)
    sums = np.array([[0.0], [6.0], [0.2], [0.1]])
    free = np.zeros(4, bool)
    assert unions(of, sums, np.array([1, 1, 1, 1]), free, 0.0) == [(2, 3), (0, 2)]  # 0.2 and 0.1 are furthest from 0
    assert unions(of, sums, np.array([1, 1, 1, 1]), free, 50.0) == []


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([1, 7, 64, 300]), st.integers(0, 999), st.sampled_from([1e-3, 1.0, 1e4]))
def test_fast_values_are_within_their_bound_of_the_canonical_ones(dimension, seed, size):
    rng, of = np.random.default_rng(seed), model(dimension, seed)
    counts = rng.integers(1, 60, 9)
    rows = evidence(of, rng.standard_normal((9, dimension)) * size * counts[:, None], counts, Prior(0.5, 0.3))
    readings = (rng.standard_normal((5, dimension)) * size).astype(np.float32)
    block = Readings(readings, of)
    products = Products(block, rows)
    errors = of.error(block.lengths, block.largest_bends, products.longest, products.highest)
    for i, (values, error) in enumerate(zip(products.values, errors, strict=True)):
        assert (np.abs(values - rows.scores(readings, np.full(9, i), np.arange(9))) <= error).all()


def test_the_prior_by_hand():
    # log(5 - 0.5) of a category with five members; log(2 + 0.5 * 4) of a new one beside four
    assert Prior(2.0, 0.5).of(5) == math.log(4.5)
    assert Prior(2.0, 0.5).of_new(4) == math.log(4.0)
    assert (Prior().of(5), Prior().of_new(4)) == (0.0, 0.0)
