"""Promises of the page of results: complete, the same for the same results, one safe file."""

from __future__ import annotations

import base64
import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hand_made_results import result
from html_page import Page
from result_pages import HERE, PETS, THEIRS, record

from newfound.benchmarks.page import render, write_page
from newfound.benchmarks.paper import claims
from newfound.benchmarks.store import FILE
from newfound.benchmarks.studies import STUDIES, Choice
from newfound.benchmarks.tables import Table
from newfound.errors import DataError

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"
CHROMIUM = shutil.which("chromium")


def test_the_stream_in_class_order_has_a_table_of_its_own(tmp_path):
    page = Page(render(record(tmp_path, {"LTC": [result([0.6])]})))
    (apart,) = (d for d in page.all("details") if d["text"].startswith("The stream in class order"))
    texts = [cell["text"] for cell in page.all("td", inside=apart)]
    assert "90.0" in texts  # Strict All of the class order
    assert "60.0" not in texts
    assert "oracle" not in apart["text"], "no oracle's column without a figure"


def test_older_results_without_a_class_order_are_shown_without_it(tmp_path):
    old = result([0.6], cost=None)
    del old["class_order"]
    page = render(record(tmp_path, {"LTC": [old], "SLC": [result([0.5])]}))
    assert "The stream in class order" not in page
    assert Page(page).row("LTC")[0]["text"] == "60.0"


def test_every_training_is_listed_with_what_repeats_and_finds_it(tmp_path):
    command = "newfound train labelled.csv --seed 7 --set creator=mixup"
    page = Page(render(record(tmp_path, {"LTC": [result([0.6], seed=7, command=command)]})))
    (apart,) = (d for d in page.all("details") if d["text"].startswith("How it was measured: 1 training, 0.0 CPU"))
    texts = [cell["text"] for cell in page.all("td", inside=apart)]
    key = f"{HERE} table1 LTC 0"
    assert texts == ["7", "1.5", "3", "1", "0.500", "abc", "2026-01-02T03:04:05Z", key, command]


def test_the_caption_says_what_the_tables_own_says(tmp_path):
    results = {"SLC": [result([0.6])]}
    page = Page(render(record(tmp_path, results, missing={"PHE": "it diverged"})))
    about = STUDIES["table1"]
    table = Table(f"{about.title}: {about.about}", about.columns, results, {"PHE": "it diverged"})
    assert page.all("figcaption")[0]["text"] == table.caption()


def test_figures_are_in_the_page_itself(tmp_path):
    svg = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
    points = {"alpha 0.1": [result([0.6])]}
    record(tmp_path, points, "sensitivity", figures={"sensitivity": "Against alpha."})
    (tmp_path / HERE / "sensitivity.svg").write_bytes(svg)
    page = Page(render(tmp_path))
    (image,) = page.all("img")
    assert image["src"] == "data:image/svg+xml;base64," + base64.b64encode(svg).decode()
    assert "Against alpha." in image["alt"]
    assert page.all("figcaption")[0]["text"] == "sensitivity: Against alpha."
    assert page.row("alpha 0.1")[0]["text"] == "60.0", "its numbers are there too"


def test_a_figure_too_large_to_draw_quickly_is_shown_as_pixels(tmp_path):
    record(tmp_path, {}, "tsne", figures={"tsne": "A cloud."})
    (tmp_path / HERE / "tsne.svg").write_bytes(b"<svg>" + b" " * 1_000_000)
    assert Page(render(tmp_path)).all("img")[0]["src"].startswith("data:image/svg+xml"), "there is nothing else"
    (tmp_path / HERE / "tsne.png").write_bytes(b"png")
    assert Page(render(tmp_path)).all("img")[0]["src"] == "data:image/png;base64," + base64.b64encode(b"png").decode()


def test_a_missing_figure_is_said_to_be_missing(tmp_path):
    page = Page(render(record(tmp_path, {}, "tsne", figures={"tsne": "A cloud."})))
    assert page.all("img") == []
    assert [p["text"] for p in page.all("p", "none")] == [
        f"No figure: tsne.svg and tsne.png are not in {HERE}. A cloud."
    ]


