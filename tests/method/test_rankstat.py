"""Promises of RankStat: the set of the largest projected values is the code."""

from __future__ import annotations

import numpy as np
import pytest

from newfound.errors import SettingsError
from newfound.method import get_method
from newfound.method.rankstat import RankStat, RankStatSettings
from newfound.presets import resolve


def test_the_three_largest_in_any_order_are_the_code(toy):
    method = toy.build(RankStat, dimension=6)
    dictionary = method.dictionary(method.teach(toy.features[:1], toy.targets[:1]), 1.0)
    readings = np.array([[6, 5, 4, 0, 0, 0], [4, 5, 6, 3, 2, 1], [6, 5, 0, 4, 0, 0]], np.float32)
    own = set(method.read(toy.features[:1], {})[0].topk(3).indices.tolist())
    first, second, third = dictionary.observe(readings).category
    assert first == second  # {0, 1, 2}
    assert third != first  # {0, 1, 3}
    assert (first == 0) == (own == {0, 1, 2})
    assert (third == 0) == (own == {0, 1, 3})


def test_an_unseen_set_founds_a_category_unless_the_threshold_lets_an_element_differ(toy):
    method = toy.build(RankStat, dimension=8)
    known = method.teach(toy.features[:1], toy.targets[:1])
    reading = method.read(toy.features[:1], known).numpy()
    swapped = reading.copy()
    swapped[0, np.argsort(reading[0])[[-3, 0]]] = reading[0, np.argsort(reading[0])[[0, -3]]]  # one of three differs
    assert method.dictionary(known, 1.0).observe(swapped).created.tolist() == [True]
    assert method.dictionary(known, 1 - 2 / 6).observe(swapped).category.tolist() == [0]  # a swap is two bits of six


def test_a_code_is_three_of_thirty_two_by_every_preset():
    assert get_method("rankstat") is RankStat
    for preset in ("paper", "released", "default"):
        s = resolve("rankstat", preset, short=False, overrides={})
        assert (s.dimension, s.top, s.temperature, s.threshold) == (32, 3, 0.07, "own")


@pytest.mark.parametrize("bad", [{"top": 0}, {"top": 32}, {"dimension": 0}], ids=str)
def test_a_value_that_a_setting_cannot_have_is_refused_at_once(bad):
    with pytest.raises(SettingsError, match=next(iter(bad))):
        RankStatSettings(**bad)
