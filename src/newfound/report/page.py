"""The page: sections in their order, one style sheet, nothing from outside."""

from __future__ import annotations

import os
from pathlib import Path

from newfound.errors import DataError
from newfound.report.confusion import confusion
from newfound.report.document import document
from newfound.report.gallery import gallery
from newfound.report.making import making
from newfound.report.markup import element
from newfound.report.scores import scores
from newfound.report.story import Story
from newfound.report.summary import summary
from newfound.report.threshold import threshold
from newfound.report.thumbnails import Thumbnails
from newfound.report.timeline import timeline


def write_report(path: str | os.PathLike[str], story: Story) -> Path:
    """Write the report of a story as one self-contained HTML file and return its path.

    Folders on the way are made. Images that cannot be read any more are shown as grey squares.

    Raises:
        DataError: if the file cannot be written.
    """
    target = Path(path)
    # A file name may hold bytes that are no text; they become question marks.
    page = render(story).encode("utf-8", "replace")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(page)
    except OSError as error:
        raise DataError(f"the report cannot be written to {target}: {error.strerror or error}.") from error
    return target


def render(story: Story) -> str:
    """The report of a story as an HTML document."""
    thumbnails = Thumbnails(story)
    sections = {
        "scores": ("Scores", scores(story)),
        "gallery": ("Gallery", gallery(story, thumbnails)),
        "timeline": ("Discovered when", timeline(story, thumbnails)),
        "threshold": ("The threshold", threshold(story)),
        "confusion": ("Confusion matrix", confusion(story)),
        "making": ("How it was made", making(story)),
    }
    links = [element("a", title, href=f"#{name}") for name, (title, _) in sections.items()]
    head = element(
        "header",
        element("p", "newfound report", class_="kicker"),
        element("h1", story.title),
        summary(story, thumbnails),
        element("nav", links, aria_label="Sections"),
        class_="top",
    )
    body = [element("section", element("h2", title), content, id=name) for name, (title, content) in sections.items()]
    return document(story.title, head, element("main", body))
