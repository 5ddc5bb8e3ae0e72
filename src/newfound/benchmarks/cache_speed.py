"""The cache of trunk outputs: its bytes, and how fast entries are read, whole or in part."""

from __future__ import annotations

import os
import tempfile
from functools import partial
from pathlib import Path

import numpy as np

from newfound._memory import keep_large_allocations
from newfound.benchmarks._timing import SpeedRow, in_turn, spread
from newfound.cache import TokenCache
from newfound.errors import SettingsError

_SHAPE = (4, 320, 7, 7)  # four views through the trunk of tf_efficientnet_lite0


def cache_size(entries: int = 64) -> SpeedRow:
    """The bytes on disk against float32 arrays of the same numbers."""
    with tempfile.TemporaryDirectory() as folder:
        _fill(TokenCache(folder), entries)
        ours = sum(path.stat().st_size for path in Path(folder).rglob("*.tokens"))
    plain = entries * int(np.prod(_SHAPE)) * 4
    ratio = ours / plain
    return SpeedRow(
        "cache-bytes", ours / 1e6, plain / 1e6, "MB", ratio, ratio, ratio, "at most 0.5 of float32 arrays",
        f"{entries} entries of {_SHAPE} in half precision, and a header of 128 bytes each",
    )  # fmt: skip


def cache_reading(entries: int = 512, repeats: int = 7) -> SpeedRow:
    """Entries read whole in random order, as a stream reads them, against reading the same files."""
    return _reading("cache-read", "at least 0.5 of reading the files", entries, repeats, cold=False)


def cache_from_disk(entries: int = 512, repeats: int = 7) -> SpeedRow:
    """The same from the disk: the system is asked to forget the files before each round."""
    if not hasattr(os, "posix_fadvise"):
        raise SettingsError("this system cannot be asked to forget files.")
    return _reading("cache-disk", "none; reading the files is 1", entries, repeats, cold=True)


def cache_views(entries: int = 512, repeats: int = 7) -> SpeedRow:
    """Two views of every entry from maps that stay open, as an epoch takes them, against reading these bytes."""
    with tempfile.TemporaryDirectory() as folder:
        cache = TokenCache(folder)
        keys = _fill(cache, entries)
        paths, order = [cache._path(key) for key in keys], _order(entries)
        maps = [_there(cache.mapped(key)) for key in keys]
        out, buffer = np.empty((2, *_SHAPE[1:]), np.float16), bytearray(maps[0][:2].nbytes)

        def ours() -> None:
            for i in order:
                np.copyto(out, maps[i][1:3])

        def bare() -> None:
            for i in order:
                with paths[i].open("rb", buffering=0) as file:
                    file.seek(len(buffer) // 2)
                    file.readinto(buffer)

        fast, slow, ratios = in_turn(ours, bare, repeats)
        megabytes = entries * len(buffer) / 1e6
    return SpeedRow(
        "cache-views", megabytes / fast, megabytes / slow, "MB/s", *spread(ratios), "at least 1 of reading the files",
        f"two of the four views of {entries} entries of {_SHAPE} in random order, in the system's page cache",
    )  # fmt: skip


def _reading(stage: str, target: str, entries: int, repeats: int, *, cold: bool) -> SpeedRow:
    keep_large_allocations()  # as every encoder does, which is who reads the cache
    with tempfile.TemporaryDirectory() as folder:
        cache = TokenCache(folder)
        keys = _fill(cache, entries)
        paths, order = [cache._path(key) for key in keys], _order(entries)
        buffer = bytearray(paths[0].stat().st_size)

        def ours() -> None:
            for i in order:
                _there(cache.get(keys[i]))

        def bare() -> None:
            for i in order:
                with paths[i].open("rb", buffering=0) as file:
                    file.readinto(buffer)

        fast, slow, ratios = in_turn(ours, bare, repeats, before=partial(_forget, paths) if cold else None)
        megabytes = entries * len(buffer) / 1e6
    return SpeedRow(
        stage, megabytes / fast, megabytes / slow, "MB/s", *spread(ratios), target,
        f"{entries} entries of {_SHAPE} in random order, "
        + ("dropped from the system's page cache before" if cold else "in the system's page cache"),
    )  # fmt: skip


def _forget(paths: list[Path]) -> None:
    """Has the system write the files out and drop them from its page cache."""
    for path in paths:
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _order(entries: int) -> list[int]:
    return np.random.default_rng(1).permutation(entries).tolist()


def _there(entry: np.ndarray | None) -> np.ndarray:
    if entry is None:
        raise RuntimeError("an entry of the cache is gone")
    return entry


def _fill(cache: TokenCache, entries: int) -> list[str]:
    tokens = np.random.default_rng(0).standard_normal(_SHAPE, dtype=np.float32)
    keys = [cache.key("speed", i) for i in range(entries)]
    for key in keys:
        cache.put(key, tokens)
    return keys
