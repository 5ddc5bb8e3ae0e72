"""`newfound bench table1` and its like: what they hand on, print and write, and how they end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from newfound.benchmarks import running
from newfound.benchmarks.studies import STUDIES, Choice


@pytest.fixture
def asked(monkeypatch):
    """What the command asks of `run_study`, which answers with nothing measured."""
    calls = []

    def run_study(study, setup, out, **options):
        calls.append((study, setup, out, options))
        return running.Record(study.name, options["choice"], {}, {"LTC": "no weights"}, {}), {}

    monkeypatch.setattr(running, "run_study", run_study)
    return calls


def test_the_list_has_a_command_for_every_table_and_figure(invoke):
    told = json.loads(invoke("bench", "list", "--json").stdout)
    commands = {row["command"] for row in told}
    assert commands == {*STUDIES, "decisions", "data", "report"}
    for command in commands:
        result = invoke("bench", command, "--help")
        assert result.exit_code == 0, command
    assert next(row for row in told if row["command"] == "threshold")["trainings"] == "63"
    assert "t-SNE" in invoke("bench", "list").stdout


def test_what_was_asked_for_is_handed_on(invoke, asked, tmp_path):
    invoke(
        "bench", "table3", "pets", "--protocol", "pets", "--out", tmp_path, "--seeds", "2,0", "--orders", "4",
        "--class-seed", "7", "--backbone", "b", "--weights", "w", "--full", "--preset", "released",
        "--set", "lr=0.001", "--set", "creator=none", "--grid", "small", "--jobs", "3", "--keep", tmp_path / "k",
    )  # fmt: skip
    ((study, setup, out, options),) = asked
    assert (study.name, out) == ("table3", tmp_path)
    assert (setup.protocol, setup.data, setup.backbone, setup.class_seed) == ("pets", "pets", "b", 7)
    assert (setup.orders, setup.short, setup.weights, setup.known) == (4, False, "w", None)
    assert (options["seeds"], options["jobs"], options["keep"]) == ([2, 0], 3, tmp_path / "k")
    choice = options["choice"]
    assert (choice.preset, choice.settings, choice.grid) == ("released", {"lr": 0.001, "creator": None}, "small")


def test_data_of_ones_own_comes_with_its_known_classes(invoke, asked, tmp_path):
    invoke("bench", "table1", "photos", "--known", "known.txt", "--out", tmp_path)
    ((_, setup, _, _),) = asked
    assert (setup.protocol, setup.data, setup.known) == ("own", "photos", "known.txt")


@pytest.mark.parametrize("study", ["table1", "table4"])
def test_weights_of_stable_diffusion_are_given_as_in_a_training(invoke, asked, tmp_path, study):
    invoke("bench", study, "pets", "--protocol", "pets", "--out", tmp_path, "--set", "pipeline=models/sd")
    ((_, setup, _, options),) = asked
    assert setup.pipeline == "models/sd"
    assert options["choice"].settings == {}, "other lines are as they were"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["table1", "x"], "--protocol"),
        (["table1", "x", "--protocol", "pets", "--known", "f"], "--known"),
        (["table1", "x", "--protocol", "pets", "--backbone", "a", "--backbone", "b"], "newfound bench backbones"),
        (["table1", "x", "--protocol", "pets", "--seeds", "0,x"], "--seeds 0,x"),
        (["table3", "x", "--protocol", "pets", "--set", "lr"], "NAME=VALUE"),
        (["table1", "x", "--protocol", "pets", "--set", "lr=1"], "table1 compares fixed lines"),
        (["table2", "x", "--protocol", "pets", "--preset", "released"], "table2 compares fixed lines"),
        (["tsne", "x", "--protocol", "pets", "--class-order"], "--class-order is for tables"),
        (["sizes", "x", "--protocol", "pets", "--image-size", "128"], "sizes compares input sizes itself"),
    ],
)
def test_a_wrong_request_is_told_in_one_line(invoke, asked, tmp_path, words, told):
    result = invoke("bench", *words, "--out", tmp_path)
    assert result.exit_code == 2
    assert told in result.stderr
    assert not asked


@pytest.mark.parametrize("extra", [[], ["--json"]])
def test_without_a_single_result_it_fails_for_people_and_machines(invoke, asked, tmp_path, extra):
    result = invoke("bench", "table1", "--protocol", "pets", "--out", tmp_path, *extra)
    assert result.exit_code == 1
    assert "not measured: LTC: no weights" in result.stderr
    assert "written" not in result.stderr


def test_a_figure_is_told_with_its_caption(invoke, tmp_path, monkeypatch):
    drawn = running.Record("tsne", Choice(), {}, {}, {"tsne": "Known classes and pseudo-novel samples. pets, seed 0."})
    monkeypatch.setattr(running, "run_study", lambda *asked, **options: (drawn, {}))
    words = ["bench", "tsne", "--protocol", "pets", "--out", tmp_path]
    assert "tsne: Known classes and pseudo-novel samples. pets, seed 0." in invoke(*words).stdout
    assert json.loads(invoke(*words, "--json").stdout)["figures"] == drawn.figures


def test_without_data_it_says_where_it_looked(invoke, tmp_path, monkeypatch):
    monkeypatch.delenv("NEWFOUND_DATA", raising=False)
    result = invoke("bench", "table1", "--protocol", "pets", "--out", tmp_path)
    assert result.exit_code == 1
    assert "NEWFOUND_DATA" in result.stderr


def test_a_table_and_its_report_are_made_from_a_folder_of_ones_own(invoke, labelled, tmp_path):
    """The whole way, with a method that needs no training."""
    (tmp_path / "known.txt").write_text("blue\nred\n")
    words = ["bench", "table1", labelled, "--known", tmp_path / "known.txt", "--method", "frozen", "--seeds", "0"]
    words += ["--orders", "1", "--weights", "random", "--out", tmp_path / "out"]
    result = invoke(*words)
    assert result.exit_code == 0, result.stderr
    assert "frozen backbone (control)" in result.stdout
    assert "table1.tex" in result.stderr
    by_class = invoke(*words, "--class-order")
    assert "class order" in by_class.stdout
    written = json.loads(invoke(*words, "--class-order", "--json").stdout)["files"]
    assert [Path(path).name for path in written if Path(path).is_file()] == [
        f"{name}.{ending}" for name in ("table1", "table1-class-order") for ending in ("md", "csv", "tex")
    ]
    told = json.loads(invoke("bench", "report", tmp_path / "out", "--json").stdout)
    assert "frozen backbone (control)" in (tmp_path / "out" / "report.html").read_text()
    assert told["report"].endswith("report.html")
    store = tmp_path / "out" / "cells.jsonl"
    older = [json.loads(line) | {"class_order": None} for line in store.read_text().splitlines()]
    store.write_text("".join(json.dumps(result) + "\n" for result in older))
    by_class = invoke(*words, "--class-order")
    assert by_class.exit_code == 1
    assert "nothing here was scored in class order: measured by an earlier newfound" in by_class.stderr
