"""A run is shown a labelled stream, as a user would show it, and the story of it is kept for a report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from newfound.datasets import LabelledImages
from newfound.evaluation import StreamResult, stream_order
from newfound.progress import Reporter
from newfound.report.story import Story

if TYPE_CHECKING:
    from newfound.run import Run


def tell(
    run: Run,
    stream: LabelledImages,
    *,
    title: str,
    table: list[tuple[str, StreamResult]],
    seed: int = 0,
    threshold: float | None = None,
    notes: list[str] | None = None,
    reporter: Reporter | None = None,
) -> Story:
    """The story of a stream in its first random order, from a fresh discoverer.

    Args:
        title: the report's heading.
        table: scores by method, the run's own first.
        seed: of the order.
        threshold: another cut than the run's own.
        notes: further lines on how the results were made.
    """
    ordered = stream.subset(stream_order(len(stream), seed, 0))
    discoverer = run.discoverer(threshold=threshold)
    sightings = []
    with (reporter or Reporter()).stage("discovering", len(ordered)) as progress:
        for sighting in discoverer.observe(iter(ordered.items), block=64):
            sightings.append(sighting)
            progress(1)
    return Story(
        title=title,
        run=run,
        items=ordered.items,
        labels=ordered.labels,
        categories=discoverer.standing(sightings),
        created=[s.is_new for s in sightings],
        scores=[s.score for s in sightings],
        names={category.id: category.name for category in discoverer.categories()},
        known_count=len(run.classes),
        table=table,
        true_categories=len(stream.classes),
        notes=notes or [],
        threshold=threshold,
    )
