"""The results store: one JSON line a cell, appended when the cell is measured and never changed.

Several processes may write to one store. A line is appended whole, under a lock; a line that a crash cut short is
passed over, and its cell measured again. Whoever measures a cell holds its claim, which the operating system takes back
when the process dies, so a cell is measured once however many processes share the work.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from newfound.errors import DataError

FILE = "cells.jsonl"
Result = dict[str, Any]


class Store:
    """The results under a folder, by the key of their cell."""

    def __init__(self, folder: str | os.PathLike) -> None:
        """Raises DataError if nothing can be written there."""
        self.folder = Path(folder)
        self.path = self.folder / FILE
        self._locks = self.folder / ".locks"
        try:
            self._locks.mkdir(parents=True, exist_ok=True)
            (self._locks / ".gitignore").write_text("*\n", encoding="utf-8")
            if self.path.exists():
                self.path.open("ab").close()  # rather now than after hours
        except OSError as error:
            raise _cannot_write(self.folder, error) from error

    def results(self) -> dict[str, Result]:
        """Every result by key, oldest first; the newest of several for one cell."""
        return {result["key"]: result for result in read_lines(self.path)}

    def add(self, result: Result) -> None:
        """Append a result and wait until it is on disk. Raises DataError if it cannot be written."""
        from filelock import FileLock

        line = json.dumps(result, allow_nan=False, sort_keys=True) + "\n"
        try:
            with FileLock(self._locks / "write.lock"), self.path.open("ab+") as file:
                if file.tell() and not _ends_a_line(file):
                    line = "\n" + line  # after what a crash cut short
                file.write(line.encode())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise _cannot_write(self.path, error) from error

    @contextmanager
    def claim(self, key: str, *, wait: bool = False) -> Iterator[bool]:
        """Hold a cell while measuring it; yields False if another process does, unless told to wait for it.

        Raises DataError if there can be no lock.
        """
        from filelock import FileLock, Timeout

        lock = FileLock(self._locks / f"{key}.lock", timeout=-1 if wait else 0)
        try:
            lock.acquire()
        except Timeout:
            pass
        except OSError as error:
            raise _cannot_write(self.folder, error) from error
        try:
            yield lock.is_locked
        finally:
            lock.release()


def read_lines(path: Path, key: str = "key") -> list[Result]:
    """The results in a store's file that have this key, whole lines only; none if there is no such file."""
    found = []
    try:
        lines = path.read_bytes().splitlines() if path.exists() else []
    except OSError as error:
        raise DataError(f"the results in {path} cannot be read: {error.strerror or error}.") from error
    for line in lines:
        try:
            result = json.loads(line)
        except ValueError:
            continue
        if isinstance(result, dict) and key in result:
            found.append(result)
    return found


def _cannot_write(path: Path, error: OSError) -> DataError:
    return DataError(f"results cannot be written to {path}: {error.strerror or error}.")


def _ends_a_line(file: Any) -> bool:
    file.seek(-1, os.SEEK_END)
    return file.read(1) == b"\n"
