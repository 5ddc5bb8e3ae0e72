"""Promises of PHE: prototypes, hash centres, the distance between them and the radius around them."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from newfound import losses
from newfound.errors import SettingsError
from newfound.method import get_method
from newfound.method.phe import PHE, PHESettings, hash_distance
from newfound.presets import resolve

SMALL = {"hidden": 64, "dimension": 24}


def test_the_activation_of_a_prototype_falls_with_its_distance(toy):
    method = toy.build(PHE, classes=2, hidden=64, dimension=2, per_class=1)
    with torch.no_grad():
        method.prototypes.copy_(torch.tensor([[[5.0, 0.0]], [[0.0, 0.1]]]))
    activations = method.activations(torch.tensor([[2.0, 0.0]]))
    # The sample points at the first prototype: d = 0 and log(1 / 0.0001). The second is sqrt(2) away.
    far = math.log((math.sqrt(2) + 1) / (math.sqrt(2) + 1e-4))
    assert activations.shape == (1, 2, 1)
    assert activations.flatten().tolist() == pytest.approx([math.log(1e4), far], abs=1e-5)


def test_a_logit_is_the_sum_of_own_activations_less_half_of_all_others(toy):
    method = toy.build(PHE, **SMALL, classes=3, per_class=2, theta=0.0)
    added = torch.from_numpy(np.random.default_rng(0).normal(size=(5, 24))).float()
    connections = torch.full((6, 3), -0.5)
    for prototype in range(6):
        connections[prototype, prototype // 2] = 1.0
    expected = method.activations(added).flatten(1) @ connections
    torch.testing.assert_close(method.logits(added), expected)
    torch.testing.assert_close(method.logits(added, np.random.default_rng(0)), expected)


def test_the_mask_leaves_out_whole_activations_and_evaluation_weighs_them_by_their_chance(toy):
    method = toy.build(PHE, **SMALL, classes=2, per_class=1, theta=0.3)
    added = torch.from_numpy(np.random.default_rng(0).normal(size=(400, 24))).float()
    full = method.activations(added)[:, :, 0].double()
    logits = method.logits(added, np.random.default_rng(1)).double()
    # l0 = a0 - a1 / 2 and l1 = a1 - a0 / 2, so a0 = (l0 + l1 / 2) * 4 / 3.
    masked = torch.stack([logits[:, 0] + logits[:, 1] / 2, logits[:, 1] + logits[:, 0] / 2], dim=1) * 4 / 3
    kept = masked.abs() > 1e-4
    torch.testing.assert_close(masked[kept], full[kept], rtol=1e-4, atol=1e-4)
    assert kept.double().mean().item() == pytest.approx(0.7, abs=0.05)
    whole = full - full.flip(1) / 2
    torch.testing.assert_close(method.logits(added).double(), 0.7 * whole, rtol=1e-4, atol=1e-4)


def test_the_mask_comes_from_the_steps_own_randomness_and_from_nothing_else(toy):
    method = toy.build(PHE, **SMALL, theta=0.3)
    torch.manual_seed(1)
    state = torch.get_rng_state()
    first = method.loss(toy.batch(0))["loss"].item()
    assert torch.equal(state, torch.get_rng_state())
    torch.manual_seed(2)
    assert method.loss(toy.batch(0))["loss"].item() == first
    added = method.added(toy.features)
    one, same, other = (method.logits(added, np.random.default_rng(seed)) for seed in (0, 0, 1))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_the_loss_is_the_weighted_sum_of_its_parts(toy):
    method = toy.build(PHE, **SMALL, theta=0.0, oracle_classes=19).train()
    batch = toy.batch(0)
    out = method.loss(batch)
    features = batch.encode(torch.cat([batch.first, batch.second]))
    both, centres = toy.targets.repeat(2), method.centres()
    signs = torch.tanh(3 * centres)
    parts = {
        "nll": losses.cross_entropy(method.logits(method.added(features * 4)), both),  # 4 = sqrt(16)
        "separation": losses.centre_separation(signs, 4),  # d_max of 12 bits and 19 classes
        "quantisation": losses.quantisation(signs),
        "to_centre": losses.feature_to_centre(method.project(features), centres, both),
    }
    for name, value in parts.items():
        torch.testing.assert_close(out[name], value.detach(), msg=name)
    total = parts["nll"] + 0.1 * (parts["separation"] + parts["quantisation"]) + 3 * parts["to_centre"]
    torch.testing.assert_close(out["loss"], total)


@pytest.mark.parametrize(
    ("length", "classes", "distance"),
    [
        (12, 100, 3),  # 2^12 / 100 = 41.0, between C(12, 1) = 12 and C(12, 2) = 66
        (12, 200, 3),  # 20.5, between the same
        (12, 19, 4),  # 215.6, between C(12, 2) = 66 and C(12, 3) = 220
        (16, 100, 5),  # 655.4, between C(16, 3) = 560 and C(16, 4) = 1820
        (64, 100, 25),  # 1.84e17, between C(64, 23) = 1.47e17 and C(64, 24) = 2.51e17
        (12, 5, 7),  # 819.2, between C(12, 5) = 792 and C(12, 6) = 924
        (12, 4, 0),  # 1024, above all of them
        (4, 16, 2),  # 1, which C(4, 0) equals
        (1, 2, 0),  # there is no d from 2 to 1
    ],
)
def test_the_distance_between_centres_follows_from_bits_and_classes(length, classes, distance):
    assert hash_distance(length, classes) == distance


@given(st.integers(2, 300), st.integers(1, 10_000))
def test_a_distance_fits_into_the_code(length, classes):
    d = hash_distance(length, classes)
    assert d == 0 or 2 <= d <= length
    if d:
        assert math.comb(length, d - 2) * classes <= 2**length <= math.comb(length, d - 1) * classes


def test_it_learns_and_then_knows_its_labelled_samples(toy):
    method = toy.build(PHE, **SMALL)
    path = toy.learn(method, steps=80, lr=3e-3)
    assert np.mean(path[-5:]) < 0.7 * np.mean(path[:5])
    known = method.teach(toy.features, toy.targets)
    assert known["owners"].tolist() == [0, 1, 2, 3]
    answers = method.dictionary(known, method.own_cut()[0]).observe(method.read(toy.features, known).numpy())
    assert not answers.created.any()
    assert (answers.category == toy.targets.numpy()).mean() > 0.95


def test_a_code_outside_every_ball_founds_a_category_and_one_inside_does_not(toy):
    method = toy.build(PHE, **SMALL)
    centres = method.centres().detach() > 0
    codes = torch.tensor(list(product((False, True), repeat=12)))
    distances = (codes[:, None] != centres).sum(2).amin(1)
    cut, _ = method.own_cut()  # one bit of twelve
    dictionary = method.dictionary(method.teach(toy.features, toy.targets), cut)
    for distance, new in ((0, False), (1, False), (2, True)):
        code = codes[distances == distance][0]
        answer = dictionary.predict((2.0 * code - 1).numpy()[None].astype(np.float32))
        assert answer.created.tolist() == [new], distance


def test_virtual_classes_have_prototypes_but_are_not_known(toy):
    method = toy.build(PHE, **SMALL, classes=7)
    assert len(method.centres()) == 7
    known = method.teach(toy.features, toy.targets)
    assert known["owners"].tolist() == [0, 1, 2, 3]
    assert method.dictionary(known, 1.0).known == 4
    bits = np.unpackbits(known["codes"], axis=1, count=12, bitorder="little").astype(bool)
    assert np.array_equal(bits, (method.centres()[:4] > 0).numpy())


def test_centres_are_the_same_in_training_and_evaluation_and_leave_the_samples_statistics_alone(toy):
    method = toy.build(PHE, **SMALL)
    toy.learn(method, steps=3)
    mean = method.mlp.norm.running_mean.clone()
    method.train()
    training = method.centres()
    assert torch.equal(mean, method.mlp.norm.running_mean)
    assert torch.equal(training, method.eval().centres())
    method.train().project(toy.features)
    assert not torch.equal(mean, method.mlp.norm.running_mean)


def test_two_classes_are_enough_to_learn(toy):
    method = toy.build(PHE, **SMALL, classes=2)
    two = type(toy)(toy.features[:24], toy.targets[:24])
    path = two.learn(method, steps=30, lr=3e-3)
    assert np.isfinite(path).all()
    assert path[-1] < path[0]


def test_a_method_built_again_from_its_settings_and_weights_reads_the_same(toy):
    method = toy.build(PHE, **SMALL)
    toy.learn(method, steps=3)
    again = PHE(toy.dim, toy.classes, method.settings)
    again.load_state_dict(method.state_dict())
    known = method.teach(toy.features, toy.targets)
    assert torch.equal(again.read(toy.features, known), method.read(toy.features, known))
    assert all(np.array_equal(known[key], value) for key, value in again.teach(toy.features, toy.targets).items())


def test_an_oracle_count_changes_the_radius_and_says_so(toy):
    plain, oracle = toy.build(PHE, **SMALL), toy.build(PHE, **SMALL, oracle_classes=19)
    cut, rule = plain.own_cut()
    assert cut == pytest.approx(11 / 12)  # d_max 0 for 4 classes, so the radius is the least there is: 1
    assert "4 classes learnt" in rule
    assert "oracle" not in rule.lower()
    cut, rule = oracle.own_cut()
    assert cut == pytest.approx(10 / 12)  # d_max 4, radius 2
    assert "19 classes in the stream" in rule
    assert "ORACLE" in rule


def test_published_presets_train_as_the_authors_did():
    assert get_method("phe") is PHE
    for preset in ("paper", "released"):
        s = resolve("phe", preset, short=False, overrides={})
        assert (s.optimizer, s.lr, s.head_lr, s.weight_decay, s.head_weight_decay) == ("adamw", 1e-4, 1e-3, 1e-3, 0.05)
        assert (s.epochs, s.batch_size, s.warmup_epochs, s.threshold) == (200, 128, 0, "own")
        assert (s.per_class, s.theta, s.centre_weight, s.feature_weight) == (10, 0.1, 0.1, 3.0)
        assert s.oracle_classes is None
    default = resolve("phe", "default", short=True, overrides={})
    assert (default.lr, default.head_lr, default.weight_decay, default.threshold) == (1e-4, 1e-3, 0.05, "own")


@pytest.mark.parametrize(
    "bad",
    [
        {"theta": 1.0}, {"theta": -0.1}, {"per_class": 0}, {"dimension": 0}, {"oracle_classes": 0},
        {"centre_weight": -1.0}, {"feature_weight": -1.0}, {"bits": 0},
    ],
    ids=str,
)  # fmt: skip
def test_a_value_that_a_setting_cannot_have_is_refused_at_once(bad):
    with pytest.raises(SettingsError, match=next(iter(bad))):
        PHESettings(**bad)
