"""Answers as rows of a table, whose columns are the same whatever the stream brings."""

from __future__ import annotations

import json
from typing import Any

_ANSWER = ("image", "category", "name", "is_new", "score", "cut", "runners_up", "probability", "new_probability")
# `extra`: what else a line holds, as JSON; that is what its sender wrote beside the image.
COLUMNS = (*_ANSWER, "number", "repeated", "error", "extra")


def as_row(line: dict[str, Any]) -> dict[str, Any]:
    """A line of answers with exactly the keys COLUMNS; None for what it does not hold."""
    row = {name: line.get(name) for name in COLUMNS[:-1]}
    rest = {name: value for name, value in line.items() if name not in row}
    return row | {"extra": json.dumps(rest) if rest else None}
