"""What a grid will cost, before it starts: from the cells that were measured, and from the work for the others."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from newfound import presets
from newfound.benchmarks.cells import Cell
from newfound.benchmarks.store import Result

# Seconds on a core to learn one cached view, and to read and encode one image: guesses, used until a cell of the same
# kind is there. They are about what the default backbone took on Pets and CUB.
_PER_VIEW, _PER_IMAGE = 1 / 250, 1 / 60
_FRESH = 20  # times as long where the trunk is not cached
_PASSES = {"mldg": 1.5}  # forward and backward passes a view, where a method needs more than one


class Estimate:
    """Seconds of computing for cells, learnt from results."""

    def __init__(self, results: Iterable[Result]) -> None:
        taken: dict[tuple, list[float]] = {}
        for result in results:
            if cost := result.get("cost"):
                rate = (cost["train_cpu"] + cost["evaluate"]) / result["data"]["labelled"]
                for kind in _kinds(result["backbone"], result["method"], result["preset"], result["settings"]):
                    taken.setdefault(kind, []).append(rate)
        self._rates = {kind: statistics.median(rates) for kind, rates in taken.items()}

    def seconds(self, cell: Cell) -> float:
        """For one cell on one core."""
        backbone, variant = cell.setup.backbone, cell.variant
        labelled = cell.setup.about["labelled"]
        label = presets.label(variant.preset, short=cell.setup.short)
        for kind in _kinds(backbone, variant.method, label, cell.settings):
            if kind in self._rates:
                return self._rates[kind] * labelled
        settings = presets.resolve(variant.method, variant.preset, short=cell.setup.short, overrides=cell.settings)
        trainings = 2 if settings.threshold == "rehearsed" else 1
        views = 2 * labelled * settings.epochs * trainings * _PASSES.get(variant.method, 1)
        images = labelled + cell.setup.about["stream"]
        return views * (1 if settings.cached else _FRESH) * _PER_VIEW + images * _PER_IMAGE

    def describe(self, todo: Sequence[Cell], total: int, jobs: int) -> str:
        """How many cells there are to measure, and how long that will take, in a line."""
        about = self.words(todo, jobs)
        return f"{len(todo)} of {total} cells to measure: {about} in {jobs} {'job' if jobs == 1 else 'jobs'}"

    def words(self, todo: Iterable[Cell], jobs: int) -> str:
        """How long these cells will take: `about 40 minutes`."""
        return f"about {_in_words(sum(map(self.seconds, todo)) / jobs)}"


def _kinds(backbone: str, method: str, preset: str, settings: dict[str, Any]) -> list[tuple[str, ...]]:
    """What cells are like this one, the most alike first."""
    kind = (backbone, method, preset, json.dumps(settings, sort_keys=True))
    return [kind, kind[:3], kind[:2]]


def _in_words(seconds: float) -> str:
    if seconds >= 2 * 3600:
        return f"{seconds / 3600:.1f} hours"
    return f"{seconds / 60:.0f} minutes" if seconds >= 90 else "a minute"
