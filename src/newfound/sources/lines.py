"""Lines of paths or JSON, as standard input brings them."""

from __future__ import annotations

import codecs
import json
import math
import os
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from newfound.errors import DataError
from newfound.sources.items import Item, from_paths


def from_lines(read_line: Callable[[], bytes | None]) -> Iterator[Item]:
    """The images that lines name, each line read only when its turn comes; empty lines are passed over.

    A line is the path of an image or a folder, or a JSON object such as {"image": "a.jpg", "id": 7}: what else it
    holds is given back with the answer. A path that starts with a brace can be written as ./{...}. A line that is
    neither gives an item with an error. The mark that some editors put at the start of UTF-8 is passed over.

    Args:
        read_line: returns the next line, or nothing at the end, as `sys.stdin.buffer.readline` does.
    """
    mark = codecs.BOM_UTF8
    while line := read_line():
        line, mark = line.removeprefix(mark).rstrip(b"\r\n"), b""
        if line.lstrip().startswith(b"{"):
            yield from _from_json(line)
        elif line.strip():
            yield from from_paths([os.fsdecode(line)])


def _from_json(line: bytes) -> Iterator[Item]:
    text = line.decode("utf-8", "replace")
    try:
        fields: dict[str, Any] = json.loads(line, parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError) as error:  # ValueError: also bytes that are not UTF-8
        yield Item(None, text, error=f"the line starts with a brace, but is not JSON: {error}")
        return
    path = fields.pop("image", None)
    if not isinstance(path, str) or not path.strip():
        yield Item(None, text, fields, 'the line has no path in "image"; write {"image": "a.jpg", ...}')
        return
    try:
        os.fsencode(path)
    except UnicodeEncodeError:  # half of a pair that JSON can write and no file can be called
        yield Item(None, text, fields, 'the line has a path in "image" that no file can have')
        return
    yield from from_paths([path], fields)


def _refuse(name: str) -> NoReturn:
    raise DataError(f"{name} is no JSON value")


def _finite(text: str) -> float:
    """The number, unless it is too large for one: it would be given back as Infinity, which is no JSON."""
    number = float(text)
    return number if math.isfinite(number) else _refuse(text)
