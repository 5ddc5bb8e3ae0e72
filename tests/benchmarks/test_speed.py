"""The speed benchmark compares like with like; how fast a machine is, is not tested."""

from __future__ import annotations

import pytest

from newfound.benchmarks import speed
from newfound.errors import SettingsError


def test_observe_is_timed_only_beside_a_loop_that_gives_the_same_ids():
    row = speed.observe_speed(samples=600, repeats=1)
    assert "ids equal to the plain loop: True" in row.detail
    assert row.low <= row.ratio <= row.high
    assert row.ours > 0
    assert row.baseline > 0


@pytest.mark.parametrize("measure", [speed.exact_code_speed, speed.near_code_speed])
def test_codes_are_timed_beside_a_list_loop_that_gives_the_same_ids(measure):
    row = measure(samples=500, repeats=1)
    assert "ids equal to the plain loop: True" in row.detail
    assert speed.STAGES[row.stage] is measure
    assert row.ours > 0
    assert row.baseline > 0


def test_score_is_timed_beside_a_square_matrix_that_gives_the_same_accuracies():
    row = speed.score_speed(repeats=1)
    assert "equal to the square matrix's: True" in row.detail
    assert row.as_dict()["stage"] == "score"


def test_a_stage_that_does_not_exist_is_named_with_those_that_do():
    with pytest.raises(SettingsError, match=r"no stage fly.*observe"):
        speed.run_speed(["fly"])


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["cached-epoch", "mkee-tokens", "mkee-pixels"])
def test_every_training_stage_can_be_measured(stage):
    (row,) = speed.run_speed([stage])
    assert row.stage == stage
    assert row.ours > 0
    assert row.target
