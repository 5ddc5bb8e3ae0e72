"""`newfound demo` and `newfound bench speed`: what they hand on and what they print."""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path

import pytest

from newfound.progress import Reporter


@pytest.fixture
def calls(monkeypatch):
    """Stands in for the demo, which has tests of its own and takes minutes; records how it was called."""
    seen = {}

    def run_demo(data=None, out="newfound-demo", *, seed=0, reporter=None, everything=False):
        seen.update(data=data, out=out, seed=seed, reporter=reporter, everything=everything)
        return types.SimpleNamespace(
            table=lambda: [("", "All", "Old"), ("[bold]LTC", "61.0", "70.0")],
            report=Path(out) / "report.html",
            as_dict=lambda: {"report": str(Path(out) / "report.html")},
        )

    monkeypatch.setitem(sys.modules, "newfound.demo", types.SimpleNamespace(run_demo=run_demo))
    return seen


def test_the_demo_prints_its_table_and_where_the_report_is(invoke, calls):
    result = invoke("demo")
    assert result.exit_code == 0, result.stderr
    assert "[bold]LTC" in result.stdout
    assert "61.0" in result.stdout
    assert f"report: {Path('newfound-demo') / 'report.html'}" in result.stdout
    assert isinstance(calls.pop("reporter"), Reporter)
    assert calls == {"data": None, "out": Path("newfound-demo"), "seed": 0, "everything": False}


def test_the_demo_hands_its_options_on(invoke, calls):
    result = invoke("demo", "--data", "birds", "--out", "there", "--seed", 2, "--everything", "--json")
    assert json.loads(result.stdout) == {"report": str(Path("there") / "report.html")}
    assert (calls["data"], calls["out"], calls["seed"], calls["everything"]) == ("birds", Path("there"), 2, True)


@pytest.fixture
def measured(monkeypatch):
    """A stage whose ratio is what the list says, one run after the other."""
    from newfound.benchmarks import speed

    ratios: list[float] = []

    def stage() -> speed.SpeedRow:
        ratio = ratios.pop(0)
        return speed.SpeedRow("score", 0.04, 0.2, "s", ratio, ratio - 0.1, ratio + 0.1, "at least 35", "x")

    monkeypatch.setitem(speed.STAGES, "score", stage)
    return ratios


def test_bench_speed_shows_each_stage_with_its_target(invoke, measured):
    measured += [20.0, 20.0]
    result = invoke("bench", "speed", "--only", "score")
    assert result.exit_code == 0, result.stderr
    for word in ("score", "20.00", "at least 35", "0.04 s", "score: x"):
        assert word in result.stdout
    told = json.loads(invoke("bench", "speed", "--only", "score", "--json").stdout)
    assert told["hardware"] == []
    assert [(row["stage"], row["ratio"], row["target"]) for row in told["stages"]] == [("score", 20.0, "at least 35")]


def test_bench_speed_keeps_figures_and_says_what_became_slower(invoke, measured, tmp_path):
    measured += [20.0, 20.05, 10.0]
    first, second, third = (invoke("bench", "speed", "--only", "score", "--out", tmp_path).stdout for _ in range(3))
    assert "as before" not in first
    assert "as before" in second
    assert "slower than at" in third
    assert len((tmp_path / "speed.jsonl").read_text().splitlines()) == 3


def test_bench_speed_refuses_a_stage_that_does_not_exist(invoke):
    result = invoke("bench", "speed", "--only", "telepathy")
    assert result.exit_code == 2
    assert "there is no stage telepathy" in result.stderr


def test_bench_data_tells_which_data_sets_are_here(invoke, tmp_path, monkeypatch):
    for number in range(37):
        (tmp_path / "pets" / f"{number + 1:02}.breed").mkdir(parents=True)
        for image in range(4):
            (tmp_path / "pets" / f"{number + 1:02}.breed" / f"{image}.jpg").write_bytes(b"")
    monkeypatch.setenv("NEWFOUND_DATA", str(tmp_path))
    rows = {row["name"]: row for row in json.loads(invoke("bench", "data", "--json").stdout)}
    pets = rows["Oxford-IIIT Pet"]
    assert (pets["|D_S| here"], pets["|D_Q| here"]) == ("38", "110")
    assert "misprint" in pets["classes"]
    assert rows["CUB-200-2011"]["|D_S| here"] == "-"
    assert "Oxford-IIIT Pet" in invoke("bench", "data", "--out", tmp_path / "out").stdout
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["data.csv", "data.md", "data.tex"]
    assert "| Oxford-IIIT Pet | 37 (paper: 38, a misprint) |" in (tmp_path / "out" / "data.md").read_text()


def test_bench_data_says_where_to_get_what_no_program_can_fetch(invoke, tmp_path):
    result = invoke("bench", "data", "--download", "cub", "--root", tmp_path)
    assert result.exit_code == 1
    assert str(tmp_path) in result.stderr
