"""The rows about starting compare processes that do what is said; how fast a machine is, is not tested."""

from __future__ import annotations

import subprocess
import sys

import pytest

from newfound.benchmarks import startup_speed

TINY = "test_efficientnet"


def test_what_is_taken_more_than_nothing_is_in_seconds():
    row = startup_speed.importing(repeats=2)
    assert (row.stage, row.unit) == ("import", "s")
    assert row.low <= row.ratio <= row.high
    assert row.target == "at most 0.4 s more"


def test_a_process_that_fails_is_no_measurement():
    with pytest.raises(subprocess.CalledProcessError):
        startup_speed._ended(("-c", "raise SystemExit(1)"))
    with pytest.raises(RuntimeError, match="ended with exit code 1"):
        startup_speed._first_line(("-c", "raise SystemExit(1)"))


@pytest.mark.slow
def test_starting_is_held_against_all_the_weights_of_the_same_run():
    row = startup_speed.starting(repeats=1, backbone=TINY)
    assert "(0 tensors are missing)" in row.detail
    assert row.ratio == pytest.approx(row.ours / row.baseline)


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's allocator")
def test_one_process_keeps_allocations_and_the_other_does_not():
    row = startup_speed.allocator(repeats=1, backbone=TINY, batch=2, passes=1)
    assert row.detail.endswith("the other was told not to: True")
