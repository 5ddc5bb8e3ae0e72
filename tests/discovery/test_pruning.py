"""A search that leaves prototypes out gives exactly what a search of all gives, whatever the prototypes are."""

from __future__ import annotations

import itertools
from contextlib import contextmanager, nullcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_prototypes import (
    KINDS,
    assert_same_state,
    check_against_the_plain_loop,
    join,
    kind_of,
    streams,
    variants,
    with_wrong_products,
)

from newfound.discovery import PrototypeDictionary, _cells, _filter, _found, _outline_search
from newfound.discovery._exact import Similarity
from newfound.discovery._found import sweep
from newfound.discovery._outline import Outline
from newfound.discovery._outline_search import OutlineSearch
from newfound.discovery._pruning import Pruning


@contextmanager
def always():
    """Inside, every dictionary, however small, is searched through an outline from its second block on."""
    with pytest.MonkeyPatch.context() as patch:
        sizes = {"least": 1, "rent": -np.inf, "cell": 3, "directions": 2, "tried": 2, "most": np.inf, "loss": np.inf}
        for name, value in sizes.items():
            patch.setattr(Pruning, name, value)
        patch.setattr(Pruning, "ready", lambda self, size: self.outline is not None)
        patch.setattr(PrototypeDictionary, "_sweep_from", 1)
        yield


@contextmanager
def wrong_pairs(seed: int):
    """Inside, products of pairs are wrong by anything up to the bound."""
    rng = np.random.default_rng(seed)

    def paired(a, b, out=None):
        room = _filter.bound(a.shape[1]) - 2.0**-24  # the rest is for rounding to float32
        exact = (a.astype(np.float64) * b).sum(axis=1)
        out = np.empty(len(a), np.float32) if out is None else out
        out[:] = exact + room * rng.choice([-1.0, 1.0], exact.shape)
        return out

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_filter, "paired", paired)
        yield


@settings(max_examples=60, deadline=None)
@given(streams(), variants, st.sets(st.integers(1, 23)), st.integers(1, 9), st.integers(0, 3))
def test_a_pruned_search_equals_the_plain_loop_bit_for_bit(stream, variant, cuts, rows, runners_up):
    with always():
        check_against_the_plain_loop(stream, variant, cuts, rows, runners_up)


@settings(max_examples=40, deadline=None)
@given(streams(), variants, st.integers(1, 9), st.integers(0, 2), st.integers(0, 2**32 - 1))
def test_a_pruned_search_with_any_filter_within_its_bound_gives_the_same_answers(stream, variant, rows, up, seed):
    with always(), wrong_pairs(seed):
        with_wrong_products(seed, check_against_the_plain_loop, stream, variant, (), rows, up)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 6), st.integers(0, 9), st.integers(0, 2**32 - 1))
def test_what_reaches_its_rows_limit_is_found_row_by_row(rows, columns, seed):
    rng = np.random.default_rng(seed)
    values = rng.integers(-2, 3, (rows, columns)).astype(np.float32)
    values[values == -2] = -np.inf
    limits = rng.integers(-2, 3, rows).astype(np.float32)
    expected = [(i, j) for i in range(rows) for j in range(columns) if values[i, j] >= limits[i]]
    assert list(zip(*(part.tolist() for part in _filter.reaching(values, limits)), strict=True)) == expected


@pytest.mark.parametrize("k", [1, 3])
def test_pairs_seen_one_by_one_leave_the_best_that_whole_rows_would(k):
    rng = np.random.default_rng(k)
    samples = kind_of("random", rng, 5, 8)
    products = rng.standard_normal((5, 12)).astype(np.float32)
    whole, single = _found.Best(samples, k), _found.Best(samples, k)
    whole.see(slice(None), products)
    first = rng.random((5, 12)) < 0.5
    first[2] = False  # a sample that has none
    for some in (first, np.zeros_like(first), ~first):
        i, j = np.nonzero(some)
        single.see_pairs(i, products[i, j])
    assert single.cuts().tolist() == whole.cuts().tolist()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("update", "runners_up"), [("fixed", 0), ("fixed", 3), ("running", 1)])
def test_pruned_or_not_a_stream_has_the_same_answers_and_state(kind, update, runners_up):
    rng = np.random.default_rng(KINDS.index(kind))
    rows = kind_of(kind, rng, 500, 24)
    rng.shuffle(rows)
    known, stream = rows[:200], rows[200:]
    cut = min(1.0, float(np.median(np.sort(stream @ known.T, axis=1)[:, -1])))

    def run():
        dictionary = PrototypeDictionary(known, cut, update=update)
        dictionary._block_rows = 50
        first = dictionary.observe(stream[:150], runners_up)
        foretold = dictionary.predict(stream[150:], runners_up)
        if len(dictionary) > len(known):
            dictionary.merge(dictionary.ids[[0, -1]])
            dictionary.merge(dictionary.ids[len(known) :][-3:] if len(dictionary) > len(known) else [0])
        second = dictionary.observe(stream[150:200], runners_up)
        dictionary.reassign([150, 152], stream[[150, 152]], second.category[[0, 2]])
        return join([first, foretold, second, dictionary.observe(stream[200:], runners_up)]), dictionary

    with always():
        pruned, one = run()
    assert one._pruning.outline is not None
    full, other = run()
    assert other._pruning.outline is None
    assert pruned == full
    assert_same_state(one.state(), other.state())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dimension", [3, 40, 129])
