"""A study on the page: its table or figures, the paper's figures beside it, and how each result was measured."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from newfound.benchmarks import paper, tables
from newfound.benchmarks.page_paper import Comparison
from newfound.benchmarks.page_tables import plain_table, prose, scrolling, table_markup
from newfound.benchmarks.running import Record
from newfound.benchmarks.store import FILE, Result
from newfound.benchmarks.studies import STUDIES
from newfound.report.markup import Content, Markup, element, number

_HUGE = 1_000_000  # bytes of an SVG, above which its PNG is shown: thousands of points are slow to draw
_KINDS = {".svg": "image/svg+xml", ".png": "image/png"}
_POINTS = (*(tables.accuracy(protocol) for protocol in tables.PROTOCOLS), tables.categories())
_COLUMNS = (
    "Line", "Seed", "Training, CPU min", "Scoring, s", "Threads", "Cut", "Commit", "Measured", "Key", "Command",
)  # fmt: skip


def study_markup(path: Path, record: Record, store: dict[str, Result], anchor: str) -> Markup:
    """A record as a part of the page. What is not there any more is said, and is no error.

    Args:
        path: the record's file; figures are beside it.
    """
    study = STUDIES[record.study]
    lines = record.results(store)
    parts: list[Content] = [element("h3", f"{study.title}: {study.about}")]
    parts += [_drawing(path.parent, name, caption) for name, caption in record.figures.items()]
    wanted, found = (sum(map(len, cells.values())) for cells in (record.keys, lines))
    if found < wanted:
        gone = f"No results in {FILE} for {wanted - found} of its {number(wanted, 'training')}."
        parts.append(element("p", gone, class_="none"))
    if lines and study.kind == "table":
        parts += _tables(record, store)
    elif lines:
        points = replace(record.table(store), columns=_POINTS)
        parts.append(_closed("The numbers", _figure(table_markup(points), points.caption())))
    if lines:
        parts.append(_measured(lines, study.title))
    return element("section", parts, id=anchor, class_="study")


def _tables(record: Record, store: dict[str, Result]) -> list[Markup]:
    table = record.table(store)
    if record.study in paper.TABLES:
        comparison = Comparison(record.study, table.lines)
        notes = comparison.notes()
        parts = [_figure(table_markup(table, comparison.beside), table.caption(), *notes), *comparison.apart()]
    else:
        parts = [_figure(table_markup(table), table.caption())]
    if all(result.get("class_order") for found in table.lines.values() for result in found):
        by_class = record.table(store, class_order=True)
        parts.append(_closed("The stream in class order", _figure(table_markup(by_class), by_class.caption())))
    return parts


def _figure(content: Content, *captions: str) -> Markup:
    return element("figure", content, [element("figcaption", prose(caption)) for caption in captions])


def _closed(summary: str, *content: Content) -> Markup:
    """Something that is shown when it is asked for."""
    return element("details", element("summary", summary), content)


def _drawing(folder: Path, name: str, caption: str) -> Markup:
    """A figure as it was drawn, in the page itself. As an image: what is in the file can neither run nor load."""
    for ending, kind in _KINDS.items():
        try:
            content = (folder / f"{name}{ending}").read_bytes()
        except OSError:
            continue
        if ending != ".svg" or len(content) <= _HUGE or not (folder / f"{name}.png").is_file():
            source = f"data:{kind};base64,{base64.b64encode(content).decode()}"
            image = scrolling(element("img", src=source, alt=f"{name}: {caption}"), name)
            return element("div", _figure(image, f"`{name}`: {caption}"), class_="drawing")
    return element("p", f"No figure: {name}.svg and {name}.png are not in {folder.name}. {caption}", class_="none")


def _measured(lines: dict[str, list[Result]], title: str) -> Markup:
    """Where every number comes from: a row for each training."""
    rows = [[prose(name), *_origin(result)] for name, found in lines.items() for result in found]
    results = [result for found in lines.values() for result in found]
    hours = sum((result.get("cost") or {}).get("train_cpu", 0.0) for result in results) / 3600
    summary = f"How it was measured: {number(len(results), 'training')}, {hours:.1f} CPU hours"
    return _closed(summary, plain_table(_COLUMNS, rows, f"How {title} was measured"))


def _origin(result: Result) -> Sequence[Content]:
    cost = result.get("cost") or {}
    threshold = result.get("threshold") or {}
    cut = threshold.get("value")
    return (
        str(result["seed"]),
        f"{cost['train_cpu'] / 60:.1f}" if "train_cpu" in cost else "–",
        f"{cost['evaluate']:.0f}" if "evaluate" in cost else "–",
        str(cost.get("threads", "–")),
        "–" if cut is None else f"{cut:.3f}",
        result["commit"],
        result["time"],
        element("code", result["key"]),
        element("code", result["command"]),
    )
