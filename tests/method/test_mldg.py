"""Promises of MLDG: how classes are dealt out, and that its gradient is the one of the meta-learning objective."""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from newfound.errors import SettingsError
from newfound.features import unit
from newfound.method import Batch, mldg
from newfound.method.baseline import Baseline, BaselineSettings
from newfound.method.mldg import MLDG, MLDGSettings, draw_meta_test

pytestmark = pytest.mark.usefixtures("one_thread")

INPUT, DIM, CLASSES = 3, 2, 4
TARGETS = torch.tensor([0, 1, 2, 0, 3, 2, 1, 0])
STEP = 0.5  # a long one, so that a gradient taken at the wrong place shows


class Encoding:
    """A module as methods are given it."""

    def __init__(self, module: nn.Module) -> None:
        self.module = module

    def __call__(self, inputs: Tensor) -> Tensor:
        return unit(self.module(inputs))

    def parameters(self) -> dict[str, Tensor]:
        return dict(self.module.named_parameters())

    def at(self, parameters: dict[str, Tensor]) -> Callable[[Tensor], Tensor]:
        return lambda inputs: unit(functional_call(self.module, parameters, (inputs,)))


class Scene:
    """A linear encoder with six weights and a method on top, in double precision."""

    def __init__(self, method=MLDG, settings=MLDGSettings, **values) -> None:
        values = {"head": "linear"} | ({"inner_lr": STEP} if method is MLDG else {}) | values
        with torch.random.fork_rng():
            torch.manual_seed(4)
            self.module = nn.Linear(INPUT, DIM, bias=False).double()
            self.method = method(DIM, CLASSES, settings(**values)).double()

    def batch(self, rows: Tensor | slice = slice(None), seed: int = 0, targets: Tensor = TARGETS) -> Batch:
        draws = np.random.default_rng(11)
        centres = draws.normal(size=(CLASSES, INPUT))[targets.numpy()]
        first, second = torch.from_numpy(centres + 0.5 * draws.normal(size=(2, *centres.shape)))
        rng = np.random.default_rng(seed)
        return Batch(first[rows], second[rows], targets[rows], Encoding(self.module), 0, rng)

    def weights(self) -> list[nn.Parameter]:
        return [*self.module.parameters(), *self.method.parameters()]

    def gradient(self, batch: Batch) -> Tensor:
        """Of the loss, as the training loop comes by it."""
        for weight in self.weights():
            weight.grad = None
        self.method.loss(batch)["loss"].backward()
        return parameters_to_vector([weight.grad for weight in self.weights()])

    def plain(self) -> Scene:
        """The baseline with copies of the same weights."""
        shared = {name: getattr(self.method.settings, name) for name in ("head", "first_view_only", "alpha", "ce")}
        twin = Scene(Baseline, BaselineSettings, **shared)
        vector_to_parameters(parameters_to_vector(self.weights()).detach().clone(), twin.weights())
        return twin


def meta_test(seed: int = 0) -> Tensor:
    return draw_meta_test(TARGETS, MLDGSettings().meta_test_share, np.random.default_rng(seed))


def moved(scene: Scene, by: Tensor) -> Scene:
    """The same scene with weights that were moved in place."""
    scene = copy.deepcopy(scene)
    vector_to_parameters(parameters_to_vector(scene.weights()).detach() + by, scene.weights())
    return scene


@pytest.mark.parametrize("values", [{}, {"head": "cosine"}, {"first_view_only": True}, {"meta_weight": 0.3}], ids=str)
def test_the_first_order_gradient_adds_the_one_that_meta_test_has_after_the_step(values):
    scene, tested = Scene(**values), meta_test()
    plain = scene.plain()
    g_train = plain.gradient(plain.batch(~tested))
    after = moved(plain, -STEP * g_train)
    g_test = after.gradient(after.batch(tested))
    expected = g_train + values.get("meta_weight", 1.0) * g_test
    torch.testing.assert_close(scene.gradient(scene.batch()), expected)


