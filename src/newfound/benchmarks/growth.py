"""How the time of a sighting grows: with the categories that are known, and with the images seen.

An exponent b says that time grows like size^b. Searching all prototypes is b = 1; images do not matter, b = 0.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from newfound.benchmarks import figure_style
from newfound.benchmarks._timing import timed
from newfound.benchmarks.figure_style import Drawing
from newfound.benchmarks.search_speed import clustered
from newfound.discovery import PrototypeDictionary, _compiled
from newfound.errors import SettingsError
from newfound.progress import Reporter

_BLOCK = 256
_WARM = 2560
_KNOWN = 1000  # categories, while images are counted
_FITTED_FROM = 10_000  # categories: with fewer, what does not grow with them takes most of the time


@dataclass(frozen=True)
class Point:
    """What a sighting took: `axis` is "categories" or "images", `size` how many there were."""

    axis: str
    size: int
    microseconds: float
    bare: float

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Growth:
    """All points, and the exponents fitted to them by axis and line."""

    points: list[Point]
    exponents: dict[str, float]

    def as_dict(self) -> dict[str, Any]:
        return {"points": [point.as_dict() for point in self.points], "exponents": self.exponents}


def measure(largest: int = 100_000, images: int = 100_000, reporter: Reporter | None = None) -> Growth:
    """Time sightings in blocks of 256 at 10^2 .. `largest` clustered categories, and along a stream of `images`.

    Raises SettingsError if there is less than two sizes to compare.
    """
    if largest < 1000 or images < 10_000:
        raise SettingsError("growth needs at least 1,000 categories and 10,000 images to be seen.")
    _compiled.load()  # what a long stream would have loaded by itself
    sizes = [10**e for e in range(2, len(str(largest)))]
    with (reporter or Reporter()).stage("measuring growth", len(sizes) + 1) as progress:
        points = []
        for size in sizes:
            points.append(_with_categories(size))
            progress(1)
        points += _with_images(images)
        progress(1)
    return Growth(points, _exponents(points))


def _with_categories(size: int) -> Point:
    prototypes, samples = clustered(size, _WARM + 2 * _BLOCK)
    dictionary = PrototypeDictionary(prototypes, threshold=-1.0)
    for start in range(0, _WARM, _BLOCK):
        dictionary.observe(samples[start : start + _BLOCK])
    ours = [timed(dictionary.observe, samples[s : s + _BLOCK])[1] for s in (_WARM, _WARM + _BLOCK)]
    bare = [_bare(samples[s : s + _BLOCK], prototypes) for s in (_WARM, _WARM + _BLOCK)]
    return Point("categories", size, 1e6 * min(ours) / _BLOCK, 1e6 * min(bare) / _BLOCK)


def _with_images(images: int) -> list[Point]:
    prototypes, samples = clustered(_KNOWN, 10_000)
    dictionary, seen, points = PrototypeDictionary(prototypes, threshold=-1.0), 0, []
    for mark in (10**e for e in range(3, len(str(images)))):
        while seen < mark - _BLOCK:
            start = seen % (len(samples) - _BLOCK)
            count = min(_BLOCK, mark - _BLOCK - seen)
            dictionary.observe(samples[start : start + count])
            seen += count
        part = samples[-_BLOCK:]
        seconds = timed(dictionary.observe, part)[1]
        seen += _BLOCK
        points.append(Point("images", mark, 1e6 * seconds / _BLOCK, 1e6 * _bare(part, prototypes) / _BLOCK))
    return points


def _bare(samples: np.ndarray, prototypes: np.ndarray) -> float:
    return timed(lambda: (samples @ prototypes.T).max(axis=1))[1]


def _exponents(points: list[Point]) -> dict[str, float]:
    """By least squares on log axes; of categories, the largest sizes only."""
    fitted = {}
    for axis in ("categories", "images"):
        some = [point for point in points if point.axis == axis]
        if axis == "categories":
            some = [point for point in some if point.size >= _FITTED_FROM] or some
            some = some if len(some) > 1 else [point for point in points if point.axis == axis][-2:]
        sizes = np.log([point.size for point in some])
        for line in ("microseconds", "bare"):
            name = f"{axis}, {'newfound' if line == 'microseconds' else 'bare product'}"
            fitted[name] = float(np.polyfit(sizes, np.log([getattr(point, line) for point in some]), 1)[0])
    return fitted


def draw(growth: Growth) -> Drawing:
    """Both curves on log axes, with the bare product beside."""
    with figure_style.style():
        figure, axes = figure_style.panels(1, 2, width=figure_style.DOUBLE, height=2.4)
        for panel, axis in zip(axes, ("categories", "images"), strict=True):
            some = [point for point in growth.points if point.axis == axis]
            lines = (("microseconds", "newfound", figure_style.LINES[0]), ("bare", "bare product", figure_style.PLAIN))
            for key, name, look in lines:
                label = f"{name}: exponent {growth.exponents[f'{axis}, {name}']:.2f}"
                panel.loglog(
                    [point.size for point in some], [getattr(point, key) for point in some],
                    color=look.colour, marker=look.marker, linestyle=look.line, label=label,
                )  # fmt: skip
            panel.set_xlabel(axis)
            panel.legend()
        axes[0].set_ylabel("time of a sighting (µs)")
    rows = [point.as_dict() for point in growth.points]
    return Drawing(figure, rows, "The time of a sighting, against the bare product with all prototypes.")


def table(growth: Growth) -> list[list[str]]:
    """The points as rows of text, the header first."""
    header = ["axis", "size", "µs a sighting", "µs, bare product", "times as fast"]
    rows = [
        [p.axis, f"{p.size:,}", f"{p.microseconds:.1f}", f"{p.bare:.1f}", f"{p.bare / p.microseconds:.2f}"]
        for p in growth.points
    ]
    return [header, *rows]
