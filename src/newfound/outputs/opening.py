"""Which file answers go to, and what happens to one that is there already."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Literal

from newfound.errors import DataError, SettingsError
from newfound.files import parts_of
from newfound.outputs.parquet import Parquet
from newfound.outputs.writers import Csv, JsonLines, Writer, check_continues, mend_end

FORMATS = ("jsonl", "csv", "parquet")
_SPREADSHEETS = (".xlsx", ".xls", ".ods", ".tsv")
_ENDINGS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".parquet": "parquet", ".pq": "parquet"}


@contextmanager
def open_output(
    path: Path | None,
    format: str | None = None,
    *,
    resumed: bool = False,
    overwrite: bool = False,
    say: Callable[[str], None] = lambda message: None,
) -> Iterator[Writer]:
    """A writer that is closed properly however the stream ends.

    Without a path it writes to standard output. A file that is there and not empty is never lost by accident: if the
    stream is `resumed`, JSON lines and CSV are added to it and Parquet, which cannot grow, goes to FILE-2.parquet and
    so on; else it is an error, unless it may be overwritten.

    Args:
        format: one of FORMATS; None goes by the ending of the path, and JSON lines for any other ending.
        say: is told, in a line, what happens to a file that is there, and of what a killed writer left of one.

    Raises SettingsError for a format that is none, or that standard output cannot have; DataError if the file cannot
    be written, or is there and may not be.
    """
    if format is None and path is not None and path.suffix.lower() in _SPREADSHEETS:
        raise SettingsError(f"answers cannot be written as {path.suffix}: name a file that ends in .csv, for {path}")
    format = format or _ENDINGS.get(path.suffix.lower() if path else "", "jsonl")
    if format not in FORMATS:
        raise SettingsError(f"{format!r} is no format for answers; there are {', '.join(FORMATS)}")
    writer = _standard_output(format) if path is None else _file(path, format, resumed, overwrite, say)
    try:
        yield writer
    finally:
        writer.close()


def _standard_output(format: str) -> Writer:
    if format == "parquet":
        raise SettingsError("Parquet cannot go to standard output: name a file with --output FILE.parquet")
    return JsonLines(sys.stdout) if format == "jsonl" else Csv(sys.stdout)


def _file(path: Path, format: str, resumed: bool, overwrite: bool, say: Callable[[str], None]) -> Writer:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise DataError(f"cannot write {path}: it is a folder")
        keep = path.is_file() and path.stat().st_size > 0 and not overwrite
        if keep and not resumed:
            raise DataError(f"{path} is there already: --overwrite replaces it, or name another file")
        return _parquet(path, keep, say) if format == "parquet" else _text(path, format, keep, say)
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror}") from error


def _parquet(path: Path, keep: bool, say: Callable[[str], None]) -> Writer:
    for part in parts_of(path):
        say(
            f"{part} is what a command wrote that was killed, unless one is writing it now: it cannot be read, and may "
            "be removed; --repeat writes the answers that the journal has already"
        )
    if keep:
        numbered = (path.with_name(f"{path.stem}-{number}{path.suffix}") for number in count(2))
        path = next(other for other in numbered if not other.exists())
        say(f"a Parquet file cannot grow: what follows goes to {path}")
    return Parquet(path)


def _text(path: Path, format: str, keep: bool, say: Callable[[str], None]) -> Writer:
    if keep:
        check_continues(path, format)
        if mended := mend_end(path, format):
            say(mended)
        say(f"adding to {path}")
    mode: Literal["a", "w"] = "a" if keep else "w"
    file = open(path, mode, encoding="utf-8", errors="surrogateescape", newline="", opener=_at_the_end)  # noqa: SIM115
    return JsonLines(file, path) if format == "jsonl" else Csv(file, path, header=not keep)


def _at_the_end(path: str, flags: int) -> int:
    """An opener, so that of two processes that write one file neither writes into the other's lines."""
    return os.open(path, flags | os.O_APPEND, 0o666)
