"""`newfound evaluate`: the figures of `Run.evaluate`, and what to make of them."""

from __future__ import annotations

import json
import shutil

import pytest

import newfound


def test_the_figures_are_those_of_run_evaluate(invoke, run, stream, tmp_path):
    options = ["--orders", "2", "--seed", "4", "--threshold", "0.93", "--max-clusters", "3"]
    result = invoke("evaluate", run, stream, *options, "--json", "--out", tmp_path / "deep" / "result.json")
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    direct = newfound.load(run).evaluate(stream, orders=2, seed=4, threshold=0.93, max_clusters=3).as_dict()
    assert {key: told[key] for key in direct} == json.loads(json.dumps(direct))
    assert told["threshold"] == 0.93
    assert json.loads((tmp_path / "deep" / "result.json").read_text()) == told


def test_the_table_shows_every_protocol_and_what_the_run_is(invoke, run, stream):
    result = invoke("evaluate", run, stream, "--orders", "2")
    assert result.exit_code == 0, result.stderr
    for word in ("ltc, default (short)", "tf_efficientnet_lite0", "Strict", "Greedy", "Named", "AUROC", "Categories"):
        assert word in result.stdout
    assert "6 images of 2 known classes (old), 3 images of 1 other (new)" in result.stdout
    assert "over 2 random orders; per cent, but Categories and Discovered are counts" in result.stdout
    assert "warning" not in result.stderr


def test_class_order_is_said_to_be_one(invoke, run, stream):
    result = invoke("evaluate", run, stream, "--class-order")
    assert "class after class" in result.stdout
    assert "±" not in result.stdout


def test_data_of_only_known_or_no_known_classes_gets_a_warning(invoke, run, labelled, stream, tmp_path, paint):
    only_known = invoke("evaluate", run, labelled, "--orders", "1", "--json")
    assert "only classes of this run" in only_known.stderr
    assert json.loads(only_known.stdout)["mean"]["named"]["new"] is None
    paint(tmp_path / "data" / "Red", (220, 40, 30), 2)
    paint(tmp_path / "data" / "Blue", (30, 40, 220), 2)
    no_known = invoke("evaluate", run, tmp_path / "data", "--orders", "1", "--json")
    assert "no class of this run" in no_known.stderr
    assert "Its classes are Blue, Red; the run's are blue, green, red." in json.loads(no_known.stdout)["warnings"][0]


def test_images_that_the_run_was_taught_get_a_warning(invoke, run, labelled, stream, tmp_path):
    shutil.copytree(stream, tmp_path / "data")
    shutil.copy(labelled / "red" / "1.png", tmp_path / "data" / "red" / "copy.png")
    shutil.copy(labelled / "blue" / "2.png", tmp_path / "data" / "blue" / "copy.png")
    result = invoke("evaluate", run, tmp_path / "data", "--orders", "1")
    assert result.exit_code == 0, result.stderr
    first = tmp_path / "data" / "blue" / "copy.png"
    assert f"2 images are also in {labelled}, from which this run learnt, such as {first}" in " ".join(
        result.stderr.split()
    )


def test_what_was_taught_and_is_no_longer_there_is_no_hindrance(invoke, run, stream, tmp_path):
    shutil.copytree(run, tmp_path / "run")
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    for data in ({"source": str(tmp_path / "gone"), "images": 12}, {"source": str(stream), "images": 9}, {}):
        config["data"] = data
        (tmp_path / "run" / "config.json").write_text(json.dumps(config))
        result = invoke("evaluate", tmp_path / "run", stream, "--orders", "1")
        assert (result.exit_code, "also in" in result.stderr) == (0, False), result.stderr


def test_an_image_with_two_labels_gets_a_warning(invoke, run, paint, tmp_path):
    (first, *_), (second, *_) = (paint(tmp_path / "data" / name, (9, 9, 9), 2) for name in ("red", "other"))
    result = invoke("evaluate", run, tmp_path / "data", "--orders", "1")
    assert "warning: 2 images have two labels; the first:" in result.stderr
    assert str(first) in result.stderr
    assert str(second) in result.stderr


def test_unreadable_images_are_counted(invoke, run, paint, tmp_path):
    paint(tmp_path / "data" / "red", (220, 40, 30), 2)
    (tmp_path / "data" / "red" / "bad.jpg").write_bytes(b"")
    result = invoke("evaluate", run, tmp_path / "data", "--orders", "1")
    assert "; 1 could not be read" in result.stdout


@pytest.mark.parametrize("value", ["orders=0", "threshold=low", "max-clusters=0", "seed=-1"])
def test_values_out_of_range_are_usage_errors(invoke, run, stream, value):
    assert invoke("evaluate", run, stream, f"--{value}").exit_code == 2


def test_a_report_is_written_where_asked(invoke, run, stream, tmp_path):
    result = invoke("evaluate", run, stream, "--orders", 1, "--report", tmp_path / "deep" / "colours.html")
    assert result.exit_code == 0, result.stderr
    assert str(tmp_path / "deep" / "colours.html") in result.stderr
    page = (tmp_path / "deep" / "colours.html").read_text(encoding="utf-8")
    assert "3 classes taught" in page
    assert "Confusion matrix" in page


def test_a_report_at_another_threshold_says_so(invoke, run, stream, tmp_path):
    invoke("evaluate", run, stream, "--orders", 1, "--threshold", -1, "--report", tmp_path / "closed.html")
    page = (tmp_path / "closed.html").read_text(encoding="utf-8")
    assert "The cut was set to -1.00 by hand; the run&#x27;s own is 0.60." in page or (
        "The cut was set to -1.00 by hand; the run's own is 0.60." in page
    )
    assert "new-1" not in page, "nothing is new at this cut"
    invoke("evaluate", run, stream, "--orders", 1, "--threshold", 1, "--report", tmp_path / "open.html")
    page = (tmp_path / "open.html").read_text(encoding="utf-8")
    assert "the cut is 1.000" in page, "a discovery is shown with the cut that made it one"


def test_a_result_that_cannot_be_written_is_shown_all_the_same(invoke, run, stream, tmp_path):
    (tmp_path / "file").write_text("in the way")
    result = invoke("evaluate", run, stream, "--orders", "1", "--out", tmp_path / "file" / "result.json")
    assert result.exit_code == 1
    assert "cannot write" in result.stderr
    assert "Strict" in result.stdout
