"""FiftyOne: a folder with a labels.json that it loads as classifications or, where boxes were observed, detections.

The images stay where they are: labels are filed under their whole paths.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from newfound.crops import WHOLE
from newfound.errors import DataError
from newfound.files import new_file
from newfound.labels._files import Options, read_tool_json
from newfound.labels.findings import Finding, Findings
from newfound.labels.told import Told, box_of, number_in

FILE = "labels.json"


def write(findings: Findings, out: Path, options: Options) -> None:
    """Write OUT/labels.json: a FiftyOneImageClassificationDataset, with boxes a FiftyOneImageDetectionDataset."""
    classes = {category: index for index, category in enumerate(findings.categories)}
    boxes = findings.has_boxes
    with new_file(out / FILE) as file:
        file.write('{"classes": ' + json.dumps([c.name for c in findings.categories.values()]))
        file.write(',\n"labels": {')
        between = "\n"
        for picture in findings.pictures():
            targets = [_target(thing, classes, boxes) for thing in picture.things]
            key = json.dumps(picture.path)
            file.write(f"{between}{key}: {json.dumps(targets if boxes else targets[0])}")
            between = ",\n"
        file.write("\n}}\n")


def read(path: Path, findings: Findings) -> tuple[Iterable[Told], dict[int, str]]:
    """What labels.json, or the folder it is in, says of each image."""
    path = path / FILE if path.is_dir() else path
    data = read_tool_json(path, "FiftyOne")
    try:
        return list(_said(data.get("classes"), data["labels"].items(), path)), {}
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path} is no labels.json of FiftyOne: it lacks, or has in another form, {error}") from error


def _target(thing: Finding, classes: dict[int, int], boxes: bool) -> dict[str, Any]:
    facts: dict[str, Any] = {"score": thing.score, "placed_by": thing.placed_by}
    attributes = {name: value for name, value in facts.items() if value is not None}
    target: dict[str, Any] = {"label": classes[thing.category]}
    if boxes:
        target["bounding_box"] = list(thing.box or WHOLE)
    if thing.probability is not None:
        target["confidence"] = thing.probability
    target["attributes"] = attributes | {"sighting": thing.number, "was": thing.label}
    return target


def _said(classes: list[str] | None, labels: Iterable[tuple[str, Any]], path: Path) -> Iterator[Told]:
    for file, targets in labels:
        for target in targets if isinstance(targets, list) else [targets]:
            target = target if isinstance(target, dict) else {"label": target}
            label = target["label"]
            if label is None:
                continue
            if classes is not None and isinstance(label, int):
                if not 0 <= label < len(classes):
                    raise DataError(f"{path}: {file} has the label {label}, but there are {len(classes)} classes.")
                label = classes[label]
            kept = target.get("attributes") or {}
            box = box_of(target.get("bounding_box"), f"{path}: {file}")
            yield Told(str(label), file, box, number_in(kept.get("sighting")), kept.get("was"))
