"""What the book said to images, as rows of the journal."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count, repeat

import numpy as np
from numpy.typing import NDArray

from newfound.journal.book import Answered, feature_bytes
from newfound.journal.catalogue import Catalogue
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
    catalogue: Catalogue,
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
            [None if image.name is None else as_text(image.name) for image in images],
            [image.content for image in images],
            out.category.tolist(),
            answered.categories,
            out.created.tolist(),
            out.score.tolist(),
            repeat(out.cut),
            repeat(None) if out.probability is None else out.probability.tolist(),
            repeat(None) if out.new_probability is None else out.new_probability.tolist(),
            _runners_up(answered, catalogue),
            feature_bytes(half),
            repeat(model),
            repeat(time.time()),
            strict=False,
        )
    )


def _runners_up(answered: Answered, catalogue: Catalogue) -> list[str]:
    """Those of each sample, packed."""
    out = answered.decisions
    asked = out.runners_up_category.shape[1]
    others = catalogue.of_parts(out.runners_up_category.ravel().tolist())  # of all samples at once: it is faster
    nearest = [others[start : start + asked] for start in range(0, len(others), asked)]
    columns = zip(nearest, out.runners_up_score.tolist(), answered.categories, strict=True)
    return [pack_pairs(_distinct(*column)) for column in columns]


def _distinct(categories: Sequence[int], scores: Sequence[float], answer: int) -> list[tuple[int, float]]:
    """The best runners-up, a category once, without the answer."""
    if len({-1, answer, *categories}) == len(categories) + 2:  # as good as always
        return list(zip(categories, scores, strict=True))[:RUNNERS_UP]
    best: dict[int, float] = {}
    for category, score in zip(categories, scores, strict=True):
        if category >= 0 and category != answer:
            best.setdefault(category, score)
    return list(best.items())[:RUNNERS_UP]
