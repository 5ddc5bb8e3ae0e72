"""Promises of newfound.losses: Eq. 1, 2 and 10 of the paper, checked by hand and against plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from newfound.losses import cross_entropy, max_similarity, negative_margin, positive_margin, supervised_contrastive

LOG_1_E = math.log(1 + math.exp(-1))


def unit_rows(n: int, d: int, seed: int) -> torch.Tensor:
    rows = np.random.default_rng(seed).normal(size=(n, d))
    return torch.from_numpy(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def plain_contrastive(features: torch.Tensor, targets: torch.Tensor, temperature: float) -> float | None:
    """Eq. 1 as it is written, term by term."""
    f, n, terms = features.numpy(), len(features), []
    for i in range(n):
        positives = [p for p in range(n) if p != i and targets[p] == targets[i]]
        if positives:
            below = sum(math.exp(f[i] @ f[b] / temperature) for b in range(n) if b != i)
            logs = [math.log(math.exp(f[i] @ f[p] / temperature) / below) for p in positives]
            terms.append(-sum(logs) / len(positives))
    return sum(terms) / len(terms) if terms else None


batches = st.tuples(
    st.lists(st.integers(0, 3), min_size=1, max_size=9),
    st.integers(2, 6),
    st.integers(0, 2**16),
    st.sampled_from([0.07, 0.5, 1.0]),
)


def test_two_equal_samples_and_a_stranger_give_the_value_computed_by_hand():
    features = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    # Samples 0 and 1: -log(e / (e + 1)) each. Sample 2 has no positive and no term.
    assert supervised_contrastive(features, torch.tensor([0, 0, 1]), 1.0).item() == pytest.approx(LOG_1_E, abs=1e-6)


def test_several_positives_are_averaged_outside_the_logarithm():
    features = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    ends = LOG_1_E + 0.5  # the cosines of an end to the others are 0 and -1
    middle = math.log(2)
    value = supervised_contrastive(features, torch.tensor([5, 5, 5]), 1.0).item()
    assert value == pytest.approx((2 * ends + middle) / 3, abs=1e-6)


def test_the_temperature_divides_the_similarities():
    features = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    value = supervised_contrastive(features, torch.tensor([0, 0, 1]), 0.5).item()
    assert value == pytest.approx(math.log(1 + math.exp(-2)), abs=1e-6)


@given(batches)
def test_the_contrastive_loss_is_the_papers_sum(batch):
    labels, d, seed, temperature = batch
    features, targets = unit_rows(len(labels), d, seed), torch.tensor(labels)
    expected = plain_contrastive(features, targets, temperature)
    value = supervised_contrastive(features, targets, temperature).item()
    assert value == pytest.approx(0.0 if expected is None else expected, rel=1e-6, abs=1e-9)


@given(batches, st.randoms(use_true_random=False))
def test_the_contrastive_loss_does_not_depend_on_order_or_on_the_names_of_classes(batch, random):
    labels, d, seed, temperature = batch
    features, targets = unit_rows(len(labels), d, seed), torch.tensor(labels)
    order = list(range(len(labels)))
    random.shuffle(order)
    shuffled = supervised_contrastive(features[order], 7 - targets[order], temperature)
    torch.testing.assert_close(shuffled, supervised_contrastive(features, targets, temperature))


@given(batches)
def test_the_contrastive_gradient_is_finite_even_for_samples_without_a_positive(batch):
    labels, d, seed, temperature = batch
    features = unit_rows(len(labels), d, seed).requires_grad_(True)
    supervised_contrastive(features, torch.tensor(labels), temperature).backward()
    assert torch.isfinite(features.grad).all()


def test_a_batch_without_any_positive_costs_nothing_and_moves_nothing():
    features = unit_rows(4, 3, 0).requires_grad_(True)
    loss = supervised_contrastive(features, torch.arange(4))
    loss.backward()
    assert loss.item() == 0
    assert not features.grad.any()


def test_one_gradient_step_brings_a_class_together_and_apart_from_the_others():
    targets = torch.tensor([0, 0, 1, 1])
    raw = unit_rows(4, 5, 3).requires_grad_(True)
    supervised_contrastive(torch.nn.functional.normalize(raw, dim=1), targets, 0.5).backward()
    moved = torch.nn.functional.normalize(raw.detach() - 0.05 * raw.grad, dim=1)
    before, after = raw.detach() @ raw.detach().T, moved @ moved.T
    own, other = torch.tensor([[0, 2], [1, 3]]), torch.tensor([[0, 0, 1, 1], [2, 3, 2, 3]])
    assert after[tuple(own)].mean() > before[tuple(own)].mean()
    assert after[tuple(other)].mean() < before[tuple(other)].mean()


def test_cross_entropy_is_the_mean_over_the_batch():
    logits = torch.tensor([[0.0, 0.0], [math.log(3.0), 0.0]])
    expected = (math.log(2) + math.log(4)) / 2  # shares of the right classes: 1/2 and 1/4
    assert cross_entropy(logits, torch.tensor([0, 1])).item() == pytest.approx(expected, abs=1e-6)


def test_the_best_cosine_over_all_prototypes_is_the_score():
    prototypes = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    features = torch.tensor([[0.6, 0.8], [-1.0, 0.0]])
    assert max_similarity(features, prototypes).tolist() == pytest.approx([0.8, 0.0])


def short(least: float, most: float) -> st.SearchStrategy[float]:
    """Numbers without subnormal differences, which libraries that other tests load have the processor take for 0."""
    return st.floats(least, most).map(lambda value: round(value, 9))


def test_margins_are_the_papers_hinges():
    s = torch.tensor([0.5, 0.7, 0.9])
    # tau 0.7, margin 0.1: known samples shall reach 0.8, created ones stay below 0.6.
    assert positive_margin(s, 0.7, 0.1).item() == pytest.approx((0.3 + 0.1 + 0.0) / 3, abs=1e-6)
    assert negative_margin(s, 0.7, 0.1).item() == pytest.approx((0.0 + 0.1 + 0.3) / 3, abs=1e-6)


@given(
    st.lists(short(-1, 1), min_size=1, max_size=20),
    short(-1, 1),
    short(0, 0.5),
)
@settings(max_examples=60)
def test_margins_are_zero_exactly_where_all_samples_keep_them(scores, tau, margin):
    s = torch.tensor(scores, dtype=torch.float64)
    pos, neg = positive_margin(s, tau, margin).item(), negative_margin(s, tau, margin).item()
    assert pos >= 0
    assert neg >= 0
    assert (pos == 0) == all(tau + margin - value <= 0 for value in scores)
    assert (neg == 0) == all(value - (tau - margin) <= 0 for value in scores)


def test_margins_pull_only_the_samples_that_miss_them():
    s = torch.tensor([0.5, 0.9], requires_grad=True)
    (positive_margin(s, 0.7, 0.05) + negative_margin(s, 0.7, 0.05)).backward()
    assert s.grad.tolist() == [-0.5, 0.5]  # as known, 0.5 must rise; as created, 0.9 must fall


def test_the_contrastive_loss_is_computed_in_full_precision_under_mixed_precision():
    rng = np.random.default_rng(0)
    features = torch.nn.functional.normalize(torch.from_numpy(rng.normal(size=(12, 16))).float(), dim=1)
    targets = torch.arange(4).repeat(3)
    exact = supervised_contrastive(features, targets)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = supervised_contrastive(features, targets)
    assert mixed.dtype == torch.float32
    assert torch.equal(mixed, exact)
