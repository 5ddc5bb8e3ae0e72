"""`newfound categories`, `journal`, `replay` and `promote`: what a person does with what was discovered."""

from __future__ import annotations

import csv
import io
import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from newfound.cli.categories import _told


@pytest.fixture
def kept(invoke, run, stream, tmp_path) -> Path:
    """A run with a journal of nine images: yellow is new to it."""
    folder = Path(shutil.copytree(run, tmp_path / "run"))
    (folder / "journal.db").unlink(missing_ok=True)
    result = invoke("discover", folder, stream, "--threshold", "0.93")
    assert result.exit_code == 0, result.stderr
    return folder


@pytest.fixture
def categories(invoke, kept):
    """categories(*words): the command; its JSON if that was asked for."""

    def call(*words, fails: bool = False):
        result = invoke("categories", kept, *words)
        assert (result.exit_code != 0) == fails, result.stderr
        return json.loads(result.stdout) if "--json" in words else result

    return call


@pytest.fixture
def discovered(categories) -> int:
    """The id of a discovered category."""
    return next(c["id"] for c in categories("list", "--json") if c["origin"] == "discovered")


def test_the_categories_of_a_journal_are_listed_without_a_model(categories, kept):
    for name in ("model.safetensors", "known.safetensors"):
        (kept / name).unlink()
    found = categories("list", "--json")
    assert [c["name"] for c in found[:3]] == ["blue", "green", "red"]
    assert sum(c["count"] for c in found) == 9
    assert {c["origin"] for c in found[3:]} == {"discovered"}
    assert "new-1" in categories().stdout


@pytest.mark.parametrize("options", [("--json",), ("--merged", "--ignored", "--json")])
def test_a_run_alone_takes_the_options_of_its_list_before_and_after_it(invoke, kept, discovered, options):
    invoke("categories", kept, "merge", 0, discovered)
    listed = invoke("categories", kept, "list", *options)
    assert json.loads(listed.stdout)
    for words in ((kept, *options), (*options, kept), (kept, "--journal", kept / "journal.db", *options)):
        assert invoke("categories", *words).stdout == listed.stdout
    assert "No such option" in invoke("categories", kept, "--jso").stderr
    assert "COMMAND [ARGS]" in invoke("categories", kept, "--help").stdout


def test_what_only_looks_like_a_number_names_an_image(categories, discovered):
    assert "² is not in" in categories("move", discovered, "²", fails=True).stderr


@pytest.mark.parametrize("words", [("categories",), ("replay",), ("journal", "info"), ("discover", "--predict")])
def test_a_journal_that_is_not_there_is_not_made_by_looking_for_it(invoke, run, stream, tmp_path, words):
    sources = [stream] if words[0] == "discover" else []
    result = invoke(*words, run, *sources, "--journal", f"sqlite:///{tmp_path / 'none.db'}")
    assert result.exit_code == 1
    assert "there is no journal sqlite:///" in result.stderr
    assert not (tmp_path / "none.db").exists()


_LOOKING = [
    "categories {run} list --json", "categories {run} show 0", "categories {run} history",
    "categories {run} export {out}.csv", "journal info {run}", "journal verify {run}", "replay {run} --cut 0.9",
    "replay {run}", "labels export {run} --format coco --out {out}.json", "labels import {run} {out}.csv --format csv",
    "discover {run} {stream} --predict",
]  # fmt: skip


def test_a_journal_that_may_only_be_read_can_be_looked_at(invoke, kept, stream, tmp_path, monkeypatch):
    def told(words: str) -> str:
        result = invoke(*words.format(run=kept, stream=stream, out=tmp_path / "out").split())
        assert result.exit_code == 0, result.stderr
        return result.stdout

    before = [told(words) for words in (_LOOKING[0], _LOOKING[-1])]
    connect, asked = sqlite3.connect, []
    monkeypatch.setattr(sqlite3, "connect", lambda *given, **how: asked.append(given[0]) or connect(*given, **how))
    # What a disk that is mounted for reading says to anyone, also to root.
    monkeypatch.setattr("newfound.journal.engines._writable", lambda path: False)
    after = [told(words) for words in _LOOKING]
    assert [after[0], after[-1]] == before
    modes = {address.partition("journal.db?")[2] for address in asked if "journal.db" in address}
    assert modes == {"mode=ro&immutable=1"}


