"""Line charts in SVG that keep their type size at any width.

The drawing fills its frame and is stretched with it, while text is placed in percentages of the frame and is not: so a
chart is as legible on a telephone as on a desk.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from newfound.report.markup import Content, Markup, element

_UNIT = 1000  # the drawing's own coordinates run from 0 to this in both directions


@dataclass(frozen=True)
class Axis:
    """A range of values, and what they are."""

    label: str
    low: float
    high: float

    def share(self, value: float) -> float:
        """Where a value lies, from 0 at the low end to 1 at the high one."""
        return (value - self.low) / (self.high - self.low)

    def ticks(self, most: int = 5) -> list[tuple[float, str]]:
        """As many round values in the range as there may be, evenly apart, and how they are written."""
        exponent = math.floor(math.log10((self.high - self.low) / most))
        for digit, power in ((1, exponent), (2, exponent), (5, exponent), (1, exponent + 1), (2, exponent + 1)):
            step = digit * 10.0**power
            first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
            if last - first < most:
                break
        return [(i * step, f"{i * step:,.{max(0, -power)}f}") for i in range(first, last + 1)]

    @classmethod
    def around(cls, label: str, values: Iterable[float], least: float) -> Axis:
        """An axis with some air around values, at least `least` long."""
        given = list(values)
        middle, reach = (min(given) + max(given)) / 2, max((max(given) - min(given)) * 0.6, least / 2)
        return cls(label, middle - reach, middle + reach)


@dataclass(frozen=True)
class Chart:
    """A frame with two axes; its methods make what is drawn in it."""

    x: Axis
    y: Axis

    def line(self, points: Sequence[tuple[float, float]], *, steps: bool = False) -> Markup:
        """A line through the points, or a staircase that is level until the next point."""
        path: list[str] = []
        before = None
        for x, y in points:
            at = f"{_UNIT * self.x.share(x):.1f}"
            if steps and before is not None:
                path.append(f"L{at} {before}")
            before = f"{_UNIT * (1 - self.y.share(y)):.1f}"
            path.append(f"{'L' if path else 'M'}{at} {before}")
        drawn = element("path", d="".join(path), vector_effect="non-scaling-stroke")
        stretch = {"viewBox": f"0 0 {_UNIT} {_UNIT}", "preserveAspectRatio": "none", "width": "100%", "height": "100%"}
        return element("svg", drawn, class_="line", **stretch)

    def level(self, value: float, text: str, *, below: bool = False) -> Markup:
        """A dashed horizontal line with a few words at its right end."""
        y = self._y(value)
        rule = element("line", x1="0", x2="100%", y1=y, y2=y)
        words = element("text", text, x="100%", y=y, dy="1.3em" if below else "-0.5em", text_anchor="end")
        return element("g", rule, words, class_="level")

    def upright(self, value: float, text: str) -> Markup:
        """A dashed vertical line with a few words at its foot, on the side where there is more room."""
        x, right = self._x(value), self.x.share(value) < 0.5
        rule = element("line", x1=x, x2=x, y1="0", y2="100%")
        anchor = {"dx": "0.5em"} if right else {"dx": "-0.5em", "text_anchor": "end"}
        return element("g", rule, element("text", text, x=x, y="100%", dy="-0.7em", **anchor), class_="level")

    def dot(self, x: float, y: float, text: str) -> Markup:
        """A dot that says what it is when pointed at."""
        return element("circle", element("title", text), cx=self._x(x), cy=self._y(y), r=3.5)

    def draw(self, title: str, *layers: Content) -> Markup:
        """The chart as an svg element; `title` is what someone who does not see it is told."""
        rows = [(self._y(value), text) for value, text in self.y.ticks()]
        columns = [(self._x(value), text) for value, text in self.x.ticks()]
        grid = [
            *(element("line", x1="0", x2="100%", y1=y, y2=y) for y, _ in rows),
            *(element("text", text, x="-10", y=y, dy="0.32em", text_anchor="end") for y, text in rows),
            *(element("text", text, x=x, y="100%", dy="1.6em", text_anchor="middle") for x, text in columns),
            element("text", self.y.label, x="-3rem", y="0", dy="-1.1em", class_="axis"),
            element("text", self.x.label, x="100%", y="100%", dy="3em", text_anchor="end", class_="axis"),
        ]
        body = [element("title", title), element("g", grid, class_="grid"), layers]
        return element("svg", body, role="img", class_="chart")

    def _x(self, value: float) -> str:
        return f"{100 * self.x.share(value):.2f}%"

    def _y(self, value: float) -> str:
        return f"{100 * (1 - self.y.share(value)):.2f}%"
