"""The demo: the whole story on one data set, told in a table and a report.

Half of the classes are known and half of their images labelled. LTC learns from these, then everything else is
streamed, and the answers are scored beside those of a control that never discovers and of the backbone as it is.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from newfound._words import counted
from newfound.datasets import LabelledImages, drop_unreadable, load_dataset, split_protocol
from newfound.errors import DataError
from newfound.evaluation import StreamResult
from newfound.progress import Reporter
from newfound.report import tell, write_report

if TYPE_CHECKING:
    from newfound.run import Run

METHODS = ("ltc", "closed", "frozen")  # the first one's run is kept and its stream shown
LABELLED = 0.5  # share of the known classes' images that are learnt from
ORDERS = 3  # random orders of the stream that scores are averaged over
MIN_CLASSES = 4
MAX_EACH, MAX_IMAGES = 40, 2000  # a class and in all, unless everything is asked for
MIN_EACH = 4  # where MAX_IMAGES leaves fewer a class than this, there are fewer classes instead

# Settings that let the demo end within minutes on two cores. A digit's mirror image is no digit.
DIGITS: dict[str, Any] = {"image_size": 112, "epochs": 10, "views": 4, "flip": False}
FOLDER: dict[str, Any] = {"epochs": 10, "views": 4}
KNOWN_DIGITS = ("0", "1", "2", "3", "4")


@dataclass(frozen=True)
class DemoResult:
    """What a demo leaves: a report, a run, and the scores of each method."""

    report: Path
    run: Run
    results: list[tuple[str, StreamResult]]
    true_categories: int

    def table(self) -> list[tuple[str, ...]]:
        """Rows of cells to print, the header first: means over the orders, per cent but for the categories."""
        protocols = ("strict", "greedy", "named")
        kinds = ("all", "old", "new")
        header = [f"{protocol.capitalize()} {kind.capitalize()}" for protocol in protocols for kind in kinds]
        rows: list[tuple[str, ...]] = [("method", *header, f"categories (really {self.true_categories})")]
        for label, result in self.results:
            mean = result.mean
            figures = [(mean[protocol] or {}).get(kind) for protocol in protocols for kind in kinds]
            cells = ["-" if figure is None else f"{100 * figure:.1f}" for figure in figures]
            rows.append((label, *cells, f"{mean['categories']:.0f}"))
        return rows

    def as_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        return {
            "report": str(self.report),
            "run": str(self.run.folder),
            "true_categories": self.true_categories,
            "results": {label: result.as_dict() for label, result in self.results},
        }


def run_demo(
    data: Any = None,
    out: str | os.PathLike[str] = "newfound-demo",
    *,
    seed: int = 0,
    reporter: Reporter | None = None,
    everything: bool = False,
    known: Iterable[str] | None = None,
    **settings: Any,
) -> DemoResult:
    """Tell the story of a data set; writes `out`/report.html and the run folder `out`/run.

    Args:
        data: anything that `load_dataset` takes; None for scikit-learn's digits, of which 0 to 4 are known.
        out: the folder to write to; what an earlier demo wrote there is replaced.
        seed: draws the known classes, the labelled images and the orders of the stream, and seeds training.
        reporter: told of progress; silent by default.
        everything: take all images, however many.
        known: the names of the known classes; None draws half of them.
        **settings: further arguments of `newfound.fit`, and settings that all of the methods have.

    Raises:
        DataError: fewer than four classes, nothing unknown, or anything else that `newfound.fit` cannot learn from.
        NewfoundError: all else that `newfound.fit` raises.
    """
    reporter = reporter or Reporter()
    names = None if known is None else [str(name) for name in known]
    notes: list[str] = []
    if data is None:
        images, defaults = _digits(), DIGITS
        names = list(KNOWN_DIGITS) if names is None else names
    else:
        images, defaults = load_dataset(data), FOLDER
        images, notes = _usable(images, names or [], seed, everything, reporter)
    labelled, stream = split_protocol(images, names, fraction=LABELLED, seed=seed)
    unknown = sorted(set(images.classes) - set(labelled.classes))
    if not unknown:
        raise DataError(f"all classes of {images.source} are known, so there is nothing to discover; name fewer.")
    reporter.say(
        f"{len(labelled)} labelled images of {len(labelled.classes)} known classes, then a stream of {len(stream)} "
        f"with {counted(len(unknown), 'unknown one')}"
    )
    run, results = _compare(labelled, stream, Path(out), seed, reporter, {"short": True} | defaults | settings)
    name = Path(images.source).name or images.source
    title = f"{name}: {len(labelled.classes)} classes taught, {len(unknown)} never seen"
    story = tell(run, stream, title=title, table=results, seed=seed, notes=notes + _notes(seed), reporter=reporter)
    report = write_report(Path(out) / "report.html", story)
    return DemoResult(report, run, results, len(stream.classes))


def _compare(
    labelled: LabelledImages, stream: LabelledImages, out: Path, seed: int, reporter: Reporter, settings: dict[str, Any]
) -> tuple[Run, list[tuple[str, StreamResult]]]:
    """Train and score every method; returns the first one's run, and the scores of all."""
    from newfound.fitting import fit
    from newfound.method import methods

    runs, results = [], []
    for number, method in enumerate(METHODS):
        reporter.say(f"{number + 1} of {len(METHODS)}: {method}, {methods()[method]}")
        own = settings | ({"epochs": None} if method == "frozen" else {})  # it has nothing to learn
        kept = out / "run" if number == 0 else None
        run = fit(labelled, method=method, seed=seed, reporter=reporter, out=kept, overwrite=True, **own)
        results.append((run.label, run.evaluate(stream, orders=ORDERS, seed=seed, reporter=reporter)))
        runs.append(run)
    return runs[0], results


