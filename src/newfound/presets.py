"""Presets: named sets of settings. A preset gives values to whichever of them a method has.

`paper` and `released` are the two accounts that LTC's authors give of it; where the paper is silent (eta, temperature,
schedule, augmentations, how the running mean is kept), `paper` takes the released code's value. What learns is no
setting: the backbone's tail, as in the released code, where the paper has its last block alone. `default` is the one
that scored best here, with one backbone (docs/results.md). The `short` form of each is what runs on a small machine.
"""

from __future__ import annotations

import dataclasses
import difflib
import numbers
from typing import Any, Literal, get_args, get_origin, get_type_hints

from newfound.errors import SettingsError
from newfound.method import Settings, get_method

PRESETS: dict[str, dict[str, Any]] = {
    "paper": {
        "lr": 1e-2, "weight_decay": 0.05, "head": "linear",
        "threshold": "adaptive", "update": "fixed",
        "alpha": 0.3, "gamma_mm": 0.05, "m_pos": 0.05, "m_neg": 0.05,
        "tau_init": 0.7, "beta": 0.001, "q_pos": 0.8, "q_neg": 0.2,
        "eps": 0.05, "sigma_0": 1.0, "lambda_rho": 0.1, "p_gen": 0.3,
    },
    "released": {
        "lr": 1e-2, "weight_decay": 1e-3, "head": "cosine", "first_view_only": True,
        "threshold": "adaptive", "update": "fixed", "merge_every": 1000,
        "alpha": 0.3, "gamma_mm": 0.05, "m_pos": 0.05, "m_neg": 0.05, "hinge_from_epoch": 1,
        "tau_init": 0.7, "beta": 0.01, "q_pos": 0.2, "q_neg": 0.8, "margins_in_target": True,
        "eps": 0.05, "sigma_0": 1.0, "lambda_rho": 0.1, "p_gen": 0.3,
        "across_classes": False, "per_sample": False, "prototypes_start": "head",
    },
    "default": {
        "lr": 1e-4, "weight_decay": 0.05, "head": "cosine",
        "threshold": "rehearsed", "share": "rehearsed", "dictionary": "bayesian", "centre": True, "update": "running",
        "alpha": 0.3, "gamma_mm": 0.5, "m_pos": 0.05, "m_neg": 0.05,
        "tau_init": 0.7, "beta": 0.01, "q_pos": 0.2, "q_neg": 0.8,
        "eps": 0.05, "relative_step": True, "min_lambda": 0.3, "eta": 1.0,
    },
}  # fmt: skip
# Where a preset weighs evidence. With cosines these settings mean nothing, and results shall not depend on them.
WEIGHING: dict[str, dict[str, Any]] = {
    "default": {"within": None, "between": None, "alone": -100.0, "power": None, "reconsider_at": 0.0, "even_at": 0.0}
}  # fmt: skip
# And where a short training does so, and a rehearsal says how much of what it learns to keep (docs/decisions.md).
LEARNING: dict[str, dict[str, Any]] = {"default": {"lr": 1e-3}}
_IN_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text", type(None): "null"}
SHORT: dict[str, Any] = {"epochs": 15, "warmup_epochs": 1, "cached": True, "views": 8, "space": "tokens"}


def resolve(method: str, preset: str, *, short: bool, overrides: dict[str, Any]) -> Settings:
    """The settings of a method: its own defaults, then the preset's, then the short form's, then what was asked for.

    Raises:
        SettingsError: no such preset or setting, or a value a setting cannot have.
    """
    if preset not in PRESETS:
        raise SettingsError(f"there is no preset {preset!r}; choose one of {', '.join(PRESETS)}.")
    chosen = get_method(method)
    cls = chosen.settings_class
    fields = {field.name for field in dataclasses.fields(cls)}
    for name in overrides:
        if name not in fields:
            close = difflib.get_close_matches(name, fields, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else f" It has: {', '.join(sorted(fields))}."
            raise SettingsError(f"{method} has no setting {name!r}.{hint}")
        if overrides[name] is not None:
            check_type(method, name, overrides[name])
    general = PRESETS[preset] | chosen.presets.get(preset, {}) | (SHORT if short else {}) | chosen.fixed
    if chosen.presets.get(preset, {}).get("warmup_epochs") == 0:
        general["warmup_epochs"] = 0  # nor does a short training warm up where the whole one does not
    values = {k: v for k, v in general.items() if k in fields}
    if (overrides.get("threshold") or values.get("threshold")) == "adaptive" and "centre" in values:
        # A threshold learnt on plain cosines is one for plain cosines.
        values |= {"centre": False, "dictionary": "prototypes"}
    asked = values | {k: v for k, v in overrides.items() if v is not None}
    if asked.get("dictionary") == "bayesian":
        rehearsed = asked.get("threshold") == asked.get("share") == "rehearsed"
        learning = LEARNING.get(preset, {}) if short and asked.get("epochs") and rehearsed else {}
        values |= {k: v for k, v in {**WEIGHING.get(preset, {}), **learning}.items() if k in fields}
    hints = get_type_hints(cls)
    return cls(**(values | {k: v for k, v in overrides.items() if v is not None or _fits(None, hints[k])}))


def check_type(method: str, name: str, value: Any) -> None:
    """Raise :class:`SettingsError` if a value is of the wrong kind for a method's setting; unknown names pass."""
    hint = get_type_hints(get_method(method).settings_class).get(name)
    if hint is not None and not _fits(value, hint):
        raise SettingsError(f"{name} must be {_describe(hint)}, not {value!r}.")


def _fits(value: Any, hint: Any) -> bool:
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    if get_args(hint):
        return any(_fits(value, part) for part in get_args(hint))
    if isinstance(value, bool):  # which Python takes for an int
        return hint is bool
    kinds = {float: numbers.Real, int: numbers.Integral}  # NumPy's numbers too
    return isinstance(value, kinds.get(hint, hint)) and value == value  # NaN is no number here


def _describe(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return " or ".join(map(str, get_args(hint)))
    return " or ".join(map(_describe, get_args(hint))) or _IN_WORDS[hint]


def label(preset: str, *, short: bool) -> str:
    """How a preset is named wherever results are shown."""
    return f"{preset} (short)" if short else preset
