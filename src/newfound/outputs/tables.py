"""Answers as rows of a table, whose columns are the same whatever the stream brings."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from typing import Any

_ANSWER = ("image", "category", "name", "is_new", "score", "cut", "runners_up")
_PROBABILITIES = ("probability", "new_probability", "runners_up_probability")
# `extra`: what else a line holds, as JSON; that is what its sender wrote beside the image.
COLUMNS = (*_ANSWER, *_PROBABILITIES, "number", "repeated", "error", "extra")


def as_row(line: dict[str, Any]) -> dict[str, Any]:
    """A line of answers with exactly the keys COLUMNS; None for what it does not hold."""
    row = {name: line.get(name) for name in COLUMNS[:-1]}
    rest = {name: value for name, value in line.items() if name not in row}
    return row | {"extra": json.dumps(rest) if rest else None}


def csv_line(values: Iterable[Any]) -> str:
    """A row of CSV with its line break. Names may hold line breaks of any kind: every reader gets them back."""
    out = io.StringIO(newline="")
    csv.writer(out).writerow(values)  # with its own line break it quotes both \r and \n, with another only that one
    return out.getvalue().removesuffix("\r\n") + "\n"
