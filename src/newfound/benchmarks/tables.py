"""Results become tables: Markdown for people, CSV for programs, LaTeX for papers."""

from __future__ import annotations

import csv
import io
import statistics
from collections.abc import Sequence
from typing import Any

PROTOCOLS, KINDS = ("strict", "greedy", "named"), ("all", "old", "new")
_LATEX = {"&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "±": r"$\pm$"}
Results = dict[str, list[dict[str, Any]]]


def figure(results: Sequence[dict[str, Any]], *path: str) -> tuple[float, float]:
    """Mean and spread of a figure over all seeds and stream orders; the spread of a single stream is 0."""
    values = []
    for result in results:
        for scores in result["result"]["scores"]:
            value: Any = scores
            for key in path:
                value = value[key]
            values.append(float(value))
    return statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else 0.0


def rows_of(results: Results) -> list[list[str]]:
    """Text cells, the header first."""
    header = ["", *(f"{p.capitalize()} All / Old / New" for p in PROTOCOLS), "categories", "seeds"]
    rows = [header]
    for name, found in results.items():
        cells = [name]
        for protocol in PROTOCOLS:
            means = " / ".join(f"{100 * figure(found, protocol, kind)[0]:.1f}" for kind in KINDS)
            cells.append(f"{means} (± {100 * figure(found, protocol, 'all')[1]:.1f})")
        count, spread = figure(found, "categories")
        rows.append([*cells, f"{count:.0f} ± {spread:.0f}", str(len(found))])
    return rows


def caption(results: Results) -> str:
    """What the figures are of: data, backbone, seeds, orders, commits."""
    every = [result for found in results.values() for result in found]
    one, data = every[0], every[0]["data"]
    classes = "the protocol's" if data["class_seed"] is None else f"class seed {data['class_seed']}'s"
    commits = sorted({result["commit"] for result in every})
    return (
        f"{data['protocol']}, {classes} {data['known']} known classes of {data['classes']}, {data['labelled']:,} "
        f"labelled and {data['stream']:,} streamed images; backbone {one['backbone']}; mean (± standard deviation of "
        f"All) over seeds and {_orders(one['result']['orders'])} each; newfound {one['newfound']}, commit "
        f"{', '.join(commits)}."
    )


def _orders(count: int) -> str:
    return "one random stream order" if count == 1 else f"{count} random stream orders"


def markdown(results: Results) -> str:
    header, *body = rows_of(results)
    lines = [header, ["---"] * len(header), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + f"\n\n{caption(results)}\n"


def as_csv(results: Results) -> str:
    """A line for each row, seed and stream order, with everything that tells where it comes from."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    figures = [f"{p}_{k}" for p in PROTOCOLS for k in KINDS]
    about = ["protocol", "class_seed", "backbone", "method", "preset", "settings", "seed", "order", "commit"]
    out.writerow(["name", *about, "threshold", *figures, "categories", "discovered", "seconds_to_train"])
    for name, found in results.items():
        for result in found:
            data = result["data"]
            settings = " ".join(f"{key}={value}" for key, value in result["settings"].items())
            for order, scores in enumerate(result["result"]["scores"]):
                out.writerow([
                    name, data["protocol"], data["class_seed"], result["backbone"], result["method"], result["preset"],
                    settings, result["seed"], order, result["commit"], result["threshold"]["value"],
                    *(scores[p][k] for p in PROTOCOLS for k in KINDS),
                    scores["categories"], scores["discovered"], result["seconds"]["train"],
                ])  # fmt: skip
    return text.getvalue()


def latex(results: Results) -> str:
    """A tabular with the packages booktabs asks for; All / Old / New in columns of their own."""
    lines = [
        r"\begin{tabular}{l" + "ccc" * len(PROTOCOLS) + "r}",
        r"\toprule",
        " & ".join(["", *(rf"\multicolumn{{3}}{{c}}{{{p.capitalize()}}}" for p in PROTOCOLS), ""]) + r" \\",
        " & ".join(["Method", *(kind.capitalize() for _ in PROTOCOLS for kind in KINDS), r"\#"]) + r" \\",
        r"\midrule",
    ]
    for name, found in results.items():
        cells = [f"{100 * figure(found, p, k)[0]:.1f}" for p in PROTOCOLS for k in KINDS]
        lines.append(" & ".join([_escaped(name), *cells, f"{figure(found, 'categories')[0]:.0f}"]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", f"% {caption(results)}"]) + "\n"


def _escaped(text: str) -> str:
    pieces = text.split("`")  # code in backquotes, as in Markdown
    words = ["".join(_LATEX.get(c, c) for c in piece) for piece in pieces]
    return "".join(rf"\texttt{{{word}}}" if i % 2 else word for i, word in enumerate(words))
