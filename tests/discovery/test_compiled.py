"""Compiled loops give the bits that NumPy gives, and are there when they are worth it."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from computing import computing
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from newfound.discovery import BayesianDictionary, PrototypeDictionary, _compiled, _compiled_weighing
from newfound.discovery._coarse import Coarse
from newfound.discovery._exact import Similarity
from newfound.discovery._features import unit_rows
from newfound.discovery._model import Model
from newfound.errors import FeatureError

pytest.importorskip("numba")

seeds = st.integers(0, 2**32 - 1)
dimensions = st.one_of(st.integers(1, 70), st.sampled_from([127, 128, 129, 512, 700]))
WAYS = ("numpy", "compiled")


def both(work):
    """What the work gives in NumPy, and compiled."""
    results = []
    for how in WAYS:
        with computing(how):
            results.append(work())
    return results


def unit(rng, n, dimension):
    rows = rng.standard_normal((n, dimension)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@given(seeds, dimensions)
def test_similarities_are_the_same_bits(seed, dimension):
    rng = np.random.default_rng(seed)
    a, b = unit(rng, 5, dimension), unit(rng, 7, dimension)
    i, j = rng.integers(0, 5, 40), rng.integers(0, 7, 40)
    assert_array_equal(*both(lambda: Similarity(dimension)(a, i, b, j)))


@given(seeds, dimensions, st.sampled_from([1.0, 1e-3, 1e6]))
def test_log_ratios_are_the_same_bits(seed, dimension, scale):
    rng = np.random.default_rng(seed)
    model = Model(rng.random(dimension) * 9, cap=5)
    readings = (scale * rng.standard_normal((6, dimension))).astype(np.float32)
    weights, levels = rng.standard_normal((4, dimension)) * scale, rng.integers(0, 6, 30)
    at, which = rng.integers(0, 6, 30), rng.integers(0, 4, 30)
    assert_array_equal(*both(lambda: model.log_ratios(readings, at, weights, which, levels)))


@given(seeds, dimensions, st.sampled_from([1.0, 1 + 9e-6, 1 + 2e-5, 1 - 9e-6, 1e-20, 1e30, 3.0]),
       st.sampled_from([np.float16, np.float32, np.float64, np.int64]))  # fmt: skip
def test_rows_are_made_unit_rows_of_the_same_bits_and_what_was_given_stays(seed, dimension, scale, kind):
    rng = np.random.default_rng(seed)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        given_rows = (scale * unit(rng, 9, dimension).astype(np.float64)).astype(kind)
    given_rows[~np.isfinite(given_rows.astype(float)).all(axis=1) | ~given_rows.any(axis=1)] = 1
    before = given_rows.copy()
    assert_array_equal(*both(lambda: unit_rows(given_rows, "feature")))
    assert_array_equal(given_rows, before)
    given_rows.flags.writeable = False
    assert_array_equal(*both(lambda: unit_rows(given_rows, "feature")))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 0.0])
def test_a_row_without_a_direction_is_refused_in_the_same_words(bad):
    rows = unit(np.random.default_rng(0), 6, 20)
    rows[2] *= 3  # which must not be left half done
    rows[4] = bad
    before, words = rows.copy(), []
    for how in WAYS:
        with computing(how), pytest.raises(FeatureError) as refused:
            unit_rows(rows, "feature")
        words.append(str(refused.value))
    assert words[0] == words[1]
    assert "row 4 of 6" in words[0]
    assert_array_equal(rows, before)


def test_of_several_rows_without_a_direction_the_same_one_is_refused():
    rows = 3 * np.random.default_rng(0).standard_normal((200, 768)).astype(np.float32)
    rows[5], rows[87] = 0, np.nan  # NumPy looks at 85 rows at a time, and at NaN first
    words = []
    for how in WAYS:
        with computing(how), pytest.raises(FeatureError) as refused:
            unit_rows(rows, "feature")
        words.append(str(refused.value))
    assert words[0] == words[1]


def test_rows_that_the_processor_takes_for_zero_are_refused_in_the_same_words():
    torch = pytest.importorskip("torch")
    rows = unit(np.random.default_rng(0), 6, 20)
    rows[2] = 1e-41
    words = []
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor cannot be told to")
    try:
        for how in WAYS:
            with computing(how), pytest.raises(FeatureError) as refused:
                unit_rows(rows, "feature")
            words.append(str(refused.value))
    finally:
        torch.set_flush_denormal(False)
    assert words[0] == words[1]
    assert "zero" in words[0]


def same_answers(make, features, runners_up, cuts=(0.3, 0.55)):
    """Answers, predictions and the state of a dictionary that has seen all features are the same both ways."""
    stops = [0, *(int(cut * len(features)) for cut in cuts), len(features)]

    def told():
        dictionary = make()
        parts = [dictionary.observe(features[a:b], runners_up) for a, b in itertools.pairwise(stops)]
        return [*parts, dictionary.predict(features[:50], runners_up)], dictionary.state()

    (plain, plain_state), (fast, fast_state) = both(told)
    for one, other in zip(plain, fast, strict=True):
        for name in vars(one):
            assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert plain_state.keys() == fast_state.keys()
    for name, value in plain_state.items():
        assert_array_equal(value, fast_state[name], err_msg=name)
    return plain


@settings(max_examples=25)
@given(seeds, st.sampled_from(["fixed", "running"]), st.integers(0, 3), st.sampled_from([24, 200, 256]),
       st.sampled_from([0.0, 0.02, 0.3]))  # fmt: skip
def test_prototypes_answer_the_same(seed, update, runners_up, dimension, noise):
    rng = np.random.default_rng(seed)
    centres = unit(rng, 40, dimension)
    features = centres[rng.integers(0, 40, 700)] + noise * unit(rng, 700, dimension)
    features[::7] = features[3]  # some are the same
    parts = same_answers(lambda: PrototypeDictionary(centres[:20], 0.8, update=update), features, runners_up)
    assert any(part.created.any() for part in parts)


@settings(max_examples=25)
@given(seeds, st.integers(0, 3), st.booleans(), st.sampled_from([None, -20.0, 2.0]), st.sampled_from([0.1, 1.0, 3.0]),
       st.sampled_from([None, 60]), st.sampled_from([None, 2.0]))  # fmt: skip
def test_evidence_answers_the_same(seed, runners_up, learn_known, alone, spread, every, concentration):
    rng = np.random.default_rng(seed)
    centres = 2.5 * rng.standard_normal((30, 12))
    readings = (centres[rng.integers(0, 30, 500)] + spread * rng.standard_normal((500, 12))).astype(np.float32)
    readings[::9] = readings[4]
    settings = {"learn_known": learn_known, "alone": alone, "reconsider_every": every, "concentration": concentration}
    parts = same_answers(
        lambda: BayesianDictionary(np.full(12, 6.0), centres[:10] * 5, np.full(10, 5), 2.0, **settings),
        readings, runners_up,
    )  # fmt: skip
    assert [len(part) for part in parts] == [150, 125, 225, 50]  # all were answered


def test_evidence_with_more_equals_than_there_is_room_for_answers_the_same(monkeypatch):
    rng = np.random.default_rng(0)
    monkeypatch.setattr(_compiled_weighing, "_PAIRS", 1)  # so that there is room for one reading's at a time
    twins = np.repeat(rng.standard_normal((1, 8)) * 3, 200, axis=0)
    readings = (twins[:150] + 0.2 * rng.standard_normal((150, 8))).astype(np.float32)
    parts = same_answers(
        lambda: BayesianDictionary(np.full(8, 4.0), twins * 5, np.full(200, 5), 1.0, alone=-5.0, learn_known=True),
        readings, 2,
    )  # fmt: skip
    assert len(parts[0]) == 45


@pytest.mark.parametrize("first", WAYS)
def test_codes_that_were_made_one_way_are_searched_the_other_way(first):
    pytest.importorskip("torch")
    from newfound.discovery import _torch

    if _torch.loaded() is None:
        pytest.skip("this processor has no instructions for products of bytes")
    rng = np.random.default_rng(0)
    prototypes = unit(rng, 3000, 256)
    samples = unit_rows(prototypes[::10] + 0.5 * unit(rng, 300, 256), "feature")
    coarse = Coarse()
    with computing(first):
        coarse.find(samples[:64], prototypes, 3)
    with computing(WAYS[1 - WAYS.index(first)]):
        found = coarse.find(samples, prototypes, 3)
    products = samples.astype(np.float64) @ prototypes.T.astype(np.float64)
    for n, row in enumerate(np.argsort(-products, axis=1)[:, :3]):
        assert set(row) <= set(found.rows[n])
    left_out = products.copy()
    np.put_along_axis(left_out, np.where(found.rows < 0, found.rows[:, :1], found.rows), -9.0, axis=1)
    assert (left_out.max(axis=1) < found.cuts).all()


def test_loops_are_loaded_in_the_background_once_enough_was_computed(monkeypatch):
    monkeypatch.delenv(_compiled.SWITCH, raising=False)
    loader = _compiled._Loader()
    monkeypatch.setattr(_compiled, "_loader", loader)
    assert _compiled.kernels(1000) is None
    assert not loader._begun  # a thousand numbers are not worth it
    _compiled.kernels(_compiled._WORTH)
    for thread in threading.enumerate():
        if thread.name == "newfound-compile":
            thread.join()
    assert _compiled.kernels(1) is not None


def test_the_switch_keeps_loops_from_being_compiled(monkeypatch):
    monkeypatch.setenv(_compiled.SWITCH, "0")
    monkeypatch.setattr(_compiled, "_loader", _compiled._Loader())
    assert _compiled.SWITCH in _compiled.load()
    assert _compiled.kernels(10 * _compiled._WORTH) is None


def test_where_nothing_can_be_compiled_numpy_does_the_work(monkeypatch):
    monkeypatch.delenv(_compiled.SWITCH, raising=False)
    monkeypatch.setitem(sys.modules, "numba", None)  # as if it were not installed
    monkeypatch.delitem(sys.modules, "newfound.discovery._kernels", raising=False)
    monkeypatch.setattr(_compiled, "_loader", _compiled._Loader())
    assert "numba" in _compiled.load()
    assert _compiled.kernels(10 * _compiled._WORTH) is None
    assert PrototypeDictionary(np.eye(3), 0.7).observe(np.eye(3)).category.tolist() == [0, 1, 2]


def test_few_features_load_neither_the_compiler_nor_pytorch():
    asked = (
        "import sys, numpy as np; from newfound.discovery import PrototypeDictionary; "
        "PrototypeDictionary(np.eye(8), 0.7).observe(np.eye(8)); "
        "print([name for name in ('numba', 'llvmlite', 'torch') if name in sys.modules])"
    )
    environment = {name: value for name, value in os.environ.items() if name != _compiled.SWITCH}
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.strip() == "[]"


def test_where_no_thread_can_be_started_numpy_does_the_work(monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.delenv(_compiled.SWITCH, raising=False)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    monkeypatch.setattr(_compiled, "_loader", _compiled._Loader())
    assert _compiled.kernels(2 * _compiled._WORTH) is None
    assert _compiled.load() == "can't start new thread"


def in_a_process_of_its_own(asked, **environment):
    """What such a program prints, and how it ends."""
    inherited = {name: value for name, value in os.environ.items() if name != _compiled.SWITCH}
    return subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, env=inherited | environment)


def test_loops_that_may_not_be_compiled_are_left_to_numpy():
    done = in_a_process_of_its_own(
        "from newfound.discovery import _compiled; print(_compiled.load())", NUMBA_DISABLE_JIT="1"
    )
    assert "NUMBA_DISABLE_JIT" in done.stdout


def test_who_asks_for_loops_that_are_being_compiled_waits_for_them(tmp_path):
    done = in_a_process_of_its_own(
        "import time; from newfound.discovery import _compiled; _compiled.kernels(2 * _compiled._WORTH); "
        "time.sleep(1); print(_compiled.load(), _compiled.kernels(1) is not None)",
        NUMBA_CACHE_DIR=str(tmp_path),
    )
    assert done.stdout.split() == ["None", "True"]


@pytest.mark.parametrize(("ending", "code"), [("sys.exit(3)", 3), ("signal.raise_signal(2)", -signal.SIGINT)])
def test_a_program_ends_as_ever_while_loops_are_being_compiled(ending, code, tmp_path):
    done = in_a_process_of_its_own(
        "import signal, sys, time; from newfound.discovery import _compiled; "
        "signal.signal(signal.SIGINT, signal.default_int_handler); "  # in the background it is ignored from the start
        f"_compiled.kernels(2 * _compiled._WORTH); time.sleep(2); {ending}",
        NUMBA_CACHE_DIR=str(tmp_path),  # which is empty: all have to be compiled
    )
    assert done.returncode == code
    assert not list(tmp_path.rglob("*.weigh-*"))  # the last one: the program has not waited for it
