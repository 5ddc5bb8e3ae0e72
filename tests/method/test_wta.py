"""Promises of WTA: the winner of each group of projected values is the code."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from newfound import losses
from newfound.errors import SettingsError
from newfound.method import get_method
from newfound.method.wta import WTA, WTASettings
from newfound.presets import resolve

FLOOR = math.log(23)  # of the contrastive loss: classes fully apart, 24 views of each alike


def test_the_loss_is_contrastive_on_the_unit_projection_of_both_views(toy):
    method = toy.build(WTA)
    batch = toy.batch(0)
    features = batch.encode(torch.cat([batch.first, batch.second])) * 4  # sqrt(16), to unit variance
    values = features @ method.projection.weight.T + method.projection.bias
    unit = values / values.norm(dim=1, keepdim=True)
    expected = losses.supervised_contrastive(unit, toy.targets.repeat(2), 0.07)
    torch.testing.assert_close(method.loss(batch)["loss"], expected)


def test_it_learns_and_then_knows_its_labelled_samples(toy):
    method = toy.build(WTA)
    path = toy.learn(method, steps=100, lr=1e-2)
    assert np.mean(path[-5:]) - FLOOR < 0.2 * (path[0] - FLOOR)
    known = method.teach(toy.features, toy.targets)
    answers = method.dictionary(known, method.own_cut()[0]).observe(method.read(toy.features, known).numpy())
    assert not answers.created.any()
    assert (answers.category == toy.targets.numpy()).mean() > 0.95


def test_the_winner_of_each_group_is_the_code_however_groups_compare(toy):
    method = toy.build(WTA, dimension=6, groups=3)
    dictionary = method.dictionary(method.teach(toy.features, toy.targets), 1.0)
    same = np.array([[2, 1, 9, 0, 5, 6], [9, 0, 2, 1, 0, 1]], np.float32)  # winners: first, first, second
    other = np.array([[2, 1, 9, 0, 6, 5]], np.float32)  # first, first, first
    first, second = dictionary.observe(same).category
    assert first == second
    assert dictionary.observe(other).category[0] != first


def test_an_unseen_code_founds_a_category(toy):
    method = toy.build(WTA)
    known = method.teach(toy.features[:1], toy.targets[:1])
    reading = method.read(toy.features[:1], known).numpy()
    answers = method.dictionary(known, 1.0).observe(np.concatenate([reading, -reading]))  # -x: the losers win
    assert answers.created.tolist() == [False, True]
    assert answers.category.tolist() == [0, 1]


def test_a_method_built_again_from_its_settings_and_weights_reads_the_same(toy):
    method = toy.build(WTA)
    toy.learn(method, steps=3)
    again = WTA(toy.dim, toy.classes, method.settings)
    again.load_state_dict(method.state_dict())
    assert torch.equal(again.read(toy.features, {}), method.read(toy.features, {}))


def test_a_code_is_three_winners_of_sixteen_by_every_preset():
    assert get_method("wta") is WTA
    for preset in ("paper", "released", "default"):
        s = resolve("wta", preset, short=False, overrides={})
        assert (s.dimension, s.groups, s.temperature, s.threshold) == (48, 3, 0.07, "own")


@pytest.mark.parametrize("bad", [{"groups": 0}, {"groups": 5}, {"groups": 48}, {"dimension": 0}], ids=str)
def test_a_value_that_a_setting_cannot_have_is_refused_at_once(bad):
    with pytest.raises(SettingsError, match=next(iter(bad))):
        WTASettings(**bad)
