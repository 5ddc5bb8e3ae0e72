"""Promises of the estimate: learnt from what was measured, never nothing, in words that a person plans by."""

from __future__ import annotations

import statistics
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import newfound as nf
from newfound.benchmarks.cells import Cell, Setup, Variant
from newfound.benchmarks.cost import Estimate

LABELLED = 10  # of the pictures below: half of 4 of each of 5 known kinds


@pytest.fixture(scope="module")
def bench(write_folder, tmp_path_factory) -> Setup:
    data = write_folder(tmp_path_factory.mktemp("ten"), kinds=10, each=4)
    return Setup("cifar10", str(data), "test_efficientnet", weights="random", check=False)


def result(train_cpu: float, evaluate: float = 0.0, *, labelled: int = 100, **about) -> dict:
    """What an estimate learns from, of a cell with that many labelled images."""
    cost = {"train": 9e9, "train_cpu": train_cpu, "evaluate": evaluate, "threads": 1}
    kind = {"backbone": "test_efficientnet", "method": "ltc", "preset": "default (short)", "settings": {}} | about
    return kind | {"data": {"labelled": labelled}, "cost": cost}


def test_an_estimate_is_the_median_of_its_kind_scaled_by_images(bench):
    # seconds an image: (90 + 10) / 100 = 1, (20 + 10) / 10 = 3 and 200 / 100 = 2; their median is 2
    results = [result(90, 10), result(20, 10, labelled=LABELLED), result(200)]
    assert Estimate(results).seconds(Cell(Variant("ltc"), 0, bench)) == pytest.approx(2 * LABELLED)


@given(st.lists(st.tuples(st.floats(0, 1e5), st.floats(0, 1e3), st.integers(1, 10**5)), min_size=1, max_size=9))
def test_whatever_was_measured_the_median_counts(bench, measured):
    results = [result(cpu, rest, labelled=count) for cpu, rest, count in measured]
    rates = [(cpu + rest) / count for cpu, rest, count in measured]
    seconds = Estimate(results).seconds(Cell(Variant("ltc"), 5, bench))
    assert seconds == pytest.approx(LABELLED * statistics.median(rates))


def test_the_results_that_are_most_alike_count(bench):
    results = [
        result(100, settings={"batch_size": 64}),
        result(300),
        result(900, preset="paper (short)"),
        result(9e6, method="smile"),
        result(9e6, backbone="another"),
    ]
    estimate = Estimate(results)

    def seconds(preset: str = "default", **settings) -> float:
        return estimate.seconds(Cell(Variant("ltc", preset, settings), 0, bench)) / LABELLED

    assert seconds(batch_size=64) == pytest.approx(1)
    assert seconds() == pytest.approx(3)
    assert seconds(batch_size=32) == pytest.approx(2), "the preset's: the median of 1 and 3"
    assert seconds("paper") == pytest.approx(9)
    assert seconds("released") == pytest.approx(3), "the method's: the median of 1, 3 and 9"


@pytest.mark.parametrize("method", nf.methods())
@pytest.mark.parametrize("short", [True, False])
def test_what_was_never_measured_gets_a_figure_too(bench, method, short):
    setup = replace(bench, short=short)
    for results in ([], [result(10, method="another")], [result(10, backbone="another")]):
        assert 0 < Estimate(results).seconds(Cell(Variant(method), 0, setup)) < float("inf")


def test_more_work_is_expected_to_take_longer(bench):
    def seconds(method: str = "baseline", setup: Setup = bench, **settings) -> float:
        return Estimate([]).seconds(Cell(Variant(method, settings=settings), 0, setup))

    assert seconds(epochs=30) - seconds(epochs=15) == pytest.approx(seconds(epochs=45) - seconds(epochs=30))
    assert seconds(epochs=30) > 1.5 * seconds(epochs=15)
    assert seconds(cached=False) > seconds(), "the trunk is computed every time"
    assert seconds(threshold=0.5) < seconds(), "nothing is rehearsed"
    assert seconds("mldg") > seconds()
    assert seconds("frozen") < seconds()


def test_a_result_without_costs_teaches_nothing(bench):
    cell = Cell(Variant("ltc"), 0, bench)
    assert Estimate([result(1e6) | {"cost": None}]).seconds(cell) == Estimate([]).seconds(cell)


@pytest.mark.parametrize(
    ("seconds", "jobs", "words"),
    [
        (0.1, 1, "about a minute in 1 job"),
        (100, 2, "about a minute in 2 jobs"),
        (60 * 50, 1, "about 50 minutes in 1 job"),
        (60 * 119, 1, "about 119 minutes in 1 job"),
        (3600 * 5, 2, "about 2.5 hours in 2 jobs"),
    ],
)
def test_the_estimate_in_words(bench, seconds, jobs, words):
    todo = [Cell(Variant("ltc"), seed, bench) for seed in (0, 1)]
    estimate = Estimate([result(seconds / 2, labelled=LABELLED)])  # each of the two takes half of it
    assert estimate.describe(todo, 7, jobs) == f"2 of 7 cells to measure: {words}"
