"""A reader for HTML pages, for tests that look at what is on them."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"meta", "img", "br", "col", "link"}


class Page(HTMLParser):
    """A page as a list of elements: attributes, tag, text, the elements around (`parents`) and their tags (`within`).

    Fails if they are not well nested.
    """

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[dict] = []
        self._open: list[dict] = []
        self.feed(page)
        self.close()
        assert not self._open, f"never closed: {[e['tag'] for e in self._open]}"

    def handle_starttag(self, tag, attrs):
        nesting = {"parents": list(self._open), "within": [e["tag"] for e in self._open]}
        element = {"class": "", **dict(attrs), "tag": tag, "text": "", **nesting}
        self.elements.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_endtag(self, tag):
        assert self._open.pop()["tag"] == tag

    def handle_data(self, data):
        for element in self._open:
            element["text"] += data

    def all(self, tag: str, class_: str = "", inside: dict | None = None, *, within: str = "") -> list[dict]:
        """Every element with this tag and class that is inside another element, or within one of another tag."""
        return [
            e for e in self.elements
            if e["tag"] == tag and (not class_ or class_ in (e["class"] or "").split())
            and (inside is None or any(parent is inside for parent in e["parents"]))
            and (not within or within in e["within"])
        ]  # fmt: skip

    def one(self, tag: str, class_: str = "") -> dict:
        (found,) = self.all(tag, class_)
        return found

    def row(self, name: str) -> list[dict]:
        """The cells of the first line of a table with this name."""
        line = next(tr for tr in self.all("tr") if any(th["text"] == name for th in self.all("th", inside=tr)))
        return self.all("td", inside=line)
