"""Promises of the oracle: the best that any cut could give, shown beside the run and never given to it."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from newfound.benchmarks.oracle import oracle

pytestmark = pytest.mark.usefixtures("one_thread")
PROTOCOLS = ("strict", "named")


@pytest.fixture(scope="module")
def stream(tiny_run, pictures):
    """Five kinds of pictures as the run reads them; it knows three."""
    return tiny_run.read_stream(pictures(kinds=5, each=4))


def with_cut(run, value: float):
    return replace(run, config=run.config | {"threshold": {"value": value, "rule": "fixed by setting"}})


@given(own=st.floats(-1, 1), seed=st.integers(0, 1000))
@examples(max_examples=6)
def test_no_cut_is_better_on_the_first_order_least_of_all_the_runs_own(tiny_run, stream, own, seed):
    run = with_cut(tiny_run, own)
    best = oracle(run, *stream, orders=1, seed=seed)
    for cut in (own, *run.method.cuts()[::25]):
        scores = run.score_stream(*stream, orders=1, seed=seed, threshold=float(cut)).mean
        for name in PROTOCOLS:
            assert best[name][name]["all"] >= scores[name]["all"]


def test_the_runs_own_cut_is_tried_too(tiny_run, stream, monkeypatch):
    monkeypatch.setattr(type(tiny_run.method), "cuts", lambda self: np.array([-1.0]))  # at which nothing is new
    own = with_cut(tiny_run, 0.6123)
    assert own.score_stream(*stream).mean["named"]["new"] > 0
    assert oracle(own, *stream, orders=1, seed=0)["named"]["cut"] == 0.6123


def test_its_scores_are_means_over_all_orders_at_a_cut_chosen_on_the_first(tiny_run, stream):
    one, three = (oracle(tiny_run, *stream, orders=orders, seed=4) for orders in (1, 3))
    for name in PROTOCOLS:
        assert three[name]["cut"] == one[name]["cut"]
        mean = tiny_run.score_stream(*stream, orders=3, seed=4, threshold=three[name]["cut"]).mean
        assert three[name] == {"cut": one[name]["cut"]} | {
            figure: mean[figure] for figure in ("strict", "greedy", "named", "categories")
        }


def test_it_is_not_fed_back_into_the_run(tiny_run, stream):
    run = with_cut(tiny_run, 1.0)  # so bad that the oracle surely takes another
    before, scores = copy.deepcopy(run.config), run.score_stream(*stream)
    assert oracle(run, *stream, orders=2, seed=0)["strict"]["cut"] != 1.0
    assert (run.threshold, run.config) == (1.0, before)
    assert run.score_stream(*stream) == scores


def test_codes_have_an_oracle_too(fit_tiny, pictures):
    run = fit_tiny(pictures(kinds=3), method="rankstat")
    stream = run.read_stream(pictures(kinds=5, each=3))
    best = oracle(run, *stream, orders=1, seed=0)
    assert best["strict"]["cut"] in run.method.cuts()
    assert best["strict"]["strict"]["all"] >= run.score_stream(*stream, orders=1).mean["strict"]["all"]


def test_a_method_that_discovers_nothing_has_none(fit_tiny, pictures):
    run = fit_tiny(pictures(kinds=3), method="closed")
    assert oracle(run, *run.read_stream(pictures(kinds=4, each=2)), orders=1, seed=0) is None
