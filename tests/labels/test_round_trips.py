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
from newfound.labels._files import Options, Places

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


@pytest.mark.parametrize("format", ["coco", "csv"])
def test_a_name_that_is_quoted_in_a_url_is_the_same_name(format, photo, observe, curator, tmp_path):
    observe((photo("cam 1/gr\u00e5 \u00f8rn.png"), 0))
    places = Places(str(tmp_path / "photos"), "https://example.org/")
    export_labels(curator(), format, tmp_path / "out", options=Options(places))
    review = review_labels(curator(), format, tmp_path / "out")
    assert (review.told, review.unknown, review.lines()) == (1, [], [])


@pytest.mark.parametrize("row", ["D:\\photos\\cam1\\1.png,owl,1", "cam1\\1.png,owl,", "cam1/1.png,owl,1.0"])
def test_a_table_that_was_on_windows_or_in_a_spreadsheet_is_understood(row, birds, curator, tmp_path):
    (tmp_path / "labels.csv").write_text(f"path,label,sighting\n{row}\n")
    assert review_labels(curator(), "csv", tmp_path / "labels.csv").lines() == ["move 1 image from 0 to 1 (owl)"]


def test_an_image_that_lies_in_two_folders_is_not_guessed_at(birds, curator, tmp_path):
    out = tmp_path / "out"
    export_labels(curator(), "folders", out)
    curator().move([2], 0)
    export_labels(curator(), "folders", out)  # adds 0-heron/2.png, and leaves 1-owl/2.png there
    with pytest.raises(DataError, match=r"0-heron.*1-owl.*two folders"):
        review_labels(curator(), "folders", out)
    (out / "1-owl" / "2.png").unlink()
    assert review_labels(curator(), "folders", out).lines() == []


def test_crops_are_known_by_their_pixels_whatever_their_files_are_called(boxed, curator, tmp_path):
    export_labels(curator(), "folders", tmp_path / "out")
    for number, path in enumerate(list((tmp_path / "out").glob("*/*.png"))):
        path.rename(path.with_name(f"{number}.png"))
    review = review_labels(curator(), "folders", tmp_path / "out")
    assert (review.told, review.unknown) == (2, [])


def test_a_name_that_is_no_unicode_text_goes_out_and_comes_back(birds, curator, tmp_path):
    curator().rename(2, "b\udcffd")
    for format in FORMATS:
        export_labels(curator(), format, tmp_path / format)
        assert review_labels(curator(), format, tmp_path / format).lines() == [], format


def told_of_one(format: str, file: object, sighting: object) -> str:
    """A file that says of one image that it is an owl."""
    data = {
        "coco": {
            "categories": [{"id": 1, "name": "owl"}], "images": [{"id": 1, "file_name": file}],
            "annotations": [{"image_id": 1, "category_id": 1, "sighting": sighting}],
        },
        "fiftyone": {"labels": {str(file): {"label": "owl", "attributes": {"sighting": sighting}}}},
        "labelstudio": [{
            "data": {"image": file, "sighting": sighting},
            "predictions": [{"result": [{"type": "relation", "from_id": "a", "to_id": "b"}]}],  # which has no id
            "annotations": [{"result": [{"value": {"choices": ["owl"]}}]}],
        }],
    }  # fmt: skip
    if format == "csv":
        return f"path,label,sighting\n{file},owl,{sighting}\n"
    if format == "camtrap":
        return f"observationID,scientificName\ns{sighting},owl\n"
    return json.dumps(data[format])


@pytest.mark.parametrize("format", ["coco", "csv", "fiftyone", "labelstudio"])
@pytest.mark.parametrize("sighting", [10**30, "\u00b2", [1], None])
def test_where_the_number_is_none_the_path_counts(format, sighting, birds, curator, tmp_path):
    (tmp_path / "file").write_text(told_of_one(format, "cam1/1.png", sighting))
    assert review_labels(curator(), format, tmp_path / "file").lines() == ["move 1 image from 0 to 1 (owl)"]


@pytest.mark.parametrize("format", ["coco", "fiftyone", "labelstudio"])
@pytest.mark.parametrize("file", ["\ud800.png", 33])
def test_a_path_that_is_none_is_of_no_image(format, file, birds, curator, tmp_path):
    (tmp_path / "file").write_text(told_of_one(format, file, None))
    review = review_labels(curator(), format, tmp_path / "file")
    assert (review.told, review.unknown) == (0, [str(file)])


@pytest.mark.parametrize("sighting", [10**30, "\u00b2"])
def test_an_observation_of_no_sighting_says_nothing(sighting, birds, curator, tmp_path):
    (tmp_path / "file").write_text(told_of_one("camtrap", "", sighting))
    assert review_labels(curator(), "camtrap", tmp_path / "file").told == 0


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("csv", 'path,label\n"' + "x" * 200_000 + '",owl\n'),
        ("camtrap", 'observationID,scientificName,bboxX,bboxY,bboxWidth,bboxHeight\ns1,owl,"0,5",0,1,1\n'),
    ],
)
def test_a_table_with_a_cell_that_cannot_be_read_is_an_error_in_words(format, text, birds, curator, tmp_path):
    (tmp_path / "file").write_text(text)
    limit = csv.field_size_limit(131_072)  # Python's own, which other libraries raise
    try:
        with pytest.raises(DataError, match="file"):
            review_labels(curator(), format, tmp_path / "file")
    finally:
        csv.field_size_limit(limit)
