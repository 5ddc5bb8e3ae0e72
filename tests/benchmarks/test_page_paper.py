"""Promises about the paper's figures on the page: beside ours only where both are alike, misprints marked."""

from __future__ import annotations

import pytest
from hand_made_results import result
from html_page import Page
from result_pages import PETS, THEIRS, record

from newfound.benchmarks import paper
from newfound.benchmarks.page import render
from newfound.benchmarks.studies import CLIP, DINO

FOOD = PETS | {"protocol": "food101", "known": 51, "classes": 101}


def test_the_papers_figure_stands_below_ours_with_the_signed_difference(tmp_path):
    lines = {
        "far": [result([0.6, 0.6], **THEIRS)],  # 60.0 - 58.9 = 1.1, spread 0; 30.0 - 59.5; 30.0 - 58.5; 30.0 - 73.0
        "wide": [result([0.5, 0.7], **THEIRS)],  # 1.1 again, but the spread is 14.1
        "near": [result([0.595, 0.595], **THEIRS)],  # 59.5 - 58.9 = 0.6: not a point
    }
    page = Page(render(record(tmp_path, lines, folder=f"pets-{CLIP}")))
    far = page.row("far")
    assert [page.all("span", "paper", cell)[0]["text"] for cell in far[:4]] == [
        "58.9 ▲ +1.1", "59.5 ▼ −29.5", "58.5 ▼ −28.5", "73.0 ▼ −43.0",
    ]  # fmt: skip
    assert not [cell for cell in far[6:] if page.all("span", "paper", cell)], "the paper has neither Named nor oracles"
    assert [page.all("span", inside=far[i])[-1]["class"] for i in (0, 1)] == ["above", "below"]
    for name, text in (("wide", "58.9 +1.1"), ("near", "58.9 +0.6")):
        assert page.all("span", "paper", page.row(name)[0])[0]["text"] == text


def test_the_papers_number_of_categories_is_compared_too(tmp_path):
    cub = PETS | {"protocol": "cub", "known": 100, "classes": 200}
    lines = {"SMILE": [result([0.3], [924 + 40], backbone=DINO, method="smile", settings={"bits": 16}, data=cub)]}
    cell = Page(render(record(tmp_path, lines, "table2", folder="cub"))).row("SMILE")[0]
    assert cell["text"] == "964924 ▲ +40"


@pytest.mark.parametrize(
    ("unlike", "why"),
    [
        ({"backbone": "tf_efficientnet_lite0"}, "another backbone"),
        ({"preset": "default"}, "No line here"),
        ({"settings": {"gamma_mm": 0.9}}, "No line here"),
        ({"weights": "file:abc"}, "No line here"),
        ({"method": "frozen"}, "No line here"),
        ({"method": "of-another-newfound"}, "No line here"),
        ({"data": PETS | {"class_seed": 1}}, "other known classes"),
        ({"data": PETS | {"protocol": "cars"}}, "other known classes"),  # 19 of them, the paper's are 98
        ({"data": PETS | {"protocol": "my photos"}}, "The paper's Table 1 has no figures for my photos."),
    ],
    ids=str,
)
def test_nothing_of_the_paper_stands_beside_another_setting(tmp_path, unlike, why):
    page = Page(render(record(tmp_path, {"LTC": [result([0.6], **THEIRS | unlike)]})))
    assert page.all("span", "paper") == []
    assert why in page.all("figcaption")[1]["text"]


def test_another_backbone_is_said_to_be_none_to_compare_with(tmp_path):
    page = Page(render(record(tmp_path, {"LTC": [result([0.6])]})))
    why = page.all("figcaption")[1]["text"]
    assert f"figures are of {DINO} and {CLIP}, these of tf_efficientnet_lite0: another backbone" in why
    apart = next(d for d in page.all("details") if "other backbones: not comparable" in d["text"])
    assert "open" not in apart
    rows = [[cell["text"] for cell in page.all("td", inside=tr)] for tr in page.all("tr", inside=apart)]
    assert [CLIP, "58.9 / 59.5 / 58.5", "73.0 / 92.6 / 62.7"] in rows


def test_a_short_training_is_never_shown_as_the_papers(tmp_path):
    short = record(tmp_path, {"LTC": [result([0.6], **THEIRS | {"preset": "paper (short)"})]})
    assert "Ours are short trainings (15 epochs), the paper's are not." in Page(render(short)).elements[0]["text"]


def test_beside_the_papers_figures_stands_what_was_trained_otherwise(tmp_path):
    lines = {
        "as printed": [result([0.6], **THEIRS)],
        "a": [result([0.6], **THEIRS | {"settings": {"lr": 1e-4}})],
        "`b`": [result([0.6], **THEIRS | {"settings": {"lr": 1e-4, "ce": 0.0}})],  # which the paper's row is of
        "no peer": [result([0.6], **THEIRS | {"settings": {"gamma_mm": 0.9}})],
    }
    captions = [c["text"] for c in Page(render(record(tmp_path, lines, "table3", folder="pets"))).all("figcaption")]
    assert any("How it was trained may differ." in caption for caption in captions)
    assert "Trained as the preset paper says: as printed." in captions
    assert "Not as in the preset paper, whose values are in brackets: a; b: lr 0.0001 (0.01)." in captions


def test_a_short_form_says_which_settings_it_changes(tmp_path):
    short = record(tmp_path, {"LTC": [result([0.6], **THEIRS | {"preset": "paper (short)"})]})
    (told,) = (c["text"] for c in Page(render(short)).all("figcaption") if c["text"].startswith("Not as in"))
    for part in ("epochs 15 (100)", "cached True (False)", "space tokens (pixels)"):
        assert part in told


def test_misprints_are_marked_wherever_they_are_shown_and_listed(tmp_path):
    mark = "†" + str(1 + [one.name for one in paper.misprints()].index("food101-new"))
    lines = {"LTC": [result([0.6], backbone=CLIP, preset="paper", data=FOOD)]}
    record(tmp_path, lines, folder="food-clip")
    record(tmp_path, {"LTC": [result([0.6], data=FOOD)]}, folder="food-lite0")
    page = Page(render(tmp_path))
    strict, greedy = (page.all("span", "paper", page.row("LTC")[i])[0]["text"] for i in (2, 5))
    assert strict.startswith(f"36.7{mark} ")
    assert greedy.startswith("36.4 ")
    assert f"37.6 / 72.3 / 36.7{mark}" in [td["text"] for td in page.all("td")]
    notes = [e["text"] for e in page.all("figcaption") + page.all("p", "note") if e["text"].startswith(f"{mark} ")]
    assert len(notes) == 2, "one below the table, one below the paper's own figures"
    (listed,) = page.all("ol", "misprints")
    items = [li["text"] for li in page.all("li", inside=listed)]
    for i, (one, item) in enumerate(zip(paper.misprints(), items, strict=True), 1):
        assert item.startswith(f"†{i} ")
        assert one.printed in item
        assert one.wrong in item
