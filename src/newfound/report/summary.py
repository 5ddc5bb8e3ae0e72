"""The head of the report: the whole story in one paragraph, and how the stream began."""

from __future__ import annotations

from newfound.report.markup import Markup, element, join, number
from newfound.report.story import Story
from newfound.report.thumbnails import Thumbnails

_OPENING = 24  # images shown from the beginning of the stream


def summary(story: Story, thumbnails: Thumbnails) -> Markup:
    return join(
        element("p", " ".join([_stream(story), _found(story), _scored(story)]).strip(), class_="lead"),
        _opening(story, thumbnails),
    )


def _stream(story: Story) -> str:
    taught = story.run.config["data"]["images"]
    text = (
        f"A model was taught {number(story.known_count, 'class', 'classes')} from {number(taught, 'labelled image')} "
        f"and then shown {number(story.decided, 'image')}, one at a time."
    )
    if story.labels is not None:
        unknown = set(story.labels) - set(story.run.classes)
        among = number(len(unknown), "class that it had never seen", "classes that it had never seen")
        text = f"{text[:-1]}, among them {among}."
    unreadable = len(story.items) - story.decided
    return text if not unreadable else f"{text} {number(unreadable, 'further image')} could not be read."


def _found(story: Story) -> str:
    new = len(story.discovered)
    if not new:
        return "It gave all of them to classes that it knew and discovered nothing."
    single = sum(len(group) == 1 for group in story.discovered)
    recognised, founded = number(len(story.known), "class", "classes"), number(new, "category", "categories")
    text = f"It recognised {recognised} and founded {founded} of its own"
    if single:
        text += f", {single} of which {'holds' if single == 1 else 'hold'} a single image"
    if story.true_categories is not None:
        text += f"; the stream really holds {number(story.true_categories, 'class', 'classes')}"
    return text + "."


def _scored(story: Story) -> str:
    named = story.table[0][1].mean["named"] if story.table else None
    if not named or named["old"] is None or named["new"] is None:
        return ""
    orders = story.table[0][1].orders
    over = f", on average over {orders} orders of the stream" if orders > 1 else ""
    return (
        f"Of the images of known classes {100 * named['old']:.1f} % were called by their class's own name; of the "
        f"others {100 * named['new']:.1f} % are in the one discovered category that stands for their class{over}."
    )


def _opening(story: Story, thumbnails: Thumbnails) -> Markup:
    shown = []
    for position, category in enumerate(story.categories[:_OPENING]):
        if category is None:
            kind, note = "unread", ": could not be read"
        elif category < story.known_count:
            kind, note = "known", f": known as {story.names[category]}"
        else:
            kind, verb = ("new founder", "founded") if story.created[position] else ("new", "joined")
            note = f": {verb} {story.names[category]}"
        shown.append(element("li", thumbnails.show(position, note), class_=kind))
    key = join(
        f"The first {number(len(shown), 'image')} of the stream, in order: ",
        element("span", "given to a known class", class_="key known"), ", ",
        element("span", "joined a discovered category", class_="key new"), ", ",
        element("span", "founded one", class_="key founder"), ".",
    )  # fmt: skip
    return element("figure", element("ol", shown, class_="film"), element("figcaption", key), class_="opening")
