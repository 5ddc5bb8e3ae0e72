"""Promises of probabilities: what a rehearsal makes of them comes true as often as it says."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from newfound._scenes import Cast, Scene
from newfound._trust import answers, straightened, trusted
from newfound.evaluation import reliability
from newfound.features import unit
from newfound.method import get_method

WEIGHING = {"dictionary": "bayesian", "between": 0.15, "reconsider_at": 0.0, "even_at": 0.0, "alone": -100.0}


def scene(seed, **changes) -> Scene:
    """A draw of ten classes in 24 directions that overlap, whose spread differs from one direction to the next."""
    rng = np.random.default_rng((1, seed))
    means, wide = np.random.default_rng(0).standard_normal((10, 24)), np.linspace(0.3, 1.5, 24)
    targets = np.repeat(np.arange(10), 30)
    features = unit(torch.from_numpy(means[targets] + wide * rng.standard_normal((300, 24))).float())
    cast = Cast.of(list(features), targets, rng)
    frozen = get_method("frozen")
    method = frozen(24, 5, frozen.settings_class(**WEIGHING | changes))
    return Scene(method, cast, torch.stack(cast.taught), torch.stack(cast.stream))


def told(scenes, **chosen):
    settings = {"evidence_temperature": 1.0, "new_slope": 1.0, "new_shift": 0.0} | chosen
    return [scene.told(settings, 5.0) for scene in scenes]


def error(answers, which, outcome):
    """The expected calibration error, of all draws together."""
    said, came = (np.concatenate([getattr(one, name) for one in answers]) for name in (which, outcome))
    return reliability(said, came).ece


def brier(answers):
    errors = sorted(float(np.square(one.probability - one.right).mean()) for one in answers)
    return np.mean(errors[: (len(errors) + 3) // 4])


def test_on_draws_that_had_no_say_probabilities_come_true_more_often_than_those_of_the_densities():
    chosen = trusted([scene(k) for k in range(8)], {}, 5.0)
    others = [scene(k) for k in range(20, 32)]
    plain, calibrated = told(others), told(others, **chosen)
    assert error(calibrated, "new_probability", "new") < 0.5 * error(plain, "new_probability", "new")
    assert error(calibrated, "probability", "right") < 0.5 * error(plain, "probability", "right")
    assert brier(calibrated) < brier(plain)


def test_no_other_temperature_comes_closer_to_what_comes_true_in_the_best_quarter_of_the_draws():
    scenes = [scene(k, new_slope=1.0, new_shift=0.0) for k in range(8)]
    chosen = trusted(scenes, {}, 5.0)
    assert chosen.keys() == {"evidence_temperature"}, "what was given is not chosen"
    best = brier(told(scenes, **chosen))
    assert all(best <= brier(told(scenes, evidence_temperature=t)) for t in (1.0, 2.0, 4.0, 8.0, 16.0, 32.0))


@pytest.mark.parametrize("temperature", [0.5, 2.0, "rehearsed"])
def test_what_is_rehearsed_is_what_the_dictionary_says(temperature):
    scenes = [scene(k, evidence_temperature=temperature) for k in range(4)]
    chosen = trusted(scenes, {}, 5.0)
    slope, shift = chosen["new_slope"], chosen["new_shift"]
    warmth = {"evidence_temperature": chosen.get("evidence_temperature", temperature)}
    plain, served = told(scenes, **warmth), told(scenes, **chosen | warmth)
    for one, other in zip(plain, served, strict=True):
        assert answers(one, slope, shift) == pytest.approx(other.probability, abs=1e-6)


@pytest.mark.parametrize("given", [{"new_slope": 0.5}, {"new_shift": -1.0}])
def test_of_slope_and_shift_one_that_is_given_stays_and_the_other_is_rehearsed(given):
    scenes = [scene(k, evidence_temperature=1.0, **given) for k in range(4)]
    (name,) = {"new_slope", "new_shift"} - given.keys()
    found = trusted(scenes, {}, 5.0)
    assert found.keys() == {name}
    best, *others = (likelihood(scenes, {**given, name: found[name] + off}) for off in (0.0, 0.3, -0.3))
    assert best > max(others)


def likelihood(scenes, odds):
    """The log likelihood of what was new."""
    said = [(one.new_probability, one.new) for one in told(scenes, **odds)]
    return sum(np.log(np.where(new, p, 1 - p)).sum() for p, new in said)


def test_a_temperature_that_was_given_is_kept_even_one():
    scenes = [scene(k, evidence_temperature=1.0) for k in range(4)]
    assert trusted(scenes, {}, 5.0).keys() == {"new_slope", "new_shift"}
    given_all = [replace(one, read={}) for one in scenes]
    assert trusted(given_all, {"new_slope": 1.0, "new_shift": 0.0}, 5.0) == {}


def test_a_dictionary_without_probabilities_has_none_to_choose():
    assert trusted([scene(0, dictionary="prototypes")], {}, 0.5) == {}


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 9999), st.floats(0.2, 1.8), st.floats(-3, 1))
def test_odds_that_are_straight_after_a_slope_and_a_shift_get_these(seed, slope, shift):
    rng = np.random.default_rng(seed)
    odds = rng.uniform(-6, 6, 20_000)
    new = rng.random(20_000) < 1 / (1 + np.exp(-(slope * odds + shift)))
    assert straightened([_told(odds, new)]) == pytest.approx((slope, shift), abs=0.2)


@pytest.mark.parametrize("came", [True, False])
@pytest.mark.parametrize("samples", [0, 1, 500])
def test_where_all_or_nothing_was_new_odds_stay_finite_and_keep_their_order(samples, came):
    odds = np.linspace(-16, 16, samples) if samples != 1 else np.array([40.0])
    slope, shift = straightened([_told(odds, np.full(samples, came))])
    assert 0.1 <= slope <= 2.0
    assert np.isfinite(shift)
    if not samples:
        assert (slope, shift) == (1.0, 0.0)


def _told(odds, new):
    return SimpleNamespace(new_probability=1 / (1 + np.exp(-odds)), new=np.asarray(new, bool))
