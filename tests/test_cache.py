"""Promises of newfound.cache: keyed by content, bounded, never stale, never half written."""

from __future__ import annotations

import os
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from newfound.cache import TokenCache, default_folder
from newfound.errors import SettingsError


@pytest.fixture
def cache(tmp_path) -> TokenCache:
    return TokenCache(tmp_path / "cache")


def files(cache: TokenCache) -> list[Path]:
    return [path for path in cache.folder.rglob("*") if path.is_file()]


def test_what_was_put_comes_back(cache):
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    key = cache.key("an entry")
    assert cache.get(key) is None
    cache.put(key, array)
    assert cache.get(key) is not None
    assert np.array_equal(cache.get(key), array)
    assert np.array_equal(TokenCache(cache.folder).get(key), array), "another process finds it too"


def test_an_entry_that_is_read_is_the_callers_own_and_one_that_is_mapped_is_the_files(cache):
    array = np.arange(12, dtype=np.float16).reshape(3, 4)
    cache.put("aa", array)
    own, mapped = cache.get("aa"), cache.mapped("aa")
    assert np.array_equal(mapped, array)
    assert not mapped.flags.writeable
    own[:] = 0
    assert np.array_equal(cache.get("aa"), array)
    assert cache.mapped("bb") is None


@pytest.mark.parametrize("size", [0, 60, 128, 140])
def test_an_entry_that_was_cut_short_is_none(cache, size):
    cache.put("aa", np.arange(12, dtype=np.float16))
    path = cache._path("aa")
    path.write_bytes(path.read_bytes()[:size])
    assert cache.get("aa") is None
    assert cache.mapped("aa") is None


def test_entries_take_half_precision(cache):
    values = np.random.default_rng(0).normal(size=(50, 40)).astype(np.float32)
    cache.put("aa", values)
    stored = cache.get("aa")
    assert stored.dtype == np.float16
    assert np.array_equal(stored, values.astype(np.float16))
    assert files(cache)[0].stat().st_size < values.nbytes / 2 + 200


def test_values_too_large_for_half_precision_keep_single_precision_without_a_warning(cache):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cache.put("aa", np.array([1.0, 1e6], np.float32))
    assert cache.get("aa").dtype == np.float32
    assert cache.get("aa").tolist() == [1.0, 1e6]


def test_a_key_depends_on_every_part_and_on_nothing_else(cache):
    keys = [cache.key(*parts) for parts in (("a", 1), ("a", 2), ("b", 1), ("a", "1"), ("a1",), ("a", 1, None))]
    assert len(set(keys)) == len(keys)
    assert cache.key("a", 1) == TokenCache(cache.folder / "elsewhere").key("a", 1)


def test_trimming_drops_the_least_recently_used_first(tmp_path):
    cache = TokenCache(tmp_path / "cache", max_bytes=3 * 1200)
    for number in range(5):
        key = cache.key(number)
        cache.put(key, np.zeros(500, np.float32))
        os.utime(cache._path(key), (1000 + number, 1000 + number))
    cache.get(cache.key(0))  # used just now
    assert cache.trim() == 2
    assert [cache._path(cache.key(number)).exists() for number in range(5)] == [True, False, False, True, True]
    assert sum(path.stat().st_size for path in files(cache)) <= cache.max_bytes
    assert cache.trim() == 0


def test_trimming_leaves_alone_what_is_not_of_the_cache(tmp_path):
    cache = TokenCache(tmp_path, max_bytes=0)
    cache.put("ab" + "0" * 38, np.ones((2, 2), np.float32))
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "heron.jpg").write_bytes(b"mine")
    (tmp_path / "onnx" / ".onnx-of-a-process-that-was-killed").mkdir(parents=True)
    (tmp_path / "onnx" / "old.onnx").write_bytes(b"model")
    assert cache.trim() == 2
    assert (tmp_path / "photos" / "heron.jpg").read_bytes() == b"mine"
    assert not (tmp_path / "onnx" / "old.onnx").exists()


def test_a_bound_of_nothing_empties_the_cache(tmp_path):
    cache = TokenCache(tmp_path / "cache", max_bytes=0)
    cache.put("aa", np.zeros(3, np.float32))
    assert cache.trim() == 1
    assert not files(cache)


def test_a_crash_while_writing_leaves_no_entry(cache, monkeypatch):
    def fail(*_args):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "replace", fail)  # the file is written, and not yet in place
    with pytest.raises(OSError, match="no space"):
        cache.put("aa", np.zeros(3, np.float32))
    assert cache.get("aa") is None
    assert not [path for path in cache.folder.rglob("*") if path.is_file()], "and nothing else either"


def test_the_cache_of_another_user_can_be_read_and_is_not_trimmed(tmp_path, monkeypatch):
    array = np.arange(3, dtype=np.float32)
    TokenCache(tmp_path).put("aa", array)

    def refuse(*_args, **_kwargs):  # what the system says to who may read only; root, as in containers, may do all
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "utime", refuse)
    monkeypatch.setattr(Path, "unlink", refuse)
    cache = TokenCache(tmp_path, max_bytes=0)
    assert np.array_equal(cache.get("aa"), array)
    assert cache.trim() == 0


def test_many_writers_of_one_entry_leave_a_whole_one(cache):
    array = np.arange(3000, dtype=np.float32) % 100
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: cache.put("aa", array), range(40)))
    assert np.array_equal(cache.get("aa"), array)
    assert len(files(cache)) == 1


def test_a_pickle_in_the_cache_is_not_loaded(cache):
    cache.put("aa", np.zeros(3, np.float32))
    cache._path("aa").write_bytes(pickle.dumps({"code": 1}))
    assert cache.get("aa") is None


def test_the_folder_and_the_bound_come_from_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("NEWFOUND_CACHE", str(tmp_path / "here"))
    monkeypatch.setenv("NEWFOUND_CACHE_GIB", "0.5")
    cache = TokenCache()
    assert cache.folder == tmp_path / "here"
    assert cache.max_bytes == 2**29
    monkeypatch.delenv("NEWFOUND_CACHE")
    assert default_folder() == Path.home() / ".cache" / "newfound"


@pytest.mark.parametrize("text", ["much", "-1", "nan", ""])
def test_a_bound_that_is_no_amount_is_named(monkeypatch, tmp_path, text):
    monkeypatch.setenv("NEWFOUND_CACHE_GIB", text)
    with pytest.raises(SettingsError, match="NEWFOUND_CACHE_GIB"):
        TokenCache(tmp_path)


def test_reading_never_uses_pythons_parser_which_threads_cannot_share_before_python_3_11_8(cache, monkeypatch):
    import ast

    def refuse(*_args, **_kwargs):
        raise SystemError("AST constructor recursion depth mismatch")

    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    monkeypatch.setattr(ast, "parse", refuse)
    cache.put("aa", array)
    assert np.array_equal(cache.get("aa"), array)