def test_a_run_that_is_not_there_is_said_to_be_missing(invoke, tmp_path):
    assert invoke("categories", tmp_path / "none").stderr == f"newfound: there is no run folder {tmp_path / 'none'}.\n"


def test_a_name_is_given_shown_and_taken_back(categories, discovered):
    assert "is now sunflower" in categories("rename", discovered, "sunflower").stderr
    shown = categories("show", discovered, "--json")
    assert shown["name"] == "sunflower"
    assert len(shown["sightings"]) == shown["count"] >= 1
    assert all(Path(s["image"]).is_file() for s in shown["sightings"])
    assert f"category {discovered} is new-1 again, no longer sunflower\n" in categories("undo").stderr
    assert categories("show", discovered, "--json")["name"].startswith("new-")


def test_an_edit_is_taken_back_by_its_number_or_in_a_name(categories, invoke, kept, discovered):
    categories("rename", discovered, "sunflower", "--by", "ada")
    categories("rename", 0, "cornflower", "--by", "bo")
    numbers = [line["event"] for line in categories("history", "--json")]
    assert f"undone: renamed (event {numbers[0]}, by ada)" in categories("undo", "--by", "ada").stderr
    assert f"undone: renamed (event {numbers[1]}, by bo)" in categories("undo", "--event", numbers[1]).stderr
    refused = invoke("categories", kept, "undo", "--event", numbers[1])
    assert refused.exit_code == 2
    assert "has been taken back already" in refused.stderr


def test_images_are_merged_split_and_moved_by_their_files_or_numbers(categories, discovered):
    categories("merge", 0, discovered)
    blue = categories("show", 0, "--json")
    first, second = blue["sightings"][:2]
    categories("split", 0, first["image"])
    new = categories("list", "--json")[-1]
    assert (new["count"], new["origin"]) == (1, "discovered")
    categories("move", new["id"], second["number"])
    assert categories("show", new["id"], "--json")["count"] == 2
    for _ in range(3):
        categories("undo")
    assert categories("show", discovered, "--json")["id"] == discovered


@pytest.mark.parametrize("times", [1, 2])
def test_a_category_merged_with_itself_is_said_to_stay_as_it_is(categories, discovered, times):
    told = categories("merge", *[discovered] * times).stderr
    assert told.startswith(f"nothing to merge: that is category {discovered} (new-1) alone, with ")
    assert [event["kind"] for event in categories("history", "--json")] == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("rename", "sunflower"), "nothing changed: category {} is called sunflower already\n"),
        (("ignore",), "nothing changed: 1 category is ignored already\n"),
        (("ignore", "--stop"), "nothing changed: 1 category is not ignored\n"),
        (("move", 0, 1), "nothing changed: a person has put that into category {} (new-1) before\n"),
    ],
)
def test_what_is_so_already_is_said_to_change_nothing(categories, discovered, words, told):
    verb, *rest = words
    first = categories(verb, discovered, *rest)
    assert ("nothing changed" in first.stderr) == ("--stop" in words)
    events = len(categories("history", "--json"))
    assert categories(verb, discovered, *rest).stderr == told.format(discovered)
    assert len(categories("history", "--json")) == events


def test_a_promotion_that_is_made_already_is_said_to_change_nothing(categories, invoke, kept, discovered):
    categories("rename", discovered, "sunflower")
    told = [invoke("promote", kept, discovered).stderr for _ in range(2)]
    assert told[1] == "nothing changed; " + told[0]


def test_a_name_that_another_category_has_is_said_to_merge_nothing(categories, kept, discovered):
    told = categories("rename", discovered, "blue").stderr
    assert "category 0 has that name too" in told
    assert f"newfound categories {kept} merge 0 {discovered}" in told
    assert "too" not in categories("rename", discovered, "sunflower").stderr
    told = categories("rename", 1, "blue").stderr
    assert told.endswith("category 0 has that name too, and stays another one\n")  # known ones cannot be merged


