"""The paper on the page: its figures in the cells that they can be compared with or apart, claims, misprints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from newfound.benchmarks import paper
from newfound.benchmarks._catalogue import DATA_SETS
from newfound.benchmarks.page_tables import Printed, plain_table
from newfound.benchmarks.paper import Misprint, Published
from newfound.benchmarks.store import Result
from newfound.benchmarks.studies import STUDIES
from newfound.benchmarks.tables import KINDS, Column
from newfound.errors import SettingsError
from newfound.presets import SHORT
from newfound.report.markup import Content, Markup, element

_SCORES = ("strict", "greedy")
_HOW = (
    "Beneath a figure: the paper's for the same data set, backbone, method and losses, and ours minus it; ▲ and ▼ "
    "where that is more than the spread and more than 1 point. How it was trained may differ."
)
_SHORT = f"Ours are short trainings ({SHORT['epochs']} epochs), the paper's are not."


@dataclass(frozen=True)
class Comparison:
    """What the paper has for the lines of a study, all of one data set."""

    study: str
    lines: Mapping[str, Sequence[Result]]

    @cached_property
    def results(self) -> list[Result]:
        return [result for found in self.lines.values() for result in found]

    @cached_property
    def entries(self) -> list[Published]:
        """The paper's figures for this data set, comparable or not."""
        protocol = self.results[0]["data"]["protocol"]
        return [one for one in paper.published(self.study) if one.protocol == protocol]

    @cached_property
    def matched(self) -> dict[str, Published]:
        """Those that a result may be compared with, by the result's key."""
        found = {result["key"]: _entry(self.study, result) for result in self.results}
        return {key: entry for key, entry in found.items() if entry is not None}

    def beside(self, column: Column, results: Sequence[Result]) -> list[Printed | None]:
        """The paper's figures for a line, one for each part of a column."""
        entry = self.matched.get(results[0]["key"])
        score = column.title.lower()
        if entry is not None and score == "categories" and entry.categories is not None:
            return [Printed(entry.categories)]
        accuracy = getattr(entry, score) if entry is not None and score in _SCORES else None
        if entry is None or accuracy is None:
            return [None] * len(column.parts)
        return [Printed(100 * getattr(accuracy, kind), _marks(entry, score)) for kind in KINDS]

    def notes(self) -> list[str]:
        """What a reader of the comparison must know, or why there is none."""
        if not self.matched:
            return [self._why_not()]
        used = [entry for entry in self.entries if entry in self.matched.values()]
        notes = [_HOW]
        if any(result["preset"].endswith("(short)") for result in self.results if result["key"] in self.matched):
            notes[0] += f" {_SHORT}"
        notes += self._trained()
        for source in dict.fromkeys(entry.backbone_from for entry in used):
            names = ", ".join(entry.printed for entry in used if entry.backbone_from == source)
            notes.append(f"How the paper's backbone is known for {names}: {source}.")
        return notes + _footnotes(used)

    def apart(self) -> list[Markup]:
        """The figures that stand beside none of ours, in a table that is closed at first; nothing if there are none."""
        rest = [entry for entry in self.entries if entry not in self.matched.values()]
        if not rest:
            return []
        others = not {result["backbone"] for result in self.results} & {entry.backbone for entry in rest}
        title = (
            f"The paper's {'other figures' if self.matched else 'figures'} "
            f"({'other backbones: ' if others else ''}not comparable)"
        )
        header = ["In the paper", "Backbone", "Strict All / Old / New", "Greedy All / Old / New"]
        counted, timed = any(e.categories for e in rest), any(e.seconds for e in rest)
        header += ["Categories"] * counted + ["128 samples, s"] * timed
        rows: list[list[Content]] = []
        for entry in rest:
            row: list[Content] = [entry.printed, entry.backbone, *(_triple(entry, score) for score in _SCORES)]
            row += [str(entry.categories or "–")] * counted + [_seconds(entry)] * timed
            rows.append(row)
        notes = [element("p", note, class_="note") for note in _footnotes(rest)]
        return [element("details", element("summary", title), plain_table(header, rows, title), notes)]

    def _trained(self) -> list[str]:
        """In what the lines that are compared differ from the preset `paper`, but for what they are lines of."""
        alike: dict[str, list[str]] = {}
        for name, found in self.lines.items():
            if entry := self.matched.get(found[0]["key"]):
                unlike = paper.unlike_paper(found[0])
                told = [f"`{s}` {_value(a)} ({_value(b)})" for s, (a, b) in unlike.items() if s not in entry.settings]
                alike.setdefault(", ".join(told), []).append(name)
        return [
            f"Not as in the preset `paper`, whose values are in brackets: {'; '.join(names)}: {told}."
            if told else f"Trained as the preset `paper` says: {'; '.join(names)}."
            for told, names in alike.items()
        ]  # fmt: skip

    def _why_not(self) -> str:
        data, title = self.results[0]["data"], STUDIES[self.study].title
        name = DATA_SETS[data["protocol"]].title if data["protocol"] in DATA_SETS else data["protocol"]
        if not self.entries:
            return f"The paper's {_place(title)} has no figures for {name}."
        if data["class_seed"] is not None or data["known"] != self.entries[0].known:
            return "The paper's figures are of other known classes: they are not comparable with these."
        theirs = dict.fromkeys(entry.backbone for entry in self.entries)
        ours = sorted({result["backbone"] for result in self.results})
        if not set(ours) & set(theirs):
            return (
                f"The paper's figures are of {' and '.join(theirs)}, these of {', '.join(ours)}: another backbone, so "
                "they are not comparable and not set beside them."
            )
        return "No line here has the backbone, weights, method and losses of one in the paper."