def test_a_study_whose_results_are_gone_is_shown_without_them(tmp_path):
    record(tmp_path, {"LTC": [result([0.6]), result([0.6])]})
    (tmp_path / FILE).unlink()
    page = Page(render(tmp_path))
    assert [p["text"] for p in page.all("p", "none")] == ["No results in cells.jsonl for 2 of its 2 trainings."]
    assert page.all("table") == []
    assert page.all("h2")[1]["text"] == HERE, "its folder's name is all that is known"


def test_results_that_are_partly_gone_are_counted(tmp_path):
    record(tmp_path, {"LTC": [result([0.6]), result([0.6])], "SLC": [result([0.5])]})
    lines = (tmp_path / FILE).read_text().splitlines()
    (tmp_path / FILE).write_text("\n".join(lines[1:]))
    page = Page(render(tmp_path))
    assert [p["text"] for p in page.all("p", "none")] == ["No results in cells.jsonl for 1 of its 3 trainings."]
    assert page.row("LTC")[-1]["text"] == "1"


def test_a_folder_without_a_record_says_to_run_a_table_first(tmp_path):
    (tmp_path / "notes.json").write_text("{}")
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(DataError, match=r"no results to report: run a table first, such as `newfound bench table1"):
            write_page(folder, tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


def test_a_page_that_cannot_be_written_is_an_error_for_people(tmp_path):
    record(tmp_path, {"LTC": [result([0.6])]})
    with pytest.raises(DataError, match="cannot write"):
        write_page(tmp_path, tmp_path / FILE / "page.html")


def test_every_setup_and_study_can_be_reached_official_classes_first(tmp_path):
    drawn = {"data": PETS | {"class_seed": 2}}
    record(tmp_path, {"LTC": [result([0.6], **drawn)]}, folder="pets-class-seed-2-tf_efficientnet_lite0-short")
    record(tmp_path, {"LTC": [result([0.6])]}, "table3")
    record(tmp_path, {"LTC": [result([0.6])]}, "table1")
    page = Page(render(tmp_path))
    targets = [section["id"] for section in page.all("section")]
    assert targets == [
        "reading", "setup-1", "setup-1-table1", "setup-1-table3", "setup-2", "setup-2-table1", "claims", "misprints",
    ]  # fmt: skip
    assert sorted(a["href"].removeprefix("#") for a in page.all("a", within="nav")) == sorted(targets)
    assert [h["text"] for h in page.all("h2")][1:-2] == [
        "Oxford-IIIT Pet, tf_efficientnet_lite0, short",
        "Oxford-IIIT Pet, class seed 2, tf_efficientnet_lite0, short",
    ]


def test_sections_that_differ_only_in_what_was_chosen_say_so(tmp_path):
    chosen = Choice("released", {"lr": 1e-4}, methods=("ltc",))
    record(tmp_path, {"LTC": [result([0.6])]}, "table3", folder="a")
    record(tmp_path, {"LTC": [result([0.6])]}, "table3", folder="b", choice=chosen)
    record(tmp_path, {"LTC": [result([0.6])]}, "table1", folder="c", choice=chosen)  # which does not vary LTC
    usual = "Oxford-IIIT Pet, tf_efficientnet_lite0, short"
    assert [h["text"] for h in Page(render(tmp_path)).all("h2")][1:-2] == [
        usual, f"{usual}, released, lr=0.0001, only ltc", f"{usual}, only ltc",
    ]  # fmt: skip


def test_the_section_of_a_study_of_backbones_is_named_after_the_one_asked_for(tmp_path):
    lines = {"a": [result([0.6], backbone="timm/other")], "b": [result([0.6], backbone="timm/asked")]}
    page = Page(render(record(tmp_path, lines, "backbones", folder="pets-timm_asked-short")))
    assert page.all("h2")[1]["text"] == "Oxford-IIIT Pet, timm/asked, short"


def test_every_claim_of_the_paper_points_to_where_it_is_tested_here(tmp_path):
    record(tmp_path, {"LTC": [result([0.6])]}, "table3")
    page = Page(render(tmp_path))
    (listed,) = page.all("ul", "claims")
    items = page.all("li", inside=listed)
    for claim, item in zip(claims(), items, strict=True):
        assert claim.says in item["text"]
        assert (claim.note or "") in item["text"]
        links = [(a["text"], a["href"]) for a in page.all("a", inside=item)]
        measured = [("Oxford-IIIT Pet, tf_efficientnet_lite0, short", "#setup-1-table3")]
        assert links == (measured if claim.study == "table3" else [])
        assert item["text"].endswith("not measured here.") is (claim.study != "table3")


@pytest.fixture
def hostile(tmp_path) -> Path:
    """Results in which every text that can be is markup that would run."""
    out = tmp_path / "results"
    out.mkdir()
    data = PETS | {"protocol": HOSTILE}
    bad = result([0.6], data=data, backbone=HOSTILE, commit=HOSTILE, command=HOSTILE, time=HOSTILE)
    folder = HOSTILE.replace("/", "")
    record(out, {HOSTILE: [bad], "b": [bad]}, folder=folder, missing={"PHE": HOSTILE})
    return record(out, {}, "tsne", folder=folder, figures={"tsne": HOSTILE})


def test_no_name_is_ever_executed(hostile):
    page = Page(render(hostile))
    assert not {"script", "iframe", "link", "object"} & {e["tag"] for e in page.elements}
    assert page.all("img") == []
    assert not [name for e in page.elements for name in e if name.startswith("on")]
    assert HOSTILE in page.all("h2")[1]["text"]
    assert [th["text"] for th in page.all("th")].count(HOSTILE) == 3  # two tables and the list of trainings
    assert page.elements[0]["text"].count(HOSTILE) > 8


def test_nothing_comes_from_outside(tmp_path):
    document = render(record(tmp_path, {"LTC": [result([0.6], **THEIRS)]}))
    assert not re.search(r"https?://|url\(|@import", document)
    policy = next(m for m in Page(document).all("meta") if m.get("http-equiv") == "Content-Security-Policy")
    assert policy["content"] == "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def test_the_same_results_give_the_same_bytes_wherever_they_are(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    record(one, {"LTC": [result([0.6, 0.5], **THEIRS)], "SLC": [result([0.5, 0.5])]})
    record(one, {"alpha 0.1": [result([0.6])]}, "sensitivity", figures={"sensitivity": "Against alpha."})
    shutil.copytree(one, other)
    pages = [write_page(folder, tmp_path / f"{folder.name}.html").read_bytes() for folder in (one, other)]
    assert pages[0] == pages[1]
    assert sorted(p.name for p in one.iterdir()) == [FILE, HERE], "nothing is written into the folder of results"


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed (apt-get install chromium)")
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_fits_its_window_and_wide_tables_scroll_in_their_own_box(hostile, tmp_path, width):
    probe = tmp_path / "probe.html"
    page = html.escape(render(record(hostile, {"LTC": [result([0.6, 0.5], **THEIRS)]}, folder="pets-clip")))
    probe.write_text(
        f"""<!doctype html><meta charset="utf-8"><iframe srcdoc="{page}" style="width:{width}px; border:0"></iframe>
        <pre id="found"></pre><script>addEventListener("load", () => {{
          const d = document.querySelector("iframe").contentDocument;
          const texts = [...d.querySelectorAll("p, td, th, li, small, figcaption")];
          const sizes = texts.map(e => parseFloat(getComputedStyle(e).fontSize));
          document.querySelector("#found").textContent = JSON.stringify(
            {{wide: d.documentElement.scrollWidth, smallest: Math.min(...sizes), scripts: d.scripts.length}});
        }})</script>""",
        encoding="utf-8",
    )
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    options += ["--hide-scrollbars", f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width + 40},1000"]
    command = [str(CHROMIUM), *options, "--dump-dom", probe.as_uri()]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    found = json.loads(html.unescape(re.search(r'<pre id="found">(.*?)</pre>', dom)[1]))
    assert found["wide"] == width
    assert found["smallest"] >= 11
    assert found["scripts"] == 0


def test_a_table_that_the_paper_does_not_have_is_shown_without_comparison(tmp_path):
    text = render(record(tmp_path, {"LTC": [result([0.612])]}, "ltc"))
    assert "61.2" in text
    assert "not comparable" not in text
