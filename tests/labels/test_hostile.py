"""Files that are empty, cut off or of another kind, names that mean something elsewhere, places that cannot be written:
each is understood, or an error that says what is wrong, in which file."""

from __future__ import annotations

import csv
import json
import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from newfound.crops import Box, Crop
from newfound.errors import DataError
from newfound.labels import FORMATS, export_labels, review_labels

AWKWARD = (
    "heron, grey; juv.", "the \"old\" one's", "\U0001f989\U0001f9a9", "x" * 300, "<b>owl</b><script>alert(1)</script>",
    "a | b:c", "=1+1", "../a/b", "..", "007",
)  # fmt: skip
OWL, SEEN = [{"id": 1, "name": "owl"}], [{"id": 1, "file_name": "cam1/1.png", "width": 40, "height": 20}]
MOVED = ["move 1 image from 0 to 1 (owl)"]


def coco(categories: object = OWL, images: object = SEEN, **annotation: object) -> str:
    told = {"id": 5, "image_id": 1, "category_id": 1} | annotation
    return json.dumps({"categories": categories, "images": images, "annotations": [told]})


@pytest.fixture
def review(birds, curator, tmp_path):
    """review(format, content): what a file with this content, called labels.out, says."""

    def read(format: str, content: str | bytes):
        path = tmp_path / "labels.out"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return review_labels(curator(), format, path)

    return read


@pytest.mark.parametrize("format", FORMATS)
def test_a_name_that_means_something_elsewhere_goes_out_and_comes_back(format, birds, curator, tmp_path):
    one = curator()
    for number, name in enumerate(AWKWARD):
        one.rename(2, name)
        export_labels(one, format, out := tmp_path / str(number))
        if format == "labelstudio":  # a person has looked at each, and agreed
            tasks = json.loads((out / "tasks.json").read_text())
            (out / "tasks.json").write_text(json.dumps([task | {"annotations": task["predictions"]} for task in tasks]))
        review = review_labels(one, format, out)
        assert (review.lines(), review.unknown, review.told) == ([], [], 8), name


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=st.lists(st.text("ab,;\"'\r\n\t #=|", min_size=1, max_size=6), min_size=1, max_size=4))
def test_whatever_is_in_a_name_every_reader_of_csv_gets_the_same_rows(words, tmp_path):
    pandas = pytest.importorskip("pandas")
    from newfound.labels._files import read_rows
    from newfound.outputs.tables import csv_line

    rows = [[f"x{word}x", "1"] for word in words]
    path = tmp_path / "names.csv"
    path.write_bytes("".join(map(csv_line, [["path", "label"], *rows])).encode())
    with path.open(newline="") as file:
        assert list(csv.reader(file))[1:] == rows
    assert [list(row.values()) for _, row in read_rows(path, ["path"])] == rows
    assert pandas.read_csv(path, dtype=str, keep_default_na=False).to_numpy().tolist() == rows


@pytest.mark.parametrize("break_", ["\r", "\n", "\r\n"])
def test_a_line_break_in_a_file_name_is_no_end_of_a_row(break_, photo, observe, curator, tmp_path):
    pandas = pytest.importorskip("pandas")
    observe((photo(f"cam{break_}0/a{break_}b.png"), 0), (photo("plain.png"), 1))
    out = tmp_path / "labels.csv"
    export_labels(curator(), "csv", out)
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["path"].count(break_) for row in rows] == [2, 0]
    assert pandas.read_csv(out)["path"].tolist() == [row["path"] for row in rows]
    review = review_labels(curator(), "csv", out)
    assert (review.told, review.unknown, review.lines()) == (2, [], [])


@pytest.mark.parametrize("format", ["coco", "csv", "fiftyone", "labelstudio", "camtrap"])
@pytest.mark.parametrize("content", ["", "\x89PNG\r\n\x1a\n\0", '{"categories": [{"id": 1, "na', 'a,b\n"cut off'])
def test_what_is_empty_cut_off_or_no_text_is_named(format, content, review):
    with pytest.raises(DataError, match=r"labels\.out"):
        review(format, content if content != "\x89PNG\r\n\x1a\n\0" else content.encode("latin-1"))


@pytest.mark.parametrize(
    ("format", "content", "told"),
    [
        ("coco", "", "is empty: export it"),
        ("coco", '{"images": [', "cut off, export it"),
        ("coco", coco(category_id=9), 'annotation 5 has category_id 9, which is not among its "categories"'),
        ("coco", coco(image_id=7), 'annotation 5 has image_id 7, which is not among its "images"'),
        ("coco", coco(bbox=[1, 2, 3]), r"annotation of cam1/1\.png has a box that is no four numbers: \[1, 2, 3\]"),
        ("coco", coco([{"id": 1, "name": None}]), "category 1 has no name"),
        ("coco", json.dumps([{"image_id": 1, "category_id": 1}]), "no COCO file"),  # results, without what they are of
        ("fiftyone", '{"classes": ["owl"]}', "no labels.json of FiftyOne: it lacks.*'labels'"),
        ("fiftyone", '{"classes": ["owl"], "labels": {"cam1/1.png": 5}}', "has the label 5, but there are 1 classes"),
        ("fiftyone", '{"classes": ["owl"], "labels": {"cam1/1.png": -1}}', "has the label -1"),
        ("fiftyone", '{"labels": {"a.png": [{"label": "owl", "bounding_box": [1]}]}}', "a.png has a box that is no"),
        ("labelstudio", '[{"id": 1, "image": "cam1/1.png", "choice": "owl"}]', "JSON-MIN is another.*'data'"),
        ("csv", "", "no column path and no column label: it is empty"),
        ("csv", "file,class\ncam1/1.png,owl\n", "no column path and no column label: its columns are file, class"),
        ("csv", "path,label\ncam1/1.png\n", "line 2: a path and a label are needed"),
        ("csv", 'path,label\ncam1/1.png,owl\ncam1/3.png,"ow', "after line 2"),
        ("csv", "path,label\ncam1/1.png,h\u00e9ron\n".encode("latin-1"), "save it as 'CSV UTF-8'"),
        ("camtrap", "path,label\ncam1/1.png,owl\n", "no column observationID: its columns are path, label"),
    ],
)  # fmt: skip
def test_the_error_says_what_is_wrong_in_which_file(format, content, told, review):
    with pytest.raises(DataError, match=rf"labels\.out.*{told}"):
        review(format, content)


