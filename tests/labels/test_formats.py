"""Each tool's own reader, or the rules it documents, accepts what is written."""

from __future__ import annotations

import contextlib
import csv
import io
import json
from pathlib import Path

import pytest
from PIL import Image

from newfound.crops import Box
from newfound.errors import DataError, SettingsError
from newfound.journal.keeper import Image as Journalled
from newfound.labels import FORMATS, export_labels
from newfound.labels._files import Options, Places
from newfound.labels.findings import Findings


@pytest.fixture
def export(curator, tmp_path):
    """export(format, **options): write it, and give back where it is."""

    def write(format: str, *, by: str = "ada", options: Options | None = None, **more) -> Path:
        out = tmp_path / f"out.{format}"
        write.done = export_labels(curator(by), format, out, options=options, overwrite=True, **more)
        return out

    return write


def test_coco_is_read_by_pycocotools_with_an_annotation_for_every_sighting(birds, boxed, export):
    coco = pytest.importorskip("pycocotools.coco")
    with contextlib.redirect_stdout(io.StringIO()):
        found = coco.COCO(str(export("coco")))
    assert len(found.getImgIds()) == 9
    assert [found.cats[c]["supercategory"] for c in sorted(found.cats)] == ["known"] * 2 + ["discovered"] * 2
    frame = next(image for image in found.imgs.values() if image["file_name"] == str(boxed[0]))
    boxes = sorted(a["bbox"] for a in found.imgToAnns[frame["id"]])
    assert boxes == [[4.0, 4.0, 12.0, 10.0], [20.0, 0.0, 20.0, 20.0]]  # of 40 x 20 pixels
    herons = found.loadAnns(found.getAnnIds(catIds=[0]))
    assert [(a["bbox"], a["score"], a["area"]) for a in herons] == [([0.0, 0.0, 40.0, 20.0], 1.0, 800.0)] * 2


@pytest.mark.parametrize("ending", ["jpg", "png", "tif", "webp"])
def test_coco_gives_the_size_of_the_upright_image(ending, photo, observe, export):
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera lay on its side
    observe((photo(f"tilted.{ending}", exif=exif), 0))
    image = json.loads(export("coco").read_text())["images"][0]
    assert (image["width"], image["height"]) == (20, 40)


def test_an_image_that_is_gone_is_left_out_of_coco_and_counted(birds, export):
    birds[0].unlink()
    assert len(json.loads(export("coco").read_text())["images"]) == 7
    assert list(export.done.left_out.values()) == [1]
    assert export.done.things == 7


def test_csv_has_a_row_for_every_sighting_that_training_can_read(birds, export, tmp_path):
    from newfound.datasets import load_dataset

    out = export("csv").rename(tmp_path / "labels.csv")
    rows = list(csv.DictReader(out.open(newline="")))
    assert [(row["path"], row["label"], row["category"], row["score"]) for row in rows if row["origin"] == "known"] == [
        (str(birds[0]), "heron", "0", "1.0"),
        (str(birds[2]), "owl", "1", "1.0"),
        (str(birds[1]), "heron", "0", "1.0"),
    ]
    assert sorted(load_dataset(out).labels) == ["heron"] * 2 + ["new-1"] * 3 + ["new-2"] * 2 + ["owl"]


def test_what_was_moved_has_no_score_for_where_it_is_and_names_who_put_it_there(birds, curator, export):
    curator("grace").move([0], 1)
    row = next(row for row in csv.DictReader(export("csv").open(newline="")) if row["sighting"] == "0")
    told = [row[name] for name in ("label", "score", "cut", "probability", "placed_by")]
    assert told == ["owl", "", "", "", "grace"]


def test_a_merged_category_is_told_under_the_id_it_lives_on_under(birds, curator, export):
    curator().merge([2, 3])
    rows = list(csv.DictReader(export("csv").open(newline="")))
    assert {row["category"] for row in rows} == {"0", "1", "2"}
    assert [row["sighting"] for row in rows if not row["score"]] == ["6", "3"]  # that founded one, and are like none


def test_ignored_categories_are_left_out_unless_they_are_asked_for(birds, curator, export):
    curator().ignore(2)
    assert len(list(csv.DictReader(export("csv").open(newline="")))) == 5
    rows = list(csv.DictReader(export("csv", ignored=True).open(newline="")))
    assert {row["category"] for row in rows if row["ignored"] == "true"} == {"2"}
    categories = json.loads(export("coco", ignored=True).read_text())["categories"]
    assert [c["id"] for c in categories if c.get("ignored")] == [2]


def test_fiftyone_gets_a_class_for_every_whole_path(birds, export):
    data = json.loads((export("fiftyone") / "labels.json").read_text())
    assert set(data) == {"classes", "labels"}
    assert data["classes"] == ["heron", "owl", "new-1", "new-2"]
    assert {path: data["classes"][target["label"]] for path, target in data["labels"].items()} == dict(
        zip(map(str, birds), ["heron", "heron", "owl", *["new-1"] * 3, *["new-2"] * 2], strict=True)
    )
    assert all(set(target) <= {"label", "confidence", "attributes"} for target in data["labels"].values())


def test_fiftyone_gets_detections_where_boxes_were_observed(birds, boxed, export):
    labels = json.loads((export("fiftyone") / "labels.json").read_text())["labels"]
    assert [target["bounding_box"] for target in labels[str(birds[0])]] == [[0, 0, 1, 1]]
    boxes = sorted(target["bounding_box"] for target in labels[str(boxed[0])])
    assert boxes == [[0.1, 0.2, 0.3, 0.5], [0.5, 0, 0.5, 1]]


