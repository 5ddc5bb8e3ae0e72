"""Probabilities that come true: what a rehearsal says of the temperature, and of the odds that a sample is new."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from newfound._scenes import Scene, Told, with_settings

_NEW = ("new_slope", "new_shift")
_COARSE = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)  # temperatures
_FINE = (2**-0.5, 2**-0.25, 2**0.25, 2**0.5)  # and around the best of them
_CERTAIN = 1e-7  # a probability is at least so far from 0 and from 1: farther is not told apart
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
    straighten = all(getattr(asked, name, None) == "rehearsed" for name in _NEW)
    search = getattr(asked, "evidence_temperature", None) == "rehearsed"
    plain = {**settings, **(dict(zip(_NEW, _USUAL, strict=True)) if straighten else {})}
    if not (search or straighten) or scenes[0].told(plain, cut) is None:
        return {}
    tried: dict[float | None, tuple[float, dict[str, float]]] = {}

    def play(temperature: float | None) -> None:
        trial = plain if temperature is None else {**plain, "evidence_temperature": temperature}
        told = [one for scene in scenes if (one := scene.told(trial, cut)) is not None]
        new = straightened(told) if straighten else _USUAL
        errors = sorted(float(np.square(_answers(one, *new) - one.right).mean()) for one in told)
        quarter = errors[: (len(errors) + 3) // 4]
        tried[temperature] = float(np.mean(quarter)), dict(zip(_NEW, new, strict=True)) if straighten else {}

    for temperature in _COARSE if search else (None,):
        play(temperature)
    best = min(tried, key=lambda temperature: tried[temperature][0])
    if best is not None:
        for factor in _FINE:
            play(best * factor)
        best = min(tried, key=lambda temperature: tried[temperature][0])
    return tried[best][1] | ({} if best is None else {"evidence_temperature": best})


def straightened(told: Sequence[Told]) -> tuple[float, float]:
    """Slope and shift of the log odds of being new under which they are most likely, given what was new."""
    odds = np.concatenate([_log_odds(one.new_probability) for one in told])
    sign = np.where(np.concatenate([one.new for one in told]), 1.0, -1.0)

    def loss(found: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        against = -sign * (found[0] * odds + found[1])
        off = (found - _USUAL) / np.square(_HELD)
        push = -sign * np.exp(against - np.logaddexp(0.0, against))
        value = np.logaddexp(0.0, against).sum() + 0.5 * (off * (found - _USUAL)).sum()
        return float(value), np.array([(push * odds).sum(), push.sum()]) + off

    found = minimize(loss, np.array(_USUAL), jac=True, method="L-BFGS-B", bounds=[_SLOPES, (None, None)]).x
    return float(found[0]), float(found[1])


def _answers(told: Told, slope: float, shift: float) -> NDArray[np.float64]:
    """The probabilities of the answers once the odds of being new are straightened."""
    if (slope, shift) == _USUAL:
        return told.probability
    new = 1.0 / (1.0 + np.exp(-(slope * _log_odds(told.new_probability) + shift)))
    others = (1.0 - new) * told.probability / np.maximum(1.0 - told.new_probability, _CERTAIN)
    return np.where(told.created, new, others)


def _log_odds(probability: NDArray[np.float64]) -> NDArray[np.float64]:
    sure = np.clip(probability, _CERTAIN, 1.0 - _CERTAIN)
    return np.log(sure) - np.log1p(-sure)
