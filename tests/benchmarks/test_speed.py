"""The speed benchmark compares like with like; how fast a machine is, is not tested."""

from __future__ import annotations

import dataclasses
import os

import pytest

from newfound.benchmarks import cache_speed, code_speed, score_speed, speed, training_speed
from newfound.errors import SettingsError


@pytest.mark.parametrize("measure", [code_speed.exact_codes, code_speed.near_codes])
def test_codes_are_timed_beside_a_list_loop_that_gives_the_same_ids(measure):
    row = measure(samples=500, repeats=1)
    assert "ids equal to the plain loop: True" in row.detail
    assert speed.STAGES[row.stage] is measure
    assert row.ours > 0
    assert row.baseline > 0


def test_score_is_timed_beside_a_square_matrix_that_gives_the_same_accuracies():
    row = score_speed.scoring(repeats=1)
    assert "equal to the square matrix's: True" in row.detail
    assert row.as_dict()["stage"] == "score"


def test_a_large_stream_is_scored_in_a_process_of_its_own_whose_memory_is_told():
    row = score_speed.scoring_large(repeats=1, samples=5_000, classes=20, clusters=300)
    assert row.stage == "score-large"
    assert 0 < row.ours < 10
    assert "GB of memory" in row.detail


def test_a_target_of_at_most_says_that_less_is_better():
    row = speed.SpeedRow("x", 1, 1, "s", 1, 1, 1, "at most 2", "")
    assert row.lower_is_better
    assert not dataclasses.replace(row, target="at least 2").lower_is_better


def test_a_row_is_kept_as_soon_as_it_is_measured(monkeypatch):
    rows = [speed.SpeedRow(name, 1, 1, "s", 1, 1, 1, "at least 1", "") for name in ("a", "b")]
    monkeypatch.setattr(speed, "STAGES", {"a": lambda: rows[0], "b": lambda: 1 / 0})
    kept = []
    with pytest.raises(ZeroDivisionError):
        speed.run_speed(keep=kept.append)
    assert kept == rows[:1]


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


@pytest.mark.slow
def test_an_epoch_of_a_vision_transformer_is_timed_beside_its_full_forward_pass():
    row = training_speed.cached_epoch_vit(images=16)
    assert row.stage == "cached-epoch-vit"
    assert 0 < row.ours < row.baseline
    assert "16 digits" in row.detail


def test_cached_tokens_take_half_the_bytes_and_are_read_whole():
    size, reading = cache_speed.cache_size(entries=4), cache_speed.cache_reading(entries=8, repeats=1)
    assert size.ratio == pytest.approx(0.5, abs=0.001)
    assert reading.ours > 0


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="this system cannot be asked to forget files")
def test_the_cache_is_also_read_from_the_disk_and_by_views():
    disk, views = cache_speed.cache_from_disk(entries=8, repeats=1), cache_speed.cache_views(entries=8, repeats=1)
    assert (disk.stage, views.stage) == ("cache-disk", "cache-views")
    assert disk.ours > 0
    assert views.ours > 0
