"""Promises of LTC (Alg. 1): when it creates, what its loss is made of, which prototypes and threshold a step uses."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from torch import nn

from newfound import losses
from newfound.errors import SettingsError
from newfound.features import unit
from newfound.method import Batch, class_means, get_method
from newfound.method.ltc import LTC, LTCSettings

pytestmark = pytest.mark.usefixtures("one_thread")

CLASSES, INPUT, DIM = 3, 10, 6
TARGETS = torch.tensor([0, 1, 2, 0, 1, 2, 0, 1])


def encoder(seed: int = 0) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(INPUT, 12), nn.Tanh(), nn.Linear(12, DIM))


def views(targets: torch.Tensor, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(5).normal(size=(CLASSES, INPUT))[targets.numpy()]
    return tuple(torch.from_numpy(centres + 0.5 * rng.normal(size=centres.shape)).float() for _ in range(2))


class Scene:
    """A method on a small encoder, and batches to feed it."""

    def __init__(self, name: str = "ltc", seed: int = 0, **settings) -> None:
        cls = get_method(name)
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            usual = {"p_gen": 1.0, "beta": 0.1} if issubclass(cls, LTC) else {}
            self.method = cls(DIM, CLASSES, cls.settings_class(**(usual | settings)))
        self.encoder = encoder()
        first, _ = views(TARGETS, 77)
        self.method.start(self.encode(first).detach(), TARGETS)

    def encode(self, x: torch.Tensor) -> torch.Tensor:
        return unit(self.encoder(x))

    def batch(self, step: int = 0, epoch: int = 1, targets: torch.Tensor = TARGETS) -> Batch:
        return Batch(*views(targets, step), targets, self.encode, epoch, np.random.default_rng((9, step)))

    def step(self, **options) -> dict[str, torch.Tensor]:
        out = self.method.loss(self.batch(**options))
        self.method.after_step()
        return out


def test_nothing_is_created_in_the_warm_up_epoch_and_everything_after_it():
    scene = Scene(creation_from_epoch=1)
    assert scene.step(epoch=0)["created"] == 0
    assert scene.step(epoch=1)["created"] == len(TARGETS)
    late = Scene(creation_from_epoch=3)
    assert [int(late.step(epoch=e)["created"]) for e in range(5)] == [0, 0, 0, 8, 8]


def test_a_batch_creates_with_the_probability_p_gen():
    scene = Scene(p_gen=0.3, creator="mixup")
    created = [scene.step(step=s)["created"].item() > 0 for s in range(400)]
    assert np.mean(created) == pytest.approx(0.3, abs=0.07)
    assert not any(Scene(p_gen=0.0).step(step=s)["created"] for s in range(20))


def test_the_threshold_moves_only_when_the_batch_created():
    scene = Scene(p_gen=0.5)
    moved, created = [], []
    for step in range(20):
        before = scene.method.tau
        created.append(bool(scene.step(step=step)["created"]))
        moved.append(scene.method.tau != before)
    assert moved == created
    assert any(created)
    assert not all(created)


def test_a_batch_of_one_class_creates_nothing_and_keeps_the_threshold():
    scene = Scene()
    out = scene.step(targets=torch.zeros(8, dtype=torch.long))
    assert out["created"] == 0
    assert out["neg"] == 0
    assert scene.method.tau == 0.7


def test_the_total_loss_is_equation_13():
    scene = Scene(alpha=0.4, gamma_mm=0.7, m_pos=0.06, m_neg=0.03, tau_init=0.6, creator="mixup", min_lambda=0.3)
    batch = scene.batch()
    prototypes = scene.method.prototypes().clone()
    out = scene.method.loss(batch)
    features = scene.encode(torch.cat([batch.first, batch.second]))
    both = torch.cat([TARGETS, TARGETS])
    rng = np.random.default_rng((9, 0))
    rng.random()  # the trigger
    mixed = scene.method.creator.blend(batch.first, TARGETS, np.random.default_rng(rng.integers(2**63)))
    s_known, s_pseudo = ((f @ prototypes.T).max(dim=1).values for f in (features, scene.encode(mixed)))
    sup = losses.supervised_contrastive(features, both, 0.07)
    ce = nn.functional.cross_entropy(scene.method.head(features), both)
    pos = (0.66 - s_known).clamp(min=0).mean()
    neg = (s_pseudo - 0.57).clamp(min=0).mean()
    torch.testing.assert_close(out["loss"], ce + 0.4 * sup + 0.7 * (pos + neg))
    for name, value in {"sup": sup, "ce": ce, "pos": pos, "neg": neg}.items():
        torch.testing.assert_close(out[name], value.detach())


def test_the_threshold_follows_the_quantiles_of_this_steps_scores():
    scene = Scene(beta=1.0, q_pos=0.8, q_neg=0.2, creator="mixup")
    batch, prototypes = scene.batch(), scene.method.prototypes().clone()
    scene.method.loss(batch)
    features = scene.encode(torch.cat([batch.first, batch.second])).detach()
    rng = np.random.default_rng((9, 0))
    rng.random()
    mixed = scene.method.creator.blend(batch.first, TARGETS, np.random.default_rng(rng.integers(2**63)))
    s_known, s_pseudo = (losses.max_similarity(f, prototypes) for f in (features, scene.encode(mixed).detach()))
    assert scene.method.tau == 0.7, "the step itself uses the threshold from before it"
    scene.method.after_step()
    expected = (torch.quantile(s_known, 0.8) + torch.quantile(s_pseudo, 0.2)) / 2
    assert scene.method.tau == pytest.approx(expected.item(), abs=1e-6)


def test_a_step_uses_the_prototypes_from_before_it():
    scene = Scene()
    start = scene.method.prototypes().clone()
    batch = scene.batch()
    scene.method.loss(batch)
    assert torch.equal(scene.method.prototypes(), start)
    scene.method.after_step()
    seen = class_means(scene.encode(batch.first).detach(), TARGETS, CLASSES)
    torch.testing.assert_close(scene.method.prototypes(), seen)


def test_prototypes_are_means_of_everything_seen_since_the_epochs_start():
    scene = Scene()
    scene.method.begin_epoch(1)
    batches = [scene.batch(step=s) for s in range(3)]
    for batch in batches:
        scene.method.loss(batch)
        scene.method.after_step()
    features = scene.encode(torch.cat([b.first for b in batches])).detach()
    torch.testing.assert_close(scene.method.prototypes(), class_means(features, TARGETS.repeat(3), CLASSES))


def test_a_class_not_yet_seen_in_an_epoch_keeps_the_last_epochs_prototype():
    scene = Scene()
    scene.step()
    last = scene.method.prototypes().clone()
    scene.method.begin_epoch(2)
    assert torch.equal(scene.method.prototypes(), last)
    only = torch.tensor([1, 1])
    scene.step(step=4, epoch=2, targets=only)
    now = scene.method.prototypes()
    assert torch.equal(now[[0, 2]], last[[0, 2]])
    assert not torch.allclose(now[1], last[1])


def test_in_the_released_form_the_head_stands_for_a_class_not_yet_seen():
    scene = Scene(prototypes_start="head", head="cosine")
    with torch.no_grad():
        scene.method.head.weight.copy_(3 * torch.eye(CLASSES, DIM))
    scene.method.begin_epoch(0)
    torch.testing.assert_close(scene.method.prototypes(), torch.eye(CLASSES, DIM))
    scene.step(epoch=0, targets=torch.tensor([2, 2]))
    torch.testing.assert_close(scene.method.prototypes()[:2], torch.eye(CLASSES, DIM)[:2])


def test_training_starts_from_the_class_means_of_the_labelled_set():
    scene = Scene(head="cosine")
    first, _ = views(TARGETS, 77)
    means = class_means(scene.encode(first).detach(), TARGETS, CLASSES)
    torch.testing.assert_close(scene.method.prototypes(), means)
    torch.testing.assert_close(scene.method.head.weight.detach(), means)


def test_the_margins_pull_features_and_neither_head_nor_prototypes():
    scene = Scene(alpha=0.0, ce=0.0, gamma_mm=1.0, tau_init=0.95, m_pos=0.05)
    scene.method.loss(scene.batch())["loss"].backward()
    assert any(p.grad.any() for p in scene.encoder.parameters())
    assert all(p.grad is None or not p.grad.any() for p in scene.method.head.parameters())


def test_the_hinge_starts_at_its_epoch():
    with_hinge, without = (Scene(hinge_from_epoch=1, gamma_mm=g) for g in (5.0, 0.0))
    early = [s.method.loss(s.batch(epoch=0))["loss"] for s in (with_hinge, without)]
    assert torch.equal(*early)
    late = [s.method.loss(s.batch(epoch=1))["loss"] for s in (with_hinge, without)]
    assert late[0] > late[1]


def test_the_released_form_takes_cross_entropy_and_hinge_from_the_first_view():
    scene = Scene(first_view_only=True, alpha=0.0, p_gen=0.0, gamma_mm=0.5)
    batch = scene.batch()
    out = scene.method.loss(batch)
    features = scene.encode(batch.first)
    ce = nn.functional.cross_entropy(scene.method.head(features), TARGETS)
    s_known = losses.max_similarity(features, scene.method.prototypes())
    torch.testing.assert_close(out["loss"], ce + 0.5 * (0.75 - s_known).clamp(min=0).mean())


@pytest.mark.parametrize(
    ("without", "same_as"), [({"gamma_mm": 0.0}, "baseline"), ({"creator": None}, "known-hinge")]
)
def test_ablations_are_settings(without, same_as):
    assert torch.equal(Scene(**without).step()["loss"], Scene(same_as).step()["loss"])


@pytest.mark.parametrize("term", ["alpha", "ce"])
def test_each_term_of_the_loss_can_be_dropped(term):
    full, dropped = Scene(p_gen=0.0), Scene(p_gen=0.0, **{term: 0.0})
    a, b = full.step(), dropped.step()
    part = {"alpha": 0.3 * a["sup"], "ce": a["ce"]}[term]
    torch.testing.assert_close(a["loss"] - part, b["loss"])


@pytest.mark.parametrize("creator", ["mkee", "mkee-no-entropy", "mkee-no-density", "mixup"])
def test_every_creator_works_in_ltc(creator):
    out = Scene(creator=creator).step()
    assert out["created"] == len(TARGETS)
    assert torch.isfinite(out["loss"])


def test_creation_leaves_no_gradient_behind():
    scene = Scene()
    scene.method.loss(scene.batch())
    assert all(p.grad is None for p in [*scene.encoder.parameters(), *scene.method.parameters()])


def test_known_hinge_never_creates_and_keeps_tau_init():
    scene = Scene("known-hinge", tau_init=0.95)
    for step in range(5):
        out = scene.step(step=step)
        assert out["created"] == 0
        assert out["neg"] == 0
        assert out["pos"] > 0
    assert scene.method.tau == 0.95


def test_known_hinge_refuses_a_creator():
    with pytest.raises(SettingsError, match="creator"):
        Scene("known-hinge", creator="mkee")


def test_its_state_survives_a_checkpoint():
    scene, twin = Scene(), Scene(seed=3)
    for step in range(3):
        scene.step(step=step)
    twin.method.load_state_dict(scene.method.state_dict())
    twin.method.load_scalars(scene.method.scalars())
    assert torch.equal(scene.step(step=8)["loss"], twin.step(step=8)["loss"])
    assert scene.method.tau == twin.method.tau


def test_the_same_step_gives_the_same_loss_whatever_the_global_random_state():
    torch.manual_seed(1)
    first = Scene().step()["loss"]
    torch.manual_seed(2)
    np.random.seed(2)
    assert torch.equal(first, Scene().step()["loss"])


@pytest.mark.parametrize(
    "bad",
    [
        {"p_gen": 1.1}, {"p_gen": -0.1}, {"beta": 2.0}, {"q_pos": -1.0}, {"q_neg": 1.5}, {"tau_init": 1.2},
        {"space": "voxels"}, {"temperature": 0.0}, {"eta": 0.0}, {"min_lambda": 0.7}, {"eps": -1.0}, {"sigma_0": 0.0},
    ],
    ids=str,
)  # fmt: skip
def test_a_value_that_a_setting_cannot_have_is_refused_before_the_first_step(bad):
    with pytest.raises(SettingsError, match=next(iter(bad))):
        Scene(**bad)


def test_creation_in_pixel_space_cannot_have_cached_views_and_the_error_says_what_can():
    with pytest.raises(SettingsError, match=r'space="tokens" or cached=False'):
        LTCSettings(cached=True, space="pixels")
    LTCSettings(cached=True, space="pixels", creator=None)


def test_settings_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        LTCSettings().lr = 1.0


def test_ltc_says_that_it_creates_and_discovers():
    assert LTC.creates
    assert LTC.discovers
