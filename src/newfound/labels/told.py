"""What a tool says of an image, and which sighting it means."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from newfound.crops import WHOLE, Box
from newfound.errors import DataError
from newfound.labels.findings import Finding, Findings

_SAME_BOX = 0.5  # overlap from which a box that a person has moved is still the box that was


@dataclass(frozen=True)
class Told:
    """The label that an image, or a box in one, has in a tool's file.

    Attributes:
        label: A category's name, there or new.
        file: Its path, or the end of it.
        number: Of the sighting, where the tool has kept it.
        was: The label it was given to the tool with, where that is known: if it is the same, nothing is said.
        category: The id of the category that is meant, where the tool has kept it.
        content: The hash of the image's content, where only that can tell which image it is.
    """

    label: str
    file: str | None = None
    box: Box | None = None
    number: int | None = None
    was: str | None = None
    category: int | None = None
    content: bytes | None = None


@dataclass
class Corrections:
    """What a file says: a label for each sighting, and names for categories.

    Attributes:
        told: By the number of the sighting.
        names: By category: what the tool calls it now. None of them is said where a tool has no ids of categories.
        unknown: Images that the journal does not have, and how often each was named.
    """

    told: dict[int, Told] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    unknown: Counter[str] = field(default_factory=Counter)


def matched(findings: Findings, said: Iterable[Told], names: dict[int, str]) -> Corrections:
    """The sightings that a tool speaks of.

    Raises:
        DataError: A number that belongs to another image here: the file is of another journal. Or one image in two
            folders: either may be the one that a person has left behind.
    """
    corrections = Corrections(names=names)
    for told in said:
        thing = _thing(findings, told)
        if thing is None:
            corrections.unknown[told.file or f"sighting {told.number}"] += 1
            continue
        before = corrections.told.setdefault(thing.number, told)
        if told.content is not None and (before.label, before.category) != (told.label, told.category):
            raise DataError(f"{before.file} and {told.file} are one image in two folders: delete it where it is wrong.")
        corrections.told[thing.number] = told
    return corrections


def number_in(value: object) -> int | None:
    """The number of a sighting in what a tool has kept of it, a number or text; None if it is none."""
    text = str(value).removesuffix(".0")  # spreadsheets and data frames make floats of whole numbers
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def box_of(sides: Any, what: str) -> Box | None:
    """The box that a tool has written for something, or None; raises DataError if it is no four numbers."""
    if not sides:
        return None
    try:
        left, top, width, height = map(float, sides)
    except (TypeError, ValueError):
        raise DataError(f"{what} has a box that is no four numbers: {sides}") from None
    return Box(left, top, width, height)


def _thing(findings: Findings, told: Told) -> Finding | None:
    if told.content is not None:
        return findings.alike(told.content, told.category)
    if told.number is not None and (found := findings.numbered(told.number)) is not None:
        path, thing = found
        if told.file is not None and _stem(path) not in (_stem(told.file), _stem(unquote(told.file))):
            raise DataError(
                f"sighting {told.number} is {path} in this journal, but {told.file} in the file: it was made from "
                "another journal."
            )
        return thing
    things = findings.at(told.file) if told.file is not None else []
    if len(things) == 1 and (told.box is None or things[0].box is None):
        return things[0]
    if not things:
        return None
    box = told.box or WHOLE
    best = max(things, key=lambda thing: (thing.box or WHOLE).overlap(box))
    return best if (best.box or WHOLE).overlap(box) >= _SAME_BOX else None


def _stem(path: str) -> str:
    """The name of a file without its ending, which tools change; on any system."""
    return os.path.splitext(re.split(r"[/\\]", path)[-1])[0]
