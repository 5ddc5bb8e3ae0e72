"""Measurements of speed are kept with their commit, and a regression shows."""

from __future__ import annotations

import json

import pytest

from newfound.benchmarks import speed_history
from newfound.benchmarks._timing import SpeedRow
from newfound.benchmarks.cells import commit
from newfound.benchmarks.speed_history import FILE, SpeedHistory, machine, table, verdict
from newfound.errors import DataError


def row(ratio: float, target: str = "at least 1", spread: float = 0.1, stage: str = "observe") -> SpeedRow:
    return SpeedRow(stage, 2.0, 1.0, "s", ratio, ratio - spread, ratio + spread, target, "a | b")


def test_every_measurement_is_kept_with_its_commit_and_the_newest_counts(tmp_path):
    history = SpeedHistory(tmp_path / "new")
    history.keep(row(1.0))
    history.keep(row(3.0, stage="score"))
    history.keep(row(2.0))
    lines = [json.loads(line) for line in (tmp_path / "new" / FILE).read_text().splitlines()]
    assert [line["ratio"] for line in lines] == [1.0, 3.0, 2.0]
    assert {line["commit"] for line in lines} == {commit()}
    latest = SpeedHistory(tmp_path / "new").latest()
    assert {stage: kept["ratio"] for stage, kept in latest.items()} == {"observe": 2.0, "score": 3.0}


@pytest.mark.parametrize(
    ("before", "now", "target", "word"),
    [
        (1.0, 0.5, "at least 1", "slower"),
        (1.0, 1.5, "at least 1", "faster"),
        (1.0, 1.15, "at least 1", "as before"),  # 0.9 to 1.1 and 1.05 to 1.25 touch
        (1.0, 1.5, "at most 1", "slower"),
        (1.0, 0.5, "at most 1", "faster"),
    ],
)
def test_a_stage_is_slower_only_where_the_ranges_do_not_touch(tmp_path, before, now, target, word):
    kept = SpeedHistory(tmp_path).keep(row(before, target))
    assert verdict(row(now, target), kept).startswith(word)


def test_a_stage_that_another_processor_measured_before_is_neither_slower_nor_faster(tmp_path):
    kept = SpeedHistory(tmp_path).keep(row(1.0)) | {"machine": "Abacus 3000, 1 cores, torch 0.1, 1 threads"}
    assert verdict(row(5.0), kept) == f"1.00 on Abacus 3000 at {commit()}"


def test_a_row_is_compared_with_the_newest_of_its_own_processor_though_others_came_later(tmp_path, monkeypatch):
    history = SpeedHistory(tmp_path)
    history.keep(row(0.5))
    history.keep(row(2.0))
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(speed_history, "_processor", lambda: "Abacus 3000")
        history.keep(row(1.0))
        history.keep(row(3.0, stage="score"))
    assert verdict(row(1.0), history.before()["observe"]).startswith("slower")
    assert "on Abacus 3000" in verdict(row(1.0, stage="score"), history.before()["score"])
    assert history.latest()["observe"]["ratio"] == 1.0, "what a table shows"


def test_the_first_measurement_has_nothing_to_be_compared_with():
    assert verdict(row(1.0), None) == ""


def test_a_table_shows_ratio_range_target_and_commit_and_keeps_its_columns(tmp_path):
    header, rule, line = table([SpeedHistory(tmp_path).keep(row(1.25))]).splitlines()
    assert "1.25 (1.15 to 1.35)" in line
    assert commit() in line
    assert machine().split(",")[0] in line
    assert header.count("|") == rule.count("|") == line.count("|") - line.count(r"\|")


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="file"):
        SpeedHistory(tmp_path / "file").keep(row(1.0))