def _digits() -> LabelledImages:
    from sklearn.datasets import load_digits

    digits = load_digits()
    pixels = np.rint(digits.images * (255 / 16)).astype(np.uint8)  # their values run from 0 to 16
    return LabelledImages(list(pixels), [str(digit) for digit in digits.target], source="scikit-learn's digits")


def _usable(
    data: LabelledImages, known: list[str], seed: int, everything: bool, reporter: Reporter
) -> tuple[LabelledImages, list[str]]:
    """A draw of manageable size, readable, at least two images of each class; and notes on what was left out."""
    notes: list[str] = []

    def say(message: str) -> None:
        reporter.say(message)
        notes.append(message)

    total = len(data)
    if not everything:
        data = _draw(data, known, seed)
        if len(data) < total:
            say(f"Drew {len(data):,} of {total:,} images, at most {MAX_EACH} a class and {MAX_IMAGES:,} in all.")
    with reporter.stage("checking images", len(data)) as progress:
        data, unreadable = drop_unreadable(data, progress=progress)
    if unreadable:
        say(f"Images left out because they cannot be read: {len(unreadable)}. The first: {unreadable[0][1]}.")
    single = [name for name, count in data.counts().items() if count < 2]
    if single:
        say(f"Classes with a single image are left out: {', '.join(single)}.")
        data = data.without_classes(single)
    if len(data.classes) < MIN_CLASSES:
        has = counted(len(data.classes), "class", "classes")
        raise DataError(
            f"{data.source} has {has} with at least two readable images, but the demo needs "
            f"{MIN_CLASSES}: it teaches half of them and hides the others. Give every class a folder of its own."
        )
    return data, notes


def _draw(data: LabelledImages, known: list[str], seed: int) -> LabelledImages:
    """A seeded draw within the demo's bounds; classes named as known stay in."""
    rng = np.random.default_rng([seed, len(data)])
    shuffled = [data.classes[i] for i in rng.permutation(len(data.classes))]
    names = sorted(shuffled, key=lambda name: name not in known)[: MAX_IMAGES // MIN_EACH]
    each = min(MAX_EACH, MAX_IMAGES // len(names))
    labels = np.array(data.labels, dtype=object)
    drawn = [rng.permutation(np.flatnonzero(labels == name))[:each] for name in names]
    return data.subset(np.sort(np.concatenate(drawn)))


def _notes(seed: int) -> list[str]:
    from newfound.method import methods

    return [
        f"Half of the images of the known classes, drawn with seed {seed}, were labelled; the rest of them and all "
        "images of the other classes are the stream.",
        f"The pictures, the charts and the matrix show the first of the stream's {ORDERS} orders.",
        *(f"{name}: {methods()[name]}." for name in METHODS),
    ]