def test_label_studio_accepts_tasks_and_predictions_under_the_interface_that_comes_with_them(birds, boxed, export):
    interface = pytest.importorskip("label_studio_sdk.label_interface").LabelInterface
    out = export("labelstudio")
    tasks = json.loads((out / "tasks.json").read_text())
    config = interface((out / "config.xml").read_text())
    config.validate()
    assert len(tasks) == 9
    for task in tasks:
        assert config.validate_task({"data": task["data"]})
        (prediction,) = task["predictions"]
        assert config.validate_prediction(prediction)
        assert prediction.get("score", 1.0) == 1.0
        assert prediction["model_version"].startswith("newfound ")
    photos = birds[0].parent.parent
    assert tasks[0]["data"]["image"] == f"/data/local-files/?d={birds[0].relative_to(photos)}"


def test_names_that_mean_something_in_xml_are_no_trouble(birds, curator, export):
    interface = pytest.importorskip("label_studio_sdk.label_interface").LabelInterface
    curator().rename(2, '<tern> & "stork"')
    config = interface((export("labelstudio") / "config.xml").read_text())
    assert '<tern> & "stork"' in config.get_control("category").labels


def test_folders_hold_every_image_under_its_category(birds, boxed, export):
    out = export("folders")
    assert {path.parent.name for path in out.glob("*/*.png")} == {"0-heron", "1-owl", "2-new-1", "3-new-2"}
    assert (out / "0-heron" / "0.png").read_bytes() == birds[0].read_bytes()
    (crop,) = (out / "1-owl").glob("frame*")
    assert Image.open(crop).size == (12, 10)


def test_a_file_that_was_observed_again_is_told_of_as_it_was_seen_last(birds, photo, observe, export):
    Image.new("RGB", (8, 8), "white").save(birds[0])
    observe((birds[0], 1))
    rows = [row for row in csv.DictReader(export("csv").open(newline="")) if row["path"] == str(birds[0])]
    assert [(row["label"], row["sighting"]) for row in rows] == [("owl", "8")]


def test_paths_are_written_below_a_root_and_with_a_prefix(birds, export):
    photos = birds[0].parent.parent
    options = Options(Places(str(photos), "https://example.org/photos/"))
    names = [image["file_name"] for image in json.loads(export("coco", options=options).read_text())["images"]]
    assert names[0] == "https://example.org/photos/cam0/0.png"


def test_frames_of_videos_are_in_the_table_and_nowhere_else(photo, observe, export):
    observe((Path("clips/feeder.mp4#t=1.000"), 0), (photo("a.png"), 0))
    assert len(export("csv").read_text().splitlines()) == 3
    assert len(json.loads((export("labelstudio") / "tasks.json").read_text())) == 1
    assert export.done.left_out == {"a frame of a video, which is no file": 1}


@pytest.mark.parametrize("format", [f for f in FORMATS if f != "folders"])
def test_what_is_there_is_not_overwritten_unasked(format, birds, curator, tmp_path):
    out = tmp_path / "out"
    export_labels(curator(), format, out)
    with pytest.raises(DataError, match="there already"):
        export_labels(curator(), format, out)


def test_a_format_that_there_is_not_names_those_that_there_are(birds, curator, tmp_path):
    with pytest.raises(SettingsError, match="coco, csv"):
        export_labels(curator(), "yolo", tmp_path / "out")


@pytest.mark.parametrize("format", FORMATS)
def test_an_empty_journal_gives_files_without_rows(format, curator, export):
    export(format)
    assert export.done.things == 0


def test_a_picture_is_found_by_the_end_of_its_path_only_where_that_is_one_picture(birds, photo, observe, curator):
    observe((photo("cam9/deep/0.png"), 0))
    with Findings(curator()) as findings:
        assert [thing.number for thing in findings.at("cam0/0.png")] == [0]
        assert [thing.number for thing in findings.at("cam1/1")] == [1]  # as tools that drop endings give it
        assert findings.at("0.png") == []  # there are two
        assert findings.at("am0/0.png") == []


def test_the_box_of_a_thing_is_the_one_that_was_observed(boxed, curator):
    with Findings(curator()) as findings:
        (picture,) = findings.pictures()
    assert sorted(thing.box for thing in picture.things) == [Box(0.1, 0.2, 0.3, 0.5), Box(0.5, 0.0, 0.5, 1.0)]


def test_a_file_that_was_last_seen_as_something_ignored_is_left_out(birds, observe, curator, export):
    Image.new("RGB", (8, 8), "white").save(birds[0])
    assert observe((birds[0], 4)) == [2]
    curator().ignore(2)
    assert str(birds[0]) not in export("csv").read_text()


@pytest.mark.parametrize("link", ["copy", "symlink"])
def test_images_that_are_gone_are_left_out_of_folders_and_counted_together(link, birds, export):
    for path in birds[:2]:
        path.unlink()
    out = export("folders", options=Options(link=link))
    assert export.done.left_out == {"gone, or cannot be read": 2}
    assert (export.done.things, len(list(out.glob("*/*")))) == (6, 6)


def test_folders_that_cannot_be_written_are_an_error_and_not_images_left_out(birds, curator, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "0-heron").write_text("in the way")
    with pytest.raises(DataError, match="0-heron"):
        export_labels(curator(), "folders", tmp_path / "out")


def test_an_image_behind_a_url_that_nothing_has_any_more_is_left_out(curator, export):
    pytest.importorskip("fsspec")
    curator().keeper.enter([Journalled("memory://gone/a[1].jpg")], [[1, 0, 0, 0, 0, 0, 0, 0]])
    assert json.loads(export("coco").read_text())["images"] == []
    export("folders")
    assert export.done.left_out == {"behind a URL, and no file to put into a folder": 1}
