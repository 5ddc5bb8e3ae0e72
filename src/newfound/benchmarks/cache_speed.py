"""The cache of trunk outputs: its bytes, and how fast entries are read."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from newfound.benchmarks._timing import SpeedRow, in_turn, spread
from newfound.cache import TokenCache

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


def cache_reading(entries: int = 512, repeats: int = 5) -> SpeedRow:
    """Entries mapped and copied out in random order, against reading the same files whole in the same order."""
    with tempfile.TemporaryDirectory() as folder:
        cache = TokenCache(folder)
        keys = _fill(cache, entries)
        paths = [cache._path(key) for key in keys]
        order = np.random.default_rng(1).permutation(entries).tolist()
        out, buffer = np.empty(_SHAPE, np.float16), bytearray(paths[0].stat().st_size)

        def ours() -> None:
            for i in order:
                entry = cache.get(keys[i])
                if entry is None:
                    raise RuntimeError("an entry of the cache is gone")
                np.copyto(out, entry)

        def bare() -> None:
            for i in order:
                with paths[i].open("rb", buffering=0) as file:
                    file.readinto(buffer)

        fast, slow, ratios = in_turn(ours, bare, repeats)
        megabytes = entries * len(buffer) / 1e6
    return SpeedRow(
        "cache-read", megabytes / fast, megabytes / slow, "MB/s", *spread(ratios), "at least 0.5 of reading the files",
        f"{entries} entries of {_SHAPE} in random order, in the system's page cache",
    )  # fmt: skip


def _fill(cache: TokenCache, entries: int) -> list[str]:
    tokens = np.random.default_rng(0).standard_normal(_SHAPE, dtype=np.float32)
    keys = [cache.key("speed", i) for i in range(entries)]
    for key in keys:
        cache.put(key, tokens)
    return keys
