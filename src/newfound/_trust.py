"""Probabilities that come true: what a rehearsal says of the temperature, and of the odds that a sample is new."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from newfound._scenes import Scene, Told, with_settings
from newfound.discovery._answers import REACH

_NEW = ("new_slope", "new_shift")
_COARSE = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)  # temperatures
_FINE = (2**-0.5, 2**-0.25, 2**0.25, 2**0.5)  # and around the best of them
_SLOPES = 0.1, 2.0  # so that a sample which fits worse is never less likely to be new
_USUAL = (1.0, 0.0)  # slope and shift that change nothing
_HELD = (1.0, 2.0)  # how far off they are likely to be: few samples do not take them far


def trusted(scenes: Sequence[Scene], settings: Mapping[str, Any], cut: float) -> dict[str, float]:
    """The settings of probabilities that are left to a rehearsal; none where the dictionary has no probabilities.

    For each temperature the log odds of being new are straightened by what was new in all draws. The temperature is the
    one whose answers then come closest to what comes true (the Brier score) in the best quarter of the draws. A draw
    knows half of the classes, and half of the images or fewer, so its answers go wrong more often than they will; most
    of all where the threshold does not suit the draw.
    """
    asked = with_settings(scenes[0].method, settings).settings
    given = {name: value for name in _NEW if (value := getattr(asked, name, None)) != "rehearsed"}
    search = getattr(asked, "evidence_temperature", None) == "rehearsed"
    plain = {**settings, **dict(zip(_NEW, _USUAL, strict=True))}
    if (len(given) == len(_NEW) and not search) or scenes[0].told(plain, cut) is None:
        return {}
    tried: dict[float | None, tuple[float, dict[str, float]]] = {}

    def play(temperature: float | None) -> None:
        trial = plain if temperature is None else {**plain, "evidence_temperature": temperature}
        told = [one for scene in scenes if (one := scene.told(trial, cut)) is not None]
        new = straightened(told, *map(given.get, _NEW))
        errors = sorted(float(np.square(answers(one, *new) - one.right).mean()) for one in told)
        quarter = errors[: (len(errors) + 3) // 4]
        left = {name: value for name, value in zip(_NEW, new, strict=True) if name not in given}
        tried[temperature] = float(np.mean(quarter)), left

    for temperature in _COARSE if search else (None,):
        play(temperature)
    best = min(tried, key=lambda temperature: tried[temperature][0])
    if best is not None:
        for factor in _FINE:
            play(best * factor)
        best = min(tried, key=lambda temperature: tried[temperature][0])
    return tried[best][1] | ({} if best is None else {"evidence_temperature": best})


def straightened(told: Sequence[Told], slope: float | None = None, shift: float | None = None) -> tuple[float, float]:
    """Slope and shift of the log odds of being new under which they are most likely, given what was new.

    One that is given stays.
    """
    odds = np.concatenate([_log_odds(one.new_probability) for one in told])
    sign = np.where(np.concatenate([one.new for one in told]), 1.0, -1.0)

    def loss(found: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        against = -sign * (found[0] * odds + found[1])
        off = (found - _USUAL) / np.square(_HELD)
        push = -sign * np.exp(against - np.logaddexp(0.0, against))
        value = np.logaddexp(0.0, against).sum() + 0.5 * (off * (found - _USUAL)).sum()
        return float(value), np.array([(push * odds).sum(), push.sum()]) + off

    bounds = [_SLOPES if slope is None else (slope, slope), (shift, shift)]
    start = [usual if value is None else value for value, usual in zip((slope, shift), _USUAL, strict=True)]
    found = minimize(loss, np.array(start), jac=True, method="L-BFGS-B", bounds=bounds).x
    return float(found[0]), float(found[1])


def answers(told: Told, slope: float, shift: float) -> NDArray[np.float64]:
    """The probabilities of answers that were told without, once the odds of being new are straightened."""
    new = expit(slope * _log_odds(told.new_probability) + shift)
    known = 1.0 - told.new_probability
    share = np.divide(told.probability, known, where=known > 0, out=np.ones_like(known))  # the nearest one has it all
    return np.asarray(np.where(told.created, new, (1.0 - new) * share))


def _log_odds(probability: NDArray[np.float64]) -> NDArray[np.float64]:
    """As far as a dictionary tells them apart."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.clip(np.log(probability) - np.log1p(-probability), -REACH, REACH))