def test_no_similarity_is_above_its_upper_bound_and_the_slack(kind, dimension):
    rng = np.random.default_rng(dimension)
    rows = kind_of(kind, rng, 400, dimension)
    rows[::3] *= np.float32(1 + 9e-6)  # as long as a unit row may be
    samples = np.concatenate([rows[:40], kind_of("random", rng, 20, dimension)])
    outline = Outline.of(rows, cells=20, directions=max(1, dimension // 8))
    near, parts = outline.view(samples)
    members = outline.rows(np.arange(400))
    assert sorted(members.tolist()) == list(range(400))
    cells = outline.owners(0, outline.cells)
    i, j = np.divmod(np.arange(60 * 400), 400)
    exact = Similarity(dimension)(samples, i, rows, members[j]).reshape(60, 400)
    there = exact > -1.0  # what was clipped to -1 is never ruled out by a cut
    upper = (outline.upper(0, outline.cells, parts) + near[:, cells]).astype(np.float64) + outline.slack
    assert (upper >= exact)[there].all()
    whole = (near + outline.radii).astype(np.float64)[:, cells] + outline.slack
    assert (whole >= exact)[there].all()


def assert_all_that_matters_is_found(found, samples, rows, k):
    i, j = np.divmod(np.arange(len(found.cuts) * len(rows)), len(rows))
    exact = Similarity(rows.shape[1])(samples, i, rows, j).reshape(-1, len(rows))
    for mine, cut, scores in zip(found.rows, found.cuts, exact, strict=True):
        held = set(mine[mine >= 0].tolist())
        assert len(held) == (mine >= 0).sum()
        assert all(scores[row] < cut for row in set(range(len(rows))) - held)
        assert sum(scores[row] >= cut for row in held) >= k


@pytest.mark.parametrize("kind", KINDS)
def test_a_search_finds_all_that_may_be_among_the_nearest_and_says_what_the_others_are_below(kind):
    rows = kind_of(kind, np.random.default_rng(3), 500, 16)
    assert_all_that_matters_is_found(sweep(rows[:50], rows, k=3, lane=8), rows[:50], rows, 3)
    outline = Outline.of(rows[:450], cells=12, directions=4)
    outline.loosen(np.array([3, 77]))
    found = OutlineSearch(outline, rows[:50], rows, 3).run(np.inf, lane=8)
    assert_all_that_matters_is_found(found, rows[:50], rows, 3)


@pytest.mark.parametrize("kind", ["duplicated", "adversarial"])
def test_where_many_prototypes_are_alike_a_sweep_answers_as_many_samples_as_there_is_room_for(kind):
    rows = kind_of(kind, np.random.default_rng(0), 1200, 16)
    if kind == "duplicated":
        rows[600:] = rows[0]
    samples = np.concatenate([rows[1:30], rows[:20]])
    found = sweep(samples, rows, k=2, lane=8, most=3000)
    assert 1 <= len(found.cuts) < len(samples)
    assert found.rows.size <= 3000
    assert_all_that_matters_is_found(found, samples, rows, 2)


@pytest.mark.parametrize("pruned", [False, True])
@pytest.mark.parametrize("update", ["fixed", "running"])
def test_where_there_is_room_for_a_few_samples_only_the_answers_are_the_same(monkeypatch, pruned, update):
    rng = np.random.default_rng(0)
    known = np.concatenate([kind_of("adversarial", rng, 150, 16), kind_of("random", rng, 50, 16)])
    stream = np.concatenate([known[:40], kind_of("random", rng, 60, 16)])
    rng.shuffle(stream)
    expected = PrototypeDictionary(known, 0.6, update=update).observe(stream, 1)
    monkeypatch.setattr(_outline_search, "MOST_HELD", 400)
    monkeypatch.setattr(_found.sweep, "__defaults__", (400,))
    with always() if pruned else nullcontext():
        monkeypatch.setattr(PrototypeDictionary, "_sweep_from", 1)
        dictionary = PrototypeDictionary(known, 0.6, update=update)
        assert join([dictionary.observe(stream, 1)]) == join([expected])


def gated(kind: str, monkeypatch) -> Pruning:
    """What has seen one block of samples, and pays for a trial at once."""
    for name, value in {"least": 1000, "rent": 64, "loss": 10.0, "tried": 16}.items():
        monkeypatch.setattr(Pruning, name, value)
    for name, value in {"_STEP": 0, "_FIRST": 8}.items():  # which outweigh all else where there are few prototypes
        monkeypatch.setattr(_outline_search, name, value)
    rows = kind_of(kind, np.random.default_rng(0), 4000, 64)
    samples, rows = rows[::40], np.delete(rows, np.s_[::40], axis=0)
    pruning = Pruning()
    assert pruning.find(samples, rows, 1, 256) is None
    pruning.searched(samples, rows, sweep(samples, rows, 1, 256).cuts)
    return pruning


def test_clustered_prototypes_get_an_outline_and_random_ones_are_searched_in_full(monkeypatch):
    assert gated("clustered", monkeypatch).outline is not None
    assert gated("random", monkeypatch).outline is None


def test_a_trial_that_fails_is_repeated_after_four_times_as_many_samples(monkeypatch):
    monkeypatch.setattr(Pruning, "least", 1)
    samples, rows = np.split(kind_of("random", np.random.default_rng(0), 600, 32), [230])
    pruning, waits = Pruning(), [0]
    monkeypatch.setattr(pruning, "_pays", lambda *_: waits.append(0))
    monkeypatch.setattr(pruning, "_trial_cost", lambda *_: 0.0)
    for _ in range(180):  # blocks that count as 250, with what it costs to read the prototypes
        waits[-1] += 1
        pruning.searched(samples, rows, np.zeros(len(samples)))
    assert waits[:-1] == [9, 33, 132]


def test_what_is_lost_to_searches_that_are_given_up_is_a_small_part_of_all_work(monkeypatch):
    monkeypatch.setattr(Pruning, "least", 1)
    monkeypatch.setattr(_outline_search, "_STEP", 0)
    samples, rows = np.split(kind_of("random", np.random.default_rng(0), 1200, 32), [100])
    pruning = Pruning()
    pruning._outline = Outline.of(rows, 12, 4)
    lost = tries = 0
    for _ in range(200):
        if pruning.ready(len(rows)):
            before = pruning._balance
            assert pruning.find(samples, rows, 1, 256) is None
            lost, tries = lost + before - pruning._balance, tries + 1
        pruning.searched(samples, rows, np.zeros(len(samples)))
    largest = lost / tries
    assert tries > 1
    assert lost <= Pruning.loss * 200 * 120 + largest


def test_an_outline_is_made_anew_when_an_eighth_is_not_in_it_if_it_has_saved_that_much(monkeypatch):
    monkeypatch.setattr(Pruning, "least", 1)
    rows = kind_of("clustered", np.random.default_rng(0), 2400, 32)
    for saved in (0.0, 1e9):
        pruning = Pruning()
        pruning._outline = first = Outline.of(rows[:2000], 40, 4)
        first.loosen(np.arange(200))
        pruning.find(rows[:20], rows[:2050], 1, 256)
        assert pruning.outline is first
        pruning._saved, pruning._balance = saved, 0.0
        pruning.find(rows[:20], rows[:2100], 1, 256)
        if saved:
            assert pruning.outline is not first
            assert pruning.outline.loose(2100).size == 0
        else:
            assert pruning.outline is None


def test_a_dictionary_takes_at_most_1_6_times_the_bytes_of_its_prototypes(monkeypatch):
    for name, value in {"least": 1000, "rent": -np.inf, "loss": np.inf}.items():
        monkeypatch.setattr(Pruning, name, value)
    monkeypatch.setattr(PrototypeDictionary, "_sweep_from", 1000)
    monkeypatch.setattr(_outline_search, "_STEP", 0)
    rng = np.random.default_rng(0)
    rows = kind_of("clustered", rng, 5_000, 128)
    dictionary = PrototypeDictionary(rows[:2400], threshold=1.0)
    worst = 0.0
    for start in range(2400, 5_000, 200):
        dictionary.observe(rows[start : start + 200])
        worst = max(worst, dictionary.nbytes / (len(dictionary) * 128 * 4))
    assert dictionary._pruning.outline is not None
    assert len(dictionary) > 4_500
    assert 1.0 < worst <= 1.6


def test_clusters_are_told_apart_however_many_there_are(monkeypatch):
    monkeypatch.setattr(_cells, "_COMPARED", 32)  # as if there were thousands of cells: near groups are looked into
    rng = np.random.default_rng(0)
    whose = rng.integers(0, 120, 6000)
    rows = 7 * rng.standard_normal((120, 48))[whose] + 2 * rng.standard_normal((6000, 48))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    order, starts = _cells.grouped(_cells.divide(rows, 200))
    mixed = [a for a, b in itertools.pairwise(starts.tolist()) if len(set(whose[order[a:b]])) > 1]
    assert 120 <= len(starts) - 1 <= 400
    assert len(mixed) <= 0.02 * len(starts)