def test_of_a_large_category_it_is_said_how_much_is_shown(categories):
    categories("move", 0, *range(9))
    assert categories("show", 0, "--limit", 2).stderr == "the first 2 of 9 images; --limit N shows N\n"
    assert categories("show", 0).stderr == ""


def test_the_history_of_many_images_stays_short(categories):
    numbers = range(9)
    categories("move", 0, *numbers)
    categories("move", 1, *numbers)
    told = categories("history").stdout
    assert "sightings [0, 1, 2, 3, 4, 5, 6, 7, 8]" in told
    assert _told({"sightings": list(range(1000))}) == "sightings [0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 990 more]"


def test_who_did_what_is_on_record(invoke, kept, discovered):
    invoke("categories", kept, "rename", discovered, "sunflower", "--by", "ada")
    told = json.loads(invoke("categories", kept, "history", "--json").stdout)
    assert (told[-1]["by"], told[-1]["kind"], told[-1]["after"]) == ("ada", "renamed", 9)


def test_ignored_categories_are_left_out_of_the_list(categories, discovered):
    categories("ignore", discovered)
    assert categories("show", discovered).stdout.splitlines()[0].endswith(", ignored")
    assert discovered not in [c["id"] for c in categories("list", "--json")]
    assert discovered in [c["id"] for c in categories("list", "--ignored", "--json")]
    categories("ignore", discovered, "--stop")
    assert discovered in [c["id"] for c in categories("list", "--json")]


def test_every_image_and_its_category_are_exported(categories, stream, tmp_path):
    rows = list(csv.DictReader(io.StringIO(categories("export").stdout)))
    assert {Path(row["path"]) for row in rows} == set(stream.glob("*/*.png"))
    assert {row["label"] for row in rows} >= {"blue", "red"}
    assert categories("export", tmp_path / "found.csv").stderr == f"9 images in {tmp_path / 'found.csv'}\n"


