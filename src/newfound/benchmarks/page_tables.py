"""A table of results as HTML, with the paper's figures in the cells that they can be compared with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from newfound.benchmarks.store import Result
from newfound.benchmarks.tables import Column, Table
from newfound.report.markup import Content, Markup, element, join

CONTROLS = frozenset({"closed", "frozen"})  # what is had without discovering or training: never the best of a column
ORACLE = "oracle: cut chosen on the scored stream"
_NOTABLE = 1.0  # points; a smaller difference from the paper is not marked


@dataclass(frozen=True)
class Printed:
    """A figure as the paper prints it, and the marks of the footnotes that say what is wrong with it."""

    value: float
    marks: str = ""


# The paper's figures for a line's results, one for each part of a column; None where there is none to compare with.
Beside = Callable[[Column, Sequence[Result]], Sequence["Printed | None"]]


def nothing_beside(column: Column, results: Sequence[Result]) -> list[None]:
    return [None] * len(column.parts)


def table_markup(table: Table, beside: Beside = nothing_beside) -> Markup:
    """The table in a box of its own, which scrolls if the window is narrow.

    Columns in which no line has a figure are left out. The best of each column is bold: the highest accuracy, the
    number of categories nearest to the number of classes, the least time. Controls and oracles are never the best.
    """
    columns = [c for c in table.columns if any(any(c.figures(results)) for results in table.lines.values())]
    best = {column.title: _best(column, table) for column in columns}
    rows = []
    for name, results in table.lines.items():
        control = is_control(results)
        cells = [
            _cells(column, results, [] if control else best[column.title], beside(column, results))
            for column in columns
        ]
        seeds = element("td", str(len({result["seed"] for result in results})), class_="first")
        label = element("th", prose(name), scope="row")
        rows.append(element("tr", label, cells, seeds, class_="control" if control else None))
    return scrolling(
        element("table", element("thead", _head(columns)), element("tbody", rows), class_="results"), table.title
    )


def is_control(results: Sequence[Result]) -> bool:
    return all(result["method"] in CONTROLS for result in results)


def prose(text: str) -> Markup:
    """Text in which `backquotes` mark code, as in Markdown."""
    return join([element("code", piece) if i % 2 else piece for i, piece in enumerate(text.split("`"))])


def scrolling(content: Content, label: str) -> Markup:
    """A box that scrolls sideways by itself, also with the keyboard."""
    return element("div", content, class_="scroll", role="region", aria_label=label, tabindex=0)


def plain_table(header: Sequence[Content], rows: Sequence[Sequence[Content]], label: str) -> Markup:
    """A table without groups; the first cell of a row names it."""
    head = element("tr", [element("th", cell, scope="col") for cell in header])
    body = [element("tr", element("th", row[0], scope="row"), [element("td", c) for c in row[1:]]) for row in rows]
    return scrolling(element("table", element("thead", head), element("tbody", body), class_="plain"), label)


def _head(columns: Sequence[Column]) -> list[Markup]:
    groups, parts = [element("td", rowspan=2)], []
    for column in columns:
        title: Content = column.title.partition(":")[0]  # what follows names the parts, which have cells of their own
        if column.oracle:
            title = [column.title.removesuffix(", oracle"), " ", element("small", ORACLE)]
        several = len(column.parts) > 1
        size = {"colspan": len(column.parts), "scope": "colgroup"} if several else {"rowspan": 2, "scope": "col"}
        groups.append(element("th", element("span", title), **size, class_=_classes(column, 0)))
        if several:
            names = [name for name, _ in column.parts]
            parts += [element("th", name, scope="col", class_=_classes(column, i)) for i, name in enumerate(names)]
    groups.append(element("th", "seeds", rowspan=2, scope="col", class_="first"))
    return [element("tr", groups), element("tr", parts)]


def _cells(
    column: Column, results: Sequence[Result], best: Sequence[set[str]], beside: Sequence[Printed | None]
) -> list[Markup]:
    cells = []
    for i, (figure, text) in enumerate(zip(column.figures(results), column.texts(results), strict=True)):
        content: list[Content] = [element("b" if best and text in best[i] else "span", text)]
        if figure and figure[1] is not None:
            content.append(element("small", f"± {figure[1]:.{column.digits}f}"))
        if figure and (printed := beside[i]):
            content.append(_compared(figure, printed, column.digits))
        cells.append(element("td", content, class_=_classes(column, i)))
    return cells


def _compared(figure: tuple[float, float | None], printed: Printed, digits: int) -> Markup:
    """The paper's figure, and ours minus it as both are shown."""
    mean, spread = figure
    difference = round(round(mean, digits) - printed.value, digits)
    text = f"{difference:+.{digits}f}".replace("-", "−") if difference else "±0"
    kind = None
    if abs(difference) > max(spread or 0.0, _NOTABLE):
        kind, text = ("above", f"▲ {text}") if difference > 0 else ("below", f"▼ {text}")
    value = f"{printed.value:.{digits}f}{printed.marks}"
    return element(
        "span", value, " ", element("span", text, class_=kind), class_="paper", title="the paper, and ours minus it"
    )


def _best(column: Column, table: Table) -> list[set[str]]:
    """What the best of each part looks like; nothing where there is nothing to choose from."""
    lines = [results for results in table.lines.values() if not is_control(results)]
    best: list[set[str]] = []
    for i in range(len(column.parts)):
        shown = [
            (_merit(column, figure[0], results), column.texts(results)[i])
            for results in lines
            if (figure := column.figures(results)[i]) is not None
        ]
        differ = len({text for _, text in shown}) > 1
        top = max(shown)[0] if differ and not column.oracle else None
        best.append({text for merit, text in shown if merit == top})
    return best


def _merit(column: Column, mean: float, results: Sequence[Result]) -> float:
    if column.better == "higher":
        return mean
    return -abs(mean - results[0]["data"]["classes"]) if column.better == "classes" else -mean


def _classes(column: Column, part: int) -> str | None:
    return " ".join([*(["first"] if part == 0 else []), *(["oracle"] if column.oracle else [])]) or None
