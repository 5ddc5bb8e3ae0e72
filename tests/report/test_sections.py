"""What each section of the report promises."""

from __future__ import annotations

import dataclasses
import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from newfound.evaluation import evaluate_stream
from newfound.evaluation.stream import StreamResult
from newfound.report import render
from newfound.report.charts import Axis, Chart
from newfound.report.markup import element, join, number


@pytest.fixture
def many(make_story, pictures):
    """many(classes, each): a stream in which every image of a class went to a category of its own name."""

    def make(classes: int, each: int = 2, known: int = 3, **changes):
        labels = [f"class{i:03}" for i in range(classes) for _ in range(each)]
        categories = [i for i in range(classes) for _ in range(each)]
        created = [i >= known and k == 0 for i in range(classes) for k in range(each)]
        run = make_story().run
        config = run.config | {"data": run.config["data"] | {"classes": known}}
        taught = dataclasses.replace(run, config=config, classes=[f"class{i:03}" for i in range(known)])
        names = {i: f"class{i:03}" if i < known else f"new-{i - known + 1}" for i in range(classes)}
        values = {
            "run": taught, "items": [pictures(1, 1)[0][0]] * len(labels), "labels": labels, "categories": categories,
            "created": created, "scores": [0.5] * len(labels), "names": names, "known_count": known, "table": [],
            "true_categories": classes,
        }  # fmt: skip
        return make_story(**values | changes)

    return make


def fixed(*accuracies: float) -> StreamResult:
    """A result whose Strict All in each order is as given: of 100 old images, so many keep their name."""
    answers = iter(accuracies)

    def decide(order):
        right = round(100 * next(answers))
        return ["a"] * right + ["b"] * (100 - right), np.zeros(100, bool), None

    return evaluate_stream(decide, ["a"] * 100, ["a"], orders=len(accuracies))


def bold(story, read) -> list[str]:
    page = read(render(story))
    return [b["text"] for b in page.all("b", within="td")]


@pytest.mark.parametrize("skipped", [1, 2])
def test_images_that_could_not_be_read_are_so_many_more(make_story, read, skipped):
    run = make_story().run
    data = run.config["data"] | {"skipped": skipped}
    page = read(render(make_story(run=dataclasses.replace(run, config=run.config | {"data": data}))))
    assert any(f"; {skipped} more could not be read" in cell["text"] for cell in page.all("td"))


def test_a_score_is_bold_only_if_it_leads_by_more_than_both_spreads(make_story, read):
    clear = [("x", fixed(0.90, 0.92)), ("y", fixed(0.80, 0.82))]
    close = [("x", fixed(0.90, 0.80)), ("y", fixed(0.84, 0.82))]
    single = [("x", fixed(0.90)), ("y", fixed(0.10))]
    assert set(bold(make_story(table=clear), read)) == {"91.0"}
    assert bold(make_story(table=close), read) == []
    assert bold(make_story(table=single), read) == []


def test_the_table_has_a_column_a_method_and_a_row_a_figure(make_story, read):
    page = read(render(make_story(table=[("x", fixed(0.9, 0.8)), ("y", fixed(0.7, 0.7))])))
    table = page.one("table", "scores")["text"]
    for word in ("Strict", "Greedy", "Named", "Categories", "The stream holds 4 classes"):
        assert word in table
    assert "85.0 ± 7.1" in table
    assert "–" in table  # there are no new images here, so nothing to say of them


def test_the_gallery_tells_known_from_discovered_and_says_how_pure(make_story, read):
    page = read(render(make_story()))
    cards = {card["text"]: card for card in page.all("article", "card")}
    assert "kind0known6 images, 83 % of them kind0" in cards
    assert "new-1discovered4 images, 100 % of them kind3" in cards
    assert "new-2kind3" in page.one("ul", "once")["text"]
    assert len(page.all("li", "odd")) == 1  # the kind1 image among kind0


def test_a_known_category_stands_for_its_own_class_whatever_the_majority(make_story, read):
    story = make_story()
    page = read(render(make_story(labels=["kind1" if i < 4 else label for i, label in enumerate(story.labels)])))
    assert any("6 images, 83 % of them kind1" in card["text"] for card in page.all("article", "card"))
    assert len(page.all("li", "odd")) == 5


def test_a_card_shows_twelve_images_from_first_to_last(many, read):
    story = many(4, each=30)
    page = read(render(story))
    assert len(page.all("img", within="article")) == 4 * 12
    alts = [img["alt"] for img in page.all("img", within="article")]
    assert "image 91, class003" in alts
    assert "image 120, class003" in alts


def test_the_gallery_ends_after_sixty_categories_and_says_so(many, read):
    page = read(render(many(75)))
    assert len(page.all("article", "card")) == 60
    assert "… and 15 smaller ones, with 30 images in all." in page.one("main")["text"]


def test_a_known_class_without_images_is_named(many, read):
    story = many(5, known=3)
    page = read(render(many(5, categories=[c or 1 for c in story.categories])))
    assert "no image was given to: class000." in page.one("main")["text"]


def test_every_founding_has_its_dot_and_its_first_image(make_story, read):
    page = read(render(make_story()))
    assert [t["text"] for t in page.all("title", within="circle")] == ["image 16: new-1", "image 20: new-2"]
    strip = page.one("ol", "strip")["text"]
    assert "new-1image 160.500" in strip
    assert "From 3 known to 5 categories in 20 images" in page.one("main")["text"]


def test_categories_merged_later_are_accounted_for(make_story, read):
    story = make_story()
    page = read(render(make_story(categories=[3 if c == 4 else c for c in story.categories])))
    assert "1 category was merged or dissolved into others later." in page.one("main")["text"]


