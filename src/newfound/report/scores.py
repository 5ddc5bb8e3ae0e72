"""The table of scores: a column a method, a group of rows a protocol."""

from __future__ import annotations

from newfound.report.markup import Markup, element, join, number
from newfound.report.story import Story

_PROTOCOLS = {
    "strict": "One matching of categories with classes decides for all images at once.",
    "greedy": "One matching for the images of known classes and another for the rest: a category may count in both.",
    "named": "What a practitioner means: a known image must get its own class's name, an unknown one must be in the "
    "discovered category matched with its class. Whatever discovers nothing has 0 for New.",
}  # fmt: skip
_KINDS = {"all": "All", "old": "Old", "new": "New"}


def scores(story: Story) -> Markup:
    if not story.table:
        return element("p", "The stream's true classes are not known, so there is nothing to score.")
    orders = story.table[0][1].orders
    about = f"Images that are right, in per cent. Old: of known classes, New: of classes never seen. {_spread(orders)}"
    labels = [element("th", label, scope="col") for label, _ in story.table]
    head = element("thead", element("tr", element("td"), labels))
    bodies = [_protocol(story, name, about) for name, about in _PROTOCOLS.items()]
    table = element("table", element("caption", about), head, bodies, _counts(story), class_="scores")
    return element("div", table, class_="scroll", role="region", aria_label="Table of scores", tabindex=0)


def _spread(orders: int) -> str:
    if orders == 1:
        return "One order of the stream."
    return (
        f"Mean and standard deviation over {orders} random orders of the stream. Bold: ahead of every other method by "
        "more than the two spreads together."
    )


def _protocol(story: Story, protocol: str, about: str) -> Markup:
    columns = len(story.table) + 1
    title = element("th", element("b", protocol.capitalize()), " ", about, colspan=columns, scope="rowgroup")
    rows = [element("tr", title, class_="protocol")]
    for kind, label in _KINDS.items():
        figures = [_figure(result.mean[protocol], result.std[protocol], kind) for _, result in story.table]
        ahead = _ahead(figures, story.table[0][1].orders)
        cells = [_cell(figure, bold=index == ahead) for index, figure in enumerate(figures)]
        rows.append(element("tr", element("th", label, scope="row"), cells))
    return element("tbody", rows)


def _figure(means: dict | None, spreads: dict | None, kind: str) -> tuple[float, float] | None:
    if means is None or spreads is None or means[kind] is None or spreads[kind] is None:
        return None
    return 100 * means[kind], 100 * spreads[kind]


def _ahead(figures: list[tuple[float, float] | None], orders: int) -> int | None:
    """The column that leads all others by more than chance in the stream's order explains; None if there is none."""
    ranked = sorted(((f, i) for i, f in enumerate(figures) if f is not None), reverse=True)
    if orders < 2 or len(ranked) < 2:
        return None
    (best, index), *others = ranked
    return index if all(best[0] - other[0] > best[1] + other[1] for other, _ in others) else None


def _cell(figure: tuple[float, float] | None, *, bold: bool = False, count: bool = False) -> Markup:
    if figure is None:
        return element("td", "–")
    mean, spread = (f"{value:.1f}" for value in figure)
    if count:
        mean = mean.removesuffix(".0")
    around = None if spread == "0.0" else join(" ", element("small", f"± {spread}"))
    return element("td", element("b" if bold else "span", mean), around)


def _counts(story: Story) -> Markup:
    about = "How many were used, the known classes included."
    if story.true_categories is not None:
        about += f" The stream holds {number(story.true_categories, 'class', 'classes')}."
    title = element("th", element("b", "Categories"), " ", about, colspan=len(story.table) + 1, scope="rowgroup")
    rows = [element("tr", title, class_="protocol")]
    for name, label in {"categories": "Found", "discovered": "New"}.items():
        cells = [_cell((result.mean[name], result.std[name]), count=True) for _, result in story.table]
        rows.append(element("tr", element("th", label, scope="row"), cells))
    return element("tbody", rows)
