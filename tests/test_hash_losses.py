"""Promises of the losses of hash methods: quantisation (SMILE, PHE), centre separation and feature-to-centre (PHE)."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from newfound.losses import centre_separation, feature_to_centre, quantisation

# Codes of 4 bits: the first two differ in 1 bit, the first and the third in 4, the last two in 3.
SIGNS = torch.tensor([[1.0, 1, 1, 1], [1, 1, 1, -1], [-1, -1, -1, -1]])


def test_quantisation_is_what_values_lack_of_plus_or_minus_one():
    # (0 + 0 + 0.5 + 1) / 4
    assert quantisation(torch.tensor([[1.0, -1.0], [-0.5, 0.0]])).item() == pytest.approx(0.375)


def test_quantisation_pushes_values_away_from_zero():
    values = torch.tensor([0.5, -0.5], requires_grad=True)
    quantisation(values).backward()
    assert values.grad.tolist() == [-0.5, 0.5]  # minus the sign, over two values


def test_separation_is_the_missing_distance_summed_over_others_and_averaged_over_classes():
    # With 0.95 * 4 = 3.8 for L the distances are (3.8 - 2) / 2 = 0.9, (3.8 + 4) / 2 = 3.9 and (3.8 + 2) / 2 = 2.9.
    # Of 2 only the first lacks something, 1.1, and it does so for both of its classes.
    assert centre_separation(SIGNS, 2).item() == pytest.approx(2 * 1.1 / 3, abs=1e-6)
    # Of 3 the first lacks 2.1 and the last 0.1.
    assert centre_separation(SIGNS, 3).item() == pytest.approx(2 * (2.1 + 0.1) / 3, abs=1e-6)


def test_without_slack_the_distance_between_true_signs_is_the_hamming_distance():
    assert centre_separation(SIGNS, 1, slack=1.0).item() == 0
    assert centre_separation(SIGNS, 4, slack=1.0).item() == pytest.approx(2 * (3 + 0 + 1) / 3)


def test_a_centre_need_not_be_apart_from_itself():
    assert centre_separation(SIGNS[:1], 4).item() == 0


@given(st.integers(1, 6), st.integers(1, 16), st.integers(0, 20), st.integers(0, 2**16))
def test_separation_is_the_published_sum_for_any_centres(classes, bits, distance, seed):
    signs = np.random.default_rng(seed).uniform(-1, 1, (classes, bits))
    terms = [
        sum(max(0.0, distance - 0.5 * (0.95 * bits - a @ b)) for j, b in enumerate(signs) if j != i)
        for i, a in enumerate(signs)
    ]
    value = centre_separation(torch.from_numpy(signs), distance).item()
    assert value == pytest.approx(sum(terms) / classes, abs=1e-9)


def test_separation_pushes_only_centres_that_are_too_near():
    signs = SIGNS.clone().requires_grad_(True)
    centre_separation(signs, 2).backward()
    near, other, far = signs.grad
    # The first and the second, 0.9 apart, are pushed along minus each other; each counts in two rows: 2 * 0.5 / 3.
    torch.testing.assert_close(near, SIGNS[1] / 3)
    torch.testing.assert_close(other, SIGNS[0] / 3)
    assert not far.any()


def test_feature_to_centre_is_cross_entropy_over_cosines_whatever_the_lengths():
    centres, hashes = torch.tensor([[2.0, 0.0], [0.0, 5.0]]), torch.tensor([[3.0, 0.0], [0.1, 0.0]])
    # Both point at the first centre: cosines 1 and 0. Right: log(1 + 1 / e); wrong: log(1 + e).
    expected = (math.log(1 + math.exp(-1)) + math.log(1 + math.e)) / 2
    assert feature_to_centre(hashes, centres, torch.tensor([0, 1])).item() == pytest.approx(expected, abs=1e-6)


def test_the_temperature_divides_the_cosines():
    value = feature_to_centre(torch.tensor([[1.0, 0.0]]), torch.eye(2), torch.tensor([0]), temperature=0.5).item()
    assert value == pytest.approx(math.log(1 + math.exp(-2)), abs=1e-6)


def test_feature_to_centre_moves_samples_and_centres_towards_each_other():
    hashes = torch.tensor([[1.0, 1.0]], requires_grad=True)
    centres = torch.tensor([[1.0, 0.0], [0.0, 1.0]], requires_grad=True)
    feature_to_centre(hashes, centres, torch.tensor([0])).backward()
    assert hashes.grad[0, 0] < 0 < hashes.grad[0, 1]
    assert centres.grad[0, 1] < 0 < centres.grad[1, 0]
