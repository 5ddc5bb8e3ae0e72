"""The known classes of the paper's benchmarks, found among the class folders that a person has."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from importlib import resources
from typing import Any

from newfound.errors import DataError, SettingsError

_NUMBERED = re.compile(r"(\d+)(?:[._\- ]|$)")  # 001.Black_footed_Albatross, 17_boxer, 5
SYNSET = re.compile(r"n\d{8}$")


def protocols() -> dict[str, int]:
    """The benchmarks whose splits are known, each with its number of classes."""
    return {name: about["classes"] for name, about in _table()["protocols"].items()}


def labelled_fraction() -> float:
    """How much of the known classes' samples the protocol labels."""
    return _table()["labelled_fraction"]


def known_classes(protocol: str, data_classes: Sequence[str]) -> list[str]:
    """The classes of a data set that a benchmark's protocol calls known.

    A class is told by the official number that its name starts with, counted from 0 or from 1 (`001.Laysan`, `17_boxer`
    or just `5`). Where the official order is alphabetical, names without numbers do as well.

    Args:
        protocol: one of `protocols()`.
        data_classes: the names of all of the data set's classes.

    Returns:
        The names of the known classes, in their official order.

    Raises:
        SettingsError: there is no such protocol.
        DataError: these are not all classes of that benchmark, or their order cannot be told from their names.
    """
    table = _table()["protocols"]
    if protocol not in table:
        raise SettingsError(f"there is no protocol {protocol!r}; choose one of {', '.join(table)}.")
    about, names = table[protocol], sorted(data_classes)
    if len(names) != about["classes"]:
        raise DataError(
            f"{protocol} has {about['classes']} classes, but this data set has {len(names)}: the split is defined "
            f"only for all of them. For classes of your own take `newfound split --known`."
        )
    ordered = _by_number(protocol, names) or _by_name(protocol, names, about)
    return [ordered[index] for index in sorted(about["known"])]


def _by_number(protocol: str, names: list[str]) -> list[str] | None:
    """The names in the order of the numbers that they start with; None if they do not all start with one."""
    found = [_NUMBERED.match(name) for name in names]
    if not all(found):
        return None
    by_number = {int(match[1]): name for match, name in zip(found, names, strict=True) if match}
    numbers = sorted(by_number)
    if numbers not in (list(range(len(names))), list(range(1, len(names) + 1))):
        raise DataError(
            f"the class names start with {len(numbers)} different numbers from {numbers[0]} to {numbers[-1]}; "
            f"{protocol} needs each of its {len(names)} official class numbers once, from 0 or from 1."
        )
    return [by_number[number] for number in numbers]


def _by_name(protocol: str, names: list[str], about: dict[str, Any]) -> list[str]:
    rule = about["names"]
    if rule == "synset" and not all(map(SYNSET.match, names)):
        rule = None
    if rule is None:
        raise DataError(
            f"the order of {protocol}'s classes ({about['order']}) cannot be told from names such as {names[0]!r}: "
            f"let each start with its official number, as in 001.{names[0]}."
        )
    return sorted(names, key=str.casefold) if rule == "ignoring case" else names


@lru_cache(maxsize=1)
def _table() -> dict[str, Any]:
    return json.loads(resources.files("newfound.benchmarks").joinpath("splits.json").read_text(encoding="utf-8"))
