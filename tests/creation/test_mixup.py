"""Promises of mixup as a creator (Eq. 6): who is blended with whom, and by how much."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from newfound.creation import Mixup, creators, draw_partners, make_creator
from newfound.errors import SettingsError

pytestmark = pytest.mark.usefixtures("one_thread")

labels = st.lists(st.integers(0, 3), min_size=1, max_size=12)
seeds = st.integers(0, 2**32)


def one_hot_inputs(n: int) -> torch.Tensor:
    """Rows of the identity: in a blend, the weights of the two parents can be read off."""
    return torch.eye(n, dtype=torch.float64)


@given(labels, seeds)
def test_partners_are_always_of_another_class(classes, seed):
    targets = torch.tensor(classes)
    first, second = draw_partners(targets, np.random.default_rng(seed), across_classes=True)
    assert (targets[first] != targets[second]).all()
    several = len(set(classes)) > 1
    assert first.tolist() == (list(range(len(classes))) if several else [])  # everyone who can has a partner


def test_every_sample_of_another_class_is_drawn_equally_often():
    targets, rng = torch.tensor([0, 1, 1, 2]), np.random.default_rng(0)
    drawn = [draw_partners(targets, rng, across_classes=True)[1][0].item() for _ in range(3000)]
    counts = np.bincount(drawn, minlength=4)
    assert counts[0] == 0
    assert counts[1:] == pytest.approx(1000, abs=100)


@given(labels, seeds)
def test_the_released_form_permutes_the_batch_whatever_the_classes(classes, seed):
    first, second = draw_partners(torch.tensor(classes), np.random.default_rng(seed), across_classes=False)
    assert first.tolist() == sorted(second.tolist()) == list(range(len(classes)))


def test_a_batch_of_one_class_creates_nothing():
    blend = Mixup().blend(torch.rand(4, 3, 8, 8), torch.zeros(4, dtype=torch.long), np.random.default_rng(0))
    assert blend.shape == (0, 3, 8, 8)


@given(labels, seeds, st.sampled_from([0.0, 0.2, 0.3, 0.5]))
@settings(max_examples=50)
def test_a_blend_is_a_convex_combination_of_two_samples_of_different_classes(classes, seed, min_lambda):
    creator = Mixup(eta=0.4, min_lambda=min_lambda)
    weights = creator.blend(one_hot_inputs(len(classes)), torch.tensor(classes), np.random.default_rng(seed))
    for row in weights:
        parents = row.nonzero().flatten().tolist()
        assert row.sum().item() == pytest.approx(1)
        assert (row >= 0).all()
        assert len(parents) <= 2
        assert len({classes[i] for i in parents}) == len(parents)
        if min_lambda:
            assert len(parents) == 2
            assert row[parents].min() >= min_lambda - 1e-12


def test_each_sample_has_its_own_lambda_unless_the_released_form_is_asked_for():
    targets, rng = torch.tensor([0, 1] * 4), np.random.default_rng(1)
    own = Mixup(eta=1.0).blend(one_hot_inputs(8), targets, rng).diagonal()
    shared = Mixup(eta=1.0, per_sample=False).blend(one_hot_inputs(8), targets, rng).diagonal()
    assert len(set(own.tolist())) == 8
    assert len(set(shared.tolist())) == 1


def test_lambda_follows_the_beta_distribution():
    targets = torch.arange(2).repeat(1000)
    inputs = torch.stack([targets.double(), 1 - targets.double()], dim=1)  # the own weight is at the own class's entry
    blend = Mixup(eta=0.4).blend(inputs, targets, np.random.default_rng(2))
    own = torch.where(targets == 1, blend[:, 0], blend[:, 1]).numpy()
    assert own.mean() == pytest.approx(0.5, abs=0.03)
    assert own.var() == pytest.approx(1 / (4 * (2 * 0.4 + 1)), rel=0.08)  # of Beta(eta, eta)


def test_the_same_generator_state_gives_the_same_blend_and_no_global_state_is_read():
    inputs, targets = torch.rand(6, 5), torch.tensor([0, 1, 2, 0, 1, 2])
    first = Mixup().blend(inputs, targets, np.random.default_rng(3))
    np.random.seed(9)
    torch.manual_seed(9)
    assert torch.equal(first, Mixup().blend(inputs, targets, np.random.default_rng(3)))


def test_blends_keep_the_precision_of_their_inputs_and_are_detached():
    inputs = torch.rand(4, 5, dtype=torch.float16, requires_grad=True)
    blend = Mixup().blend(inputs, torch.tensor([0, 1, 0, 1]), np.random.default_rng(0))
    assert blend.dtype == torch.float16
    assert not blend.requires_grad


@pytest.mark.parametrize("bad", [{"eta": 0.0}, {"eta": -1.0}, {"min_lambda": -0.1}, {"min_lambda": 0.6}])
def test_a_distribution_that_cannot_be_is_refused_when_the_creator_is_made(bad):
    with pytest.raises(SettingsError, match=next(iter(bad))):
        make_creator("mixup", **bad)


def test_every_listed_creator_can_be_made_and_an_unknown_one_gets_the_list():
    for name, about in creators().items():
        assert about
        assert callable(make_creator(name, eps=0.1, eta=0.5))
    with pytest.raises(SettingsError, match=r"no creator 'mixupp'.*mkee.*mixup"):
        make_creator("mixupp")
