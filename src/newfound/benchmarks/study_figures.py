"""Figures of a study into its folder: each as PNG and SVG, with the numbers that it shows as CSV."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from newfound.benchmarks import curves, run_pictures
from newfound.benchmarks.cells import Cell, commit
from newfound.benchmarks.figure_style import Drawing, require_matplotlib
from newfound.benchmarks.store import Result
from newfound.progress import Reporter

_CURVES: dict[str, dict[str, Callable[[list[Result]], Drawing]]] = {
    "sensitivity": {"sensitivity": curves.sensitivity},
    "threshold": {
        "threshold": curves.threshold_curves,
        "threshold-adaptive": curves.adaptive_against_fixed,
        "threshold-gain": curves.adaptive_gain,
    },
}
_PICTURES = {"perturbation": run_pictures.perturbation, "tsne": run_pictures.tsne}
Captions = dict[str, str]  # of figures, by the name of their files without the ending


def draw_curves(study: str, results: list[Result], folder: Path) -> Captions:
    """Every figure of a study from its results.

    Raises:
        SettingsError: there is no matplotlib.
        DataError: results are missing without which nothing can be drawn, or the folder cannot be written.
    """
    one = results[0]
    origin = {"data": one["data"]["protocol"], "class_seed": one["data"]["class_seed"]} | {
        name: " ".join(sorted({str(result[name]) for result in results}))
        for name in ("backbone", "weights", "method", "preset", "seed", "orders", "commit", "newfound", "time")
    }
    return {name: _save(draw(results), folder / name, origin) for name, draw in _CURVES[study].items()}


def draw_picture(study: str, cell: Cell, folder: Path, keep: Path, reporter: Reporter) -> Captions:
    """The picture of a trained run, which is trained first if `keep` does not have it."""
    require_matplotlib()  # rather now than after the training
    run = cell.train(keep, reporter)
    data, variant = cell.setup.about, cell.variant
    settings = "".join(f", {name}={value}" for name, value in cell.settings.items())
    made_from = (
        f"{data['protocol']}, {data['known']} known classes, {data['labelled']:,} labelled images; backbone "
        f"{cell.setup.backbone}; {variant.method}, {run.config['preset']}{settings}, seed {cell.seed}; "
        f"commit {commit()}."
    )
    origin = {
        "data": data["protocol"], "class_seed": data["class_seed"], "backbone": cell.setup.backbone,
        "weights": cell.setup.source, "method": variant.method, "preset": run.config["preset"], "seed": cell.seed,
        "commit": commit(), "newfound": run.config["newfound"],
    }  # fmt: skip
    return {study: f"{_save(_PICTURES[study](run, cell.setup.split[0]), folder / study, origin)} {made_from}"}


def _save(drawing: Drawing, stem: Path, origin: dict[str, Any]) -> str:
    """Every row of the numbers tells where it comes from."""
    replace(drawing, rows=[row | origin for row in drawing.rows]).save(stem)
    return drawing.caption
