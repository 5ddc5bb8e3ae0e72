"""Promises of SMILE and of what all methods with codes share: teaching, reading, cuts."""

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
from newfound.method._hashing import RunningNorm
from newfound.method.smile import SMILE, SMILESettings, smooth_magnitude
from newfound.presets import resolve

SMALL = {"hidden": 64}
FLOOR = math.log(23)  # of the contrastive loss: classes fully apart, 24 views of each alike


def test_the_loss_is_contrastive_on_signs_times_magnitudes_plus_three_times_quantisation(toy):
    method = toy.build(SMILE, **SMALL).train()
    batch = toy.batch(0)
    out = method.loss(batch)
    features = batch.encode(torch.cat([batch.first, batch.second])) * 4  # sqrt(16), to unit variance
    hidden = method.mlp(features)
    h, v = method.sign(hidden).detach().numpy(), method.magnitude(hidden).detach().numpy()
    values = np.tanh(h) * v / np.tanh(v)
    values = torch.from_numpy(values / np.linalg.norm(values, axis=1, keepdims=True))
    sup = losses.supervised_contrastive(values, toy.targets.repeat(2), 0.07)
    quantisation = np.mean(1 - np.abs(np.tanh(h)))
    assert out["loss"].item() == pytest.approx(sup.item() + 3 * quantisation, rel=1e-4)
    assert out["sup"].item() == pytest.approx(sup.item(), rel=1e-4)
    assert out["quantisation"].item() == pytest.approx(quantisation, rel=1e-4)


def test_the_magnitude_is_one_at_zero_and_the_absolute_value_far_from_it():
    # 1 / tanh(1) = 1.313035; 5 / tanh(5) = 5.000454
    values = smooth_magnitude(torch.tensor([0.0, 1.0, -1.0, 5.0, -40.0]))
    assert values.tolist() == pytest.approx([1.0, 1.313035, 1.313035, 5.000454, 40.0], abs=1e-5)


@given(st.floats(-50, 50))
def test_the_magnitude_and_its_gradient_are_smooth_everywhere(value):
    x = torch.tensor(value, requires_grad=True)
    y = smooth_magnitude(x)
    y.backward()
    v = x.item()
    t = math.tanh(v)
    assert y.item() == pytest.approx(v / t if abs(v) > 1e-6 else 1.0, rel=1e-5)
    slope = 1 / t - v * (1 - t * t) / (t * t) if abs(v) > 1e-2 else 2 * v / 3
    assert x.grad.item() == pytest.approx(slope, abs=1e-4)


def test_it_learns_and_then_knows_its_labelled_samples(toy):
    method = toy.build(SMILE, **SMALL)
    path = toy.learn(method, lr=3e-3)
    assert np.mean(path[-5:]) - FLOOR < 0.5 * (path[0] - FLOOR)
    known = method.teach(toy.features, toy.targets)
    readings = method.read(toy.features, known)
    answers = method.dictionary(known, method.own_cut()[0]).observe(readings.numpy())
    assert not answers.created.any()
    assert (answers.category == toy.targets.numpy()).mean() > 0.95
    assert readings.abs().mean() > 0.8  # signs, near -1 and 1


def test_a_code_that_no_labelled_sample_has_founds_a_category(toy):
    method = toy.build(SMILE, **SMALL)
    known = method.teach(toy.features, toy.targets)
    dictionary = method.dictionary(known, 1.0)
    taken = {tuple(code) for code in (method.read(toy.features, known) > 0).tolist()}
    code = next(code for code in product((False, True), repeat=12) if code not in taken)
    answer = dictionary.observe(np.where(code, 1.0, -1.0)[None].astype(np.float32))
    assert answer.created.tolist() == [True]
    assert answer.category.tolist() == [toy.classes]


def test_a_code_belongs_to_the_class_most_of_its_samples_have_and_a_class_may_have_none(toy):
    method = toy.build(SMILE, **SMALL)
    same = toy.features[:1].expand(3, -1)
    known = method.teach(same, torch.tensor([0, 0, 1]))
    assert known["codes"].shape == (1, 2)  # 12 bits in two bytes
    assert known["codes"].dtype == np.uint8
    assert known["owners"].tolist() == [0]
    dictionary = method.dictionary(known, 1.0)
    assert dictionary.known == 2
    assert dictionary.observe(method.read(same, known).numpy()).category.tolist() == [0, 0, 0]


