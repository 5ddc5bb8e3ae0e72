"""Discovered when: the number of categories as the stream goes by, and the image that founded each."""

from __future__ import annotations

from newfound.report.charts import Axis, Chart
from newfound.report.markup import Markup, element, join, number
from newfound.report.story import Story
from newfound.report.thumbnails import Thumbnails

_DOTS = 150  # more would run into each other
_STRIP = 48  # founders shown


def timeline(story: Story, thumbnails: Thumbnails) -> Markup:
    founders = [i for i, created in enumerate(story.created) if created]
    if not founders:
        return element("p", "Nothing was discovered: every image was given to a known class.")
    return join(_chart(story, founders), _strip(story, thumbnails))


def _chart(story: Story, founders: list[int]) -> Markup:
    images, known = len(story.items), story.known_count
    found = known + len(founders)
    chart = Chart(
        Axis("images seen", 0, images),
        Axis("categories", 0, max(found, story.true_categories or 0) * 1.1),
    )
    steps = [(0, known), *((i + 1, known + n) for n, i in enumerate(founders, start=1)), (images, found)]
    layers = [chart.line(steps, steps=True)]
    if story.true_categories is not None:
        truth = number(story.true_categories, "true class", "true classes")
        layers.append(chart.level(story.true_categories, truth, below=found >= story.true_categories))
    layers += [
        chart.dot(i + 1, known + n, f"image {i + 1:,}: {_name(story, i)}")
        for n, i in enumerate(founders[:_DOTS], start=1)
    ]
    half = founders[(len(founders) - 1) // 2] + 1
    caption = (
        f"From {known} known to {found} categories in {number(images, 'image')}; half of the {len(founders)} were "
        f"founded by image {half:,}. A dot marks {'each' if len(founders) <= _DOTS else f'each of the first {_DOTS}'}."
    )
    absorbed = len(founders) - len(story.discovered)
    if absorbed > 0:
        caption += f" {number(absorbed, 'category was', 'categories were')} merged or dissolved into others later."
    drawing = chart.draw(f"Number of categories against images seen: from {known} to {found}", layers)
    return element("figure", drawing, element("figcaption", caption))


def _strip(story: Story, thumbnails: Thumbnails) -> Markup:
    groups = sorted(story.discovered, key=lambda group: group.id)
    shown = []
    for group in groups[:_STRIP]:
        first = next((member for member in group.members if story.created[member]), group.members[0])
        score = story.scores[first]
        why = None if score is None else element("small", f"{score:.3f}")
        place = element("small", f"image {first + 1:,}")
        shown.append(element("li", thumbnails.show(first), element("b", group.name), place, why))
    rest = len(groups) - len(shown)
    caption = (
        f"The image that founded each category, and its score for the best one there was; the cut is {story.cut:.3f}. "
        "Where evidence is weighed, a founder may be above it: it fits an earlier image that waited better still."
    )
    if rest:
        caption += f" {number(rest, 'later one')} not shown."
    strip = element("ol", shown, class_="strip", tabindex=0, aria_label="First images of the discovered categories")
    return element("figure", strip, element("figcaption", caption))


def _name(story: Story, position: int) -> str:
    category = story.categories[position]
    return "" if category is None else story.names[category]
