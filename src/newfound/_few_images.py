"""What a small labelled set cannot show, and how to decide without it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection
from typing import TypeVar

from newfound.datasets import LabelledImages
from newfound.images import content_hash
from newfound.method import Settings
from newfound.method._prototypes import PrototypeSettings
from newfound.rehearsal import too_few

P = TypeVar("P", bound=PrototypeSettings)


def suited(
    settings: Settings,
    labelled: LabelledImages,
    *,
    asked: Collection[str],
    cosines: Callable[[], Settings],
    say: Callable[[str], None],
) -> Settings:
    """The settings, with cosines in place of evidence where images are too few to show how they differ.

    Evidence needs the spread within classes and between them. Where that is a guess, and no rehearsal can mend it, it
    takes images of known classes for new ones, and cosines with a cut that is usually good do better.

    Args:
        asked: the settings that were given by name: who asks for evidence gets it, if it can be had at all.
        cosines: gives the settings as they would be with cosines, whose training may be another one.
        say: told of the change.
    """
    if not isinstance(settings, PrototypeSettings) or settings.dictionary != "bayesian":
        return settings
    why = None
    if not _varies(labelled):
        why = "every class has copies of one image only, so there is no telling how images of a class differ"
    elif settings.threshold == "rehearsed" and "dictionary" not in asked:
        why = too_few(len(labelled.classes), len(labelled))
    if why is None:
        return settings
    say(
        f'{why}: cosines with prototypes are compared instead of weighing evidence (dictionary="prototypes"). '
        "More classes and images make discovery better."
    )
    compared = cosines()
    assert isinstance(compared, PrototypeSettings), "of the same method"
    return by_cosines(compared, len(labelled.classes))


def by_cosines(settings: P, classes: int) -> P:
    """The settings with cosines, as is usually good where there is nothing to rehearse on."""
    return dataclasses.replace(
        settings,
        dictionary="prototypes",
        threshold="rehearsed",  # what was given was a log ratio, and no cosine
        centre=1 - 1 / classes,
        update="fixed",  # a category that moves with what it takes in would take in images of known classes
    )


def _varies(labelled: LabelledImages) -> bool:
    """Whether some class has two different images."""
    first: dict[int, str] = {}
    hashes = zip(map(content_hash, labelled.items), labelled.targets.tolist(), strict=True)
    return any(first.setdefault(target, found) != found for found, target in hashes)