def test_a_reading_depends_neither_on_its_neighbours_nor_on_the_mode_and_changes_nothing(toy):
    method = toy.build(SMILE, **SMALL)
    toy.learn(method, steps=5)
    together = method.read(toy.features, {})
    before = {key: value.clone() for key, value in method.state_dict().items()}
    method.train()
    torch.testing.assert_close(method.read(toy.features[:1], {}), together[:1])
    assert method.training
    assert all(torch.equal(before[key], value) for key, value in method.state_dict().items())
    assert not together.requires_grad


def test_a_short_training_reads_as_it_has_learnt(toy):
    method = toy.build(SMILE)
    toy.learn(method, steps=8, lr=3e-3)
    read = method.read(toy.features, {})
    learnt = method.train().project(toy.features)
    assert ((read > 0) == (learnt > 0)).float().mean() > 0.9
    assert read.abs().mean() > 0.8 * learnt.abs().mean()


def test_running_statistics_are_a_mean_of_the_first_ten_batches_and_then_move_by_a_tenth():
    norm, batches = RunningNorm(3), torch.randn(12, 5, 3, generator=torch.Generator().manual_seed(0))
    for batch in batches[:10]:
        norm(batch)
    mean = batches[:10].mean(dim=(0, 1))
    torch.testing.assert_close(norm.running_mean, mean)
    torch.testing.assert_close(norm.running_var, batches[:10].var(dim=1).mean(dim=0))
    norm(batches[10])
    torch.testing.assert_close(norm.running_mean, 0.9 * mean + 0.1 * batches[10].mean(dim=0))
    norm.eval()(batches[11])
    torch.testing.assert_close(norm.running_mean, 0.9 * mean + 0.1 * batches[10].mean(dim=0))


def test_no_features_give_no_readings(toy):
    assert toy.build(SMILE, **SMALL).read(toy.features[:0], {}).shape == (0, 12)


def test_a_method_built_again_from_its_settings_and_weights_reads_the_same(toy):
    method = toy.build(SMILE, **SMALL, bits=20)
    toy.learn(method, steps=3)
    again = SMILE(toy.dim, toy.classes, method.settings)
    again.load_state_dict(method.state_dict())
    known = method.teach(toy.features, toy.targets)
    assert torch.equal(again.read(toy.features, known), method.read(toy.features, known))
    assert all(np.array_equal(known[key], value) for key, value in again.teach(toy.features, toy.targets).items())


def test_a_rehearsal_tries_every_radius_up_to_half_of_the_bits(toy):
    cuts = toy.build(SMILE, **SMALL, bits=12).cuts()
    assert cuts == pytest.approx([6 / 12, 7 / 12, 8 / 12, 9 / 12, 10 / 12, 11 / 12, 1])
    assert toy.build(SMILE, classes=2, **SMALL, bits=1).cuts().tolist() == [1.0]


def test_its_own_rule_is_equal_codes(toy):
    cut, rule = toy.build(SMILE, **SMALL).own_cut()
    assert cut == 1.0
    assert "equal codes" in rule


def test_published_presets_train_as_the_authors_did():
    assert get_method("smile") is SMILE
    for preset in ("paper", "released"):
        s = resolve("smile", preset, short=False, overrides={})
        assert (s.optimizer, s.momentum, s.lr, s.weight_decay) == ("sgd", 0.9, 1e-2, 5e-5)
        assert (s.epochs, s.batch_size, s.warmup_epochs, s.final_lr) == (100, 128, 0, pytest.approx(s.lr / 1000))
        assert (s.bits, s.hidden, s.threshold, s.temperature) == (12, 2048, "own", 0.07)
    default = resolve("smile", "default", short=True, overrides={})
    assert (default.optimizer, default.lr, default.head_lr, default.threshold) == ("adamw", 1e-4, 1e-3, "own")
    assert (default.epochs, default.cached) == (15, True)


@pytest.mark.parametrize(
    "bad",
    [
        {"bits": 0}, {"bits": 1025}, {"hidden": 0}, {"temperature": 0.0}, {"threshold": "adaptive"}, {"threshold": 1.5},
        {"sign_weight": -1.0},
    ],
    ids=str,
)  # fmt: skip
def test_a_value_that_a_setting_cannot_have_is_refused_at_once(bad):
    with pytest.raises(SettingsError, match=next(iter(bad))):
        SMILESettings(**bad)
