"""Promises of the settings of a result: all of them, as it was trained."""

from __future__ import annotations

import pytest
from hand_made_results import result

from newfound import presets
from newfound.benchmarks.result_settings import resolved
from newfound.errors import DataError, SettingsError


@pytest.mark.parametrize("preset", presets.PRESETS)
@pytest.mark.parametrize("short", [True, False])
def test_what_a_result_does_not_name_is_its_presets(preset, short):
    made = result([0.5], preset=presets.label(preset, short=short), settings={"alpha": 0.9})
    assert resolved(made) == presets.resolve("ltc", preset, short=short, overrides={"alpha": 0.9})


def test_a_result_of_another_newfound_is_refused():
    with pytest.raises(DataError, match="preset 'best', which this newfound does not have"):
        resolved(result([0.5], preset="best"))
    with pytest.raises(SettingsError, match="no setting 'warmth'"):
        resolved(result([0.5], settings={"warmth": 1}))
