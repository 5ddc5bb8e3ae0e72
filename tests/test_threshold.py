"""Promises of newfound.threshold: the quantiles and the moving average of Eq. 11 and 12."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from newfound.threshold import AdaptiveThreshold

KNOWN = torch.tensor([0.0, 0.25, 0.5, 0.75, 1.0])
PSEUDO = torch.tensor([0.0, 0.1, 0.2, 0.3, 0.4])
scores = st.lists(st.floats(-1, 1), min_size=1, max_size=30)


def test_the_papers_rule_is_the_midpoint_of_the_upper_known_and_the_lower_created_quantile():
    threshold = AdaptiveThreshold(tau=0.7, beta=0.001, q_pos=0.8, q_neg=0.2)
    # u_pos = 0.8 and u_neg = 0.08
    assert threshold.target(KNOWN, PSEUDO) == pytest.approx(0.44, abs=1e-6)
    assert threshold.update(KNOWN, PSEUDO) == pytest.approx(0.999 * 0.7 + 0.001 * 0.44, abs=1e-9)


def test_the_released_rule_moves_each_quantile_by_its_margin():
    threshold = AdaptiveThreshold(tau=0.7, beta=0.01, q_pos=0.2, q_neg=0.8, m_pos=0.1, m_neg=0.02)
    # u_pos = 0.2 and u_neg = 0.32
    assert threshold.target(KNOWN, PSEUDO) == pytest.approx(((0.2 - 0.1) + (0.32 + 0.02)) / 2, abs=1e-6)
    assert threshold.update(KNOWN, PSEUDO) == pytest.approx(0.99 * 0.7 + 0.01 * 0.22, abs=1e-8)


@pytest.mark.parametrize(("margin", "bound"), [(5.0, 1.0), (-5.0, -1.0)])
def test_the_target_is_clamped_to_what_a_cosine_can_be(margin, bound):
    assert AdaptiveThreshold(m_neg=margin).target(KNOWN, PSEUDO) == bound


@given(scores, scores, st.floats(-1, 1), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_the_threshold_stays_between_where_it_was_and_its_target(known, pseudo, tau, beta, q_pos, q_neg):
    threshold = AdaptiveThreshold(tau, beta, q_pos, q_neg)
    known, pseudo = torch.tensor(known), torch.tensor(pseudo)
    target = threshold.target(known, pseudo)
    new = threshold.update(known, pseudo)
    assert min(tau, target) - 1e-12 <= new <= max(tau, target) + 1e-12
    assert -1 <= new <= 1
    assert new == threshold.tau


@given(scores, scores)
@settings(max_examples=20)
def test_many_updates_with_the_same_scores_end_at_the_target(known, pseudo):
    threshold = AdaptiveThreshold(tau=0.7, beta=0.2)
    known, pseudo = torch.tensor(known), torch.tensor(pseudo)
    for _ in range(100):
        threshold.update(known, pseudo)
    assert threshold.tau == pytest.approx(threshold.target(known, pseudo), abs=1e-6)


def test_a_rate_of_zero_never_moves_it_and_one_jumps_to_the_target():
    assert AdaptiveThreshold(0.3, beta=0.0).update(KNOWN, PSEUDO) == 0.3
    assert AdaptiveThreshold(0.3, beta=1.0).update(KNOWN, PSEUDO) == pytest.approx(0.44, abs=1e-6)


def test_scores_that_track_gradients_or_have_half_precision_are_taken():
    threshold = AdaptiveThreshold()
    new = threshold.update(KNOWN.clone().requires_grad_(True), PSEUDO.half())
    assert isinstance(new, float)
    assert math.isfinite(new)
