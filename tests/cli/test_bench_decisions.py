"""`newfound bench decisions`: what it hands on, prints and writes, and how it ends."""

from __future__ import annotations

import json

import pytest

from newfound.benchmarks import decisions, figure_style
from newfound.errors import SettingsError

pytest.importorskip("matplotlib", reason="newfound[bench] is not installed")


@pytest.fixture
def asked(monkeypatch):
    """What the command asks of `run_decisions`, which answers with nothing measured."""
    calls = []

    def run_decisions(setup, out, **options):
        calls.append((setup, out, options))
        return []

    monkeypatch.setattr(decisions, "run_decisions", run_decisions)
    return calls


def test_what_was_asked_for_is_handed_on(invoke, asked, tmp_path):
    invoke(
        "bench", "decisions", "pets", "--protocol", "pets", "--out", tmp_path, "--seeds", "2,0", "--orders", "4",
        "--class-seed", "7", "--features", "ltc", "--features", "frozen", "--backbone", "b", "--weights", "w", "--full",
        "--no-measure",
    )  # fmt: skip
    ((setup, out, options),) = asked
    assert (setup.protocol, setup.data, setup.backbone, setup.class_seed) == ("pets", "pets", "b", 7)
    assert (setup.orders, setup.short, setup.weights, setup.known) == (4, False, "w", None)
    assert (out, options["seeds"], options["features"], options["measure"]) == (
        tmp_path, [2, 0], ["ltc", "frozen"], False,
    )  # fmt: skip


def test_all_features_are_asked_for_unless_some_are_named(invoke, asked, tmp_path):
    invoke("bench", "decisions", "photos", "--known", "known.txt", "--out", tmp_path)
    ((setup, _, options),) = asked
    assert (setup.protocol, setup.data, setup.known) == ("own", "photos", "known.txt")
    assert (list(options["features"]), options["measure"]) == (["frozen", "ltc", "phe"], True)


@pytest.mark.parametrize("extra", [[], ["--protocol", "pets", "--known", "f"]])
def test_data_is_a_benchmarks_or_ones_own(invoke, asked, tmp_path, extra):
    result = invoke("bench", "decisions", "x", "--out", tmp_path, *extra)
    assert result.exit_code == 2
    assert "give one of the two" in result.stderr
    assert not asked


def test_features_that_there_are_not_are_refused_by_name(invoke, tmp_path):
    result = invoke("bench", "decisions", "x", "--protocol", "pets", "--features", "dino", "--out", tmp_path)
    assert result.exit_code == 2
    assert "'dino'" in result.stderr


def test_with_nothing_measured_it_says_so(invoke, asked, tmp_path):
    result = invoke("bench", "decisions", "x", "--protocol", "pets", "--out", tmp_path, "--no-measure")
    assert result.exit_code == 1
    assert "nothing is measured yet" in result.stderr


def test_without_matplotlib_nothing_is_begun(invoke, asked, tmp_path, monkeypatch):
    def missing():
        raise SettingsError("figures need matplotlib")

    monkeypatch.setattr(figure_style, "require_matplotlib", missing)
    result = invoke("bench", "decisions", "x", "--protocol", "pets", "--out", tmp_path)
    assert result.exit_code == 2
    assert "figures need matplotlib" in result.stderr
    assert not asked


def test_a_table_is_made_from_a_folder_of_ones_own(invoke, paint, tmp_path, monkeypatch):
    """The whole way, with features that need no training."""
    rule = "evidence, second thoughts"
    monkeypatch.setattr(decisions, "RULES", {rule: decisions.RULES[rule]})
    colours = {"blue": (30, 40, 220), "green": (40, 200, 60), "grey": (90, 90, 90), "red": (220, 40, 30)}
    for name, colour in {**colours, "yellow": (230, 220, 40)}.items():
        paint(tmp_path / "data" / name, colour, 8)
    (tmp_path / "known.txt").write_text("\n".join(colours))
    words = [
        "bench", "decisions", tmp_path / "data", "--known", tmp_path / "known.txt", "--features", "frozen",
        "--seeds", "0", "--orders", "1", "--backbone", "test_efficientnet", "--weights", "random",
        "--out", tmp_path / "out",
    ]  # fmt: skip
    result = invoke(*words)
    assert result.exit_code == 0, result.stderr
    assert rule in result.stdout
    assert "4 of 5 classes known" in " ".join(result.stdout.split())
    told = json.loads(invoke(*words, "--no-measure", "--json").stdout)
    assert [r["rule"] for r in told["results"]] == [rule]
    assert sorted(told["files"]) == sorted(map(str, (tmp_path / "out" / "decisions").glob("decisions-own*")))
    assert len(told["files"]) == 6