@pytest.mark.parametrize("inner_lr", [STEP, None])
def test_the_second_order_gradient_is_that_of_the_whole_objective(inner_lr, monkeypatch):
    monkeypatch.setattr(mldg, "_INNER_STEP", 0.2)  # where no rate is given: as long as STEP's, so that it shows
    scene, tested, h = Scene(first_order=False, meta_weight=0.7, inner_lr=inner_lr), meta_test(), 1e-6
    plain = scene.plain()

    def objective(by: Tensor) -> float:
        here = moved(plain, by)
        train = here.method.loss(here.batch(~tested))["loss"].item()
        gradient = here.gradient(here.batch(~tested))
        rate = inner_lr or 0.2 / gradient.square().mean().sqrt()
        there = moved(here, -rate * gradient)
        return train + 0.7 * there.method.loss(there.batch(tested))["loss"].item()

    directions = torch.eye(len(parameters_to_vector(plain.weights())), dtype=torch.float64)
    expected = torch.tensor([(objective(h * e) - objective(-h * e)) / (2 * h) for e in directions]).double()
    gradient = scene.gradient(scene.batch())
    torch.testing.assert_close(gradient, expected, rtol=1e-6, atol=1e-7)
    first_order = Scene(first_order=True, meta_weight=0.7, inner_lr=inner_lr)
    assert not torch.allclose(first_order.gradient(first_order.batch()), gradient, rtol=1e-2)


def test_the_loss_is_that_of_meta_train_here_and_of_meta_test_after_the_step():
    scene, tested = Scene(meta_weight=0.7), meta_test()
    plain = scene.plain()
    after = moved(plain, -STEP * plain.gradient(plain.batch(~tested)))
    out = scene.method.loss(scene.batch())
    torch.testing.assert_close(out["meta_train"], plain.method.loss(plain.batch(~tested))["loss"].detach())
    torch.testing.assert_close(out["meta_test"], after.method.loss(after.batch(tested))["loss"].detach())
    torch.testing.assert_close(out["loss"], out["meta_train"] + 0.7 * out["meta_test"])
    assert not out["meta_train"].requires_grad
    assert not out["meta_test"].requires_grad


@pytest.mark.parametrize("size", [1.0, 50.0])
def test_without_a_rate_the_step_moves_weights_by_a_ten_thousandth_whatever_the_size_of_the_gradient(size):
    scene, tested = Scene(inner_lr=None, alpha=0.3 * size, ce=size), meta_test()
    plain = scene.plain()
    gradient = plain.gradient(plain.batch(~tested))
    after = moved(plain, -1e-4 * gradient / gradient.square().mean().sqrt())
    before, expected = (s.method.loss(s.batch(tested))["loss"].detach() for s in (plain, after))
    meta = scene.method.loss(scene.batch())["meta_test"]
    torch.testing.assert_close(meta - before, expected - before, rtol=1e-6, atol=0)


def test_where_nothing_pulls_there_is_no_step_and_no_nan():
    scene = Scene(inner_lr=None, alpha=0.0, ce=0.0, first_order=False)
    assert torch.equal(scene.gradient(scene.batch()), torch.zeros(INPUT * DIM + DIM * CLASSES + CLASSES).double())


def test_it_is_not_the_baseline_under_another_name():
    scene = Scene()
    plain = scene.plain()
    mine, theirs = scene.gradient(scene.batch()), plain.gradient(plain.batch())
    assert torch.cosine_similarity(mine, theirs, dim=0) < 0.99


@pytest.mark.parametrize("first_order", [True, False])
def test_the_loss_moves_no_weight_and_leaves_no_gradient(first_order):
    scene = Scene(first_order=first_order)
    before = parameters_to_vector(scene.weights()).clone()
    scene.method.loss(scene.batch())
    assert torch.equal(parameters_to_vector(scene.weights()), before)
    assert all(weight.grad is None for weight in scene.weights())


