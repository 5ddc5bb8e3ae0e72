"""CSV: a row a thing, which `newfound train` and every spreadsheet can read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timezone
from pathlib import Path

from newfound.crops import parted
from newfound.errors import DataError
from newfound.files import new_file
from newfound.labels._files import Options, read_rows
from newfound.labels.findings import Finding, Findings
from newfound.labels.told import Told, number_in
from newfound.outputs.tables import csv_line

COLUMNS = (
    "path", "label", "category", "origin", "sighting", "score", "cut", "probability", "placed_by", "seen", "ignored",
    "was",
)  # fmt: skip


def write(findings: Findings, out: Path, options: Options) -> None:
    """Write a file, in order of paths. A part of a picture has its box behind the path."""
    with new_file(out) as file:
        file.write(csv_line(COLUMNS))
        for picture in findings.pictures(frames=True):
            path = options.places.of(picture.path)
            for thing in picture.things:
                where = path + picture.reference(thing)[len(picture.path) :]
                file.write(csv_line((where, *_facts(findings, thing))))


def read(path: Path, findings: Findings) -> tuple[Iterable[Told], dict[int, str]]:
    """What the rows say: `label` counts, and a sighting is found by its number or, without one, by its path."""
    return _rows(path), {}


def _facts(findings: Findings, thing: Finding) -> Iterator[object]:
    category = findings.categories[thing.category]
    yield from (thing.label, thing.category, category.origin, thing.number, thing.score, thing.cut, thing.probability)
    yield thing.placed_by
    yield datetime.fromtimestamp(thing.time, timezone.utc).isoformat(timespec="seconds")
    yield "true" if category.ignored else "false"
    yield thing.label


def _rows(path: Path) -> Iterator[Told]:
    for line, row in read_rows(path, ("path", "label")):
        if row["path"] is None or row["label"] is None:
            raise DataError(f"{path}, line {line}: a path and a label are needed.")
        file_name, box = parted(row["path"])
        yield Told(row["label"], file_name, box, number_in(row.get("sighting")), row.get("was"))
