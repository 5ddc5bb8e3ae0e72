"""One page of all that was measured into a folder of results: self-contained, the same bytes for the same results."""

from __future__ import annotations

from importlib.resources import files
from itertools import groupby
from pathlib import Path

import newfound
from newfound.benchmarks._catalogue import DATA_SETS
from newfound.benchmarks.page_paper import claim_list, misprint_list
from newfound.benchmarks.page_studies import study_markup
from newfound.benchmarks.running import Record, in_a_path, records
from newfound.benchmarks.store import FILE, Result, read_lines
from newfound.benchmarks.studies import STUDIES, Choice
from newfound.errors import DataError
from newfound.files import write_bytes
from newfound.presets import SHORT
from newfound.report.document import document
from newfound.report.markup import Content, Markup, element, join, number

_TITLE = "Benchmark results"
_CLAIMS = "What the paper claims, and which table here tests it"
_TERMS: dict[str, Content] = {
    "All, Old, New": "Images of the stream that are right, in per cent: of all classes, of the known ones, of those "
    "never seen in training.",
    "Strict": "One matching of categories with classes decides for all images at once.",
    "Greedy": "One matching for the images of known classes and another for the rest, so a category may count in both: "
    "never below Strict.",
    "Named": "An image of a known class must be called by that class's name; another must be in a discovered category, "
    "the one that is matched with its class. Whatever discovers nothing has 0 for New.",
    "Oracle": "The cut that decides between known and new was chosen on the stream that is scored, with its labels. No "
    "method may do that: it shows what the features could give. Every other figure is at the method's own cut.",
    "±": "The standard deviation over training seeds and stream orders together.",
    "Bold": "The best of a column: the highest accuracy, the number of categories nearest to the number of classes, "
    "the least time. Controls (grey) and oracles are left out of it.",
    "The paper": "Where data set, known classes, backbone, method and losses are the paper's, its figure stands below "
    "ours with the difference: ▲ or ▼ if that is more than the spread and more than 1 point. How ours were trained may "
    "differ: below such a table is a list of what does. †1 and its like are misprints of the paper.",
    "Sources": join(
        "Every number is worked out from ", element("code", FILE), " in the folder of results, one line a training. "
        "Below each table is a list of its trainings: the key of that line, the command that repeats the training, "
        "its seed, commit, time and cost.",
    ),
}  # fmt: skip


def write_page(results_folder: Path, page: Path) -> Path:
    """Write the page of everything that was measured into a folder of results, and return its path.

    Raises:
        DataError: nothing was measured into the folder, a record in it cannot be read, or the page cannot be written.
    """
    # A file name may hold bytes that are no text; they become question marks.
    write_bytes(page, render(results_folder).encode("utf-8", "replace"))
    return page


def render(results_folder: Path) -> str:
    """The page as an HTML document. Raises DataError as `write_page` does."""
    found = records(results_folder)
    if not found:
        raise DataError(
            f"{results_folder} has no results to report: run a table first, such as `newfound bench table1 pets/ "
            f"--protocol pets --out {results_folder}`."
        )
    store = {result["key"]: result for result in read_lines(Path(results_folder) / FILE)}
    setups = [list(group) for _, group in groupby(found, key=lambda pair: pair[0].parent)]
    sections = sorted((_Setup(group, store) for group in setups), key=lambda one: (one.tuning, one.folder))
    setups_shown = [one.markup(f"setup-{i}") for i, one in enumerate(sections, 1)]
    return document(
        f"{_TITLE}, newfound",
        element("header", _top(found, store), _contents(sections), class_="top"),
        element("main", _reading(), setups_shown, _claims(sections), _misprints()),
        style=files("newfound.benchmarks").joinpath("page.css").read_text(encoding="utf-8"),
    )


