"""A search through codes of a byte an entry gives exactly what a search of all gives, whatever the prototypes are."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest
import torch
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

from newfound.discovery import PrototypeDictionary, _coarse, _filter, _torch
from newfound.discovery._coarse import Coarse
from newfound.discovery._exact import Similarity


@contextmanager
def always():
    """Inside, every dictionary, however small, is searched through codes, also on processors that are slow at it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_torch, "_multiplies_bytes", lambda torch: True)
        patch.setattr(Coarse, "least", 1)
        patch.setattr(Coarse, "least_dimension", 1)
        patch.setattr(Coarse, "share", 1.0)
        yield


@settings(max_examples=60, deadline=None)
@given(streams(), variants, st.sets(st.integers(1, 23)), st.integers(1, 9), st.integers(0, 3))
def test_a_search_through_codes_equals_the_plain_loop_bit_for_bit(stream, variant, cuts, rows, runners_up):
    with always():
        check_against_the_plain_loop(stream, variant, cuts, rows, runners_up)


@settings(max_examples=40, deadline=None)
@given(streams(), variants, st.integers(1, 9), st.integers(0, 2), st.integers(0, 2**32 - 1))
def test_any_products_within_their_bound_give_the_same_answers_through_codes(stream, variant, rows, up, seed):
    rng = np.random.default_rng(seed)

    def sampled(samples, prototypes, counts, rows):
        exact = (samples[np.repeat(np.arange(len(samples)), counts)].astype(np.float64) * prototypes[rows]).sum(axis=1)
        room = _filter.bound(samples.shape[1]) - 2.0**-24  # the rest is for rounding to float32
        return (exact + room * rng.choice([-1.0, 1.0], exact.shape)).astype(np.float32)

    with always(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(_coarse, "_sampled", sampled)
        with_wrong_products(seed, check_against_the_plain_loop, stream, variant, (), rows, up)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("update", "runners_up"), [("fixed", 0), ("fixed", 3), ("running", 1)])
def test_with_codes_or_without_a_stream_has_the_same_answers_and_state(kind, update, runners_up):
    rows = kind_of(kind, np.random.default_rng(KINDS.index(kind)), 500, 40)
    np.random.default_rng(0).shuffle(rows)
    known, stream = rows[:150], rows[150:]
    cut = min(1.0, float(np.median(np.sort(stream @ known.T, axis=1)[:, -1])))

    def run():
        dictionary = PrototypeDictionary(known, cut, update=update)
        dictionary._block_rows = 50
        answers = [dictionary.observe(stream[:150], runners_up), dictionary.predict(stream[150:], runners_up)]
        if len(dictionary) > len(known) + 2:
            dictionary.merge(dictionary.ids[-2:])
        answers.append(dictionary.observe(stream[150:], runners_up))
        return join(answers), dictionary

    with always():
        coarse, one = run()
    assert one._coarse.nbytes > 0
    full, other = run()
    assert other._coarse.nbytes == 0
    assert coarse == full
    assert_same_state(one.state(), other.state())


@pytest.mark.parametrize("kind", [*KINDS, "outlying"])
@pytest.mark.parametrize("dimension", [3, 40, 129])
@pytest.mark.parametrize("k", [1, 3])
def test_what_codes_leave_out_is_below_the_cut_and_what_they_keep_reaches_it(kind, dimension, k):
    rng = np.random.default_rng(dimension)
    rows = kind_of("random" if kind == "outlying" else kind, rng, 400, dimension)
    if kind == "outlying":  # one dimension that nearly all of the length is in
        rows[:, 0] += 3.0
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    prototypes, samples = rows[:340], rows[340:]
    with always():
        found = Coarse().find(samples, prototypes, k)
    each, others = np.divmod(np.arange(len(samples) * len(prototypes)), len(prototypes))
    exact = Similarity(dimension)(samples, each, prototypes, others).reshape(len(samples), -1)
    for i in range(len(samples)):
        kept = found.rows[i][found.rows[i] >= 0]
        assert len(set(kept.tolist())) == len(kept)
        assert (np.delete(exact[i], kept) < found.cuts[i]).all()
        assert np.sum(exact[i, kept] >= found.cuts[i]) >= k


def test_codes_of_outlying_features_still_leave_most_prototypes_out():
    rng = np.random.default_rng(0)
    rows = kind_of("clustered", rng, 3000, 256)
    rows[:, 7] += 1.5
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    with always():
        found = Coarse().find(rows[2900:], rows[:2900], 1)
    assert found.rows.shape[1] < 100


def test_where_too_many_are_alike_the_first_samples_alone_are_answered():
    rows = kind_of("duplicated", np.random.default_rng(0), 300, 32)
    with always():
        whole = Coarse().find(rows[:50], rows, 1)
        part = Coarse().find(rows[:50], rows, 1, most=60)
    assert 1 <= len(part.cuts) < 50
    assert part.cuts.tolist() == whole.cuts[: len(part.cuts)].tolist()


