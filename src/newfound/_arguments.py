"""What callers pass, checked where a wrong type would surface as an error of some part deep below."""

from __future__ import annotations

import os
from numbers import Integral
from pathlib import Path
from typing import Any

from newfound.errors import SettingsError

_MOST = 2**63 - 1  # what databases and arrays can count


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


def a_path(value: str | os.PathLike[str], name: str) -> Path:
    """A path. Raises SettingsError for what is none."""
    try:
        return Path(value)
    except TypeError:
        raise SettingsError(f"{name} is {value!r}; give a path.") from None
