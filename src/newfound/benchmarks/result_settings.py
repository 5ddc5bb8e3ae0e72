"""All settings of a result, which itself lists only those that are not its preset's own."""

from __future__ import annotations

import itertools

from newfound import presets
from newfound.benchmarks.store import Result
from newfound.errors import DataError
from newfound.method import Settings


def resolved(result: Result) -> Settings:
    """The settings that a result was trained with.

    Raises:
        DataError: it is of a preset that there no longer is.
        SettingsError: it is of a method or setting that there no longer is.
    """
    for name, short in itertools.product(presets.PRESETS, (False, True)):
        if presets.label(name, short=short) == result["preset"]:
            return presets.resolve(result["method"], name, short=short, overrides=result["settings"])
    raise DataError(f"a result is of preset {result['preset']!r}, which this newfound does not have.")
