"""The reliability figure shows how often answers are right, all streams together, and nothing that was not measured."""

from __future__ import annotations

import csv

import pytest

from newfound.benchmarks import decisions
from newfound.benchmarks.reliability_figure import RULE, draw

pytest.importorskip("matplotlib", reason="newfound[bench] is not installed")


def result(*curves: tuple[list, list, list], features: str = "frozen", rule: str = RULE, seed: int = 0) -> dict:
    """A result with a curve (count, confidence, accuracy) for each stream order."""
    return {
        "data": {"protocol": "pets", "class_seed": None}, "backbone": "tf_efficientnet_lite0", "features": features,
        "rule": rule, "seed": seed, "orders": len(curves), "commit": "abc",
        "calibration": [{"count": n, "confidence": p, "accuracy": a} for n, p, a in curves],
    }  # fmt: skip


def rows(path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_rule_that_is_drawn_is_in_the_table():
    assert RULE in decisions.RULES


def test_a_point_is_all_streams_together_each_answer_counting_once(tmp_path):
    # Lower bin: 1 answer at 0.1, right, and 3 at 0.3, none right: (0.1 + 0.9) / 4 = 0.25 sure, 1 / 4 right. Upper bin:
    # 1 at 0.9, right, in one stream alone. ECE: (4 * 0 + 1 * 0.1) / 5 = 2 %, though each stream has more.
    first, second = ([1, 1], [0.1, 0.9], [1.0, 1.0]), ([3, 0], [0.3, None], [0.0, None])
    files = draw([result(first), result(second, seed=1)], tmp_path / "r")
    assert [path.name for path in files] == ["r.png", "r.svg", "r.csv"]
    low, high = rows(tmp_path / "r.csv")
    assert (low["bin"], low["count"], low["seeds"]) == ("0", "4", "0 1")
    assert [float(low[name]) for name in ("confidence", "accuracy")] == pytest.approx([0.25, 0.25])
    assert (high["bin"], high["count"]) == ("1", "1")
    assert [float(high[name]) for name in ("confidence", "accuracy")] == pytest.approx([0.9, 1.0])
    assert "frozen, ECE 2.0 %" in (tmp_path / "r.svg").read_text()


def test_each_features_have_their_own_curve_and_other_rules_none(tmp_path):
    one = ([2, 0], [0.25, None], [0.5, None])  # ECE 25 %
    other = ([0, 4], [None, 0.75], [None, 0.25])  # ECE 50 %
    draw([result(one), result(other, features="ltc"), result(other, rule="evidence, at once")], tmp_path / "r")
    assert [(row["features"], row["bin"], row["count"]) for row in rows(tmp_path / "r.csv")] == [
        ("frozen", "0", "2"), ("ltc", "1", "4"),
    ]  # fmt: skip
    svg = (tmp_path / "r.svg").read_text()
    assert "frozen, ECE 25.0 %" in svg
    assert "ltc, ECE 50.0 %" in svg


def test_without_the_rule_nothing_is_drawn(tmp_path):
    assert draw([result(([1], [0.5], [1.0]), rule="evidence, at once")], tmp_path / "r") == []
    assert not list(tmp_path.iterdir())
