"""The table of dictionaries as CSV: numbers for programs, as the other tables have them."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

from newfound.benchmarks.store import Result
from newfound.benchmarks.tables import KINDS, PROTOCOLS

_ABOUT = ("data", "class_seed", "backbone", "weights", "features", "decided_by", "preset", "seed", "order", "cut")
_FIGURES = (*(f"{protocol}_{kind}" for protocol in PROTOCOLS for kind in KINDS), "categories")


def as_csv(results: Sequence[Result]) -> str:
    """A line for each result and stream order, in shares of 1; empty where there is no such figure.

    `standing_...` are the figures of the answers as they stand in the end, `ece` those of the answers' probabilities.
    """
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow([*_ABOUT, *_FIGURES, *(f"standing_{name}" for name in _FIGURES), "ece", "ece_new", "commit", "time"])
    for r in results:
        data = r["data"]
        about = [data["protocol"], data["class_seed"]]
        about += [r[name] for name in ("backbone", "weights", "features", "rule", "preset", "seed")]
        for order, scores in enumerate(r["scores"]):
            curve = r["calibration"][order] if r["calibration"] else {}
            errors = (curve.get("ece"), curve.get("new", {}).get("ece"))
            figures = (*_figures(scores), *_figures(r["standing"][order]))
            out.writerow([*about, order, r["threshold"]["value"], *figures, *errors, r["commit"], r["time"]])
    return text.getvalue()


def _figures(scores: dict[str, Any]) -> list[float | None]:
    accuracies = [scores[protocol][kind] if scores[protocol] else None for protocol in PROTOCOLS for kind in KINDS]
    return [*accuracies, scores["categories"]]
