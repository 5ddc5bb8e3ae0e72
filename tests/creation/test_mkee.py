"""Promises of MKEE (Eq. 7 to 9): one normalised step towards high entropy and low density, sample by sample."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from newfound.creation import MKEE, Model, make_creator
from newfound.creation.mkee import kernel_density
from newfound.errors import SettingsError
from newfound.features import unit

pytestmark = pytest.mark.usefixtures("one_thread")

SPACES = {"pixels": (3, 6, 6), "CNN tokens": (8, 2, 2), "ViT tokens": (5, 8)}


def small_model(shape: tuple[int, ...], *, scale: float = 1.0, seed: int = 0) -> Model:
    """A smooth nonlinear encoder of inputs of any shape, and a linear head; float64, so that lengths are exact."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        encoder = nn.Sequential(nn.Flatten(), nn.Linear(math.prod(shape), 16), nn.Tanh(), nn.Linear(16, 6)).double()
        head = nn.Linear(6, 4).double()
    return Model(encode=lambda x: unit(encoder(x)), classify=lambda f: scale * head(f))


def inputs_of(shape: tuple[int, ...], n: int = 6, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=(n, *shape)))


def reference_of(model: Model, shape: tuple[int, ...]) -> torch.Tensor:
    return model.encode(inputs_of(shape, n=7, seed=99)).detach()


