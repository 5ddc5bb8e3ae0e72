"""Promises of the margin in evidence: its log ratio is that of the model, and it moves samples to the right side."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from newfound.errors import SettingsError
from newfound.features import unit
from newfound.method import Batch
from newfound.method._evidence_loss import EvidenceMargin
from newfound.method.ltc import LTC, LTCSettings

pytestmark = pytest.mark.usefixtures("one_thread")

TWO = torch.eye(2)  # prototypes of two classes


def margin(within: float = 0.1, between: float = 0.5, classes: int = 2, dim: int = 2) -> EvidenceMargin:
    it = EvidenceMargin(dim, classes)
    it.within.fill_(within)
    it.between.fill_(between)
    return it


def test_the_log_ratio_is_that_of_two_gaussians_by_hand():
    # W = 0.1, B = 0.5 in both dimensions. x = (1, 0) is the first prototype; the mean of both is (0.5, 0.5).
    # Against the category: 0. Against a new one: (0.25 + 0.25) / 0.6 = 0.8333. Log of the volumes: 2 log 6 = 3.5835.
    # (0.8333 - 0 + 3.5835) / 2 = 2.2084, and by dimension 1.1042.
    # x = (-1, 0): to the second, the nearest, 1 + 1 = 2, over 0.1 20; to the mean 2.25 + 0.25 = 2.5, over 0.6 4.1667.
    # (4.1667 - 20 + 3.5835) / 4 = -3.0625.
    ratio = margin().log_ratio(torch.tensor([[1.0, 0.0], [-1.0, 0.0]]), TWO)
    assert ratio.tolist() == pytest.approx([1.1042, -3.0625], abs=1e-4)


def test_the_log_ratio_is_the_difference_of_log_densities():
    torch.manual_seed(0)
    x, prototypes = torch.randn(5, 3, dtype=torch.float64), torch.randn(4, 3, dtype=torch.float64)
    it = EvidenceMargin(3, 4).double()
    it.within.copy_(torch.tensor([0.1, 0.2, 0.6]))
    it.between.copy_(torch.tensor([0.0, 0.4, 0.5]))
    # Half way to their mean 0.3, and 0.15 of the way to 0.3.
    w, b = torch.tensor([0.2, 0.25, 0.45]).double(), torch.tensor([0.045, 0.385, 0.47]).double()
    known = torch.distributions.Normal(prototypes, w.sqrt()).log_prob(x[:, None]).sum(2).amax(1)
    new = torch.distributions.Normal(prototypes.mean(0), (w + b).sqrt()).log_prob(x).sum(1)
    torch.testing.assert_close(it.log_ratio(x, prototypes), (known - new) / 3)


def test_the_loss_is_the_logistic_one_over_the_directions_of_known_classes():
    # Five classes have 4 directions: log(1 + exp(-4 r)) / 4 for known samples, log(1 + exp(4 r)) / 4 for created ones.
    it, prototypes = margin(classes=5, dim=5), torch.eye(5)
    known, created = unit(torch.ones(1, 5) + 2 * torch.eye(5)[:1]), unit(torch.ones(1, 5))
    pos, neg = it(known, created, prototypes)
    r, q = (it.log_ratio(x, prototypes).item() for x in (known, created))
    assert pos.item() == pytest.approx(math.log1p(math.exp(-4 * r)) / 4, rel=1e-5)
    assert neg.item() == pytest.approx(math.log1p(math.exp(4 * q)) / 4, rel=1e-5)
    assert it(known, created[:0], prototypes)[1] == 0


def test_a_known_sample_is_moved_to_its_category_and_a_created_one_away_from_it():
    # Both stand at 30 degrees from the first prototype, 60 from the second; the gradient along the circle, that is
    # along the tangent (-sin, cos), says which way a step goes.
    angle = math.radians(30)
    at, tangent = torch.tensor([[math.cos(angle), math.sin(angle)]]), torch.tensor([-math.sin(angle), math.cos(angle)])
    known, created = at.clone().requires_grad_(True), at.clone().requires_grad_(True)
    pos, neg = margin(between=0.2)(known, created, TWO)
    (pos + neg).backward()
    assert known.grad[0] @ tangent > 0, "less of it: a smaller angle"
    assert created.grad[0] @ tangent < 0


@given(st.integers(0, 10_000))
def test_a_small_step_raises_the_log_ratio_of_known_samples_and_lowers_that_of_created_ones(seed):
    rng = np.random.default_rng(seed)
    prototypes = unit(torch.from_numpy(rng.normal(size=(3, 4))))
    it = margin(0.2, 0.3, 3, 4).double()
    known, created = (unit(torch.from_numpy(rng.normal(size=(6, 4)))).requires_grad_(True) for _ in range(2))
    sum(it(known, created, prototypes)).backward()
    with torch.no_grad():
        for rows, sign in ((known, 1), (created, -1)):
            before = it.log_ratio(rows, prototypes)
            after = it.log_ratio(rows - 1e-4 * rows.grad, prototypes)
            assert (sign * (after - before) >= -1e-12).all()
            assert (sign * (after - before)).max() > 0


def test_clear_evidence_is_no_longer_pressed():
    it, prototypes = margin(0.01, 0.5, 20, 20), torch.eye(20)
    known = prototypes.clone().requires_grad_(True)
    it(known, known[:0], prototypes)[0].backward()
    assert known.grad.abs().max() < 1e-6


def test_spreads_follow_the_batch_and_the_prototypes():
    # Residuals of (0.8, 0.6) from (1, 0): (-0.2, 0.6), squared (0.04, 0.36); of (0, 1) from (0, 1): 0.
    # Means of both: (0.02, 0.18). Variance of the prototypes in each dimension: (0.25 + 0.25) / 1 = 0.5.
    it, features = margin(1.0, 1.0), torch.tensor([[0.8, 0.6], [0.0, 1.0]])
    it.follow(features, torch.tensor([0, 1]), TWO, rate=1.0)
    assert it.within.tolist() == pytest.approx([0.02, 0.18])
    assert it.between.tolist() == pytest.approx([0.5, 0.5])
    it.follow(TWO, torch.tensor([0, 1]), TWO)
    assert it.within.tolist() == pytest.approx([0.018, 0.162]), "a tenth of the way to no spread"


@pytest.mark.parametrize("classes", [1, 2])
def test_copies_and_a_single_class_give_finite_losses(classes):
    it, prototypes = EvidenceMargin(2, classes), TWO[:classes]
    it.follow(prototypes, torch.arange(classes), prototypes, rate=1.0)
    known = prototypes.clone().requires_grad_(True)
    pos, neg = it(known, unit(torch.ones(1, 2)), prototypes)
    pos.backward()
    assert torch.isfinite(torch.stack([pos, neg])).all()
    assert torch.isfinite(known.grad).all()


# In LTC

TARGETS = torch.tensor([0, 1, 2, 0, 1, 2, 0, 1])


def scene(**settings) -> tuple[LTC, Batch]:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        method = LTC(6, 3, LTCSettings(p_gen=1.0, **settings))
        first, second = torch.randn(2, 8, 6) + 2 * torch.eye(6)[TARGETS]
    method.start(unit(first), TARGETS)
    return method, Batch(first, second, TARGETS, unit, 1, np.random.default_rng(0))  # type: ignore[arg-type]


@pytest.mark.parametrize("creator", ["mixup", "between", None])
def test_ltc_adds_it_in_the_place_of_the_hinge(creator):
    method, batch = scene(margin="evidence", gamma_mm=0.7, creator=creator)
    prototypes = method.prototypes().clone()
    out = method.loss(batch)
    features = unit(torch.cat([batch.first, batch.second]))
    base = method.representation_loss(features, TARGETS)["loss"]
    expected = F.softplus(-method.evidence.log_ratio(features, prototypes), beta=2).mean()
    torch.testing.assert_close(out["pos"], expected)
    torch.testing.assert_close(out["loss"], base + 0.7 * (out["pos"] + out["neg"]))
    assert (out["neg"] > 0) == (creator is not None)
    assert out["created"] == (0 if creator is None else 8)


def test_ltc_lets_the_spreads_follow_after_a_step_with_the_prototypes_from_before_it():
    method, batch = scene(margin="evidence", creator="mixup")
    prototypes, within = method.prototypes().clone(), method.evidence.within.clone()
    method.loss(batch)
    assert torch.equal(method.evidence.within, within), "a step uses the spreads from before it"
    method.after_step()
    seen = (unit(batch.first) - prototypes[TARGETS]).square().mean(dim=0)
    torch.testing.assert_close(method.evidence.within, 0.9 * within + 0.1 * seen)


def test_the_cosine_margin_has_no_spreads_to_keep_and_no_other_margin_exists():
    assert not any("evidence" in key for key in scene()[0].state_dict())
    with pytest.raises(SettingsError, match=r'margin=.odds.: choose "cosine" or "evidence"'):
        LTCSettings(margin="odds")


def test_a_run_with_it_is_saved_with_its_spreads_and_trains_to_the_same_again(fit_tiny, pictures, tmp_path):
    import newfound as nf

    options = {"margin": "evidence", "creator": "between", "p_gen": 1.0, "gamma_mm": 0.5}
    data = pictures(3, 4)
    first = fit_tiny(data, out=tmp_path / "run", **options)
    again = fit_tiny(data, **options)
    loaded = nf.load(tmp_path / "run").method.state_dict()
    assert {"evidence.within", "evidence.between"} <= set(loaded)
    for key, value in again.method.state_dict().items():
        assert torch.equal(value, first.method.state_dict()[key]), key
        assert torch.equal(value, loaded[key]), key
