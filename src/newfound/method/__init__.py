"""Methods: one file each. `methods()` lists them, `get_method(name)` finds one.

A method is a class with a `name` in a module of this package: to add one, add its file. docs/methods.md says what it
has to have, and tests/method/test_conformance.py what it has to keep.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from pkgutil import iter_modules

from newfound.errors import SettingsError
from newfound.method._base import Batch, Encode, Known, Method, Settings, class_means


@lru_cache(maxsize=1)
def _registry() -> dict[str, type[Method]]:
    """Every class with a name of its own in the modules of this package; LTC first, the others by name."""
    modules = [import_module(f"{__name__}.{m.name}") for m in iter_modules(__path__) if not m.name.startswith("_")]
    found = {
        value.name: value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Method) and "name" in vars(value)
    }
    return {name: found[name] for name in sorted(found, key=lambda name: (name != "ltc", name))}


def methods() -> dict[str, str]:
    """The methods that can be chosen, with a line about each."""
    return {name: cls.about for name, cls in _registry().items()}


def get_method(name: str) -> type[Method]:
    """A method by name. Raises SettingsError, with the names there are, if there is none."""
    if not isinstance(name, str) or name not in _registry():
        raise SettingsError(f"there is no method {name!r}; choose one of {', '.join(_registry())}.")
    return _registry()[name]


__all__ = ["Batch", "Encode", "Known", "Method", "Settings", "class_means", "get_method", "methods"]
