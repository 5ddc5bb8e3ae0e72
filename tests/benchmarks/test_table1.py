"""Promises of Table 1: every method on the same footing, nothing measured twice, every figure traceable."""

from __future__ import annotations

import csv
import dataclasses
import io
import json

import pytest

import newfound as nf
from newfound.benchmarks import table1, tables
from newfound.benchmarks.table1 import ROWS, Bench, Row, run_table1
from newfound.errors import DataError, MissingFileError, SettingsError, WeightsError

pytestmark = pytest.mark.usefixtures("one_thread")
QUICK = {"epochs": 1, "batch_size": 16, "views": 2}


@pytest.fixture(scope="module")
def bench(write_folder, tiny_weights, tmp_path_factory) -> Bench:
    """Ten kinds of pictures in the place of CIFAR-10's ten classes."""
    data = write_folder(tmp_path_factory.mktemp("ten"), kinds=10, each=4)
    return Bench("cifar10", str(data), "test_efficientnet", orders=2, weights=tiny_weights(), check=False)


@pytest.fixture
def two_rows(monkeypatch):
    """A method that learns and one that does not, both quick."""
    rows = (Row("first", "frozen"), Row("second, 100 %", "rankstat", settings=QUICK))
    monkeypatch.setattr(table1, "ROWS", rows)
    return rows


def test_every_system_that_the_paper_compares_with_has_a_row():
    wanted = {"slc", "mldg", "rankstat", "wta", "smile", "phe", "diffgre-smile", "diffgre-phe"}
    wanted |= {"baseline", "closed", "ltc"}
    assert wanted <= {row.method for row in ROWS} <= set(nf.methods())
    assert len({row.slug for row in ROWS}) == len({row.name for row in ROWS}) == len(ROWS)


def test_results_are_kept_and_not_measured_again(bench, two_rows, tmp_path, monkeypatch):
    results, missing = run_table1(bench, tmp_path, seeds=[1, 0])
    assert missing == {}
    assert list(results) == ["first", "second, 100 %"]
    assert [r["seed"] for r in results["first"]] == [0, 1]
    monkeypatch.setattr(table1, "fit", lambda *a, **k: pytest.fail("measured again"))
    again, _ = run_table1(bench, tmp_path, seeds=[0, 1])
    assert again == results
    files = sorted(path.name for path in bench.folder(tmp_path).iterdir())
    assert files[0] == "frozen-default-seed0.json"
    assert len(files) == 4


def test_a_result_tells_where_it_comes_from(bench, two_rows, tmp_path):
    results, _ = run_table1(bench, tmp_path, seeds=[0], methods=["rankstat"])
    (result,) = results["second, 100 %"]
    assert len(result["data"].pop("hash")) == 16
    assert result["data"] == {
        "protocol": "cifar10", "class_seed": None, "labelled": 10, "stream": 30, "known": 5, "classes": 10,
    }  # fmt: skip
    assert (result["method"], result["preset"], result["settings"]) == ("rankstat", "default (short)", QUICK)
    assert result["command"].startswith("newfound train labelled.csv --out RUN --method rankstat --preset default")
    assert "--set epochs=1" in result["command"]
    assert result["seconds"]["train"] > 0
    assert result["commit"]
    assert len(result["result"]["scores"]) == 2
    assert str(tmp_path) not in json.dumps(result), "no path of the machine"
    assert bench.data not in json.dumps(result)


def test_another_draw_of_the_known_classes_is_kept_apart(bench, two_rows, tmp_path):
    other = dataclasses.replace(bench, class_seed=3, orders=1)
    assert bench.split()[0].classes != other.split()[0].classes
    run_table1(other, tmp_path, seeds=[0], methods=["frozen"])
    assert not list(bench.folder(tmp_path).glob("*.json"))
    assert (other.folder(tmp_path) / "frozen-default-seed0.json").is_file()


def test_a_row_whose_weights_cannot_be_had_is_left_out_and_said(bench, two_rows, tmp_path, monkeypatch):
    real = table1.fit

    def fit(data, *, method, **options):
        if method == "rankstat":
            raise WeightsError("no weights here")
        return real(data, method=method, **options)

    monkeypatch.setattr(table1, "fit", fit)
    results, missing = run_table1(bench, tmp_path, seeds=[0, 1])
    assert list(results) == ["first"]
    assert missing == {"second, 100 %": "no weights here"}


