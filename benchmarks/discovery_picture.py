"""The picture of docs/discovery.md: what a dictionary that weighs evidence makes of a plane.

    python benchmarks/discovery_picture.py

Readings have two numbers here instead of hundreds. A known class was seen twenty times; a discovered category once, and
in the second panel ten times. The third panel cuts through the other two along the dashed line. All scores are
BayesianDictionary's own.
"""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

import numpy as np
from publish import ROOT

from newfound.benchmarks.figure_style import DOUBLE, GREY, LIGHT, LINES, panels, style
from newfound.discovery import BayesianDictionary
from newfound.files import write_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SPREAD = np.array([20.0, 12.0])  # the variances of class means; within a class they are 1
KNOWN, FOUND = np.array([-4.0, 0.0]), np.array([4.0, 0.0])
KNOWN_TIMES, TIMES = 20, (1, 10)  # sightings of the known and of the discovered category
THRESHOLD, ALONE = 0.5, -6.0
WIDTH, HEIGHT = 11.0, 9.0  # half of the plane that is shown
_FINE, _COARSE = 141, 51  # points along the line, and each way in the plane
_THRESHOLD, _ALONE, _CUT = {"linestyle": "-"}, {"linestyle": (0, (1, 1))}, {"linestyle": (0, (6, 3))}
_FREQUENT, _ONCE = "-", LINES[1].line
_UP = np.array([0.0, 1.0])


def dictionary(times: int) -> BayesianDictionary:
    """One that has seen the discovered category so many times."""
    made = BayesianDictionary(SPREAD, [KNOWN_TIMES * KNOWN], [KNOWN_TIMES], THRESHOLD, alone=ALONE)
    made.observe(np.tile(FOUND, (times, 1)))
    assert len(made) == 2, "the discovered category is founded once and joined ever after"
    return made


def log_ratios(points: np.ndarray, mean: np.ndarray, times: int) -> np.ndarray:
    """Those of points with a single category."""
    return BayesianDictionary(SPREAD, [times * mean], [times]).predict(points).score


def predictive(mean: np.ndarray, times: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variances of what a category seen so often predicts, as docs/discovery.md has them."""
    pull = SPREAD / (times * SPREAD + 1)
    return pull * times * mean, 1 + pull


def main() -> None:
    with style():
        figure, axes = panels(1, 3, width=DOUBLE, height=2.75)
        for ax, times in zip(axes, TIMES, strict=False):
            _plane(ax, times)
        _line(axes[2])
        known, found, never = (look.colour for look in LINES[:3])
        for name, look in {
            "known, seen 20 times": {"color": known},
            "discovered, seen once": {"color": found, "linestyle": _ONCE},
            "discovered, seen 10 times": {"color": found, "linestyle": _FREQUENT},
            "a category never seen": {"color": never, "linestyle": LINES[2].line},
            "threshold": {"color": GREY, "linewidth": 0.8} | _THRESHOLD,
            "alone": {"color": GREY, "linewidth": 0.8} | _ALONE,
        }.items():
            axes[2].plot([], [], label=name, **look)
        figure.legend(loc="outside lower center", ncols=3, handlelength=2.6)
        image = io.BytesIO()
        figure.savefig(image, format="svg", metadata={"Date": None})
    short = re.sub(r"(\d\.\d\d)\d+", r"\1", image.getvalue().decode())  # a hundredth of a point is enough
    write_bytes(ROOT / "docs" / "images" / "evidence.svg", short.encode())


def _plane(ax: Axes, times: int) -> None:
    """What becomes of a sample at each place, and what the categories predict: ellipses of two standard deviations."""
    x, y = np.linspace(-WIDTH, WIDTH, _COARSE), np.linspace(-HEIGHT, HEIGHT, _COARSE)
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    best = dictionary(times).predict(grid).score.reshape(_COARSE, _COARSE)
    ax.contourf(x, y, best, [ALONE, THRESHOLD], colors=LIGHT)
    for cut, look in ((THRESHOLD, _THRESHOLD), (ALONE, _ALONE)):
        ax.contour(x, y, best, [cut], colors=GREY, linewidths=0.8, linestyles=[look["linestyle"]])
    known, found, never = (look.colour for look in LINES[:3])
    _ellipse(ax, *predictive(KNOWN, KNOWN_TIMES), known, "-")
    _ellipse(ax, *predictive(FOUND, times), found, _ONCE if times == 1 else _FREQUENT)
    _ellipse(ax, np.zeros(2), 1 + SPREAD, never, LINES[2].line)
    ax.axhline(0, color=GREY, linewidth=0.4, zorder=0.5, **_CUT)
    for text, place in (
        ("joins", KNOWN + 0.9 * _UP), ("joins", FOUND + 0.9 * _UP), ("doubtful", KNOWN - 3.4 * _UP),
        ("founds", np.array([-WIDTH + 2.6, -HEIGHT + 1.1])),
    ):  # fmt: skip
        ax.text(*place, text, ha="center", va="center", fontsize=7.5)
    ax.set(xlim=(-WIDTH, WIDTH), ylim=(-HEIGHT, HEIGHT), aspect="equal", xticks=[], yticks=[])
    ax.set_title("discovered category seen " + ("once" if times == 1 else f"{times} times"))
    ax.grid(visible=False)


def _ellipse(ax: Axes, mean: np.ndarray, variances: np.ndarray, colour: str, line: object) -> None:
    from matplotlib.patches import Ellipse

    width, height = 4 * np.sqrt(variances)
    ax.add_patch(Ellipse(mean, width, height, fill=False, edgecolor=colour, linestyle=line, linewidth=1.2))


def _line(ax: Axes) -> None:
    """The log ratio with each category along the dashed line of the planes."""
    x = np.linspace(-WIDTH, WIDTH, _FINE)
    points = np.column_stack([x, np.zeros_like(x)])
    ax.plot(x, log_ratios(points, KNOWN, KNOWN_TIMES), color=LINES[0].colour)
    for times, line in zip(TIMES, (_ONCE, _FREQUENT), strict=True):
        ax.plot(x, log_ratios(points, FOUND, times), color=LINES[1].colour, linestyle=line)
    ax.axhline(THRESHOLD, color=GREY, linewidth=0.8, **_THRESHOLD)
    ax.axhline(ALONE, color=GREY, linewidth=0.8, **_ALONE)
    ax.set(xlim=(-WIDTH, WIDTH), ylim=(-14, 5), xticks=[], yticks=[-10, -5, 0])
    ax.set_title("log ratio along the dashed line")


if __name__ == "__main__":
    main()
