"""The confusion matrix: where the images of each true class went."""

from __future__ import annotations

from collections import Counter

from newfound.report.markup import Markup, element, join, number
from newfound.report.story import Group, Story

_CLASSES, _CATEGORIES = 40, 40  # rows and columns at most: more cannot be read
_HEATS = 10
_WIDTH = 58  # rem that the cells of a row may take together


def confusion(story: Story) -> Markup:
    if story.labels is None:
        return element("p", "The stream's true classes are not known.")
    rows, columns = _rows(story), _columns(story)
    counted = Counter(zip(story.labels, story.categories, strict=True))
    shown = {group.id for group in columns}
    pooled = [group for group in story.groups if group.id not in shown]
    body = [_row(label, *_counts(label, columns, pooled, counted), story, columns) for label in rows]
    side = min(2.5, max(1.375, _WIDTH / (len(columns) + 1)))
    table = element(
        "table",
        element("caption", _caption(story, rows, pooled)),
        element("thead", _head(columns, pooled)),
        _bodies(rows, body, set(story.run.classes)),
        class_="confusion dense" if side < 2 else "confusion",
        style=f"--cell: {side:.2f}rem",
    )
    return element("div", table, class_="scroll", role="region", aria_label="Confusion matrix", tabindex=0)


def _rows(story: Story) -> list[str]:
    """The largest classes: the known ones by name, then the others by name."""
    assert story.labels is not None
    read = (label for label, category in zip(story.labels, story.categories, strict=True) if category is not None)
    sizes = Counter(read)
    largest = sorted(sizes, key=lambda label: (-sizes[label], label))[:_CLASSES]
    return sorted(largest, key=lambda label: (label not in story.run.classes, label))


def _columns(story: Story) -> list[Group]:
    """The largest categories: the known classes by name, then the discovered ones by size; no singletons."""
    worth = [group for group in story.groups if group.known or len(group) > 1][:_CATEGORIES]
    return sorted((g for g in worth if g.known), key=lambda g: g.name) + [g for g in worth if not g.known]


def _counts(label: str, columns: list[Group], pooled: list[Group], counted: Counter) -> tuple[list[int], int]:
    return [counted[label, group.id] for group in columns], sum(counted[label, group.id] for group in pooled)


def _head(columns: list[Group], pooled: list[Group]) -> Markup:
    known = sum(group.known for group in columns)
    tail = element("td") if pooled else None
    spans = element("tr", element("td"), _span("known", known), _span("discovered", len(columns) - known), tail)
    names = [
        element("th", element("span", group.name), scope="col", title=group.name, class_=_edge(columns, i))
        for i, group in enumerate(columns)
    ]
    other = element("th", element("span", "other"), scope="col", class_="edge") if pooled else None
    return join(spans, element("tr", element("th", "true class", scope="col", class_="corner"), names, other))


def _span(kind: str, width: int) -> Markup | None:
    badge = element("span", kind, class_=f"badge {'known' if kind == 'known' else 'new'}")
    return element("th", badge, colspan=width, scope="colgroup") if width else None


def _row(label: str, counts: list[int], other: int, story: Story, columns: list[Group]) -> Markup:
    total = sum(counts) + other
    cells = [_cell(count, total, _edge(columns, i)) for i, count in enumerate(counts)]
    pooled = _cell(other, total, "edge") if len(story.groups) > len(columns) else None
    return element("tr", element("th", label, scope="row", title=label), cells, pooled)


def _cell(count: int, total: int, edge: str | None) -> Markup:
    if not count:
        return element("td", class_=edge)
    heat = f"h{max(1, round(_HEATS * count / total))}"
    return element("td", f"{count}", class_=f"{heat} {edge}" if edge else heat)


def _edge(columns: list[Group], index: int) -> str | None:
    """A rule to the left of the first discovered category."""
    first = not columns[index].known and (index == 0 or columns[index - 1].known)
    return "edge" if first else None


def _bodies(rows: list[str], body: list[Markup], known: set[str]) -> list[Markup]:
    """Known and unknown classes as two row groups."""
    split = sum(label in known for label in rows)
    return [element("tbody", part) for part in (body[:split], body[split:]) if part]


def _caption(story: Story, rows: list[str], pooled: list[Group]) -> str:
    assert story.labels is not None
    text = (
        "How many images of each true class (rows) went to each category (columns); the darker, the larger the share "
        "of its row. Known classes first, then those never seen."
    )
    hidden = len(set(story.labels)) - len(rows)
    if hidden > 0:
        text += f" Only the {len(rows)} largest classes are shown, {number(hidden, 'other')} not."
    if pooled:
        text += f" “Other” holds {number(len(pooled), 'category', 'categories')} that are smaller."
    return text
