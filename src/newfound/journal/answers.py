"""What the book said to images, as rows of the journal."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count, repeat

import numpy as np
from numpy.typing import NDArray

from newfound.discovery.decisions import Decisions
from newfound.journal.book import Answered, feature_bytes
from newfound.journal.rows import Packed, SightingRow, as_text, to_json, unpack_sighting

RUNNERS_UP = 2


@dataclass(frozen=True)
class Image:
    """An image to be entered: what to call it, and the hash of its content, if there is one."""

    name: str | None
    content: bytes | None = None


@dataclass(slots=True)  # not frozen, for the same reason as SightingRow
class Entered:
    """A sighting in the journal; `repeated` if this very image was there before.

    It is unpacked when it is looked at: most answers to a long stream are only counted.
    """

    told: SightingRow | Packed
    repeated: bool

    @property
    def row(self) -> SightingRow:
        return self.told if isinstance(self.told, SightingRow) else unpack_sighting(self.told)


def packed_rows(
    images: Sequence[Image],
    half: NDArray[np.float16],
    answered: Answered,
    model: int,
    first: int,
) -> list[Packed]:
    """Rows with the numbers from ``first`` on, or without one if that is below 0; ``half``: what was decided on.

    They are made by column. Tuples of plain values are also what the collector of garbage soon leaves alone: to go
    through an object for every image, again and again, would take as long as the database does.
    """
    out = answered.decisions
    return list(
        zip(  # not strict: what is the same for all has no end
            count(first) if first >= 0 else repeat(-1),
            _texts([image.name for image in images]),
            [image.content for image in images],
            out.category.tolist(),
            answered.categories,
            out.created.tolist(),
            out.score.tolist(),
            repeat(out.cut),
            repeat(None) if out.probability is None else out.probability.tolist(),
            repeat(None) if out.new_probability is None else out.new_probability.tolist(),
            _runners_up(answered),
            feature_bytes(half),
            repeat(model),
            repeat(time.time()),
            strict=False,
        )
    )


def _texts(names: list[str | None]) -> list[str | None]:
    """Each as every database can hold it."""
    together = "".join(filter(None, names))
    if together.isascii() and "\0" not in together:  # one look at all: nearly always they stay as they are
        return names
    return [None if name is None else as_text(name) for name in names]


def _runners_up(answered: Answered) -> list[str]:
    """Those of each sample, packed as `pack_runners_up` does it."""
    others, numbers = answered.others, _numbers(answered.decisions)
    asked = answered.decisions.runners_up_category.shape[1]
    if asked == 2 == RUNNERS_UP:
        pairs = zip(others[::2], numbers[::2], others[1::2], numbers[1::2], answered.categories, strict=True)
        return [  # as `_distinct` would write nearly all of them
            f"[[{a},{x}],[{b},{y}]]" if a >= 0 and b >= 0 and a != b and a != own != b
            else _distinct((a, b), (x, y), own)
            for a, x, b, y, own in pairs
        ]  # fmt: skip
    return [
        _distinct(others[at : at + asked], numbers[at : at + asked], own)
        for at, own in zip(count(0, asked), answered.categories, strict=False)
    ]


def _numbers(out: Decisions) -> list[str]:
    """What stands behind each runner-up's category: its score and, from a dictionary that has any, its probability."""
    spell = repr if np.isfinite(out.runners_up_score).all() else to_json  # inf is spelled otherwise
    scores = list(map(spell, out.runners_up_score.ravel().tolist()))
    if out.runners_up_probability is None:
        return scores
    shares = out.runners_up_probability.ravel().tolist()
    return [f"{score},{share!r}" for score, share in zip(scores, shares, strict=True)]


def _distinct(categories: Sequence[int], numbers: Sequence[str], answer: int) -> str:
    """The best runners-up, a category once, without the answer.

    Where a person made a category of several parts, its numbers are those of the part that fits best, as the answer's
    own are: nothing is added for the others, of which only some were asked for.
    """
    best: dict[int, str] = {}
    for category, told in zip(categories, numbers, strict=True):
        if category >= 0 and category != answer:
            best.setdefault(category, told)
    return f"[{','.join([f'[{category},{told}]' for category, told in list(best.items())[:RUNNERS_UP]])}]"
