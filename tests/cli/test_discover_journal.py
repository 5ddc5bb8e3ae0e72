"""`newfound discover` given again: the journal goes on, and so do the files it writes."""

from __future__ import annotations

import csv
import json
import os
import shutil
from pathlib import Path

import pytest

import newfound
from newfound.outputs import COLUMNS


def lines(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def run_copy(run, tmp_path):
    return Path(shutil.copytree(run, tmp_path / "run"))


@pytest.fixture
def discover(invoke, run, tmp_path):
    """discover(*args): the command with a journal of the test's own, and a cut that finds something new."""

    def call(*args, **options):
        return invoke("discover", run, *args, "--journal", tmp_path / "j.db", "--threshold", "0.93", **options)

    return call


def test_images_seen_before_are_counted_and_not_told_again_unless_asked_for(discover, stream):
    first = lines(discover(stream / "blue", stream / "yellow").stdout)
    again = discover(stream)
    assert {line["image"] for line in lines(again.stdout)} == {str(p) for p in (stream / "red").iterdir()}
    assert "3 images:" in again.stderr
    assert "; 6 seen before" in again.stderr
    told = {line["image"]: line for line in lines(discover(stream, "--repeat").stdout)}
    assert len(told) == 9
    assert all(told[line["image"]]["category"] == line["category"] for line in first)
    assert all(line["repeated"] for line in told.values())
    nothing = discover(stream)
    assert (nothing.exit_code, nothing.stdout) == (0, "")
    assert "9 images, all seen before" in nothing.stderr


def test_a_journal_that_goes_on_gives_the_ids_of_one_stream(invoke, run, discover, stream):
    parts = [discover(stream / name).stdout for name in ("blue", "red", "yellow")]
    whole = invoke("discover", run, stream, "--in-memory", "--threshold", "0.93").stdout
    assert [(x["image"], x["category"]) for x in lines("".join(parts))] == [
        (x["image"], x["category"]) for x in lines(whole)
    ]


def test_the_summary_tells_new_categories_from_those_discovered_earlier(invoke, run, tmp_path, paint):
    def call(*images, cut):
        return invoke("discover", run, *images, "--journal", tmp_path / "j.db", "--threshold", cut).stderr

    yellow, other = paint(tmp_path, (230, 220, 40), 2, seed=7)
    assert "1 image: 0 in known classes, 1 in 1 new category" in call(yellow, cut=1)
    assert "1 image: 0 in known classes, 1 in 1 discovered category, 0 of them new" in call(other, cut=-1)


def test_the_journal_is_in_the_run_by_default_and_in_memory_leaves_none(invoke, run_copy, stream):
    image = stream / "red" / "0.png"
    assert invoke("discover", run_copy, image, "--in-memory").exit_code == 0
    assert invoke("discover", run_copy, image, "--predict").exit_code == 0
    assert not (run_copy / "journal.db").exists()
    assert invoke("discover", run_copy, image).exit_code == 0
    with newfound.load(run_copy).discoverer(run_copy / "journal.db") as kept:
        assert [s.image for s in kept.sightings()] == [str(image)]


def test_predict_changes_nothing_in_the_journal(discover, stream, tmp_path, run):
    discover(stream / "yellow")
    result = discover(stream, "--predict")
    assert len(lines(result.stdout)) == 9  # those seen before too: nothing is skipped
    with newfound.load(run).discoverer(tmp_path / "j.db") as kept:
        assert len(kept.sightings()) == 3


def test_predict_with_a_journal_that_is_not_there_is_an_error(invoke, run, stream, tmp_path):
    result = invoke("discover", run, stream, "--predict", "--journal", tmp_path / "none.db")
    assert result.exit_code == 1
    assert "there is no journal" in result.stderr
    assert os.listdir(tmp_path) == []


def test_answers_of_a_resumed_journal_are_added_to_the_file(discover, stream, tmp_path):
    target = tmp_path / "found.csv"
    assert discover(stream / "red", "--output", target).exit_code == 0
    more = discover(stream / "blue", "--output", target)
    assert f"adding to {target}" in more.stderr
    with target.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["image"] for row in rows] == [
        str(stream / name / f"{i}.png") for name in ("red", "blue") for i in range(3)
    ]
    assert set(rows[0]) == set(COLUMNS)


