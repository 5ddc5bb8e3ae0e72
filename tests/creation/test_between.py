"""Promises of Between: its features are draws from the two-covariance model of a batch, and lead back to it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from newfound.creation import Between, Model, make_creator
from newfound.errors import SettingsError
from newfound.features import unit
from newfound.method import get_method
from newfound.method.ltc import LTCSettings

pytestmark = pytest.mark.usefixtures("one_thread")

NOTHING = torch.zeros(0)


def refuse(_: Tensor) -> Tensor:
    raise AssertionError("the model is not asked")


def draw(features: Tensor, targets: Tensor, seed: int = 0) -> Tensor:
    rng = np.random.default_rng(seed)
    return Between()(NOTHING, targets, Model(encode=refuse, classify=refuse), features, rng)


def batch(classes: int = 4, each: int = 3, dim: int = 6, seed: int = 0) -> tuple[Tensor, Tensor]:
    rng = np.random.default_rng(seed)
    targets = torch.arange(classes).repeat(each)
    centres = rng.normal(size=(classes, dim))[targets.numpy()]
    return unit(torch.from_numpy(centres + 0.4 * rng.normal(size=centres.shape))), targets


def test_drawn_features_have_the_mean_b_and_w_of_the_batch(monkeypatch):
    # Two classes of two samples each: means (1, 0, 0) and (-1, 0, 0), residuals (0, +-0.5, 0) and (0, 0, +-0.2), seen
    # from (0, 0, 9), so that length hides nothing when it is not normalised.
    # Covariance of the means: diag((1 + 1) / (2 - 1), 0, 0) = diag(2, 0, 0).
    # W = diag(0, 2 * 0.25, 2 * 0.04) / (4 - 2) = diag(0, 0.25, 0.04). The means hold W / 2 of it, so that B + W is
    # diag(2, 0, 0) - W / 2 + W = diag(2, 0.125, 0.02).
    monkeypatch.setattr("newfound.creation.between.F.normalize", lambda rows, dim: rows)
    rows = [[1, 0.5, 9], [1, -0.5, 9], [-1, 0, 9.2], [-1, 0, 8.8]]
    features, targets = torch.tensor(rows, dtype=torch.float64), torch.tensor([0, 0, 1, 1])
    drawn = torch.cat([draw(features, targets, seed) for seed in range(1500)]).numpy()
    assert drawn.mean(axis=0) == pytest.approx([0, 0, 9], abs=0.05)
    assert np.cov(drawn.T) == pytest.approx(np.diag([2, 0.125, 0.02]), abs=0.05)
    assert np.var(drawn[:, 2]) == pytest.approx(0.02, rel=0.05)


def test_they_are_unit_features_as_many_as_the_batch_has():
    features, targets = batch()
    drawn = draw(features.float(), targets)
    assert drawn.shape == features.shape
    assert drawn.dtype == torch.float32
    torch.testing.assert_close(drawn.norm(dim=1), torch.ones(len(drawn)))
    assert (drawn @ features.float().T).max() < 0.9999, "none is a copy"


def test_classes_of_one_sample_each_show_no_spread_and_only_b_is_drawn():
    # Two classes with a sample each: every draw lies on the line through the two.
    features = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    drawn = draw(features, torch.tensor([3, 7]))
    assert torch.isfinite(drawn).all()
    assert torch.equal(drawn[:, 2], torch.zeros(2))


def test_the_same_randomness_draws_the_same_whatever_the_classes_are_called():
    features, targets = batch()
    first = draw(features, targets, seed=1)
    torch.manual_seed(3)
    state = torch.random.get_rng_state()
    assert torch.equal(draw(features, 5 + 2 * targets, seed=1), first)
    assert torch.equal(torch.random.get_rng_state(), state), "no global randomness is used"
    assert not torch.equal(draw(features, targets, seed=2), first)


def test_a_batch_of_one_class_does_not_show_how_classes_differ_and_makes_nothing():
    features, targets = batch()
    assert draw(features, torch.zeros_like(targets)).shape == (0, features.shape[1])


def test_what_is_learnt_from_drawn_features_reaches_the_known_ones():
    features, targets = batch()
    known = features.requires_grad_(True)
    direction = torch.arange(6.0, dtype=torch.float64)
    (draw(known, targets) @ direction).sum().backward()
    assert (known.grad.norm(dim=1) > 0).all()
    step = 1e-3 * known.grad
    after = (draw((known + step).detach(), targets) @ direction).sum()
    assert after > (draw(known.detach(), targets) @ direction).sum()


def test_ltc_can_choose_it_in_any_space_and_methods_that_learn_from_images_cannot():
    for cached, space in [(True, "pixels"), (True, "tokens"), (False, "pixels")]:
        assert isinstance(LTCSettings(creator="between", cached=cached, space=space).make_creator(), Between)
    assert isinstance(make_creator("between", eps=0.1), Between)
    for name in ("diffgre-smile", "diffgre-phe"):
        with pytest.raises(SettingsError, match=r"'between' makes features.* ltc"):
            get_method(name).settings_class(creator="between")
    with pytest.raises(SettingsError, match=r"betwen.*between"):
        make_creator("betwen")


@pytest.mark.parametrize("cached", [True, False])
def test_a_training_with_it_creates(fit_tiny, pictures, cached):
    run = fit_tiny(pictures(2, 4), creator="between", p_gen=1.0, cached=cached, epochs=2)
    assert run.log[-1]["created"] == 8
