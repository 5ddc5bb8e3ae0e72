"""`newfound labels`: nothing changes before --apply, and it needs no model."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from newfound.cli import app


@pytest.fixture
def labels(run):
    def call(verb: str, *words: object, code: int = 0):
        result = CliRunner().invoke(app, ["labels", verb, str(run), *map(str, words)], prog_name="newfound")
        assert result.exit_code == code, result.stderr
        return result

    return call


def test_corrections_are_shown_first_and_made_when_asked_for(labels, birds, tmp_path, standing):
    path = tmp_path / "birds.csv"
    told = labels("export", "--format", "csv", "--out", path)
    assert f"8 images in {path}" in told.stderr
    path.write_text(path.read_text().replace("new-2,3,", "tern,3,"))
    shown = labels("import", path, "--format", "csv")
    assert shown.stdout == "rename category 3 (new-2) to tern\n"
    assert "--apply makes it" in shown.stderr
    assert standing()[6] == "new-2"
    assert "undo" in labels("import", path, "--format", "csv", "--apply").stderr
    assert standing()[6] == "tern"
    assert "nothing to change: 8 images have their labels" in labels("import", path, "--format", "csv").stderr


def test_machines_get_json(labels, birds, tmp_path):
    out = tmp_path / "birds.json"
    told = json.loads(labels("export", "--format", "coco", "--out", out, "--json").stdout)
    assert told == {"things": 8, "left_out": {}, "notes": []}
    told = json.loads(labels("import", out, "--format", "coco", "--json").stdout)
    assert told == {"told": 8, "unknown": [], "stuck": [], "changes": [], "applied": False}


def test_images_of_ignored_categories_are_said_to_be_left_out(labels, birds, curator, tmp_path):
    curator().ignore(2)
    told = labels("export", "--format", "csv", "--out", tmp_path / "birds.csv").stderr
    assert "3 images were left out: in ignored categories (--ignored takes them along)" in told
    told = labels("export", "--format", "csv", "--out", tmp_path / "all.csv", "--ignored").stderr
    assert told == f"8 images in {tmp_path / 'all.csv'}\n"


def test_a_wrong_format_is_said_in_one_line(labels, birds, tmp_path):
    result = labels("export", "--format", "yolo", "--out", tmp_path / "x", code=2)
    assert result.stderr.count("\n") == 1
    assert "labelstudio" in result.stderr


def test_the_name_of_a_person_is_put_on_record_where_it_is_given(labels, birds, curator, tmp_path):
    path = tmp_path / "birds.csv"
    labels("export", "--format", "csv", "--out", path)
    path.write_text(path.read_text().replace("new-2,3,", "tern,3,"))
    labels("import", path, "--format", "csv", "--apply", "--by", "grace")
    assert curator().events()[-1].actor == "grace"


def test_a_file_that_labels_nothing_is_said_to_do_so(labels, birds, tmp_path):
    labels("export", "--format", "labelstudio", "--out", tmp_path / "tasks")
    told = labels("import", tmp_path / "tasks", "--format", "labelstudio")  # before anybody has annotated it
    assert f"{tmp_path / 'tasks'} gives no label to any image of the journal" in told.stderr


def test_an_error_is_one_line_that_names_the_file(labels, birds, tmp_path):
    (tmp_path / "birds.json").write_text('{"images": [')
    result = labels("import", tmp_path / "birds.json", "--format", "coco", code=1)
    assert result.stderr.count("\n") == 1
    assert str(tmp_path / "birds.json") in result.stderr
