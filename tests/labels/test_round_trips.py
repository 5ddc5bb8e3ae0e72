"""Out, changed as the tool would, and in again: what was put right is in the journal, once."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from newfound.errors import DataError
from newfound.labels import FORMATS, export_labels, review_labels

# Everywhere the same is done: photo 1, a heron, becomes an owl; category 2 (photos 3, 4 and 5) is named stork.


def relabel(sighting: int, label: str) -> str:
    return {1: "owl", 3: "stork", 4: "stork", 5: "stork"}.get(sighting, label)


def edit_coco(out: Path) -> None:
    data = json.loads(out.read_text())
    for category in data["categories"]:
        if category["id"] == 2:
            category["name"] = "stork"
    for annotation in data["annotations"]:
        if annotation["sighting"] == 1:
            annotation["category_id"] = 1
    out.write_text(json.dumps(data))


def edit_coco_as_a_tool_that_keeps_only_what_it_knows(out: Path) -> None:
    edit_coco(out)
    data = json.loads(out.read_text())
    number = {c["id"]: 100 - c["id"] for c in data["categories"]}
    data["categories"] = [{"id": number[c["id"]], "name": c["name"]} for c in data["categories"]]
    data["images"] = [i | {"file_name": "/".join(i["file_name"].split("/")[-2:])} for i in data["images"]]
    data["annotations"] = [
        {"id": i, "image_id": a["image_id"], "category_id": number[a["category_id"]], "bbox": a["bbox"]}
        for i, a in enumerate(data["annotations"])
    ]
    out.write_text(json.dumps(data))


def edit_csv(out: Path) -> None:
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    with out.open("w", newline="") as file:
        table = csv.DictWriter(file, rows[0])
        table.writeheader()
        table.writerows(row | {"label": relabel(int(row["sighting"]), row["label"])} for row in rows)


def edit_fiftyone(out: Path) -> None:
    data = json.loads((out / "labels.json").read_text())
    classes = [*data["classes"], "stork"]
    for target in data["labels"].values():
        target["label"] = classes.index(relabel(target["attributes"]["sighting"], classes[target["label"]]))
    (out / "labels.json").write_text(json.dumps({"classes": classes, "labels": data["labels"]}))


def edit_labelstudio(out: Path) -> None:
    tasks = json.loads((out / "tasks.json").read_text())
    for number, task in enumerate(tasks):
        (result,) = task["predictions"][0]["result"]
        label = relabel(task["data"]["sighting"], result["value"]["choices"][0])
        answer = {"result": [result | {"id": "Dx_aB91ISN", "value": {"choices": [label]}}], "was_cancelled": False}
        skipped = {"result": [result | {"value": {"choices": ["nonsense"]}}], "was_cancelled": True}
        task |= {"id": number, "annotations": [answer, skipped]}
    (out / "tasks.json").write_text(json.dumps(tasks))


def edit_camtrap(out: Path) -> None:
    with (out / "observations.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row["scientificName"] = relabel(int(row["observationID"][1:]), row["scientificName"])
    with (out / "observations.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, rows[0])
        table.writeheader()
        table.writerows(rows)


def edit_folders(out: Path) -> None:
    shutil.move(out / "0-heron" / "1.png", out / "1-owl" / "one.png")  # what it is called does not matter
    (out / "2-new-1").rename(out / "2-stork")


EDITS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "coco": ("coco", edit_coco),
    "coco, stripped": ("coco", edit_coco_as_a_tool_that_keeps_only_what_it_knows),
    "csv": ("csv", edit_csv),
    "fiftyone": ("fiftyone", edit_fiftyone),
    "labelstudio": ("labelstudio", edit_labelstudio),
    "camtrap": ("camtrap", edit_camtrap),
    "folders": ("folders", edit_folders),
}


@pytest.mark.parametrize("case", EDITS)
def test_what_was_put_right_in_a_tool_is_in_the_journal_once(case, birds, curator, standing, tmp_path):
    format, edit = EDITS[case]
    out = tmp_path / "out"
    export_labels(curator(), format, out)
    assert review_labels(curator(), format, out).lines() == []
    edit(out)
    one = curator(format)
    review = review_labels(one, format, out)
    assert curator().events() == []  # a review changes nothing
    review.apply(one)
    assert list(standing().values()) == ["heron", "owl", "owl", *["stork"] * 3, *["new-2"] * 2]
    assert [(e.kind, e.actor) for e in curator().events()] in (
        [("renamed", format), ("moved", format)],
        [("moved", format), ("renamed", format)],
    )
    assert curator().category(2).name == "stork"
    again = review_labels(one, format, out)
    assert (again.lines(), again.unknown) == ([], [])


@pytest.mark.parametrize("format", ["coco", "csv", "fiftyone", "labelstudio", "folders"])
def test_boxes_come_back_to_the_sightings_they_were(format, boxed, curator, standing, tmp_path):
    out = tmp_path / "out"
    export_labels(curator(), format, out)
    if format == "coco":
        data = json.loads(out.read_text())
        data["categories"] = [{"id": c["id"], "name": c["name"]} for c in data["categories"]]
        for annotation in data["annotations"]:
            annotation.pop("sighting")  # told by the box alone, which a person has drawn anew
            annotation["bbox"][2] -= 1
            annotation["category_id"] = 0
        out.write_text(json.dumps(data))
    elif format == "csv":
        out.write_text(re.sub(r'",(owl|new-1),', '",heron,', out.read_text()))
    elif format == "fiftyone":
        data = json.loads((out / "labels.json").read_text())
        for targets in data["labels"].values():
            for target in targets:
                target["label"] = 0
        (out / "labels.json").write_text(json.dumps(data))
    elif format == "labelstudio":
        tasks = json.loads((out / "tasks.json").read_text())
        for task in tasks:
            results = json.loads(json.dumps(task["predictions"][0]["result"]))
            for result in results:
                result["value"]["rectanglelabels"] = ["heron"]
            task["annotations"] = [{"result": results}]
        (out / "tasks.json").write_text(json.dumps(tasks))
    else:
        (out / "0-heron").mkdir()
        for image in list(out.glob("*/*.png")):
            shutil.move(image, out / "0-heron" / image.name)
    one = curator()
    review_labels(one, format, out).apply(one)
    assert list(standing().values()) == ["heron", "heron"]


def test_two_folders_of_one_category_are_refused(birds, curator, tmp_path):
    export_labels(curator(), "folders", tmp_path / "out")
    (tmp_path / "out" / "2-other").mkdir()
    with pytest.raises(DataError, match="second folder of category 2"):
        review_labels(curator(), "folders", tmp_path / "out")


def test_an_image_that_was_put_into_a_folder_by_hand_is_no_sighting(birds, photo, curator, tmp_path):
    export_labels(curator(), "folders", tmp_path / "out")
    shutil.copy(photo("elsewhere/0.png"), tmp_path / "out" / "1-owl" / "0.png")
    review = review_labels(curator(), "folders", tmp_path / "out")
    assert (review.lines(), len(review.unknown)) == ([], 1)


@pytest.mark.parametrize("format", [f for f in FORMATS if f not in ("csv", "folders")])
@pytest.mark.parametrize("text", ["", "[]", "{}", '{"labels": 3}', '[{"annotations": [{"result": 1}]}]', "x,y\n1,2\n"])
def test_a_file_of_another_form_is_an_error_in_words_or_says_nothing(format, text, birds, curator, tmp_path):
    (tmp_path / "file").write_text(text)
    with suppress(DataError):
        assert review_labels(curator(), format, tmp_path / "file").steps == []


@pytest.mark.parametrize("format", FORMATS)
def test_a_file_that_is_not_there_is_named(format, birds, curator, tmp_path):
    with pytest.raises(DataError, match="nowhere"):
        review_labels(curator(), format, tmp_path / "nowhere")
