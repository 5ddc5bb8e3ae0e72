"""Methods: one file each. `methods()` lists them, `get_method(name)` finds one."""

from __future__ import annotations

from newfound.errors import SettingsError
from newfound.method._base import Batch, Encode, Known, Method, Settings, class_means
from newfound.method.baseline import Baseline
from newfound.method.closed import Closed
from newfound.method.frozen import Frozen
from newfound.method.known_hinge import KnownHinge
from newfound.method.ltc import LTC

_METHODS: dict[str, type[Method]] = {cls.name: cls for cls in (LTC, Baseline, KnownHinge, Closed, Frozen)}


def methods() -> dict[str, str]:
    """The methods that can be chosen, with a line about each."""
    return {name: cls.about for name, cls in _METHODS.items()}


def get_method(name: str) -> type[Method]:
    if name not in _METHODS:
        raise SettingsError(f"there is no method {name!r}; choose one of {', '.join(_METHODS)}.")
    return _METHODS[name]


__all__ = ["Batch", "Encode", "Known", "Method", "Settings", "class_means", "get_method", "methods"]
