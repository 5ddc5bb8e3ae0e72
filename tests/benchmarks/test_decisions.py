"""Promises of the table of dictionaries: what was measured is kept, and the stream chooses nothing."""

from __future__ import annotations

import copy
import csv
import dataclasses
import io
from pathlib import Path

import numpy as np
import pytest

from newfound import _trust, presets, rehearsal
from newfound.benchmarks import decisions
from newfound.benchmarks.cells import Setup
from newfound.benchmarks.decisions import FEATURES, FOLDER, RULES, caption, run_decisions, table_rows, write
from newfound.benchmarks.decisions_csv import as_csv
from newfound.benchmarks.store import Store
from newfound.datasets import LabelledImages
from newfound.errors import SettingsError
from newfound.method import _deciding
from newfound.progress import Reporter

pytestmark = pytest.mark.usefixtures("one_thread")
COSINES, EVIDENCE = "prototypes, running means, centred", "evidence, second thoughts"
CHANGING = ("seconds", "time")  # of a result that is measured again


@pytest.fixture(scope="module")
def setup(write_folder, tiny_weights, tmp_path_factory) -> Setup:
    """Ten kinds of pictures in the place of CIFAR-10's: five are known, by as few images as can be rehearsed on."""
    data = write_folder(tmp_path_factory.mktemp("ten"), kinds=10, each=8)
    return Setup("cifar10", str(data), "test_efficientnet", orders=2, weights=tiny_weights(), check=False)


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    """Trainings of one epoch on two views, and rehearsals that try less."""
    monkeypatch.setattr(presets, "SHORT", presets.SHORT | {"epochs": 1, "views": 2})
    monkeypatch.setattr(rehearsal, "SHARES", (1.0, 0.5))
    monkeypatch.setattr(_trust, "_COARSE", (1.0, 10.0))
    monkeypatch.setattr(_trust, "_FINE", ())
    monkeypatch.setattr(_deciding, "_COSINES", np.array([0.3, 0.6]))
    monkeypatch.setattr(_deciding, "_LOG_RATIOS", np.array([0.0, 10.0]))
    monkeypatch.setattr(_deciding, "_REHEARSED", {name: values[:2] for name, values in _deciding._REHEARSED.items()})


@pytest.fixture
def two_rules(monkeypatch) -> tuple[str, ...]:
    """The table has a row of cosines and a row of evidence, whatever else there is to compare."""
    return only(monkeypatch, COSINES, EVIDENCE)


def test_every_rule_is_offered_the_shares_that_a_training_with_it_would_be(setup, two_rules, tmp_path, monkeypatch):
    offered = {}

    def watched(scenes, rule):
        offered[rule["dictionary"]] = list(scenes)
        return rehearsal.choose(scenes, rule)

    monkeypatch.setattr(decisions, "choose", watched)
    run_decisions(setup, tmp_path, seeds=[0], features=["ltc"])
    assert offered == {"prototypes": [1.0, 0.5], "bayesian": [1.0, 0.5, rehearsal.LEAST]}