def test_a_stream_without_discoveries_says_so(make_story, read):
    story = make_story()
    page = read(render(make_story(categories=[min(c, 2) for c in story.categories], created=[False] * 20)))
    assert "Nothing was discovered" in page.one("main")["text"]
    assert "discovered nothing" in page.one("p", "lead")["text"]


def test_the_thresholds_path_is_drawn_with_the_cut(make_story, tiny_run, read):
    assert tiny_run.threshold_path, "this run must have created samples for the test to mean something"
    text = read(render(make_story())).one("main")["text"]
    assert f"to {tiny_run.threshold_path[-1][1]:.3f} in {len(tiny_run.threshold_path)} move" in text
    assert f"the run's cut {tiny_run.threshold:.2f}" in text


def test_a_run_that_created_nothing_says_that_there_is_no_path(make_story, tiny_run, read):
    still = dataclasses.replace(tiny_run, threshold_path=[])
    assert "Training created no samples" in read(render(make_story(run=still))).one("main")["text"]


def test_the_rehearsal_is_drawn_where_there_was_one(make_story, tiny_run, read):
    curve = {"grid": [0.4, 0.6, 0.8], "scores": [0.3, 0.7, 0.1]}
    chosen = {"value": 0.6, "rule": "threshold 0.60, rehearsed on 2 draws"} | curve
    rehearsed = dataclasses.replace(tiny_run, config=tiny_run.config | {"threshold": chosen})
    text = read(render(make_story(run=rehearsed))).one("main")["text"]
    assert "chosen: 0.60" in text
    assert "The cut: rehearsed on 2 draws." in text
    assert "chosen:" not in read(render(make_story())).one("main")["text"]


def test_a_closed_run_cannot_found_anything(make_story, tiny_run, read):
    cut = {"threshold": {"value": -1.0, "rule": "closed set: nothing is new"}}
    closed = dataclasses.replace(tiny_run, config=tiny_run.config | cut, threshold_path=[])
    assert "No image can found a category." in read(render(make_story(run=closed))).one("main")["text"]


def matrix(page) -> dict[str, list[int]]:
    """The rows of the confusion matrix by class; an empty cell is 0."""
    rows: dict[str, list[int]] = {}
    start = next(i for i, e in enumerate(page.elements) if "confusion" in (e.get("class") or "").split())
    for e in page.elements[start:]:
        if e["tag"] == "section":
            break
        if e["tag"] == "th" and e.get("scope") == "row":
            rows[e["text"]] = []
        elif e["tag"] == "td" and rows:
            rows[list(rows)[-1]].append(int(e["text"] or 0))
    return rows


def test_the_matrix_counts_every_image_once(make_story, read):
    rows = matrix(read(render(make_story())))
    assert rows == {  # columns: the known classes, new-1, and the single image of new-2 pooled
        "kind0": [5, 0, 0, 0, 0], "kind1": [1, 4, 0, 0, 0], "kind2": [0, 0, 5, 0, 0], "kind3": [0, 0, 0, 4, 1],
    }  # fmt: skip


@pytest.mark.parametrize(("classes", "known"), [(37, 19), (200, 100), (120, 5), (120, 118)])
def test_the_matrix_stays_legible_and_complete(many, read, classes, known):
    page = read(render(many(classes, each=3, known=known)))
    rows = matrix(page)
    assert len(rows) == min(classes, 40)
    assert all(sum(cells) == 3 and len(cells) <= 41 for cells in rows.values())
    shown_known = sum(int(name[5:]) < known for name in rows)
    assert shown_known == {19: 19, 100: 20, 5: 5, 118: 38}[known]
    assert all(max(cells[:40]) == 3 for cells in rows.values()), "a class that is shown has its category shown"
    assert (f"Only 40 of {classes} classes" in page.one("table", "confusion")["text"]) == (classes > 40)


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_ticks_are_few_even_and_inside(low, length):
    axis = Axis("x", low, low + length)
    if not axis.high > axis.low:
        return
    ticks = axis.ticks()
    values = [value for value, _ in ticks]
    slack = 1e-6 * (abs(low) + length)
    assert 2 <= len(ticks) <= 5
    assert all(axis.low - slack <= value <= axis.high + slack for value in values)
    assert np.ptp(np.diff(values)) <= slack
    assert len({text for _, text in ticks}) == len(ticks)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=9), st.booleans())
def test_a_line_ends_where_its_last_point_is(points, steps):
    drawn = Chart(Axis("x", 0, 1), Axis("y", 0, 1)).line(points, steps=steps)
    numbers = [float(n) for n in re.search(r' d="([^"]*)"', drawn)[1].replace("M", " ").replace("L", " ").split()]
    assert math.isclose(numbers[-2], 1000 * points[-1][0], abs_tol=0.06)
    assert math.isclose(numbers[-1], 1000 * (1 - points[-1][1]), abs_tol=0.06)


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"])))
def test_any_text_comes_out_of_markup_as_it_went_in(read_text, text):
    (found,) = read_text(element("p", text, title=text))
    assert (found["tag"], found["text"], found["title"]) == ("p", text, text)


@pytest.fixture(scope="module")
def read_text(read):
    return lambda markup: read(markup).elements


def test_attributes_and_contents_that_are_none_are_left_out():
    assert element("p", None, ["a", None, element("br")], class_=None, hidden=True) == "<p hidden>a<br></p>"
    assert join("<", element("b", "x")) == "&lt;<b>x</b>"


def test_counts_read_as_people_say_them():
    assert [number(1, "class", "classes"), number(2, "class", "classes"), number(1347, "image")] == [
        "1 class", "2 classes", "1,347 images",
    ]  # fmt: skip
