"""The gallery: the images of the stream by the category they were given."""

from __future__ import annotations

from newfound.report.markup import Markup, element, join, number
from newfound.report.story import Group, Story
from newfound.report.thumbnails import Thumbnails

_CATEGORIES, _IMAGES = 60, 12  # shown at most: categories, and images of each


def gallery(story: Story, thumbnails: Thumbnails) -> Markup:
    shown, rest = story.groups[:_CATEGORIES], story.groups[_CATEGORIES:]
    large = [group for group in shown if group.known or len(group) > 1]
    once = [group for group in shown if not group.known and len(group) == 1]
    return join(
        _legend(story),
        _cards(story, "Discovered", [group for group in large if not group.known], thumbnails),
        _once(once, thumbnails),
        _cards(story, "Known", [group for group in large if group.known], thumbnails),
        _rest(rest),
        _unused(story),
    )


def _legend(story: Story) -> Markup | None:
    if story.labels is None:
        return None
    odd = element("span", "A corner mark", class_="key odd")
    return element("p", odd, " shows an image of another class than the one its category stands for.", class_="note")


def _cards(story: Story, title: str, groups: list[Group], thumbnails: Thumbnails) -> Markup | None:
    if not groups:
        return None
    cards = [_card(story, group, thumbnails) for group in groups]
    return join(element("h3", title), element("div", cards, class_="cards"))


def _card(story: Story, group: Group, thumbnails: Thumbnails) -> Markup:
    kind, shade = ("known", "known") if group.known else ("discovered", "new")
    about = number(len(group), "image")
    if group.majority is not None and group.purity is not None:
        about += f", {100 * group.purity:.0f} % of them {group.majority}"
    images = [
        element("li", thumbnails.show(i), class_="odd" if _is_odd(story, group, i) else None) for i in _sample(group)
    ]
    badge = element("span", kind, class_=f"badge {shade}")
    head = element("header", element("h4", group.name), badge, element("p", about))
    return element("article", head, element("ul", images), class_="card")


def _is_odd(story: Story, group: Group, position: int) -> bool:
    if story.labels is None:
        return False
    # A known category stands for its own class even where another one has the majority in it.
    stands_for = story.run.classes[group.id] if group.known else group.majority
    return story.labels[position] != stands_for


def _sample(group: Group) -> list[int]:
    """The first image, the last, and others evenly between them: a category may drift as the stream goes on."""
    last = len(group) - 1
    count = min(len(group), _IMAGES)
    return [group.members[round(i * last / max(count - 1, 1))] for i in range(count)]


def _once(groups: list[Group], thumbnails: Thumbnails) -> Markup | None:
    """Discovered categories of one image, without a card each: there may be many, and there is little to say."""
    if not groups:
        return None
    images = [
        element("li", thumbnails.show(g.members[0]), element("b", g.name), g.majority and element("small", g.majority))
        for g in sorted(groups, key=lambda group: group.id)
    ]
    badge = element("span", "discovered", class_="badge new")
    return join(element("h3", "Seen once ", badge), element("ul", images, class_="once"))


def _rest(groups: list[Group]) -> Markup | None:
    if not groups:
        return None
    images = number(sum(map(len, groups)), "image")
    return element("p", f"… and {number(len(groups), 'smaller one')}, with {images} in all.", class_="note")


def _unused(story: Story) -> Markup | None:
    unused = sorted(set(range(story.known_count)) - {group.id for group in story.known})
    if not unused:
        return None
    names = ", ".join(story.run.classes[i] for i in unused)
    return element("p", f"Known classes that no image was given to: {names}.", class_="note")
