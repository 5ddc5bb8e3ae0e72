"""The page as a whole: complete, self-contained, and safe with any name."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from newfound.errors import DataError
from newfound.report import Story, render, write_report

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>&amp;"


def test_the_report_has_every_section(make_story, read):
    page = read(render(make_story()))
    assert [h["text"] for h in page.all("h2")] == [
        "Scores", "Gallery", "Discovered when", "The threshold", "Confusion matrix", "How it was made",
    ]  # fmt: skip
    targets = {section["id"] for section in page.all("section")}
    assert {link["href"].removeprefix("#") for link in page.all("a")} == targets
    assert page.one("h1")["text"] == page.all("title")[0]["text"] == "Four kinds"


def test_the_summary_tells_the_story_in_numbers(make_story, read):
    text = read(render(make_story())).one("p", "lead")["text"]
    assert "taught 3 classes from 15 labelled images" in text
    assert "shown 20 images" in text
    assert "1 class that it had never seen" in text
    assert "founded 2 categories of its own, 1 of which holds a single image; the stream really holds 4 classes" in text
    assert "93.3 % were called by their class's own name" in text  # 14 of 15
    assert "of the others 80.0 %" in text  # 4 of 5


def test_nothing_comes_from_outside(make_story, read):
    html = render(make_story())
    page = read(html)
    assert not {"script", "link", "iframe"} & {e["tag"] for e in page.elements}
    assert {img["src"].partition(",")[0] for img in page.all("img")} == {"data:image/jpeg;base64"}
    assert not re.search(r"https?://|url\(|@import", html)
    policy = next(m for m in page.all("meta") if m.get("http-equiv") == "Content-Security-Policy")
    assert policy["content"] == "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def test_everything_has_words_for_those_who_do_not_see_it(make_story, read):
    page = read(render(make_story()))
    assert all(img["alt"] for img in page.all("img"))
    charts = [svg for svg in page.all("svg") if svg.get("role") == "img"]
    assert charts
    assert len(charts) == sum(title["within"][-1] == "svg" for title in page.all("title", within="figure"))
    assert len(page.all("caption")) == len(page.all("table"))
    assert all("scope" in th for th in page.all("th"))
    assert len(page.all("figcaption")) == len(page.all("figure"))


def test_names_are_text_never_markup(make_story, tmp_path, read):
    file = tmp_path / "<b onclick=x>&.png"
    Image.new("RGB", (9, 9), "red").save(file)
    plain = make_story()
    story = make_story(
        title=HOSTILE,
        items=[file, *plain.items[1:]],
        labels=[HOSTILE if label == "kind3" else label for label in plain.labels],
        names=plain.names | {3: HOSTILE},
        table=[(HOSTILE, plain.table[0][1])],
        notes=[HOSTILE],
    )
    page, before = read(render(story)), read(render(plain))
    assert [e["tag"] for e in page.elements] == [e["tag"] for e in before.elements]
    assert not [key for e in page.elements for key in e if key.startswith("on")]
    assert page.one("h1")["text"] == HOSTILE
    assert HOSTILE in [h["text"] for h in page.all("h4")]
    assert any(img["alt"].startswith("<b onclick=x>&.png, kind0") for img in page.all("img"))


def test_a_file_name_that_is_no_text_can_be_written(make_story, tmp_path):
    file = tmp_path / os.fsdecode(b"caf\xe9.png")
    Image.new("RGB", (9, 9)).save(file)
    story = make_story()
    report = write_report(tmp_path / "report.html", make_story(items=[file, *story.items[1:]]))
    assert "caf?.png" in report.read_text(encoding="utf-8")


def test_an_image_that_is_gone_leaves_a_grey_square(make_story, tmp_path, read):
    story = make_story()
    page = read(render(make_story(items=[tmp_path / "gone.jpg", *story.items[1:]])))
    assert "gone.jpg, kind0" in page.all("span", "missing")[0]["aria-label"]


def test_an_unreadable_image_is_counted_and_belongs_to_no_category(make_story, read):
    story = make_story()
    page = read(render(make_story(categories=[None, *story.categories[1:]], scores=[None, *story.scores[1:]])))
    assert "shown 19 images" in page.one("p", "lead")["text"]
    assert "1 further image could not be read" in page.one("p", "lead")["text"]
    assert len(page.all("li", "unread")) == 1


def test_a_stream_without_labels_can_be_reported(make_story, read):
    page = read(render(make_story(labels=None, table=[], true_categories=None)))
    assert "nothing to score" in page.one("main")["text"]
    assert "2 categories of its own" in page.one("p", "lead")["text"]
    assert not page.all("table", "confusion")


def test_the_folder_is_made_and_the_path_returned(make_story, tmp_path):
    path = write_report(tmp_path / "a" / "b" / "report.html", make_story())
    assert path == tmp_path / "a" / "b" / "report.html"
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_place_that_cannot_be_written_gets_a_clear_error(make_story, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DataError, match=r"report cannot be written to .*report\.html"):
        write_report(tmp_path / "file" / "report.html", make_story())


def test_lists_of_different_lengths_are_refused(make_story):
    with pytest.raises(DataError, match="20 images has 3 scores"):
        make_story(scores=[0.1, 0.2, 0.3])


def test_a_category_without_a_name_is_refused(make_story):
    with pytest.raises(DataError, match="category 4 no name"):
        make_story(names={0: "a", 1: "b", 2: "c", 3: "d"})


def test_the_report_does_not_need_torch():
    code = "import sys, newfound.report; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_imagenet_note_is_there_for_the_backbone_it_is_about(make_story, tiny_run, read):
    assert "ImageNet" not in render(make_story())
    config = tiny_run.config | {"backbone": tiny_run.config["backbone"] | {"name": "tf_efficientnet_lite0"}}
    run = dataclasses.replace(tiny_run, config=config)
    assert "not to its backbone" in read(render(make_story(run=run))).one("ul", "notes")["text"]


def test_how_it_was_made_can_be_read_off(make_story, tiny_run, read):
    facts = read(render(make_story())).one("table", "facts")["text"]
    version = tiny_run.config["newfound"]
    for expected in ("ltc", "paper (short)", "test_efficientnet", "15 images of 3 classes", version):
        assert expected in facts, expected
    cut = {"value": 0.7123, "rule": "adaptive: learnt while training"}
    run = dataclasses.replace(tiny_run, config=tiny_run.config | {"threshold": cut})
    assert "0.712, adaptive: learnt while training" in read(render(make_story(run=run))).one("table", "facts")["text"]


def test_a_story_keeps_paths_short(make_story):
    story: Story = make_story(items=[Path("some/where/heron.jpg")] * 20, labels=None)
    assert story.describe(0) == "heron.jpg"
    assert make_story().describe(16) == "image 17, kind3"