class _Setup:
    """The studies of one folder: the same data, known classes, backbone, length of training and choice."""

    def __init__(self, group: list[tuple[Path, Record]], store: dict[str, Result]) -> None:
        self.group, self.store = group, store
        self.folder = group[0][0].parent.name
        lines = [found for _, record in group for found in record.results(store).values()]
        results = [result for found in lines for result in found]
        # A study of backbones has others too; the folder is named after the one that was asked for.
        own = [result for result in results if in_a_path(result["backbone"]) in self.folder]
        self.results = own or results

    @property
    def tuning(self) -> bool:
        """Whether known classes, or labelled images of one's own data, were drawn anew, to choose settings on."""
        return any(result["data"]["class_seed"] is not None for result in self.results)

    @property
    def title(self) -> str:
        if not self.results:
            return self.folder
        data, backbone = self.results[0]["data"], self.results[0]["backbone"]
        name = DATA_SETS[data["protocol"]].title if data["protocol"] in DATA_SETS else data["protocol"]
        seed = [f"class seed {data['class_seed']}"] if self.tuning else []
        size = [f"{self.results[0]['image_size']} pixels"] if "-pixels-" in f"{self.folder}-" else []
        return ", ".join([name, *seed, backbone, *size, "short" if self._short else "full", *self._chosen])

    @property
    def about(self) -> str:
        if not self.results:
            return f"None of its results is in {FILE}."
        data = self.results[0]["data"]
        own = data["protocol"].startswith("own ")
        drawn = ", drawn to choose settings on" if self.tuning and not own else ""
        length = f"short trainings: {SHORT['epochs']} epochs on cached views" if self._short else "full trainings"
        return (
            f"{data['known']} known classes of {data['classes']}{drawn}; {data['labelled']:,} labelled images, a "
            f"stream of {data['stream']:,}; {length}."
        )

    @property
    def _chosen(self) -> list[str]:
        """What was asked for instead of the paper's account of LTC and of all methods."""
        choice = self.group[0][1].choice
        varied = any(STUDIES[record.study].varies for _, record in self.group)
        preset = [choice.preset] if varied and choice.preset != Choice.preset else []
        settings = [f"{name}={value}" for name, value in choice.settings.items()] if varied else []
        return [*preset, *settings, *([f"only {', '.join(choice.methods)}"] if choice.methods else [])]

    @property
    def _short(self) -> bool:
        return self.results[0]["preset"].endswith("(short)")

    def contents(self, anchor: str) -> Markup:
        """Links to all that `markup` shows under the same anchor."""
        studies = [STUDIES[record.study] for _, record in self.group]
        links = [
            element("li", element("a", f"{study.title}: {study.about}", href=f"#{anchor}-{study.name}"))
            for study in studies
        ]
        return element("div", element("p", element("a", self.title, href=f"#{anchor}")), element("ul", links))

    def markup(self, anchor: str) -> Markup:
        studies = [study_markup(path, record, self.store, f"{anchor}-{record.study}") for path, record in self.group]
        return element(
            "section", element("h2", self.title), element("p", self.about), studies, id=anchor, class_="setup"
        )


def _top(found: list[tuple[Path, Record]], store: dict[str, Result]) -> Markup:
    keys = {key for _, record in found for cells in record.keys.values() for key in cells} & set(store)
    costs = [store[key].get("cost") or {} for key in keys]
    hours = sum(cost.get("train_cpu", 0.0) for cost in costs) / 3600
    lead = (
        f"{number(len(found), 'table or figure', 'tables and figures')} of the paper “Learning through Creation”, "
        f"measured with newfound from {number(len(keys), 'training')} ({hours:.1f} CPU hours)."
    )
    return join(
        element("p", f"newfound {newfound.__version__}", class_="kicker"),
        element("h1", _TITLE),
        element("p", lead, class_="lead"),
    )


def _contents(sections: list[_Setup]) -> Markup:
    ends = [("reading", "How to read this page"), ("claims", _CLAIMS), ("misprints", "The paper's misprints")]
    links = element("ul", [element("li", element("a", title, href=f"#{anchor}")) for anchor, title in ends])
    setups = [one.contents(f"setup-{i}") for i, one in enumerate(sections, 1)]
    besides = element("div", element("p", "Besides"), links)
    return element("nav", setups, besides, class_="contents", aria_label="Contents")


def _reading() -> Markup:
    terms = [element("div", element("dt", term), element("dd", text)) for term, text in _TERMS.items()]
    return element(
        "section", element("h2", "How to read this page"), element("dl", terms, class_="terms"), id="reading"
    )


def _claims(sections: list[_Setup]) -> Markup:
    shown: dict[str, list[tuple[str, str]]] = {}
    for i, one in enumerate(sections, 1):
        for _, record in one.group:
            shown.setdefault(record.study, []).append((one.title, f"setup-{i}-{record.study}"))
    return element("section", element("h2", _CLAIMS), claim_list(shown), id="claims")


def _misprints() -> Markup:
    about = "Figures in the paper that cannot be right. Where one is shown on this page, it carries its mark."
    return element(
        "section", element("h2", "The paper's misprints"), element("p", about), misprint_list(), id="misprints"
    )
