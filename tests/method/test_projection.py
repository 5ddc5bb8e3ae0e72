"""Promises of the methods that read a code off a linear projection: RankStat and WTA."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from newfound import losses
from newfound.method.rankstat import RankStat
from newfound.method.wta import WTA

FLOOR = math.log(23)  # of the contrastive loss: classes fully apart, 24 views of each alike

pytestmark = pytest.mark.parametrize("cls", [RankStat, WTA])


def test_the_loss_is_contrastive_on_the_unit_projection_of_both_views(toy, cls):
    method = toy.build(cls)
    batch = toy.batch(0)
    features = batch.encode(torch.cat([batch.first, batch.second])) * 4  # sqrt(16), to unit variance
    values = features @ method.projection.weight.T + method.projection.bias
    unit = values / values.norm(dim=1, keepdim=True)
    expected = losses.supervised_contrastive(unit, toy.targets.repeat(2), 0.07)
    torch.testing.assert_close(method.loss(batch)["loss"], expected)


def test_it_learns_and_then_knows_its_labelled_samples(toy, cls):
    method = toy.build(cls)
    path = toy.learn(method, steps=100, lr=1e-2)
    assert np.mean(path[-5:]) - FLOOR < 0.2 * (path[0] - FLOOR)
    known = method.teach(toy.features, toy.targets)
    answers = method.dictionary(known, method.own_cut()[0]).observe(method.read(toy.features, known).numpy())
    assert not answers.created.any()
    assert (answers.category == toy.targets.numpy()).mean() > 0.95


def test_a_method_built_again_from_its_settings_and_weights_reads_the_same(toy, cls):
    method = toy.build(cls)
    toy.learn(method, steps=3)
    again = cls(toy.dim, toy.classes, method.settings)
    again.load_state_dict(method.state_dict())
    assert torch.equal(again.read(toy.features, {}), method.read(toy.features, {}))