def plain_density(features: torch.Tensor, reference: torch.Tensor, sigma_0: float) -> list[float]:
    """Eq. 9 term by term (of an even number of distances, the lower middle one is the median)."""
    distances = [[math.dist(f, r) for r in reference.tolist()] for f in features.tolist()]
    ordered = sorted(d for row in distances for d in row)
    sigma = sigma_0 * ordered[(len(ordered) - 1) // 2]
    return [sum(math.exp(-(d**2) / (2 * sigma**2)) for d in row) / len(row) for row in distances]


@pytest.mark.parametrize("shape", SPACES.values(), ids=SPACES)
@pytest.mark.parametrize("name", ["mkee", "mkee-no-entropy", "mkee-no-density"])
def test_the_step_of_every_sample_has_exactly_the_length_eps(shape, name):
    model, x = small_model(shape), inputs_of(shape)
    moved = make_creator(name, eps=0.05).perturb(x, model, reference_of(model, shape))
    torch.testing.assert_close((moved - x).flatten(1).norm(dim=1), torch.full((6,), 0.05, dtype=torch.float64))


@pytest.mark.parametrize("shape", SPACES.values(), ids=SPACES)
def test_a_relative_step_has_eps_times_the_length_of_its_sample(shape):
    model = small_model(shape)
    x = inputs_of(shape) * torch.tensor([0.1, 1, 2, 3, 10, 100.0]).reshape(-1, *[1] * len(shape))
    moved = MKEE(eps=0.05, relative_step=True).perturb(x, model, reference_of(model, shape))
    torch.testing.assert_close((moved - x).flatten(1).norm(dim=1), 0.05 * x.flatten(1).norm(dim=1))


@given(st.integers(0, 10_000), st.sampled_from(["mkee", "mkee-no-entropy", "mkee-no-density"]))
@settings(max_examples=25)
def test_a_small_step_raises_the_objective_of_every_sample(seed, name):
    shape = (5, 8)
    model, x = small_model(shape, seed=seed), inputs_of(shape, seed=seed)
    creator, reference = make_creator(name, eps=1e-3), reference_of(model, shape)
    moved = creator.perturb(x, model, reference)
    sigma = kernel_bandwidth(model.encode(x), reference)

    def objective(points: torch.Tensor) -> torch.Tensor:  # with the bandwidth of the anchors, which the step held fixed
        features = model.encode(points)
        p = torch.softmax(model.classify(features), dim=1)
        entropy = -(p * p.log()).sum(1) if creator.entropy else torch.zeros(len(points))
        rho = torch.exp(-(torch.cdist(features, reference) ** 2) / (2 * sigma**2)).mean(1)
        return entropy - (creator.lambda_rho * rho if creator.density else 0.0)

    assert (objective(moved) > objective(x)).all()


def kernel_bandwidth(features: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    return torch.cdist(features, reference).median()


def test_a_samples_step_follows_the_gradient_of_its_own_objective_alone():
    shape = (3, 6, 6)
    model, x, creator = small_model(shape), inputs_of(shape), MKEE(eps=0.05)
    reference = reference_of(model, shape)
    moved = creator.perturb(x, model, reference)
    for i in range(len(x)):
        leaf = x.clone().requires_grad_(True)
        (gradient,) = torch.autograd.grad(creator.objective(model.encode(leaf), model, reference)[i], leaf)
        others = [j for j in range(len(x)) if j != i]
        assert not gradient[others].any()
        torch.testing.assert_close(moved[i], x[i] + 0.05 * gradient[i] / gradient[i].norm())


def test_without_the_shared_bandwidth_a_sample_moves_alone_as_it_does_in_a_batch():
    shape = (5, 8)
    model, x = small_model(shape), inputs_of(shape)
    creator, reference = MKEE(density=False), reference_of(model, shape)
    alone = torch.cat([creator.perturb(row[None], model, reference) for row in x])
    torch.testing.assert_close(alone, creator.perturb(x, model, reference))


def test_a_gradient_too_small_to_square_still_makes_a_step_of_the_length_eps():
    # A saturated softmax leaves an entropy gradient near 1e-25, whose squares are zero in float32.
    x = torch.tensor([[0.3, -0.2], [0.1, 0.4]])
    model = Model(encode=lambda v: v, classify=lambda f: torch.stack([f.sum(1) + 60.0, -f.sum(1)], dim=1))
    leaf = x.clone().requires_grad_(True)
    (gradient,) = torch.autograd.grad(MKEE(density=False).objective(leaf, model, x).sum(), leaf)
    assert 0 < gradient.abs().max() < 1e-20, "the case this test is about"
    moved = MKEE(eps=0.05, density=False).perturb(x, model, x)
    torch.testing.assert_close((moved - x).norm(dim=1), torch.full((2,), 0.05))


def test_a_sample_without_a_gradient_stays_where_it_is():
    model = Model(encode=lambda v: v * 0 + torch.tensor([1.0, 0.0]), classify=lambda f: f)
    x = torch.rand(3, 2)
    assert torch.equal(MKEE().perturb(x, model, torch.eye(2)), x)


@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(1, 6), st.sampled_from([0.5, 1.0, 2.0]))
@settings(max_examples=40)
def test_the_density_is_the_papers_kernel_sum_with_the_median_bandwidth(seed, n, r, sigma_0):
    rng = np.random.default_rng(seed)
    features, reference = (unit(torch.from_numpy(rng.normal(size=(rows, 4)))) for rows in (n, r))
    density = kernel_density(features, reference, sigma_0)
    assert density.tolist() == pytest.approx(plain_density(features, reference, sigma_0), rel=1e-9)


def test_density_is_one_on_the_reference_itself_and_falls_with_distance():
    reference = torch.eye(3, dtype=torch.float64)[:1]
    features = unit(torch.tensor([[1.0, 0, 0], [1, 1, 0], [0, 1, 0]], dtype=torch.float64))
    density = kernel_density(features, reference)
    assert density[0].item() == pytest.approx(1.0)
    assert density[0] > density[1] > density[2]


def test_features_that_all_coincide_have_a_finite_density_and_gradient():
    features = torch.tensor([[1.0, 0.0]] * 3, requires_grad=True)
    density = kernel_density(features, features.detach())
    density.sum().backward()
    assert density.tolist() == [1.0] * 3
    assert torch.isfinite(features.grad).all()


def test_the_objective_is_entropy_minus_weighted_density():
    features, reference = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    model = Model(encode=lambda v: v, classify=lambda f: torch.zeros(len(f), 4))
    rho = math.exp(-0.5)  # one distance, which is its own median
    both = MKEE(lambda_rho=0.1).objective(features, model, reference)
    assert both.item() == pytest.approx(math.log(4) - 0.1 * rho, abs=1e-6)
    assert MKEE(density=False).objective(features, model, reference).item() == pytest.approx(math.log(4), abs=1e-6)
    assert MKEE(entropy=False).objective(features, model, reference).item() == pytest.approx(-0.1 * rho, abs=1e-6)


def test_the_ablations_switch_one_term_each():
    assert (make_creator("mkee").entropy, make_creator("mkee").density) == (True, True)
    assert (make_creator("mkee-no-entropy").entropy, make_creator("mkee-no-entropy").density) == (False, True)
    assert (make_creator("mkee-no-density").entropy, make_creator("mkee-no-density").density) == (True, False)


def test_creation_starts_from_mixup_anchors():
    shape, targets = (5, 8), torch.tensor([0, 1, 2, 0, 1, 2])
    model, x = small_model(shape), inputs_of(shape)
    creator = MKEE(eps=0.05)
    created = creator(x, targets, model, reference_of(model, shape), np.random.default_rng(4))
    anchors = creator.blend(x, targets, np.random.default_rng(4))
    torch.testing.assert_close((created - anchors).flatten(1).norm(dim=1), torch.full((6,), 0.05, dtype=torch.float64))


def test_a_batch_of_one_class_creates_nothing():
    shape = (5, 8)
    model, targets = small_model(shape), torch.zeros(6, dtype=torch.long)
    created = MKEE()(inputs_of(shape), targets, model, reference_of(model, shape), np.random.default_rng(0))
    assert created.shape == (0, 5, 8)


@pytest.mark.parametrize(
    ("name", "space", "ndim"),
    [("test_efficientnet", "pixels", 4), ("test_efficientnet", "tokens", 4), ("test_vit", "tokens", 3)],
)
def test_on_a_real_backbone_samples_are_made_in_either_space_and_no_parameter_gets_a_gradient(
    tiny_backbone, name, space, ndim
):
    backbone = tiny_backbone(name)
    pixels = torch.randn(4, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    x = pixels if space == "pixels" else backbone.trunk(pixels)
    forward = backbone if space == "pixels" else backbone.tail
    head = nn.Linear(backbone.dim, 2)
    model = Model(encode=lambda v: unit(forward(v)), classify=head)
    reference = model.encode(x).detach()
    creator = MKEE(eps=0.05, min_lambda=0.3)
    created = creator(x, torch.tensor([0, 1, 0, 1]), model, reference, np.random.default_rng(0))
    anchors = creator.blend(x, torch.tensor([0, 1, 0, 1]), np.random.default_rng(0))
    assert created.shape == x.shape
    assert created.ndim == ndim
    assert not created.requires_grad
    assert (created - anchors).flatten(1).norm(dim=1).tolist() == pytest.approx([0.05] * 4, rel=1e-3)
    assert all(p.grad is None for p in [*backbone.parameters(), *head.parameters()])


def test_samples_are_created_even_where_gradients_are_switched_off():
    shape = (5, 8)
    model, x = small_model(shape), inputs_of(shape)
    with torch.no_grad():
        quiet = MKEE().perturb(x, model, reference_of(model, shape))
    torch.testing.assert_close(quiet, MKEE().perturb(x, model, reference_of(model, shape)))


@pytest.mark.parametrize("bad", [{"eps": -0.1}, {"sigma_0": 0.0}])
def test_a_step_or_a_bandwidth_that_cannot_be_is_refused(bad):
    with pytest.raises(SettingsError, match="eps"):
        make_creator("mkee", **bad)
