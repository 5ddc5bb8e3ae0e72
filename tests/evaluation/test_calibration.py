"""Probabilities that mean what they say: the reliability curve, and which answers count as right."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from newfound.errors import DataError, SettingsError
from newfound.evaluation import named_right, reliability, score, unheard_of


def test_the_curve_and_its_errors_by_hand():
    # Two bins. Below a half: 0.2 (wrong) and 0.4 (right): mean 0.3, a half right, so the gap is 0.2.
    # From a half up: 0.5, 0.9, 1.0 (right, right, wrong): mean 0.8, two thirds right, gap 0.8 - 2/3 = 2/15.
    # ECE = 2/5 * 0.2 + 3/5 * 2/15 = 0.08 + 0.08 = 0.16.
    # Brier = (0.04 + 0.36 + 0.25 + 0.01 + 1) / 5 = 1.66 / 5 = 0.332.
    found = reliability([0.2, 0.4, 0.5, 0.9, 1.0], [False, True, True, True, False], bins=2)
    assert found.count.tolist() == [2, 3]
    assert found.confidence == pytest.approx([0.3, 0.8])
    assert found.accuracy == pytest.approx([1 / 2, 2 / 3])
    assert found.ece == pytest.approx(0.16)
    assert found.brier == pytest.approx(0.332)


def test_a_bin_without_samples_has_no_mean_and_adds_no_error():
    found = reliability([0.05, 0.95], [False, True])
    assert found.count.tolist() == [1, *[0] * 8, 1]
    assert np.isnan(found.confidence[1:9]).all()
    assert np.isnan(found.accuracy[1:9]).all()
    assert found.ece == pytest.approx(0.05)


def test_probabilities_that_are_as_often_right_as_they_say_have_no_calibration_error():
    # a quarter of four, three quarters of four
    found = reliability([0.25] * 4 + [0.75] * 4, [True, *[False] * 3, *[True] * 3, False])
    assert found.ece == pytest.approx(0)
    assert found.brier == pytest.approx(0.25 * 0.75)


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=30), st.integers(1, 12))
def test_every_sample_is_in_one_bin_and_errors_lie_between_none_and_all(pairs, bins):
    p, right = zip(*pairs, strict=True)
    found = reliability(p, right, bins)
    assert found.count.sum() == len(p)
    assert 0 <= found.ece <= 1
    assert 0 <= found.brier <= 1
    used = found.count > 0
    edges = np.arange(bins + 1) / bins
    assert (found.confidence[used] >= edges[:-1][used] - 1e-12).all()
    assert (found.confidence[used] <= edges[1:][used] + 1e-12).all()
    assert found.ece <= np.sqrt(found.brier) + 1e-12, "the mean of gaps is at most the root of their mean square"


SAMPLES = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5), st.booleans()), min_size=1, max_size=25)


@given(SAMPLES, st.sets(st.integers(0, 4)))
def test_what_is_right_adds_up_to_the_named_score(samples, known):
    labels = [label for label, _, _ in samples]
    # A sample that is given to a known class has its name, one that is not has a number of its own kind.
    marks = np.array([mark or prediction not in known for _, prediction, mark in samples])
    answers = [("found", p) if mark else p for (_, p, _), mark in zip(samples, marks, strict=True)]
    right = named_right(labels, answers, known, marks)
    result = score(labels, answers, known, discovered=marks)
    assert right.shape == (len(labels),)
    assert result.named is not None
    assert right.sum() == pytest.approx(result.named.all * len(labels))
    old = np.isin(labels, list(known))
    for part, value in ((old, result.named.old), (~old, result.named.new)):
        assert not part.any() or right[part].mean() == pytest.approx(value)


def test_a_name_is_right_if_it_is_its_own_and_a_discovery_if_it_is_matched():
    labels = ["cat", "cat", "cat", "owl", "owl", "owl", "emu"]
    answers = ["cat", "dog", 9, 7, 7, 8, "cat"]
    found = np.array([False, False, True, True, True, True, False])
    # 7 is the owls', 8 is matched with nothing that is left, the emu was called by a known name.
    right = named_right(labels, answers, ["cat", "dog"], found)
    assert right.tolist() == [True, False, False, True, True, False, False]


class TestRefused:
    @pytest.mark.parametrize("p", [[1.2, 0.5], [-0.1, 0.5], [np.nan, 0.5]], ids=str)
    def test_what_is_no_probability(self, p):
        with pytest.raises(DataError, match=r"lies in \[0, 1\]"):
            reliability(p, [True, False])

    @pytest.mark.parametrize(("p", "right"), [([], []), ([0.5], [True, False]), ([[0.5]], [[True]])], ids=str)
    def test_samples_without_both(self, p, right):
        with pytest.raises(DataError, match="one of both"):
            reliability(p, right)

    def test_no_bins(self):
        with pytest.raises(SettingsError, match="bins is 0"):
            reliability([0.5], [True], bins=0)

    def test_answers_for_other_samples(self):
        with pytest.raises(DataError, match="one value for each sample"):
            named_right(["cat"], ["cat", "dog"], ["cat"], [False, False])


def test_a_class_is_new_until_a_category_stands_for_it():
    labels = ["cat", "owl", "owl", "owl", "fox", "fox", "bee"]
    answers = ["cat", "cat", 5, 5, 5, 6, 6]  # the first owl is taken for a cat, the first fox for an owl
    discovered = [False, False, True, True, True, True, True]
    new = unheard_of(labels, answers, ["cat"], discovered)
    # Category 5 is of owls from its founder on. Category 6 has a fox and a bee: it stands for one of the two.
    assert new.tolist()[:5] == [False, True, True, False, True]
    assert new.tolist()[5:] in ([True, True], [False, True])


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5)), max_size=30))
def test_what_is_new_is_what_a_plain_search_of_the_past_does_not_find(samples):
    labels, answers = [a for a, _ in samples], [b for _, b in samples]
    discovered = [answer >= 2 for answer in answers]  # 0 and 1 are known
    new = unheard_of(labels, answers, [0, 1], discovered)
    for i, label in enumerate(labels):
        found = {answer for answer in answers[:i] if answer >= 2}
        categories = [Counter(of for of, answer in samples if answer == category) for category in found]
        leads = [c[label] == max(c.values()) for c in categories]
        alone = [c[label] > max([n for other, n in c.items() if other != label], default=0) for c in categories]
        if label < 2 or any(alone):
            assert not new[i]
        elif not any(leads):
            assert new[i]
