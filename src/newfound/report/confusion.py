"""The confusion matrix: where the images of each true class went."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

from newfound.report.markup import Markup, element, join, number
from newfound.report.story import Group, Story

_CLASSES, _CATEGORIES = 40, 40  # rows and columns at most: more cannot be read
_SHADES = 10
_WIDTH = 58  # rem that the cells of a row may take together


def confusion(story: Story) -> Markup:
    if story.labels is None:
        return element("p", "The stream's true classes are not known.")
    matrix = _Matrix(story, story.labels)
    side = min(2.5, max(1.375, _WIDTH / (len(matrix.columns) + 1)))
    split = sum(label in story.run.classes for label in matrix.rows)
    table = element(
        "table",
        element("caption", matrix.caption()),
        element("thead", matrix.head()),
        [element("tbody", map(matrix.row, part)) for part in (matrix.rows[:split], matrix.rows[split:]) if part],
        class_="confusion dense" if side < 2 else "confusion",
        style=f"--cell: {side:.2f}rem",
    )
    return element("div", table, class_="scroll", role="region", aria_label="Confusion matrix", tabindex=0)


@dataclass(frozen=True)
class _Matrix:
    """Which classes and categories are shown, and the counts."""

    story: Story
    labels: list[str]

    @cached_property
    def counts(self) -> Counter[tuple[str, int]]:
        pairs = zip(self.labels, self.story.categories, strict=True)
        return Counter((label, category) for label, category in pairs if category is not None)

    @cached_property
    def sizes(self) -> Counter[str]:
        """The images of each class that could be read."""
        sizes: Counter[str] = Counter()
        for (label, _), count in self.counts.items():
            sizes[label] += count
        return sizes

    @cached_property
    def rows(self) -> list[str]:
        """The largest classes, known ones first, by name; where not all fit, known and unknown ones get half each."""
        largest = sorted(self.sizes, key=lambda label: (-self.sizes[label], label))
        known = [label for label in largest if label in self.story.run.classes]
        unknown = [label for label in largest if label not in self.story.run.classes]
        for_known = max(_CLASSES // 2, _CLASSES - len(unknown))
        known = known[:for_known]
        return sorted(known) + sorted(unknown[: _CLASSES - len(known)])

    @cached_property
    def columns(self) -> list[Group]:
        """The categories that hold most of the classes shown: known ones by name, then discovered ones by size."""
        held = {group.id: sum(self.counts[label, group.id] for label in self.rows) for group in self.story.groups}
        worth = [group for group in self.story.groups if held[group.id] and (group.known or len(group) > 1)]
        largest = sorted(worth, key=lambda group: (-held[group.id], group.id))[:_CATEGORIES]
        known = sorted((group for group in largest if group.known), key=lambda group: group.name)
        return known + sorted((g for g in largest if not g.known), key=lambda g: (-len(g), g.id))

    @cached_property
    def pooled(self) -> list[Group]:
        """All other categories, which share one column."""
        shown = {group.id for group in self.columns}
        return [group for group in self.story.groups if group.id not in shown]

    def head(self) -> Markup:
        known = sum(group.known for group in self.columns)
        spans = [_span("known", "known", known), _span("discovered", "new", len(self.columns) - known)]
        names = [
            element("th", element("span", group.name), scope="col", title=group.name, class_=self._edge(i))
            for i, group in enumerate(self.columns)
        ]
        if self.pooled:
            spans.append(element("td"))
            names.append(element("th", element("span", "other"), scope="col", class_="edge"))
        corner = element("th", "true class", scope="col", class_="corner")
        return join(element("tr", element("td"), spans), element("tr", corner, names))

    def row(self, label: str) -> Markup:
        cells = [self._cell(label, [group], self._edge(i)) for i, group in enumerate(self.columns)]
        if self.pooled:
            cells.append(self._cell(label, self.pooled, "edge"))
        return element("tr", element("th", label, scope="row", title=label), cells)

    def caption(self) -> str:
        text = (
            "How many images of each true class (rows) went to each category (columns); the stronger the shade, the "
            "larger the share of its row. Known classes first, then those never seen."
        )
        if len(self.rows) < len(self.sizes):
            text += f" Only {len(self.rows)} of {len(self.sizes)} classes are shown, the largest of either kind."
        if self.pooled:
            text += f" “Other” holds {number(len(self.pooled), 'category', 'categories')} more."
        return text

    def _cell(self, label: str, groups: list[Group], edge: str | None) -> Markup:
        count = sum(self.counts[label, group.id] for group in groups)
        if not count:
            return element("td", class_=edge)
        shade = f"h{max(1, round(_SHADES * count / self.sizes[label]))}"
        return element("td", str(count), class_=f"{shade} {edge}" if edge else shade)

    def _edge(self, index: int) -> str | None:
        """A gap to the left of the first discovered category."""
        first = not self.columns[index].known and (index == 0 or self.columns[index - 1].known)
        return "edge" if first else None


def _span(kind: str, shade: str, width: int) -> Markup | None:
    badge = element("span", kind, class_=f"badge {shade}")
    return element("th", badge, colspan=width, scope="colgroup") if width else None
