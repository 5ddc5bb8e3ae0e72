"""A small stream on a real run, and a reader for the pages that tell of it."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pytest

from newfound.evaluation import evaluate_stream
from newfound.report import Story

VOID = {"meta", "img", "br", "col", "link"}


class Page(HTMLParser):
    """A page as a list of elements, each with its tag, attributes and text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[dict] = []
        self._open: list[dict] = []
        self.feed(page)
        self.close()
        assert not self._open, f"never closed: {[e['tag'] for e in self._open]}"

    def handle_starttag(self, tag, attrs):
        element = {"tag": tag, "text": "", "within": [e["tag"] for e in self._open]} | dict(attrs)
        self.elements.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_endtag(self, tag):
        assert self._open.pop()["tag"] == tag

    def handle_data(self, data):
        for element in self._open:
            element["text"] += data

    def all(self, tag: str, class_: str | None = None, within: str | None = None) -> list[dict]:
        return [
            e for e in self.elements
            if e["tag"] == tag and (class_ is None or class_ in (e.get("class") or "").split())
            and (within is None or within in e["within"])
        ]  # fmt: skip

    def one(self, tag: str, class_: str | None = None) -> dict:
        (found,) = self.all(tag, class_)
        return found


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
