"""Folders of results made by hand, and a reader for the pages that are made of them."""

from __future__ import annotations

import dataclasses
import json
from html.parser import HTMLParser
from pathlib import Path

from hand_made_results import result

from newfound.benchmarks.running import Record
from newfound.benchmarks.store import FILE
from newfound.benchmarks.studies import CLIP, Choice

HERE = "pets-tf_efficientnet_lite0-short"
PETS = result([0.5])["data"]
THEIRS = {"backbone": CLIP, "preset": "paper"}  # LTC as the paper has it; Strict All on Pets is 58.9 there


class Page(HTMLParser):
    """A page as a list of elements, each with its attributes, its text and what it is in."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[dict] = []
        self._open: list[dict] = []
        self.feed(page)
        self.close()
        assert not self._open, f"never closed: {[e['tag'] for e in self._open]}"

    def handle_starttag(self, tag, attrs):
        within = list(self._open)
        element = {"class": "", **dict(attrs), "tag": tag, "text": "", "within": within}
        self.elements.append(element)
        if tag not in ("meta", "img"):
            self._open.append(element)

    def handle_endtag(self, tag):
        assert self._open.pop()["tag"] == tag

    def handle_data(self, data):
        for element in self._open:
            element["text"] += data

    def all(self, tag: str, class_: str = "", inside: dict | None = None) -> list[dict]:
        def fits(e: dict) -> bool:
            return e["tag"] == tag and (not class_ or class_ in e["class"].split())

        return [e for e in self.elements if fits(e) and (inside is None or any(w is inside for w in e["within"]))]

    def row(self, name: str) -> list[dict]:
        """The cells of the first line with this name."""
        line = next(tr for tr in self.all("tr") if any(th["text"] == name for th in self.all("th", inside=tr)))
        return self.all("td", inside=line)


def record(out: Path, lines: dict[str, list[dict]], study: str = "table1", *, folder: str = HERE, **more) -> Path:
    """A study whose lines have these results, as if it had been run into `out`; returns `out`."""
    keys: dict[str, list[str]] = {}
    with (out / FILE).open("a") as store:
        for name, results in lines.items():
            keys[name] = [f"{folder} {study} {name} {i}" for i in range(len(results))]
            store.writelines(json.dumps(r | {"key": k}) + "\n" for k, r in zip(keys[name], results, strict=True))
    (out / folder).mkdir(exist_ok=True)
    kept = Record(study, Choice(), keys, more.pop("missing", {}), more.pop("figures", {}))
    (out / folder / f"{study}.json").write_text(json.dumps(dataclasses.asdict(kept)))
    return out
