"""Do probabilities mean what they say? A reliability curve for each kind of features that evidence was weighed on."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from newfound.benchmarks.figure_style import GREY, LINES, Drawing, panels, style
from newfound.benchmarks.store import Result

RULE = "evidence, second thoughts"  # what the default preset decides by
_SIDE = 3.4  # inches: one column of a paper
_SMALLEST, _LARGEST = 5.0, 130.0  # areas of markers for hardly any and for all answers, in square points


def draw(results: Sequence[Result], stem: str | os.PathLike) -> list[Path]:
    """Write `stem`.png and `stem`.svg, with the numbers as `stem`.csv; returns the files.

    A point is a bin of probabilities, all seeds and stream orders together: how sure the answers in it were, and how
    many were right. Its marker's area tells the share of all answers. Nothing is written if no result has the rule.

    Raises:
        SettingsError: there is no matplotlib.
        DataError: the files cannot be written.
    """
    found = {name: _pooled(results, name) for name in dict.fromkeys(r["features"] for r in results)}
    shown = {name: rows for name, rows in found.items() if rows}
    return _drawing(shown).save(stem) if shown else []


def _pooled(results: Sequence[Result], features: str) -> list[dict[str, Any]]:
    """The bins that have answers, summed over results and orders: means weighted by how many there were of each."""
    mine = [r for r in results if (r["features"], r["rule"]) == (features, RULE)]
    curves = [curve for result in mine for curve in result["calibration"]]
    if not curves:
        return []
    count = np.array([curve["count"] for curve in curves], np.int64)
    confidence, accuracy = (_mean([curve[name] for curve in curves], count) for name in ("confidence", "accuracy"))
    total, one = count.sum(axis=0), mine[0]
    about = {
        "data": one["data"]["protocol"], "class_seed": one["data"]["class_seed"], "backbone": one["backbone"],
        "features": features, "decided_by": RULE,
    }  # fmt: skip
    origin = {
        "seeds": " ".join(str(seed) for seed in sorted({r["seed"] for r in mine})), "orders": one["orders"],
        "commits": " ".join(sorted({r["commit"] for r in mine})),
    }  # fmt: skip
    return [
        about | {"bin": i, "count": int(total[i]), "confidence": confidence[i], "accuracy": accuracy[i]} | origin
        for i in np.flatnonzero(total).tolist()
    ]


def _mean(values: list[list[float | None]], count: NDArray[np.int64]) -> list[float]:
    """The mean of each bin over curves; an empty bin has None in its curve and weighs nothing."""
    filled = np.array([[0.0 if value is None else value for value in row] for row in values])
    return ((filled * count).sum(axis=0) / np.maximum(count.sum(axis=0), 1)).tolist()


def _ece(rows: list[dict[str, Any]]) -> float:
    """Of the curve as it is drawn; the table has the mean of those of single streams, which is no smaller."""
    gaps = sum(row["count"] * abs(row["confidence"] - row["accuracy"]) for row in rows)
    return gaps / sum(row["count"] for row in rows)


def _drawing(shown: dict[str, list[dict[str, Any]]]) -> Drawing:
    with style():
        figure, (ax,) = panels(1, 1, width=_SIDE, height=_SIDE)
        ax.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, linestyle=(0, (4, 2)))
        for (name, rows), look in zip(shown.items(), LINES, strict=False):
            x, y = ([row[of] for row in rows] for of in ("confidence", "accuracy"))
            shares = np.array([row["count"] for row in rows]) / sum(row["count"] for row in rows)
            label = f"{name}, ECE {100 * _ece(rows):.1f} %"
            ax.plot([], [], color=look.colour, linestyle=look.line, marker=look.marker, label=label)
            ax.plot(x, y, color=look.colour, linestyle=look.line)
            areas = _SMALLEST + (_LARGEST - _SMALLEST) * shares
            ax.scatter(x, y, s=areas, color=look.colour, marker=look.marker, alpha=0.75, linewidths=0, clip_on=False)
        ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xlabel="probability of the answer", ylabel="share right")
        ax.legend(loc="upper left")
    caption = (
        "How often answers of a given probability are right, by the Named protocol, all seeds and stream orders "
        "together; the area of a marker tells how many answers. On the dashed line probabilities mean what they say."
    )
    return Drawing(figure, [row for rows in shown.values() for row in rows], caption)