def test_a_weight_that_the_loss_does_not_touch_stays_as_it_is():
    scene = Scene()
    batch, before = scene.batch(), scene.gradient(scene.batch())
    scene.module.register_parameter("idle", nn.Parameter(torch.ones(2, dtype=torch.float64)))
    scene.method.loss(batch)["loss"].backward()
    assert scene.module.idle.grad is None
    torch.testing.assert_close(scene.module.weight.grad.flatten(), 2 * before[: INPUT * DIM])  # added to the first


@pytest.mark.parametrize("first_order", [True, False])
def test_it_learns_through_attention(first_order):
    scene = Scene(first_order=first_order)

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.eye(INPUT, DIM).double())

        def forward(self, inputs: Tensor) -> Tensor:
            tokens = (inputs[:, None, None] * torch.arange(1, 4).reshape(3, 1)) @ self.weight  # [n, 1 head, 3, DIM]
            return nn.functional.scaled_dot_product_attention(tokens, tokens, tokens).mean(dim=(1, 2))

    scene.module = Attention()
    assert torch.isfinite(scene.gradient(scene.batch())).all()


@given(st.lists(st.integers(0, 9), min_size=2, max_size=40), st.floats(0.01, 0.99), st.integers(0, 1000))
def test_every_class_of_a_batch_is_on_one_side_and_both_sides_have_one(labels, share, seed):
    labels = [10, *labels]  # two classes at least
    targets = torch.tensor(labels)
    tested = draw_meta_test(targets, share, np.random.default_rng(seed))
    train, test = set(targets[~tested].tolist()), set(targets[tested].tolist())
    assert train
    assert test
    assert not train & test
    assert train | test == set(labels)
    assert abs(len(test) - share * len(set(labels))) <= 1


def test_the_split_is_the_steps_own_randomness_and_nothing_else():
    torch.manual_seed(1)
    np.random.seed(1)
    first = meta_test(7)
    torch.manual_seed(2)
    np.random.seed(2)
    assert torch.equal(meta_test(7), first)
    assert any(not torch.equal(meta_test(seed), first) for seed in range(20))


def test_every_class_is_tested_at_some_step():
    tested = torch.stack([meta_test(seed) for seed in range(60)])
    assert set(TARGETS[tested.any(0)].tolist()) == {0, 1, 2, 3}


def test_a_batch_of_one_class_is_learnt_from_as_the_baseline_would():
    scene, one = Scene(), torch.zeros(8, dtype=torch.long)
    plain = scene.plain()
    out = scene.method.loss(scene.batch(targets=one))
    assert torch.equal(out["loss"], plain.method.loss(plain.batch(targets=one))["loss"])
    assert torch.equal(out["meta_train"], out["loss"].detach())
    assert out["meta_test"] == 0
    assert torch.equal(scene.gradient(scene.batch(targets=one)), plain.gradient(plain.batch(targets=one)))


@pytest.mark.parametrize("first_order", [True, False])
def test_both_losses_fall_when_it_learns(first_order):
    scene = Scene(first_order=first_order, inner_lr=0.1)
    optimizer = torch.optim.AdamW(scene.weights(), lr=0.02)
    history = []
    for _ in range(120):
        optimizer.zero_grad()
        out = scene.method.loss(scene.batch())
        out["loss"].backward()
        optimizer.step()
        history.append((float(out["meta_train"]), float(out["meta_test"])))
    assert history[-1][0] < 0.9 * history[0][0]
    assert history[-1][1] < 0.9 * history[0][1]


@pytest.mark.parametrize(
    "bad",
    [
        {"inner_lr": 0.0}, {"inner_lr": -1.0}, {"inner_lr": float("nan")}, {"inner_lr": float("inf")},
        {"meta_test_share": 0.0}, {"meta_test_share": 1.0}, {"meta_weight": -0.1}, {"temperature": 0.0},
    ],
    ids=str,
)  # fmt: skip
def test_a_value_that_a_setting_cannot_have_is_refused(bad):
    with pytest.raises(SettingsError, match=next(iter(bad))):
        MLDGSettings(**bad)
