"""The threshold: its path while training, the cut of the run, and the rehearsal that chose it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from newfound.report.charts import Axis, Chart
from newfound.report.markup import Markup, element, join, number
from newfound.report.story import Story

if TYPE_CHECKING:
    from newfound.run import Run


def threshold(story: Story) -> Markup:
    chosen = story.run.config["threshold"]
    said = element("p", _cut(story), " ", f"The cut: {rule(chosen)}.")
    still = "Training created no samples, so there is no path to show: no threshold was learnt on the way."
    note = None if story.run.threshold_path else element("p", still, class_="note")
    figures = [figure for figure in (_path(story), _rehearsal(chosen)) if figure is not None]
    return join(said, note, element("div", figures, class_="pair" if len(figures) > 1 else "solo") if figures else None)


def rule(chosen: dict) -> str:
    """Where a run's cut came from, without its value."""
    return chosen["rule"].removeprefix(f"threshold {chosen['value']:.2f}, ")


def weighs_evidence(run: Run) -> bool:
    """Whether the run's scores are log ratios; else they are similarities."""
    return getattr(run.method.settings, "dictionary", None) == "bayesian"


def _cut(story: Story) -> str:
    value = story.run.threshold
    if weighs_evidence(story.run):
        if getattr(story.run.method.settings, "alone", None) is None:
            return f"An image founds a category if the evidence for every category, a log ratio, is below {value:.2f}."
        return (
            f"An image is of a category if the evidence for it, a log ratio, is at least {value:.2f}. One below that "
            "for every category is doubtful until a second one like it comes, or new at once if it is far below."
        )
    if value <= -1:
        return "No image can found a category."
    return f"An image founds a category if its similarity to every category there is lies below {value:.2f}."


def _path(story: Story) -> Markup | None:
    path, cut = story.run.threshold_path, story.run.threshold
    if not path:
        return None
    settings = story.run.config["settings"]
    start = [(0, settings["tau_init"])] if "tau_init" in settings else []
    points = [*start, *((step + 1, tau) for step, tau in path)]
    steps = settings["epochs"] * math.ceil(story.run.config["data"]["images"] / settings["batch_size"])
    end = max(steps, points[-1][0])
    points.append((end, points[-1][1]))
    cuts = [] if weighs_evidence(story.run) else [cut]  # what is learnt is a cosine
    chart = Chart(
        Axis("training step", 0, end),
        Axis.around("threshold", [*cuts, *(tau for _, tau in points)], 0.1),
    )
    last = points[-1][1]
    levels = [chart.level(cut, f"the run's cut {cut:.2f}", below=last >= cut) for cut in cuts]
    layers = [chart.line(points, steps=True), *levels]
    caption = (
        f"Learnt while training: from {points[0][1]:.3f} to {last:.3f} in {number(len(path), 'move')}, one for each "
        "batch that created samples."
    )
    return element("figure", chart.draw(caption, layers), element("figcaption", caption))


def _rehearsal(chosen: dict) -> Markup | None:
    grid, scores = chosen.get("grid"), chosen.get("scores")
    if not grid or not scores:
        return None
    percents = [100 * score for score in scores]
    chart = Chart(Axis("threshold", grid[0], grid[-1]), Axis("score", min(0, *percents), max(100, *percents)))
    cut = chosen["value"]
    layers = [chart.line(list(zip(grid, percents, strict=True))), chart.upright(cut, f"chosen: {cut:.2f}")]
    caption = (
        "Rehearsed: how well hidden known classes were discovered at each threshold (mean of Strict All and Named All, "
        "with evidence less a few points where the number of categories was wrong)."
    )
    return element("figure", chart.draw(caption, layers), element("figcaption", caption))