def test_an_export_replaces_no_file_unless_told_to(categories, tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text("what I wrote")
    refused = categories("export", file, fails=True)
    assert f"{file} is there already: --overwrite replaces it" in refused.stderr
    assert file.read_text() == "what I wrote"
    categories("export", file, "--overwrite")
    assert file.read_text().startswith("path,label")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("rename", 999, "x"), "no category 999"),
        (("merge", 0, 1), "both known"),
        (("split", 0, "nowhere.png"), "nowhere.png is not in"),
        (("move", 0, "0.png"), "give the path that it was observed under, or its number"),
        (("undo",), "nothing to undo"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(categories, words, told):
    result = categories(*words, fails=True)
    assert told in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.exit_code == 2


def test_a_run_without_a_journal_says_how_to_get_one(invoke, run, tmp_path):
    result = invoke("categories", tmp_path)
    assert result.exit_code == 1
    assert "newfound discover" in result.stderr


def test_a_journal_is_described_and_verified(invoke, kept):
    told = json.loads(invoke("journal", "info", kept, "--json").stdout)
    assert (told["sightings"], told["method"]) == (9, "ltc")
    first, *rest = [line for line in invoke("journal", "info", kept).stdout.splitlines() if line.strip()]
    assert first.split() == ["journal", str(kept / "journal.db")], "no header, and no line under it"
    assert [line.split()[0] for line in rest] == [name for name in told if name != "journal"]
    result = invoke("journal", "verify", kept)
    assert result.exit_code == 0
    assert "all as the journal says" in result.stderr
    with sqlite3.connect(kept / "journal.db") as raw:
        raw.execute("UPDATE sightings SET score = score + 1 WHERE number = 3")
    result = invoke("journal", "verify", kept)
    assert result.exit_code == 1
    assert "sighting 3" in result.stderr


def test_a_feature_that_is_damaged_fails_verify_with_its_number_and_without_a_traceback(invoke, kept):
    with sqlite3.connect(kept / "journal.db") as raw:
        raw.execute("UPDATE sightings SET feature = x'0102' WHERE number = 3")
    result = invoke("journal", "verify", kept)
    assert result.exit_code == 1
    assert "1 difference\n  sighting 3 is damaged in the journal: its feature has 2 bytes" in result.stderr
    assert not json.loads(invoke("journal", "verify", kept, "--json").stdout)["fine"]


def test_another_cut_is_tried_without_an_image_and_without_changing_anything(invoke, kept, stream, tmp_path):
    told = json.loads(invoke("replay", kept, "--cut", "-1", "--json").stdout)
    assert (told["sightings"], told["discovered"]) == (9, 0)
    assert json.loads(invoke("replay", kept, "--cut", "1", "--json").stdout)["discovered"] >= 7
    both = json.loads(invoke("replay", kept, "--cut", "-1", "--cut", "1", "--json").stdout)
    assert [one["cut"] for one in both] == [-1, 1], "each of several cuts is told, in their order"
    assert both[0] == told
    assert [c["count"] for c in json.loads(invoke("replay", kept, "--until", "2001-01-01", "--json").stdout)] == [0] * 3
    assert sum(c["count"] for c in json.loads(invoke("replay", kept, "--json").stdout)) == 9
    assert "no moment" in invoke("replay", kept, "--until", "yesterday").stderr
    assert json.loads(invoke("journal", "info", kept, "--json").stdout)["sightings"] == 9


def test_a_forgotten_image_leaves_a_tombstone_and_can_be_seen_anew(invoke, kept, stream):
    image = stream / "yellow" / "1.png"
    assert "1 image is forgotten" in invoke("journal", "forget", kept, image).stderr
    assert image.name.encode() not in b"".join(
        line.encode() for line in invoke("categories", kept, "export").stdout.splitlines() if "yellow/1.png" in line
    )
    assert invoke("journal", "verify", kept).exit_code == 0
    again = invoke("discover", kept, stream)
    (line,) = [json.loads(line) for line in again.stdout.splitlines()]
    assert (line["image"], line["number"]) == (str(image), 9)


def test_another_model_is_refused_until_the_journal_is_carried_to_it(
    invoke, kept, stream, labelled, quick, tmp_path, discovered
):
    invoke("categories", kept, "merge", *[c["id"] for c in _listed(invoke, kept) if c["origin"] == "discovered"])
    invoke("categories", kept, "rename", discovered, "sunflower")
    assert "sunflower" in invoke("promote", kept, discovered).stderr
    other = tmp_path / "other"
    result = invoke("train", labelled, "--continue", kept, "--out", other, *quick)
    assert result.exit_code == 0, result.stderr
    assert "sunflower" in json.loads((other / "classes.json").read_text())
    refused = invoke("discover", other, stream, "--journal", kept / "journal.db")
    assert refused.exit_code == 1
    assert "reencode" in refused.stderr
    before = {c["name"]: (c["id"], c["count"]) for c in _listed(invoke, kept)}
    result = invoke("journal", "reencode", kept, other)
    assert result.exit_code == 0, result.stderr
    after = _listed(invoke, other)
    assert {c["name"]: (c["id"], c["count"]) for c in after} == before
    assert next(c for c in after if c["name"] == "sunflower")["origin"] == "known"
    assert invoke("journal", "verify", other).exit_code == 0
    again = invoke("discover", other, stream, "--repeat")
    assert all(json.loads(line)["repeated"] for line in again.stdout.splitlines())
    assert "already" in invoke("journal", "reencode", kept, other).stderr


def test_one_image_that_is_gone_is_not_told_of_as_several(invoke, run, stream, tmp_path):
    images = Path(shutil.copytree(stream, tmp_path / "stream"))
    old, new = (Path(shutil.copytree(run, tmp_path / name)) for name in ("old", "new"))
    for folder in (old, new):
        (folder / "journal.db").unlink(missing_ok=True)
    assert invoke("discover", old, images).exit_code == 0
    gone = next(images.rglob("*.png"))
    gone.unlink()
    result = invoke("journal", "reencode", old, new)
    assert result.exit_code == 3
    assert f"1 image is gone or has changed, and not encoded; the first: {gone}" in result.stderr


def _listed(invoke, run) -> list[dict]:
    return json.loads(invoke("categories", run, "list", "--json").stdout)