class Told(Reporter):
    """Keeps what was said."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, message: str) -> None:
        self.lines.append(message)


def only(monkeypatch, *rules: str) -> tuple[str, ...]:
    monkeypatch.setattr(decisions, "RULES", {rule: RULES[rule] for rule in rules})
    return rules


def lasting(results: list[dict]) -> list[dict]:
    return [{name: value for name, value in r.items() if name not in CHANGING} for r in results]


def nothing_is_learnt(monkeypatch) -> None:
    monkeypatch.setattr(decisions, "learn", lambda *a, **k: pytest.fail("features were learnt"))


def with_stream_labels(setup: Setup, labels: list[str]) -> Setup:
    """The same images in the same order, called otherwise."""
    labelled, stream = setup.split
    other = dataclasses.replace(setup)
    other.__dict__["split"] = (labelled, LabelledImages(list(stream.items), labels))
    return other


def test_every_rule_is_there_for_every_features_and_seed(setup, tmp_path):
    results = run_decisions(setup, tmp_path, seeds=[0])
    assert [(r["features"], r["rule"]) for r in results] == [(name, rule) for name in FEATURES for rule in RULES]
    for r in results:
        assert len(r["scores"]) == len(r["standing"]) == setup.orders
        weighed = r["settings"]["dictionary"] == "bayesian"
        assert len(r["calibration"]) == (setup.orders if weighed else 0), r["rule"]
        streamed = r["data"]["stream"]
        assert all(sum(curve["count"]) == streamed for curve in r["calibration"])
        if not r["settings"].get("reconsider_every", True) or not weighed:
            assert r["standing"] == r["scores"], "only second thoughts change an answer"
    rows = table_rows(results)
    assert [tuple(row[:2]) for row in rows[1:]] == [(r["features"], r["rule"]) for r in results]


def test_a_second_call_measures_nothing_again(setup, two_rules, tmp_path, monkeypatch):
    first = run_decisions(setup, tmp_path, seeds=[0, 1], features=["frozen"])
    assert [(r["rule"], r["seed"]) for r in first] == [(rule, seed) for rule in two_rules for seed in (0, 1)]
    nothing_is_learnt(monkeypatch)
    assert run_decisions(setup, tmp_path, seeds=[0, 1], features=["frozen"]) == first
    assert run_decisions(setup, tmp_path, seeds=[1], features=["frozen"]) == [r for r in first if r["seed"] == 1]


def test_an_interrupted_table_goes_on_and_keeps_what_is_there(setup, two_rules, tmp_path, monkeypatch):
    real = decisions.Learnt.measure

    def until(self, rule, *rest):
        if rule == EVIDENCE:
            raise KeyboardInterrupt
        return real(self, rule, *rest)

    monkeypatch.setattr(decisions.Learnt, "measure", until)
    with pytest.raises(KeyboardInterrupt):
        run_decisions(setup, tmp_path, seeds=[0], features=["frozen"])
    (kept,) = Store(tmp_path / FOLDER).results().values()
    assert kept["rule"] == COSINES
    measured = []
    monkeypatch.setattr(decisions.Learnt, "measure", lambda self, *a: (measured.append(a[0]), real(self, *a))[1])
    results = run_decisions(setup, tmp_path, seeds=[0], features=["frozen"])
    assert measured == [EVIDENCE]
    assert [r["rule"] for r in results] == [COSINES, EVIDENCE]
    assert results[0] == kept


def test_results_are_the_same_whichever_rules_were_there_before(setup, tmp_path, monkeypatch):
    only(monkeypatch, COSINES)
    run_decisions(setup, tmp_path / "in parts", seeds=[0], features=["ltc"])
    only(monkeypatch, COSINES, EVIDENCE)
    parts = run_decisions(setup, tmp_path / "in parts", seeds=[0], features=["ltc"])
    only(monkeypatch, EVIDENCE, COSINES)
    whole = run_decisions(setup, tmp_path / "at once", seeds=[0], features=["ltc"])
    assert lasting(parts) == lasting(whole[::-1])


def test_the_labels_of_the_stream_choose_nothing(setup, two_rules, tmp_path):
    labels = setup.split[1].labels
    moved = [labels[i] for i in np.random.default_rng(0).permutation(len(labels))]
    assert moved != list(labels)
    both = [
        run_decisions(one, tmp_path, seeds=[0], features=["frozen", "ltc"])
        for one in (setup, with_stream_labels(setup, moved))
    ]
    chosen = [[(r["threshold"], r["share"], r["rehearsed"]) for r in results] for results in both]
    assert chosen[0] == chosen[1]
    assert [r["scores"] for r in both[0]] != [r["scores"] for r in both[1]], "the labels do count in the scores"


def test_features_that_are_not_in_the_table_are_refused_by_name(setup, tmp_path, monkeypatch):
    nothing_is_learnt(monkeypatch)
    with pytest.raises(SettingsError, match=r"'dino'.*frozen, ltc, phe"):
        run_decisions(setup, tmp_path, seeds=[0], features=["frozen", "dino"])


def test_without_measuring_it_shows_what_is_there(setup, two_rules, tmp_path, monkeypatch):
    there = run_decisions(setup, tmp_path, seeds=[0], features=["frozen"])
    nothing_is_learnt(monkeypatch)
    assert run_decisions(setup, tmp_path, seeds=[0, 1], measure=False) == there
    assert run_decisions(setup, tmp_path / "elsewhere", measure=False) == []


def test_too_few_images_to_rehearse_on_are_told(bench, two_rules, tmp_path):
    with pytest.raises(SettingsError, match="too few to hide some"):  # two images of each known class
        run_decisions(bench, tmp_path, seeds=[0], features=["frozen"])


def test_images_that_cannot_be_read_are_left_out_and_counted(setup, two_rules, write_folder, tmp_path):
    other = dataclasses.replace(setup, data=str(write_folder(tmp_path / "data", kinds=10, each=10)))
    labelled, stream = other.split
    for item in (labelled.items[0], *stream.items[:2]):
        Path(item).write_bytes(b"no picture")
    told = Told()
    results = run_decisions(other, tmp_path, seeds=[0], features=["ltc"], reporter=told)
    assert len(results) == 2
    for r in results:
        assert [scores["samples"] for scores in r["scores"]] == [len(stream) - 2] * setup.orders
        assert r["unread"] == {"labelled": 1, "stream": 2}
    assert "1 labelled and 2 streamed ones cannot be read, and are left out." in caption(results)
    assert any("1 image cannot be read and is left out" in line for line in told.lines)


def hand_made(strict: list[float], ece: list[float], rule: str = EVIDENCE, **more) -> dict:
    """A result with an order for each Strict All; Old and New lie 0.1 above and below, Named is half, later more."""

    def scores(value: float, categories: int) -> dict:
        three = {"all": value, "old": value + 0.1, "new": value - 0.1}
        half = {k: v / 2 for k, v in three.items()}
        return {"strict": three, "greedy": three, "named": half, "categories": categories}

    return {
        "data": {"protocol": "pets", "class_seed": None, "known": 19, "classes": 37}, "weights": "pretrained",
        "backbone": "tf_efficientnet_lite0", "preset": "default (short)", "features": "frozen", "rule": rule,
        "seed": 0, "orders": 3, "commit": "abc", "time": "2026-11-18T00:00:00Z", "threshold": {"value": 2.5},
        "scores": [scores(value, 40 + 2 * k) for k, value in enumerate(strict)],
        "standing": [scores(value + 0.05, 30) for value in strict],
        "calibration": [
            {"ece": value, "brier": 0.2, "count": [4, 6], "confidence": [0.3, 0.9], "accuracy": [0.5, 0.8],
             "new": {"ece": value / 2}}
            for value in ece
        ],
    } | more  # fmt: skip


def test_figures_are_means_over_seeds_and_orders():
    results = [hand_made([0.1, 0.2], [0.04, 0.06]), hand_made([0.3, 0.4], [0.08, 0.10], seed=1)]
    # Strict All 10, 20, 30, 40: mean 25; deviations -15, -5, 5, 15 squared sum to 500, sqrt(500 / 3) = 12.9.
    # Named is half of all that. Categories 40, 42, 40, 42: mean 41, sqrt(4 / 3) = 1.2. ECE 4, 6, 8, 10: mean 7,
    # sqrt(20 / 3) = 2.6; of new ones half of that.
    _, row = table_rows(results)
    assert row == [
        "frozen", EVIDENCE, "25.0 / 35.0 / 15.0 (± 12.9)", "12.5 / 17.5 / 7.5 (± 6.5)", "41 ± 1",
        "30.0 ± 12.9", "15.0 ± 6.5", "30 ± 0", "7.0 ± 2.6", "3.5 ± 1.3", "2",
    ]  # fmt: skip
    told = caption(results)
    assert "the preset default (short), seeds 0 and 1, each in 3 random stream orders" in told
    assert "tf_efficientnet_lite0: trained on ImageNet" in told, "what the backbone has seen"


def test_rows_stand_in_the_order_of_features_and_rules_and_a_rule_without_probabilities_has_no_error():
    results = [hand_made([0.1], [0.1], features="phe"), hand_made([0.1], [], COSINES), hand_made([0.1], [0.1])]
    rows = table_rows(results)[1:]
    assert [(row[0], row[1], row[-3]) for row in rows] == [
        ("frozen", COSINES, "-"), ("frozen", EVIDENCE, "10.0"), ("phe", EVIDENCE, "10.0"),
    ]  # fmt: skip


def test_the_csv_has_a_number_in_every_cell_that_is_one_for_each_seed_and_order():
    results = [hand_made([0.1, 0.2], [0.04, 0.06], seed=1), hand_made([0.5], [], COSINES)]
    rows = list(csv.DictReader(io.StringIO(as_csv(results))))
    assert [(row["decided_by"], row["seed"], row["order"]) for row in rows] == [
        (EVIDENCE, "1", "0"), (EVIDENCE, "1", "1"), (COSINES, "0", "0"),
    ]  # fmt: skip
    numbers = {"cut": 2.5, "strict_all": 0.2, "strict_old": 0.3, "named_all": 0.1, "categories": 42.0}
    numbers |= {"standing_strict_all": 0.25, "standing_categories": 30.0, "ece": 0.06, "ece_new": 0.03}
    assert {name: float(rows[1][name]) for name in numbers} == pytest.approx(numbers)
    assert rows[2]["ece"] == rows[2]["ece_new"] == "", "this rule gives no probabilities"


def test_the_table_and_its_curves_are_written_under_a_name_of_their_own(tmp_path):
    pytest.importorskip("matplotlib", reason="newfound[bench] is not installed")
    results = [hand_made([0.1, 0.2], [0.04, 0.06]), hand_made([0.3, 0.4], [], COSINES)]
    names = [path.name for path in write(results, tmp_path)]
    tables = [f"decisions-pets.{ending}" for ending in ("md", "csv", "tex")]
    assert names == [*tables, *(f"decisions-pets-reliability.{ending}" for ending in ("png", "svg", "csv"))]
    assert {path.name for path in tmp_path.iterdir()} == set(names)
    for ending in ("md", "tex"):
        assert caption(results) in (tmp_path / f"decisions-pets.{ending}").read_text()
    changes = (
        {"data": results[0]["data"] | {"class_seed": 1}}, {"data": results[0]["data"] | {"protocol": "cub"}},
        {"data": results[0]["data"] | {"protocol": "own photos", "hash": "0123456789abcdef"}},
        {"data": results[0]["data"] | {"protocol": "own photos", "hash": "fedcba9876543210"}},
        {"backbone": "test_vit"}, {"weights": "mine.pt (0123)"}, {"preset": "default"}, {"orders": 2},
    )  # fmt: skip
    first = {write([copy.deepcopy(results[1]) | change], tmp_path)[0].name for change in changes}
    assert len(first | {"decisions-pets.md"}) == len(changes) + 1