def misprint_list() -> Markup:
    """Every misprint of the paper that is known, under the mark that it has on the whole page."""
    items = [
        element(
            "li",
            element("p", element("b", mark), f" {one.where[:1].upper()}{one.where[1:]}: {one.printed}"),
            element("p", one.wrong, " (Found here, by adding up the paper's figures.)" if one.found_here else None),
        )
        for mark, one in _misprints().items()
    ]
    return element("ol", items, class_="misprints")


def claim_list(shown: Mapping[str, Sequence[tuple[str, str]]]) -> Markup:
    """What the paper claims, how far its own figures bear it out, and where to look here.

    Args:
        shown: for each study on the page, the titles of the setups it was run on and the anchors of what it shows.
    """
    items = []
    for one in paper.claims():
        links = [element("a", title, href=f"#{anchor}") for title, anchor in shown.get(one.study, ())]
        places: Content = [[", " if i else "", link] for i, link in enumerate(links)] or "not measured here"
        items.append(element(
            "li",
            element("p", f"{one.says} ({one.where})"),
            element("p", f"The paper's own figures: {one.note}") if one.note else None,
            element("p", f"Tested by {STUDIES[one.study].title}: ", places, "."),
        ))  # fmt: skip
    return element("ul", items, class_="claims")


def _entry(study: str, result: Result) -> Published | None:
    try:
        return paper.beside(study, result)
    except SettingsError:  # measured by a newfound with other methods or settings: nothing is known to be alike
        return None


def _misprints() -> dict[str, Misprint]:
    return {f"†{i}": one for i, one in enumerate(paper.misprints(), 1)}


def _marks(entry: Published, score: str) -> str:
    """The marks of the misprints that concern one of an entry's scores."""
    return "".join(mark for mark, one in _misprints().items() if one.concerns(entry, score))


def _footnotes(entries: Sequence[Published]) -> list[str]:
    shown = "".join(_marks(entry, score) for entry in entries for score in _SCORES if getattr(entry, score)) + "†"
    return [
        f"{mark} A misprint in the paper ({one.where}). {one.wrong}"
        for mark, one in _misprints().items()
        if f"{mark}†" in shown
    ]


def _triple(entry: Published, score: str) -> str:
    accuracy = getattr(entry, score)
    if accuracy is None:
        return "–"
    text = " / ".join(f"{100 * getattr(accuracy, kind):.1f}" for kind in KINDS)
    return text + _marks(entry, score)


def _seconds(entry: Published) -> str:
    if entry.seconds is None:
        return "–"
    return f"< {entry.seconds:g}" if entry.under else f"{entry.seconds:g}"


def _value(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _place(title: str) -> str:
    return title if title.startswith("Table") else "appendix"
