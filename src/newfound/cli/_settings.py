"""`--set NAME=VALUE`: text from a command line becomes a setting of the right type."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Any

from newfound.errors import SettingsError

_WORDS: dict[str, bool | None] = {"true": True, "false": False, "none": None, "null": None}


def parse_settings(pairs: Iterable[str], method: str, options: Collection[str]) -> dict[str, Any]:
    """Read NAME=VALUE pairs; a value is JSON (or Python's True, False, None) where it can be read as that, else text.

    Args:
        method: whose settings they are; one of `newfound.methods()`.
        options: names that the command has options for and that cannot be set twice.

    Raises:
        SettingsError: no '=', a name that is an option, or a value of the wrong type. A name that does not exist is
            left for whoever resolves the settings.
    """
    from newfound.presets import check_type

    settings: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name:
            raise SettingsError(f"--set {pair}: write it as NAME=VALUE, for example --set lr=0.0003.")
        if name in options:
            raise SettingsError(f"--set {pair}: {name} is not a setting of a method but an option of `newfound train`.")
        value = _value(text)
        check_type(method, name, value)
        settings[name] = value
    return settings


def _value(text: str) -> Any:
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not a setting")

    if text.strip().lower() in _WORDS:
        return _WORDS[text.strip().lower()]
    try:
        return json.loads(text, parse_constant=refuse)  # NaN and Infinity would pass every comparison
    except ValueError:
        return text
