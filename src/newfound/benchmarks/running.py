"""Run a study: measure its cells, keep a record of what it shows, write its tables or figures.

Under the folder of results:

    cells.jsonl                        every result, one JSON line a cell (`newfound.benchmarks.store`)
    DATA-BACKBONE-.../NAME.json        the record of a study: what was asked, and the keys of its cells
    DATA-BACKBONE-.../NAME.*           its table as .md, .csv and .tex, or its figures as .png and .svg with their .csv
    DATA-BACKBONE-.../known.json       of data of one's own, the known classes and a hash of the data
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from newfound.backbone import check_name
from newfound.benchmarks import study_figures
from newfound.benchmarks.cells import Cell, Setup, digest
from newfound.benchmarks.cost import Estimate
from newfound.benchmarks.data import known_names
from newfound.benchmarks.figure_style import require_matplotlib
from newfound.benchmarks.grid import Outcome, run_grid
from newfound.benchmarks.store import Result, Store
from newfound.benchmarks.studies import STUDIES, Choice, Line, Study
from newfound.benchmarks.tables import Table
from newfound.errors import DataError, SettingsError
from newfound.files import write_text
from newfound.image_size import own_size
from newfound.progress import Reporter

_KNOWN = "known.json"
_NO_CLASS_ORDER = "measured by an earlier newfound, which did not record class order"
_LOWER_START = ("cub", "cars", "food101")  # where the paper has tau_init 0.6 instead of 0.7 (Sec. 4.1)


@dataclass(frozen=True)
class Record:
    """What a study showed when it was last run: enough to show it again from the store, without data or training."""

    study: str
    choice: Choice
    keys: dict[str, list[str]]  # of the cells with results, by line
    missing: dict[str, str]  # why lines have no or fewer results
    figures: dict[str, str]  # captions, by the name of the files beside the record that show them

    @property
    def files(self) -> list[str]:
        """What the study wrote beside its record."""
        if STUDIES[self.study].kind == "table":
            return [f"{self.study}.{ending}" for ending in ("md", "csv", "tex")]
        return [f"{name}.{ending}" for name in self.figures for ending in ("png", "svg", "csv")]

    def results(self, store: dict[str, Result]) -> dict[str, list[Result]]:
        """By line, those that the store has."""
        lines = {name: [store[key] for key in keys if key in store] for name, keys in self.keys.items()}
        return {name: found for name, found in lines.items() if found}

    def table(self, store: dict[str, Result], *, class_order: bool = False) -> Table:
        """With `class_order`, of the stream in class order instead of the random orders."""
        study = STUDIES[self.study]
        notes: tuple[str, ...] = (_base(self.choice),) if study.varies else ()
        lines, missing = self.results(store), self.missing
        if class_order:
            notes += ("Much published code reads the stream so; no real one is like that.",)
            told = {name: [r for r in found if r.get("class_order")] for name, found in lines.items()}
            missing = {name: _NO_CLASS_ORDER for name, found in lines.items() if len(told[name]) < len(found)} | missing
            lines = {name: list(map(_in_class_order, found)) for name, found in told.items() if found}
        # What no line has a figure for, such as oracle scores of older results, is left out.
        columns = tuple(
            column
            for column in study.columns
            if not (class_order and column.oracle) and any(column.figures(found)[0] for found in lines.values())
        )
        return Table(f"{study.title}: {study.about}", columns, lines, missing, notes, class_order)


def run_study(
    study: Study,
    setup: Setup,
    out: str | os.PathLike,
    *,
    seeds: Iterable[int] = (0, 1, 2),
    choice: Choice | None = None,
    jobs: int = 1,
    keep: str | os.PathLike | None = None,
    measure: bool = True,
    reporter: Reporter | None = None,
) -> tuple[Record, dict[str, list[Result]]]:
    """Measure what the store lacks, then write the study's record and its tables or figures.

    Args:
        out: the folder of results.
        seeds: training seeds; a picture shows the run of the first.
        jobs, keep: as in `run_grid`.
        measure: False shows what is there and trains nothing.

    Returns:
        The record, and the results of each line.

    Raises:
        SettingsError: a method that no line has, no seed, or a pipeline of diffusion that no line has a use for.
        WeightsError: there is no such weight file.
        DataError: the data is not this benchmark's, or `out` cannot be written.
    """
    choice, reporter = choice or Choice(), reporter or Reporter()
    seeds = sorted(set(seeds))
    if not seeds or seeds[0] < 0:
        raise SettingsError(f"seeds={seeds}: give at least one, from 0 up.")
    lines = study.lines(choice)
    for name in {line.backbone or setup.backbone for line in lines}:
        check_name(name)
    if setup.pipeline and not any(_cell(line, seeds[0], setup).pipeline for line in lines):
        raise SettingsError(f"pipeline={setup.pipeline}: nothing here is created by diffusion.")
    for oddity in setup.oddities:
        reporter.say(f"warning: {oddity}")
    store, folder = Store(out), folder_of(study, choice, setup, out)
    if setup.known is not None:  # now, not with the results: another command may be measuring beside this one
        note = {"known": known_names(Path(setup.known)), "data": _content(setup)}
        write_text(folder / _KNOWN, json.dumps(note, indent=1) + "\n")
    if study.kind == "picture":
        cell = _cell(lines[0], seeds[0], setup)
        kept = Path(keep) if keep else store.folder / "runs"
        if not (kept / cell.training / "config.json").is_file():
            if not measure:
                raise DataError(f"no run for {study.name} is kept in {kept}, and none is to be trained.")
            about = Estimate(store.results().values()).words([cell], 1)
            reporter.say(f"no run of it is kept in {kept}: it is trained now, {about}")
        figures = study_figures.draw_picture(study.name, cell, folder, kept, reporter)
        record = Record(study.name, choice, {}, {}, figures)
        _write(folder, record)
        return record, {}
    if study.kind == "curves":
        require_matplotlib()  # rather now than after hours
    # Seed after seed, so that an interrupted study compares all its lines.
    cells = {(line.name, seed): _cell(line, seed, setup) for seed in seeds for line in lines}
    if measure:
        outcome = run_grid(cells.values(), store, jobs=jobs, keep=keep, reporter=reporter)
    else:
        outcome = Outcome(store.results(), {})
    keys: dict[str, list[str]] = {line.name: [] for line in lines}
    missing: dict[str, str] = {}
    for (name, _), cell in cells.items():
        if cell.key in outcome.results:
            keys[name].append(cell.key)
        else:
            missing[name] = outcome.failed.get(cell.key, "not measured yet")
    record = Record(study.name, choice, keys, missing, {})
    results = record.results(outcome.results)
    if not results:
        return record, results
    if study.kind == "curves":
        every = [result for found in results.values() for result in found]
        record = replace(record, figures=study_figures.draw_curves(study.name, every, folder))
    else:
        table = record.table(outcome.results)
        texts = (table.markdown(), table.csv(), table.latex())
        for name, text in zip(record.files, texts, strict=True):
            write_text(folder / name, text)
    _write(folder, record)
    return record, results


def records(out: str | os.PathLike) -> list[tuple[Path, Record]]:
    """Every study that was run into this folder, with the file of its record.

    Raises:
        DataError: a record cannot be read.
    """
    found = []
    for path in sorted(Path(out).glob("*/*.json")):
        if path.stem not in STUDIES:
            continue
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
            asked = stored.pop("choice")
            lists = {name: tuple(asked[name]) for name in ("methods", "backbones")}
            found.append((path, Record(choice=Choice(**asked | lists), **stored)))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(f"the record {path} cannot be read ({error}); run its study again.") from error
    order = list(STUDIES)
    return sorted(found, key=lambda pair: (pair[0].parent.name, order.index(pair[1].study)))


def folder_of(study: Study, choice: Choice, setup: Setup, out: str | os.PathLike) -> Path:
    """Where a study's tables and figures go: another place for all that is asked but seeds and grid.

    Of several data folders with one name, and of several files of known classes with one name, those that hold others
    than the first have a hash in theirs.
    """
    first = Path(out) / _folder_name(study, choice, setup)
    if setup.known is None or not (first / _KNOWN).is_file():
        return first
    there, asked = (sorted(set(known_names(path))) for path in (first / _KNOWN, Path(setup.known)))
    data = json.loads((first / _KNOWN).read_text(encoding="utf-8")).get("data")  # None before it was noted
    other_data = [_content(setup)[:8]] if data not in (None, _content(setup)) else []
    other_classes = [digest(asked)[:8]] if there != asked else []
    return Path(out) / _folder_name(study, choice, setup, other_data, other_classes)


def _content(setup: Setup) -> str:
    """A hash of the images and their labels, whichever classes are known and wherever they lie."""
    return digest(sorted(setup.listed))


def _folder_name(
    study: Study, choice: Choice, setup: Setup, data: Sequence[str] = (), classes: Sequence[str] = ()
) -> str:
    parts = [setup.protocol]
    if setup.known is not None:  # another file of known classes makes another stream
        parts += [Path(str(setup.data)).resolve().name, *data, Path(setup.known).stem, *classes]
    parts += [f"class-seed-{setup.class_seed}"] if setup.class_seed is not None else []
    parts += [*(choice.backbones or [setup.backbone]), *([f"{setup.image_size}-pixels"] if setup.image_size else [])]
    parts += ["short"] if setup.short else []
    parts += [Path(setup.weights).stem] if setup.weights else []
    parts += [Path(setup.pipeline).name] if setup.pipeline else []
    parts += [f"{setup.orders}-orders"] if setup.orders != Setup.orders else []
    if study.varies:
        parts += [choice.preset] if choice.preset != Choice.preset else []
        parts += [f"{name}={value}" for name, value in choice.settings.items()]
    parts += ["only", *choice.methods] if choice.methods else []
    return in_a_path("-".join(parts))[:200]


def in_a_path(text: str) -> str:
    """What names a folder, with nothing that a file system may not take."""
    return re.sub(r"[^\w.=+-]+", "_", text)


def _cell(line: Line, seed: int, setup: Setup) -> Cell:
    variant = line.variant
    if (variant.method, variant.preset) == ("ltc", "paper") and setup.protocol in _LOWER_START:
        variant = replace(variant, settings={"tau_init": 0.6} | variant.settings)
    setup = replace(setup, backbone=line.backbone) if line.backbone else setup
    if line.image_size:  # what the backbone was trained at is the size of every other study
        own = line.image_size == own_size(setup.backbone)
        setup = replace(setup, image_size=None if own else line.image_size)
    return Cell(variant, seed, setup)


def _in_class_order(result: Result) -> Result:
    return result | {"scores": [result["class_order"]]}


def _base(choice: Choice) -> str:
    settings = ", ".join(f"{name}={value}" for name, value in choice.settings.items())
    return f"LTC starts from the preset `{choice.preset}`" + (f" with {settings}." if settings else ".")


def _write(folder: Path, record: Record) -> None:
    write_text(folder / f"{record.study}.json", json.dumps(asdict(record), indent=1) + "\n")
