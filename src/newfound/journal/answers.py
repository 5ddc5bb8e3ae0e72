"""What the book said to images, as rows of the journal."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count, repeat

import numpy as np
from numpy.typing import NDArray

from newfound.journal.book import Answered, feature_bytes
from newfound.journal.rows import Packed, SightingRow, as_text, pack_pairs, unpack_sighting

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
    """Those of each sample, packed."""
    out, others = answered.decisions, answered.others
    asked = out.runners_up_category.shape[1]
    scores = out.runners_up_score.ravel().tolist()
    if asked == 2 == RUNNERS_UP and np.isfinite(out.runners_up_score).all():
        pairs = zip(others[::2], scores[::2], others[1::2], scores[1::2], answered.categories, strict=True)
        return [  # as `pack_pairs` would write nearly all of them
            f"[[{a},{s!r}],[{b},{t!r}]]" if a >= 0 and b >= 0 and a != b and a != own != b
            else pack_pairs(_distinct((a, b), (s, t), own))
            for a, s, b, t, own in pairs
        ]  # fmt: skip
    return [
        pack_pairs(_distinct(others[at : at + asked], scores[at : at + asked], own))
        for at, own in zip(count(0, asked), answered.categories, strict=False)
    ]


def _distinct(categories: Sequence[int], scores: Sequence[float], answer: int) -> list[tuple[int, float]]:
    """The best runners-up, a category once, without the answer."""
    best: dict[int, float] = {}
    for category, score in zip(categories, scores, strict=True):
        if category >= 0 and category != answer:
            best.setdefault(category, score)
    return list(best.items())[:RUNNERS_UP]
