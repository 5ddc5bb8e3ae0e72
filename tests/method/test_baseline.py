"""Promises of the baseline (Eq. 3 and 4) and of its two heads."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from newfound import losses
from newfound.features import unit
from newfound.method import Batch, class_means
from newfound.method.baseline import Baseline, BaselineSettings, CosineHead

pytestmark = pytest.mark.usefixtures("one_thread")

TARGETS = torch.tensor([0, 1, 0, 1])


def features(n: int = 8, seed: int = 0) -> torch.Tensor:
    return unit(torch.from_numpy(np.random.default_rng(seed).normal(size=(n, 5))).float())


def test_the_loss_is_alpha_times_contrastive_plus_cross_entropy_over_both_views():
    method = Baseline(5, 2, BaselineSettings(alpha=0.3, head="linear"))
    f, both = features(), torch.cat([TARGETS, TARGETS])
    batch = Batch(f[:4], f[4:], TARGETS, lambda x: x, 0, np.random.default_rng(0))
    expected = 0.3 * losses.supervised_contrastive(f, both, 0.07) + nn.functional.cross_entropy(method.head(f), both)
    torch.testing.assert_close(method.loss(batch)["loss"], expected)


def test_the_released_form_takes_cross_entropy_from_the_first_view_alone():
    method = Baseline(5, 2, BaselineSettings(first_view_only=True, alpha=0.0))
    f = features()
    out = method.representation_loss(f, TARGETS)
    torch.testing.assert_close(out["loss"], nn.functional.cross_entropy(method.head(f[:4]), TARGETS))


def test_the_cosine_head_scales_cosines_by_twenty_and_ignores_the_length_of_its_weights():
    head = CosineHead(2, 2)
    with torch.no_grad():
        head.weight.copy_(torch.tensor([[5.0, 0.0], [0.0, 0.1]]))
    logits = head(torch.tensor([[0.6, 0.8]]))
    assert logits.tolist()[0] == pytest.approx([12.0, 16.0])
    assert head.scale.requires_grad


def test_the_linear_head_is_a_plain_linear_layer():
    assert isinstance(Baseline(5, 2, BaselineSettings(head="linear")).head, nn.Linear)


@given(st.lists(st.integers(0, 3), min_size=4, max_size=20), st.integers(0, 1000))
@settings(max_examples=50)
def test_class_means_are_unit_means_of_each_class(labels, seed):
    labels = [*range(4), *labels]
    f = features(len(labels), seed).double()
    means = class_means(f, torch.tensor(labels), 4)
    for k in range(4):
        mean = np.mean([f[i].numpy() for i, label in enumerate(labels) if label == k], axis=0)
        assert means[k].numpy() == pytest.approx(mean / np.linalg.norm(mean), abs=1e-9)