def test_where_all_are_alike_no_more_pairs_are_held_than_there_is_room_for(monkeypatch, nothing_compiled_aside):
    monkeypatch.setattr(_coarse, "_TILE", 1 << 12)
    rows = np.repeat(kind_of("random", np.random.default_rng(0), 1, 32), 8064, axis=0)
    with always():
        coarse = Coarse()
        coarse.find(rows[:1], rows, 1)
        tracemalloc.start()
        found = coarse.find(rows[:64], rows, 1, most=10_000)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert (len(found.cuts), found.rows.shape[1]) == (1, 8064)
    assert peak < 3e6, "all pairs would take several times as much"


def test_codes_that_rule_out_too_little_are_left_aside_for_some_blocks_and_tried_again(monkeypatch):
    monkeypatch.setattr(_torch, "_multiplies_bytes", lambda torch: True)
    rng = np.random.default_rng(0)
    alike, apart = kind_of("adversarial", rng, 2000, 192), kind_of("random", rng, 200, 192)
    dictionary = PrototypeDictionary(np.concatenate([alike, apart]), 0.5)
    dictionary._block_rows, used = 200, []
    find = Coarse.find
    monkeypatch.setattr(Coarse, "find", lambda coarse, *given: used.append(len(given[0])) or find(coarse, *given))
    told = dictionary.predict(np.tile(alike[:200], (6, 1)))
    assert len(used) == 2, "four blocks go by in between"
    assert told.category.tolist() == np.tile(told.category[:200], 6).tolist()
    dictionary.predict(np.tile(apart, (20, 1)))
    assert len(used) == 2 + 20 - 16


def test_threads_that_predict_at_once_get_the_same_answers(monkeypatch):
    monkeypatch.setattr(_coarse, "_ROWS", 64)  # so that another thread comes while codes are made
    rows = kind_of("random", np.random.default_rng(0), 3200, 64)
    with always():
        expected = join([PrototypeDictionary(rows[:3000], 0.3).predict(rows[3000:], 1)])
        for _ in range(20):
            dictionary = PrototypeDictionary(rows[:3000], 0.3)
            with ThreadPoolExecutor(4) as pool:
                told = [pool.submit(dictionary.predict, rows[3000:], 1) for _ in range(4)]
            assert [join([one.result()]) for one in told] == [expected] * 4


def test_a_copy_by_pickle_makes_codes_of_its_own():
    rows = kind_of("random", np.random.default_rng(0), 300, 32)
    with always():
        dictionary = PrototypeDictionary(rows[:200], 0.3)
        expected = join([dictionary.predict(rows[200:])])
        for twin in (pickle.loads(pickle.dumps(dictionary)), copy.deepcopy(dictionary)):
            assert (dictionary._coarse.nbytes > 0, twin._coarse.nbytes) == (True, 0)
            assert join([twin.predict(rows[200:])]) == expected


def test_products_of_less_than_full_precision_are_not_relied_on(monkeypatch):
    monkeypatch.setattr(_torch, "_multiplies_bytes", lambda torch: True)
    assert _torch.loaded() is torch
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("medium")
        assert _torch.loaded() is None
    finally:
        torch.set_float32_matmul_precision(before)
    assert _torch.loaded() is torch


@pytest.mark.parametrize("said", ["autocast", "default device", "default type"])
def test_answers_are_the_same_whatever_pytorch_has_been_told_for_tensors_of_others(said):
    rows = kind_of("clustered", np.random.default_rng(0), 500, 40)
    with always():
        expected = PrototypeDictionary(rows[:400], 0.9).observe(rows[400:], 1)
        torch.set_default_dtype(torch.float64 if said == "default type" else torch.float32)
        try:
            device = torch.device("meta" if said == "default device" else "cpu")
            with torch.autocast("cpu", torch.bfloat16, said == "autocast"), device:
                told = PrototypeDictionary(rows[:400], 0.9).observe(rows[400:], 1)
        finally:
            torch.set_default_dtype(torch.float32)
    assert join([told]) == join([expected])


def test_products_of_bytes_that_are_not_exact_are_not_relied_on():
    code = (
        "import torch\n"
        "from newfound.discovery import _torch\n"
        "largest = torch.full((64, 64), 127, dtype=torch.int8)\n"
        "exact = bool((torch._int_mm(largest, largest) == 64 * 127**2).all())\n"
        "assert exact or _torch.loaded() is None\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=dict(os.environ, ONEDNN_MAX_CPU_ISA="AVX2"))


def test_a_dictionary_does_not_load_pytorch():
    code = (
        "import sys, numpy as np\n"
        "from newfound.discovery import PrototypeDictionary\n"
        "rows = np.random.default_rng(0).standard_normal((3000, 256))\n"
        "PrototypeDictionary(rows[:2000], 0.9).observe(rows[2000:])\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
