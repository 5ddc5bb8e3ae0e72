"""JSON lines and CSV: written line by line, and continued where they ended."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import IO, Any, Protocol, TextIO

from newfound.errors import DataError
from newfound.files import json_text
from newfound.outputs.tables import COLUMNS, as_row, csv_line


class Writer(Protocol):
    """Takes answers one by one."""

    def write(self, line: dict[str, Any]) -> None:
        """Write one answer. Raises DataError if it cannot be written."""

    def close(self) -> None:
        """Finish the file. Raises DataError if that is not possible."""


class _Text:
    """A text file that is written line by line; standard output if it has no path."""

    def __init__(self, file: TextIO, path: Path | None = None) -> None:
        self._file, self._path = file, path

    def _put(self, text: str) -> None:
        try:
            self._file.write(text)
            self._file.flush()  # whoever reads the pipe sees it now
        except OSError as error:
            raise self._in_words(error) from error

    def close(self) -> None:
        if self._path is None:
            return
        try:
            self._file.close()
        except OSError as error:
            raise self._in_words(error) from error

    def _in_words(self, error: OSError) -> Exception:
        """A pipe whose reader has gone is for the command to deal with; a full disk is for a person."""
        return error if self._path is None else DataError(f"cannot write {self._path}: {error.strerror}")


class JsonLines(_Text):
    """One JSON object a line."""

    def write(self, line: dict[str, Any]) -> None:
        self._put(json_text(line, encoding=self._file.encoding) + "\n")

    @staticmethod
    def is_line(text: str) -> bool:
        """Whether this is one whole answer."""
        try:
            return isinstance(json.loads(text), dict)
        except ValueError:
            return False


class Csv(_Text):
    """One row an answer, under a header; runners-up, their probabilities and extra are JSON text."""

    def __init__(self, file: TextIO, path: Path | None = None, *, header: bool = True) -> None:
        super().__init__(file, path)
        if header:
            self._put(csv_line(COLUMNS))

    def write(self, line: dict[str, Any]) -> None:
        self._put(csv_line(map(_cell, as_row(line).values())))

    @staticmethod
    def is_line(text: str) -> bool:
        """Whether this is one whole row."""
        try:
            return [len(row) for row in csv.reader(io.StringIO(text, newline=""), strict=True)] == [len(COLUMNS)]
        except csv.Error:  # a quote that is not closed
            return False


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value) if isinstance(value, (list, dict)) else value


def check_continues(path: Path, format: str) -> None:
    """Raise DataError unless what is in a file, which is not empty, is of this format."""
    with path.open(encoding="utf-8", errors="surrogateescape", newline="") as file:
        first = file.readline()
    fits = JsonLines.is_line(first) if format == "jsonl" else first.rstrip("\r\n") == ",".join(COLUMNS)
    if not fits:
        older = " (an older newfound had other columns)" if format == "csv" else ""
        raise DataError(f"{path} does not start like the {format} that would be added to it{older}; name another file")


def mend_end(path: Path, format: str) -> str:
    """Make a file end with a whole line, where a crash has cut the last one off. Returns what was done, or nothing."""
    with path.open("r+b") as file:
        size = file.seek(0, io.SEEK_END)
        whole = _end_of_lines(file, size) if format == "jsonl" else _end_of_rows(file)
        file.seek(whole)
        last = file.read()
        if not last:
            return ""
        is_line = JsonLines.is_line if format == "jsonl" else Csv.is_line
        if is_line(last.decode("utf-8", "surrogateescape")):
            file.write(b"\n")
            return ""
        file.truncate(whole)
    return f"the last line of {path} was cut off ({len(last)} bytes) and has been removed"


def _end_of_lines(file: IO[bytes], size: int) -> int:
    """Where the last whole line ends, looked for from the end of the file."""
    begin, tail = size, b""
    while begin > 0 and b"\n" not in tail:
        begin = max(0, begin - 65536)
        file.seek(begin)
        tail = file.read(size - begin)
    return begin + tail.rfind(b"\n") + 1


def _end_of_rows(file: IO[bytes]) -> int:
    """Where the last whole row ends. Whether a line break is inside quotes, only reading from the start can tell."""
    whole = read = quotes = 0
    file.seek(0)
    for line in file:
        read += len(line)
        quotes += line.count(b'"')
        if quotes % 2 == 0 and line.endswith(b"\n"):
            whole = read
    return whole