def test_wrong_requests_are_refused(bench, tmp_path):
    with pytest.raises(SettingsError, match="telepathy"):
        run_table1(bench, tmp_path, methods=["telepathy"])
    with pytest.raises(SettingsError, match="seeds"):
        run_table1(bench, tmp_path, seeds=[])
    with pytest.raises(MissingFileError, match="37 classes"):
        run_table1(Bench("pets", bench.data), tmp_path)
    with pytest.raises(DataError, match="50,000"):
        run_table1(dataclasses.replace(bench, check=True), tmp_path)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"orders": 1}, "orders 2 instead of 1"),
        ({"data": "fewer"}, "stream 30 instead of"),
        ({"weights": "else"}, "weights test_efficientnet.safetensors"),
    ],
)
def test_results_of_other_data_weights_or_orders_are_not_taken_for_these(
    bench, two_rows, tmp_path, write_folder, other, words
):
    run_table1(bench, tmp_path / "out", seeds=[0], methods=["frozen"])
    if "data" in other:
        other = {"data": str(write_folder(tmp_path / "fewer", kinds=10, each=3))}
    if "weights" in other:
        (tmp_path / "else.safetensors").write_bytes(b"not the same")
        other = {"weights": str(tmp_path / "else.safetensors")}
    with pytest.raises(DataError, match=words):
        run_table1(dataclasses.replace(bench, **other), tmp_path / "out", seeds=[0], methods=["frozen"])


def test_what_cannot_work_is_refused_before_anything_is_trained(bench, two_rows, tmp_path, monkeypatch):
    monkeypatch.setattr(table1, "fit", lambda *a, **k: pytest.fail("training had begun"))
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(DataError, match="cannot be written"):
        run_table1(bench, tmp_path / "file" / "out")
    with pytest.raises(WeightsError, match=r"gone\.pth"):
        run_table1(dataclasses.replace(bench, weights=str(tmp_path / "gone.pth")), tmp_path / "out")


def test_a_damaged_result_is_named(bench, two_rows, tmp_path):
    path = bench.folder(tmp_path) / "frozen-default-seed0.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{")
    with pytest.raises(DataError, match=r"frozen-default-seed0\.json.*remove it"):
        run_table1(bench, tmp_path, seeds=[0], methods=["frozen"])


def result(strict: list[float], categories: list[int], seed: int = 0) -> dict:
    """A result with the given Strict All of each order; all other figures are half of it."""
    figures = [
        {name: {"all": s, "old": s / 2, "new": s / 2} for name in tables.PROTOCOLS}
        | {"categories": c, "discovered": c - 1}
        for s, c in zip(strict, categories, strict=True)
    ]
    data = {"protocol": "pets", "class_seed": None, "labelled": 942, "stream": 2738, "known": 19, "classes": 37}
    return {
        "seed": seed, "method": "ltc", "preset": "default (short)", "settings": {"a": 1}, "data": data, "backbone": "b",
        "commit": "abc", "newfound": "0", "threshold": {"value": 0.5}, "seconds": {"train": 90.0},
        "result": {"orders": len(strict), "scores": figures},
    }  # fmt: skip


def test_a_figure_is_the_mean_and_spread_over_seeds_and_orders():
    results = [result([0.5, 0.7], [10, 20]), result([0.6, 0.6], [30, 40], seed=1)]
    # mean of .5 .7 .6 .6 = .6; squares of the differences .01 .01 0 0, over 3: sqrt(.02 / 3) = .0816
    assert tables.figure(results, "strict", "all") == pytest.approx((0.6, 0.0816497), abs=1e-6)
    assert tables.figure(results[:1], "categories") == pytest.approx((15, 7.0710678))
    assert tables.figure([result([0.4], [3])], "strict", "old") == (0.2, 0.0)


def test_the_markdown_has_a_line_a_row_and_says_what_it_is_of():
    text = tables.markdown({"LTC": [result([0.5, 0.7], [10, 20])], "other": [result([0.1], [2])]})
    lines = text.splitlines()
    assert lines[2] == (
        "| LTC | 60.0 / 30.0 / 30.0 (± 14.1) | 60.0 / 30.0 / 30.0 (± 14.1) | 60.0 / 30.0 / 30.0 (± 14.1) "
        "| 15 ± 7 | 1 |"
    )
    assert lines[3].startswith("| other | 10.0 / 5.0 / 5.0 (± 0.0)")
    assert "19 known classes of 37, 942 labelled and 2,738 streamed images; backbone b" in text
    assert "commit abc" in text


def test_the_csv_has_a_line_for_each_seed_and_order():
    text = tables.as_csv({"LTC": [result([0.5, 0.7], [10, 20]), result([0.6, 0.6], [3, 4], seed=1)]})
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [(r["seed"], r["order"], r["strict_all"], r["categories"]) for r in rows] == [
        ("0", "0", "0.5", "10"), ("0", "1", "0.7", "20"), ("1", "0", "0.6", "3"), ("1", "1", "0.6", "4"),
    ]  # fmt: skip
    assert rows[0]["settings"] == "a=1"


def test_the_latex_escapes_what_latex_would_not_print():
    text = tables.latex({"LTC, `de_fault` 50 % & more": [result([0.5], [10])]})
    assert r"LTC, \texttt{de\_fault} 50 \% \& more & 50.0 & 25.0 & 25.0" in text
    assert text.count(r"\\") == 3
    assert text.startswith(r"\begin{tabular}{lcccccccccr}")
