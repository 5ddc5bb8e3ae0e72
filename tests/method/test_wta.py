"""Promises of WTA: the winner of each group of projected values is the code."""

from __future__ import annotations

import numpy as np
import pytest

from newfound.errors import SettingsError
from newfound.method import get_method
from newfound.method.wta import WTA, WTASettings
from newfound.presets import resolve


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


def test_a_code_is_three_winners_of_sixteen_by_every_preset():
    assert get_method("wta") is WTA
    for preset in ("paper", "released", "default"):
        s = resolve("wta", preset, short=False, overrides={})
        assert (s.dimension, s.groups, s.temperature, s.threshold) == (48, 3, 0.07, "own")


@pytest.mark.parametrize("bad", [{"groups": 0}, {"groups": 5}, {"groups": 48}, {"dimension": 0}], ids=str)
def test_a_value_that_a_setting_cannot_have_is_refused_at_once(bad):
    with pytest.raises(SettingsError, match=next(iter(bad))):
        WTASettings(**bad)
