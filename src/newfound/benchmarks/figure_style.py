"""One look for all figures, made to be read in print: in black and white, and by eyes that see fewer colours.

Figures here are not pyplot's: they belong to nobody but the caller, need no closing, and leave a user's backend and
rcParams alone. The same figure is always the same bytes.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from newfound.errors import SettingsError
from newfound.files import write_bytes, write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DOUBLE = 6.9  # inches: two columns of a paper
DPI = 200
GREY, LIGHT = "#555555", "#dddddd"
_BLUE, _RED, _GREEN, _PURPLE, _ORANGE, _SKY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"
_STYLE = {
    "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans", "Arial", "Helvetica"], "font.size": 8,
    "axes.titlesize": 8, "axes.labelsize": 8, "xtick.labelsize": 7.5, "ytick.labelsize": 7.5, "legend.fontsize": 7.5,
    "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.6, "axes.axisbelow": True,
    "axes.grid": True, "grid.color": LIGHT, "grid.linewidth": 0.5, "legend.frameon": False,
    "xtick.major.width": 0.6, "ytick.major.width": 0.6, "xtick.major.size": 2.5, "ytick.major.size": 2.5,
    "lines.linewidth": 1.2, "lines.markersize": 4, "hatch.linewidth": 0.5,
    "svg.fonttype": "none", "svg.hashsalt": "newfound", "path.simplify": False,
}  # fmt: skip


@dataclass(frozen=True)
class Look:
    """What tells a line, a bar or a cloud of points from the others, by colour and without."""

    colour: str
    marker: str
    line: Any = "-"
    hatch: str = ""


LINES = (
    Look(_BLUE, "o", "-", ""), Look(_RED, "s", (0, (5, 2)), "////"), Look(_GREEN, "^", (0, (1, 1.2)), "...."),
    Look(_PURPLE, "D", "-.", "xxxx"), Look(_SKY, "v", (0, (3, 1, 1, 1, 1, 1)), "\\\\\\\\"),
)  # fmt: skip
PLAIN = Look(GREY, "D", (0, (4, 1.5)))  # what the others are compared with
_TEN = (_BLUE, _RED, _GREEN, _PURPLE, _ORANGE, _SKY, GREY, "#882255", "#999933", "#332288")
CLOUDS = tuple(Look(colour, marker) for colour, marker in zip(_TEN, "osDvPXph<>", strict=True))


@dataclass(frozen=True)
class Drawing:
    """A figure, the numbers in it (a dict a row, all with the same keys), and what a reader must know to read it."""

    figure: Figure
    rows: list[dict[str, Any]]
    caption: str

    def save(self, stem: str | os.PathLike) -> list[Path]:
        """Write `stem`.png, `stem`.svg and the numbers as `stem`.csv. Raises DataError if that is not possible."""
        text = io.StringIO()
        table = csv.DictWriter(text, list(self.rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(self.rows)
        numbers = _with_ending(stem, ".csv")
        write_text(numbers, text.getvalue())
        return [*save(self.figure, stem), numbers]


def require_matplotlib() -> None:
    """Raise SettingsError, with what to install, where there is no matplotlib."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise SettingsError("figures need matplotlib: pip install 'newfound[bench]'.") from error


@contextmanager
def style() -> Iterator[None]:
    """Inside, matplotlib's defaults and the look of these figures hold, whatever a user has set; after it, theirs."""
    require_matplotlib()
    from matplotlib.style import context

    with context(["default", _STYLE]):
        yield


def panels(rows: int, columns: int, *, width: float, height: float, **shared: Any) -> tuple[Figure, list[Axes]]:
    """A new figure of this size in inches and its panels, row by row; to be called, and drawn on, inside `style()`."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, list(np.ravel(figure.subplots(rows, columns, **shared)))


def words(name: str) -> str:
    """A class's name as a legend shows it: matplotlib hides names that start with "_", and reads "$" as mathematics."""
    shown = " ".join(name.replace("_", " ").split()) or name.replace("_", "-")
    return (shown if len(shown) <= 32 else f"{shown[:31]}…").replace("$", r"\$")


def save(figure: Figure, stem: str | os.PathLike) -> list[Path]:
    """Write `stem`.png and `stem`.svg, each as a whole or not at all; returns the two.

    Raises:
        DataError: they cannot be written there.
    """
    images = {".png": io.BytesIO(), ".svg": io.BytesIO()}
    with style():
        figure.savefig(images[".png"], format="png", dpi=DPI)
        figure.savefig(images[".svg"], format="svg", metadata={"Date": None})
    written = {_with_ending(stem, ending): image.getvalue() for ending, image in images.items()}
    for path, content in written.items():
        write_bytes(path, content)
    return list(written)


def _with_ending(stem: str | os.PathLike, ending: str) -> Path:
    path = Path(stem)
    return path.with_name(path.name + ending)  # not with_suffix: a stem may end in "0.05"