def test_an_output_that_is_there_is_kept_unless_overwriting_is_asked_for(invoke, run, stream, tmp_path):
    target = tmp_path / "found.jsonl"
    target.write_text('{"precious": 1}\n')
    args = ("discover", run, stream / "red", "--in-memory", "--output", target)
    refused = invoke(*args)
    assert refused.exit_code == 1
    assert "--overwrite" in refused.stderr
    assert target.read_text() == '{"precious": 1}\n'
    assert invoke(*args, "--overwrite").exit_code == 0
    assert len(lines(target.read_text())) == 3


def test_a_journal_is_untouched_when_the_output_cannot_be_written(discover, stream, tmp_path, run):
    assert discover(stream, "--output", tmp_path).exit_code == 1
    with newfound.load(run).discoverer(tmp_path / "j.db") as kept:
        assert kept.sightings() == []


def test_json_prints_a_summary_for_machines(discover, stream, tmp_path):
    bad = tmp_path / "bad.png"
    bad.write_bytes(b"nothing")
    result = discover(stream / "red", bad, "--json", "--output", tmp_path / "found.jsonl")
    assert result.exit_code == 3
    told = json.loads(result.stdout)
    assert (told["images"], told["errors"], told["seen_before"], told["interrupted"]) == (3, 1, 0, False)
    assert told["in_known_classes"] + told["in_others"] == 3
    assert "cannot read" in told["first_error"]
    refused = discover(stream, "--json")
    assert refused.exit_code == 2
    assert "--output" in refused.stderr


@pytest.mark.parametrize(
    ("args", "named"),
    [
        (["--watch", "--video"], "--watch"),
        (["-", "--watch"], "standard input"),
        (["--video", "--fps", "0"], "--fps"),
        (["--format", "xml"], "'xml'"),
        (["--format", "parquet"], "standard output"),
        (["--sort-into", "sorted", "--link", "soft"], "'soft'"),
        (["--no-journal"], "exclude"),
    ],
)
def test_options_that_make_no_sense_are_refused_by_name(discover, stream, args, named):
    result = discover(stream, *args)
    assert result.exit_code == 2
    assert named in result.stderr
    assert result.stdout == ""


def test_sorting_into_a_source_is_refused(discover, stream):
    result = discover(stream, "--sort-into", stream / "sorted")
    assert result.exit_code == 2
    assert not (stream / "sorted").exists()


def test_sorted_images_lie_in_the_folder_of_their_category(discover, stream, tmp_path):
    told = lines(discover(stream, "--sort-into", tmp_path / "sorted").stdout)
    for line in told:
        folder = tmp_path / "sorted" / f"{line['category']}-{line['name']}"
        with open(line["image"], "rb") as file:
            content = file.read()
        assert content in [path.read_bytes() for path in folder.iterdir()]
    before = sorted((tmp_path / "sorted").rglob("*.png"))
    assert len(before) == 9
    discover(stream, "--sort-into", tmp_path / "sorted")
    assert sorted((tmp_path / "sorted").rglob("*.png")) == before


def test_what_is_written_beside_an_image_on_stdin_comes_back(discover, stream, tmp_path):
    image = str(stream / "red" / "0.png")
    sent = [json.dumps({"image": image, "id": 7, "tags": ["a"], "name": "mine"}), '{"picture": 1}', "{oops"]
    result = discover("-", stdin="\n".join(sent))
    assert result.exit_code == 3
    good, wrong, broken = lines(result.stdout)
    assert (good["image"], good["id"], good["tags"]) == (image, 7, ["a"])
    assert good["name"] != "mine"
    assert wrong["picture"] == 1
    assert '"image"' in wrong["error"]
    assert "not JSON" in broken["error"]
