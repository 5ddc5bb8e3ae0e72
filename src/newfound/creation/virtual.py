"""What DiffGRE does with created images: keep those that may stand for new classes, and give each a class.

Created images come without labels. `refine` drops those that look like a known class and those that look like nothing;
`label` finds the virtual classes among the rest. `VirtualImages` are the outcome, which a folder can keep.
"""

from __future__ import annotations

import csv
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from newfound.errors import NewfoundError
from newfound.images import contents_hash, open_image
from newfound.run_files import not_written

_LLOYD_STEPS = 100
_TABLE, _FINGERPRINT = "virtual.csv", "virtual.json"


def known_similarity(features: np.ndarray, prototypes: np.ndarray) -> np.ndarray:
    """The highest cosine of each unit feature [n, d] with a known prototype [K, d]."""
    return (features @ prototypes.T).max(axis=1)


def refine(features: np.ndarray, prototypes: np.ndarray, low: float, high: float) -> np.ndarray:
    """The positions of created samples that are neither too far from all known classes nor too near to one.

    `low` and `high` are quantiles in [0, 1] of the samples' own highest cosines with a prototype, both ends kept. A
    cosine means different things on different backbones (unrelated images may lie at 0.1 or at 0.8), an order does not.
    """
    if not len(features):
        return np.zeros(0, np.int64)
    similarity = known_similarity(features, prototypes)
    floor, ceiling = np.quantile(similarity, [low, high], method="inverted_cdf")
    return np.flatnonzero((similarity >= floor) & (similarity <= ceiling))


def label(features: np.ndarray, prototypes: np.ndarray, clusters: int, rng: np.random.Generator) -> np.ndarray:
    """Classes of created samples by semi-supervised k-means on unit features [n, d].

    The K known prototypes [K, d] are centres that stay. Up to `clusters` free centres start at samples drawn one by
    one, the likelier the farther from all centres so far (k-means++), and move to the unit mean of their samples until
    nothing changes. A sample nearest to a known centre has its class 0 .. K-1; those of free centres have virtual
    classes K, K+1, ... without gaps. A free centre with a single sample is no class: its sample has -1.
    """
    known = len(prototypes)
    centres = np.concatenate([prototypes, features[_starts(features, prototypes, clusters, rng)]]).astype(np.float64)
    nearest = np.zeros(0, np.int64)
    for _ in range(_LLOYD_STEPS):
        before, nearest = nearest, (features @ centres.T).argmax(axis=1)
        if np.array_equal(before, nearest):
            break
        for free in range(known, len(centres)):
            total = features[nearest == free].sum(axis=0)
            if (length := np.linalg.norm(total)) > 0:  # a centre without samples stays where it is
                centres[free] = total / length
    sizes = np.bincount(nearest, minlength=len(centres))
    names = np.arange(len(centres))
    names[known:] = -1
    real = known + np.flatnonzero(sizes[known:] >= 2)
    names[real] = known + np.arange(len(real))
    return names[nearest]


def _starts(features: np.ndarray, prototypes: np.ndarray, clusters: int, rng: np.random.Generator) -> list[int]:
    """Positions of the samples that free centres start at."""
    chosen: list[int] = []
    similarity = known_similarity(features, prototypes)
    while len(chosen) < clusters:
        squared = np.maximum(1 - similarity, 0) * 2  # |a - b|^2 of unit vectors
        squared[squared < 1e-6] = 0  # at a centre, but for rounding
        if not squared.any():
            break
        chosen.append(int(rng.choice(len(features), p=squared / squared.sum())))
        similarity = np.maximum(similarity, features @ features[chosen[-1]])
    return chosen


@dataclass(frozen=True)
class VirtualImages:
    """Created images with their classes and their similarity to the nearest known class."""

    images: list[np.ndarray]  # uint8 [H, W, 3]
    classes: np.ndarray  # int64 [n]
    similarity: np.ndarray  # [n]

    def save(self, folder: Path, made_from: dict[str, Any]) -> None:
        """Write PNG files, a table of them and, last, what they were made from; replaces what was there.

        Raises:
            RunError: the folder cannot be written.
        """
        try:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            with (folder / _TABLE).open("w", newline="", encoding="utf-8") as file:
                table = csv.writer(file)
                table.writerow(["file", "class", "similarity"])
                for i, image in enumerate(self.images):
                    Image.fromarray(image).save(folder / f"{i:05}.png")
                    table.writerow([f"{i:05}.png", int(self.classes[i]), float(self.similarity[i])])
            about = {"made_from": made_from, "content": contents_hash(self.images, self.classes)}
            (folder / _FINGERPRINT).write_text(json.dumps(about, indent=1), encoding="utf-8")
        except OSError as error:
            raise not_written("the created images", folder, error) from error

    @classmethod
    def load(cls, folder: Path, made_from: dict[str, Any]) -> VirtualImages | None:
        """What `save` wrote; None if nothing is there, if it was made from something else, or if any is damaged."""
        try:
            about = json.loads((folder / _FINGERPRINT).read_text(encoding="utf-8"))
            if about["made_from"] != json.loads(json.dumps(made_from)):
                return None
            with (folder / _TABLE).open(newline="", encoding="utf-8") as file:
                rows = list(csv.DictReader(file))
            found = cls(
                [np.asarray(open_image(folder / row["file"])) for row in rows],
                np.array([int(row["class"]) for row in rows], np.int64),
                np.array([float(row["similarity"]) for row in rows]),
            )
            return found if contents_hash(found.images, found.classes) == about["content"] else None
        except (OSError, NewfoundError, ValueError, KeyError, TypeError):
            return None
