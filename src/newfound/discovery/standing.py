"""Answers as they stand: what was answered at once, after all that the dictionary has moved and merged since."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from newfound.discovery._exact import Ints
from newfound.discovery._ledger import Event
from newfound.discovery.dictionary import Dictionary


def events_of(dictionary: Dictionary) -> list[Event]:
    """What the dictionary has changed by itself since it was last asked; nothing for one that never does."""
    drain = getattr(dictionary, "drain_events", None)
    return drain() if drain else []


def standing(dictionary: Dictionary, given: Ints, events: Iterable[Event]) -> Ints:
    """The ids under which sightings live now.

    Args:
        given: the category of every sighting as it was answered, from the first one of the stream on.
        events: all that the dictionary has changed since then, in order.
    """
    now = np.array(given, np.int64)
    for event in events:
        if event.sighting is not None:
            now[event.sighting] = event.target
    return dictionary.resolve(now)
