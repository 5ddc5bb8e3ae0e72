"""What callers pass, checked where a wrong type would surface as an error of some part deep below."""

from __future__ import annotations

import os
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from newfound.errors import SettingsError

_MOST = 2**63 - 1  # what databases and arrays can count
_MOST_POWER = 100  # of a mean, which is near the maximum by then


def whole(value: Any, name: str, least: int = 0) -> int:
    """A whole number, NumPy's too. Raises SettingsError for anything else, and for less than the least."""
    if not is_whole(value) or not least <= value <= _MOST:
        raise SettingsError(f"{name} is {value!r}; give a whole number from {least} up.")
    return int(value)


def whole_or_none(value: Any, name: str, least: int = 0) -> int | None:
    """As `whole`, and None as it is."""
    return None if value is None else whole(value, name, least)


def is_whole(value: Any) -> bool:
    """Whether this is a whole number; True and False are none."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def power_of_mean(value: Any, name: str) -> float:
    """The power of a mean. Raises SettingsError for anything else."""
    if not is_power_of_mean(value):
        raise SettingsError(
            f"{name} is {value!r}; give the power of a mean: a number from 1 (the backbone's own pooling) "
            f"to {_MOST_POWER}."
        )
    return float(value)


def is_power_of_mean(value: Any) -> bool:
    """Whether this is the power of a mean; True and False are none."""
    number: Any = value  # what mypy knows of Real cannot be compared with a whole number
    return isinstance(value, Real) and not isinstance(value, bool) and 1 <= number <= _MOST_POWER


def a_path(value: str | os.PathLike[str], name: str) -> Path:
    """A path. Raises SettingsError for what is none."""
    try:
        return Path(value)
    except TypeError:
        raise SettingsError(f"{name} is {value!r}; give a path.") from None
