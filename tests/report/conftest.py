"""A small stream on a real run, and the reader for the pages that tell of it."""

from __future__ import annotations

import numpy as np
import pytest
from html_page import Page

from newfound.evaluation import evaluate_stream
from newfound.report import Story


@pytest.fixture(scope="session")
def read():
    """read(page): the page's elements; fails if they are not well nested."""
    return Page


@pytest.fixture
def make_story(tiny_run, pictures):
    """make_story(**changes): 20 images of four kinds; the run knows three, and kind3 founded new-1 and new-2."""

    def make(**changes) -> Story:
        items, labels = pictures(kinds=4, each=5)
        categories = [0] * 5 + [1] * 4 + [0] + [2] * 5 + [3] * 4 + [4]
        created = [i in (15, 19) for i in range(20)]
        known = ["kind0", "kind1", "kind2"]

        def decide(order):
            chosen = [categories[i] for i in order]
            return [known[c] if c < 3 else c for c in chosen], np.array(chosen) >= 3, None

        values = {
            "title": "Four kinds",
            "run": tiny_run,
            "items": items,
            "labels": labels,
            "categories": categories,
            "created": created,
            "scores": [0.5] * 20,
            "names": {0: "kind0", 1: "kind1", 2: "kind2", 3: "new-1", 4: "new-2"},
            "known_count": 3,
            "table": [("ltc, paper (short)", evaluate_stream(decide, labels, known, orders=2))],
            "true_categories": 4,
            "notes": ["A note."],
        }
        return Story(**values | changes)

    return make