@pytest.mark.parametrize(
    ("format", "content"),
    [
        ("csv", "\ufeffpath,label\r\ncam1/1.png,owl\r\n"),
        ("csv", "path;label\ncam1/1.png;owl\n"),
        ("csv", "path\tlabel\ncam1/1.png\towl\n"),
        ("csv", "label , path\n owl ,cam1/1.png\n\n"),
        ("camtrap", "observationID;scientificName\ns1;owl\n"),
        ("coco", coco(bbox=[0, 0, 40, 20])),
    ],
)
def test_tables_as_spreadsheets_save_them_are_understood(format, content, review):
    assert review(format, content).lines() == MOVED


@pytest.mark.parametrize(
    ("format", "content"),
    [
        ("fiftyone", '{"classes": ["owl"], "labels": {}}'),
        ("fiftyone", '{"classes": ["owl"], "labels": {"cam1/1.png": null}}'),
        ("labelstudio", json.dumps([{"data": {"image": "cam1/1.png"}, "annotations": [
            {"was_cancelled": True, "result": [{"value": {"choices": ["owl"]}}]}]}])),
        ("labelstudio", json.dumps([{"data": {"image": "cam1/1.png"}, "annotations": []}])),
        ("coco", json.dumps({"categories": OWL, "images": SEEN, "annotations": []})),
    ],
)  # fmt: skip
def test_what_was_not_labelled_or_was_cancelled_says_nothing(format, content, review):
    assert (review(format, content).told, review(format, content).lines()) == (0, [])


def test_the_same_correction_twice_is_one(review, curator):
    one = curator()
    twice = json.loads(coco()) | {"annotations": [{"id": i, "image_id": 1, "category_id": 1} for i in (5, 6)]}
    found = review("coco", json.dumps(twice))
    assert (found.told, found.lines()) == (1, MOVED)
    found.apply(one)
    assert review("coco", json.dumps(twice)).lines() == []
    assert [event.kind for event in curator().events()] == ["moved"]


def test_an_image_that_the_journal_has_not_seen_is_named_and_holds_nothing_up(review):
    images = [*SEEN, {"id": 2, "file_name": "elsewhere/9.png"}]
    both = json.loads(coco(images=images))
    both["annotations"].append({"id": 6, "image_id": 2, "category_id": 1})
    found = review("coco", json.dumps(both))
    assert (found.lines(), found.unknown) == (MOVED, ["elsewhere/9.png"])


@pytest.mark.parametrize("format", FORMATS)
def test_an_image_whose_name_is_no_text_is_told_of_like_any_other(format, photo, observe, curator, tmp_path):
    path = os.fsdecode(os.fsencode(photo("a.png")).replace(b"a.png", b"caf\xe9.png"))
    os.rename(photo("a.png"), path)
    observe((path, 0), (Crop(path, Box(0.1, 0.2, 0.3, 0.5)), 1))
    done = export_labels(curator(), format, tmp_path / "out")
    assert (done.things, done.left_out) == (2, {})
    if format == "folders":
        (sorted_,) = (tmp_path / "out" / "0-heron").iterdir()
        assert sorted_.read_bytes() == Path(path).read_bytes()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /dev/full")
@pytest.mark.parametrize("format", FORMATS)
def test_a_full_disk_is_an_error_that_leaves_nothing_behind(format, birds, curator, tmp_path, monkeypatch):
    monkeypatch.setattr("newfound.files._token", lambda: "1")
    files = {
        "coco": "out.1.part", "csv": "out.1.part", "fiftyone": "out/labels.json.1.part",
        "labelstudio": "out/tasks.json.1.part", "camtrap": "out/observations.csv.1.part",
        "folders": "out/0-heron/.0.png.1.part",
    }  # fmt: skip
    part = tmp_path / files[format]
    part.parent.mkdir(parents=True, exist_ok=True)
    part.symlink_to("/dev/full")  # what is written before it gets its name
    with pytest.raises(DataError, match=r"cannot (write|sort) .*: No space left"):
        export_labels(curator(), format, tmp_path / "out", overwrite=True)
    assert not part.is_symlink()
    assert not part.with_name(part.name.removesuffix(".1.part").removeprefix(".")).is_file()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /dev/full and /proc")
@pytest.mark.parametrize("format", FORMATS)
def test_a_place_that_cannot_be_written_is_named(format, birds, curator):
    with pytest.raises(DataError, match=r"/proc/newfound"):  # where nobody may make anything, not even root
        export_labels(curator(), format, Path("/proc/newfound/out"))
    with pytest.raises(DataError, match="/dev/full is neither a file nor a folder"):
        export_labels(curator(), format, Path("/dev/full"), overwrite=True)
    assert Path("/dev/full").is_char_device()
