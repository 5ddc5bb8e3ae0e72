"""What the book said to images, as rows of the journal."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from newfound.journal.book import Answered, feature_bytes
from newfound.journal.catalogue import Catalogue
from newfound.journal.rows import SightingRow

RUNNERS_UP = 2


@dataclass(frozen=True)
class Image:
    """An image to be entered: what to call it, and the hash of its content, if there is one."""

    name: str | None
    content: bytes | None = None


@dataclass(frozen=True)
class Entered:
    """A sighting in the journal; `repeated` if this very image was there before."""

    row: SightingRow
    repeated: bool


def rows_of(
    images: Sequence[Image],
    half: NDArray[np.float16],
    answered: Answered,
    catalogue: Catalogue,
    model: int,
    first: int,
) -> list[SightingRow]:
    """Rows with the numbers from ``first`` on, or without one if that is below 0; ``half``: what was decided on."""
    out, now = answered.decisions, time.time()
    sure, new = out.probability, out.new_probability
    asked = out.runners_up_category.shape[1]
    others = catalogue.of_parts(out.runners_up_category.ravel().tolist())  # of all samples at once: it is faster
    columns = zip(
        images, out.category.tolist(), answered.categories, out.created.tolist(), out.score.tolist(),
        [others[start : start + asked] for start in range(0, len(others), asked)], out.runners_up_score.tolist(),
        feature_bytes(half), strict=True,
    )  # fmt: skip
    return [
        SightingRow(
            number=first + i if first >= 0 else -1,
            image=image.name,
            content=image.content,
            part=part,
            category=category,
            created=created,
            score=score,
            cut=out.cut,
            probability=None if sure is None else float(sure[i]),
            new_probability=None if new is None else float(new[i]),
            runners_up=_distinct(nearest, scores, category),
            feature=feature,
            model=model,
            time=now,
        )
        for i, (image, part, category, created, score, nearest, scores, feature) in enumerate(columns)
    ]


def _distinct(categories: Sequence[int], scores: Sequence[float], answer: int) -> tuple[tuple[int, float], ...]:
    """The best runners-up, a category once, without the answer."""
    best: dict[int, float] = {}
    for category, score in zip(categories, scores, strict=True):
        if category >= 0 and category != answer:
            best.setdefault(category, score)
    return tuple(best.items())[:RUNNERS_UP]
