"""A cache on disk for what the frozen trunk computes, keyed by content.

One file an image holds the trunk's outputs for its views, in half precision. The file's name is a hash of the image's
bytes, the trunk's weights and the views' settings: change any of them and the name changes, so a cached entry is never
stale. Files appear by rename, so a crash leaves no half entry. The cache is bounded: the least recently
used entries go first.
"""

from __future__ import annotations

import hashlib
import io
import json
import mmap
import os
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from newfound._arguments import a_path
from newfound.errors import CacheError, SettingsError

_FORMAT = 2  # raise when the meaning of an entry changes
_HEADER = 128  # bytes of JSON, padded, before the numbers
_DTYPES = {"float16": np.float16, "float32": np.float32}
_DEFAULT_GIB = 20.0
_MARKED_FOR = 600  # seconds: to mark an entry as used takes half as long as to map it
_OURS = {".tokens", ".part", ".onnx"}


class TokenCache:
    """Arrays by key in a folder.

    Args:
        folder: where; None takes ``NEWFOUND_CACHE`` or ``~/.cache/newfound``.
        max_bytes: the bound, kept by :meth:`trim`; None takes ``NEWFOUND_CACHE_GIB`` (20).
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None, max_bytes: int | None = None) -> None:
        self.folder = a_path(folder, "cache") if folder is not None else default_folder()
        self.max_bytes = max_bytes if max_bytes is not None else _limit_from_environment()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SettingsError(
                f"the cache folder {self.folder} cannot be made ({error.strerror}); set NEWFOUND_CACHE to another."
            ) from error

    def key(self, *parts: object) -> str:
        """A name from everything that the entry depends on."""
        return hashlib.blake2b(repr((_FORMAT, parts)).encode(), digest_size=20).hexdigest()

    def put(self, key: str, array: np.ndarray) -> None:
        """Store an array; half precision unless a value would overflow it."""
        with np.errstate(over="ignore"):
            small = array.astype(np.float16)
        if not np.isfinite(small).all():
            small = array.astype(np.float32)
        path = self._path(key)
        part: Path | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as file:
                part = Path(file.name)
                file.write(json.dumps({"dtype": small.dtype.name, "shape": small.shape}).encode().ljust(_HEADER))
                file.write(small.tobytes())
            os.replace(part, path)
        except OSError as error:
            if part is not None:
                part.unlink(missing_ok=True)
            raise CacheError(
                f"the cache {self.folder} cannot be written ({error.strerror or error}); make room, or set "
                f"NEWFOUND_CACHE to another folder. Nothing that was cached is lost."
            ) from error

    def get(self, key: str) -> np.ndarray | None:
        """The whole entry, read at once; None if it is not there or damaged. Marks it as used."""
        return self._opened(key, _read)

    def mapped(self, key: str) -> np.ndarray | None:
        """The same, mapped from its file and read-only: for who wants a few of its numbers, now and then."""
        return self._opened(key, _mapped)

    def _opened(self, key: str, content_of: Callable[[int, int], Any]) -> np.ndarray | None:
        path = os.path.join(self.folder, key[:2], f"{key}.tokens")  # a Path takes as long to make as to open
        try:
            # Not NumPy's own format: it reads headers with Python's parser, which in Python before 3.11.8 fails now
            # and then when several threads use it (CPython issue 106905), and decoding threads read the cache.
            file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
            try:
                status = os.fstat(file)
                content = content_of(file, status.st_size)
            finally:
                os.close(file)
            if abs(time.time() - status.st_mtime) > _MARKED_FOR:
                with suppress(OSError):  # who may read another's cache may not mark its entries
                    os.utime(path)
            header = json.loads(bytes(content[:_HEADER]))
            return np.frombuffer(content, _DTYPES[header["dtype"]], offset=_HEADER).reshape(header["shape"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def trim(self) -> int:
        """Remove least recently used entries until the bound holds; returns how many were removed."""
        entries = []
        for path in self.folder.glob("*/*"):
            if path.suffix not in _OURS:  # the folder may be one that others use too
                continue
            try:
                status = path.stat()
            except FileNotFoundError:  # another process was faster
                continue
            entries.append((status.st_mtime, status.st_size, path))
        excess = sum(size for _, size, _ in entries) - self.max_bytes
        removed = 0
        for _, size, path in sorted(entries):
            if excess <= 0:
                break
            try:
                path.unlink(missing_ok=True)
            except OSError:  # another's, or in use where that keeps a file
                continue
            excess -= size
            removed += 1
        return removed

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.tokens"


def _read(file: int, size: int) -> np.ndarray:
    """A file's bytes: one call, which is faster than a map for who wants all of them."""
    content = np.empty(size, np.uint8)
    with io.FileIO(file, closefd=False) as reader:
        if reader.readinto(content.data) != size:
            raise ValueError("the file has become shorter")
    return content


def _mapped(file: int, _size: int) -> mmap.mmap:
    """A file's bytes, fetched as they are looked at. Not np.memmap, which takes longer to set up."""
    return mmap.mmap(file, 0, access=mmap.ACCESS_READ)


def default_folder() -> Path:
    """Where the cache is if nobody says so. Raises SettingsError if there is no place for it."""
    chosen = os.environ.get("NEWFOUND_CACHE")
    if chosen:
        return Path(chosen)
    try:
        return Path.home() / ".cache" / "newfound"
    except RuntimeError:
        raise SettingsError("this user has no home folder for the cache: set NEWFOUND_CACHE to a folder.") from None


def _limit_from_environment() -> int:
    text = os.environ.get("NEWFOUND_CACHE_GIB", str(_DEFAULT_GIB))
    try:
        gib = float(text)
    except ValueError:
        gib = -1.0
    if not 0 <= gib < float("inf"):
        raise SettingsError(f"NEWFOUND_CACHE_GIB={text!r} is not a number of gibibytes.")
    return int(gib * 2**30)
