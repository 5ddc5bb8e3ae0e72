"""The page in a real Chromium by keyboard, by finger, and with names and files of all kinds."""

from __future__ import annotations

import pytest
from browsing import expect, findings, needs_chromium, renamed, tab, type_name, visit

pytestmark = [needs_chromium, pytest.mark.usefixtures("as_it_was")]
PHONE = {"width": 390, "has_touch": True, "is_mobile": True}
FAMILY = "👩‍👩‍👧 family"
HEBREW = "ציפור כחולה"
FOLDER = """async () => {
  const { filesOf } = await import("/assets/folders.js");
  const file = (name, type) => ({name, isDirectory: false, file: done => done(new File(["x"], name, {type}))});
  const folder = (name, ...entries) => ({name, isDirectory: true, createReader: () => {
    const parts = [entries.slice(0, 2), entries.slice(2), []];
    return {readEntries: done => done(parts.shift())};
  }});
  const inside = folder("deep", file("z.jpg", "image/jpeg"));
  const birds = folder("birds", file("10.png", "image/png"), file("9.png", "image/png"), file(".hidden", ""), inside);
  const dropped = [birds, file("letter.txt", "text/plain")].map(entry => ({webkitGetAsEntry: () => entry}));
  return (await filesOf({files: [], items: dropped})).map(({name}) => name);
}"""


def touch(page, *steps: list[tuple[float, float]]) -> None:
    """Put fingers where the first step says, move them as the others do, and lift them."""
    session = page.context.new_cdp_session(page)
    for kind, step in zip(("touchStart", *["touchMove"] * (len(steps) - 1), "touchEnd"), (*steps, []), strict=True):
        points = [{"x": x, "y": y, "id": at} for at, (x, y) in enumerate(step)]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    session.detach()


def test_arrows_change_the_order_of_the_gallery_where_that_has_the_focus(at):
    with at() as page:
        page.get_by_label("Newest").focus()
        page.keyboard.press("ArrowRight")
        expect(page.get_by_label("Largest")).to_be_checked()
        page.wait_for_url("**sort=size")


def test_caps_lock_takes_no_shortcut_away(at):
    with at("#/category/0") as page:
        page.locator("body").dispatch_event("keydown", {"key": "R", "bubbles": True})
        expect(page.get_by_label("Name of the category")).to_be_focused()


@pytest.mark.parametrize("way", ["back", "link"])
def test_who_comes_back_to_the_gallery_is_at_the_card_that_was_opened(at, way):
    with at("#/?sort=name") as page:
        page.locator(".card", has_text="kind1").focus()
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_have_text("kind1")
        page.go_back() if way == "back" else page.locator("main").get_by_role("link", name="All categories").click()
        page.wait_for_url("**sort=name")
        expect(page.locator(".card", has_text="kind1")).to_be_focused()
        expect(page.get_by_label("Name", exact=True)).to_be_checked()


def test_a_category_that_is_none_leads_back_to_the_others(at):
    with at("#/?sort=size") as page:
        page.goto("/#/category/9999")
        expect(page.get_by_role("alert")).to_contain_text("There is no such category")
        page.locator("main").get_by_role("link", name="All categories").click()
        page.wait_for_url("**sort=size")


def test_pictures_are_enlarged_one_after_the_other_and_the_focus_follows(at, shown):
    images = [one["image"] for one in shown.get("/v1/categories/0/sightings", order="stream")["items"]]
    with at("#/category/0?order=stream") as page:
        page.locator(".grid li").first.focus()
        page.keyboard.press("Enter")
        expect(page.locator("dialog h2")).to_have_text(images[0])
        expect(page.get_by_role("button", name="Before")).to_be_disabled()
        page.keyboard.press("ArrowRight")
        expect(page.locator("dialog img")).to_have_attribute("src", "v1/sightings/3/thumbnail?size=640")
        assert findings(page) == []
        page.keyboard.press("Escape")
        expect(page.locator(".grid li").nth(1)).to_be_focused()


def test_all_of_a_category_is_done_with_a_finger_and_undone_after_a_reload(browser, shown):
    with tab(browser, shown.url, **PHONE) as page:
        visit(page, "#/category/0?order=stream")
        page.locator(".grid li").first.tap()
        page.get_by_role("button", name="Enlarge").tap()
        page.get_by_role("button", name="Close", exact=True).tap()
        page.get_by_role("button", name="Select all").tap()
        count = page.locator(".grid li").count()
        expect(page.locator(".selected")).to_contain_text(f"{count} images selected")
        page.locator(".grid li").first.tap()
        page.get_by_role("button", name="Split off").tap()
        expect(page.locator(".toast")).to_contain_text(f"{count - 1} images split off")
        expect(page.locator(".grid li")).to_have_count(1)
        page.reload()
        expect(page.locator(".grid li")).to_have_count(1)
        page.get_by_role("button", name="Undo what was done here last").tap()
        expect(page.locator(".grid li")).to_have_count(count)


def test_messages_cover_neither_the_selection_nor_the_tabs(browser, shown):
    for width in (390, 800):
        with tab(browser, shown.url, width=width) as page:
            visit(page, "#/category/0")
            page.locator(".grid li").first.click()
            page.evaluate("import('/assets/toasts.js').then(({toast}) => toast('Now called something quite long.'))")
            message, bar = page.locator(".toast").bounding_box(), page.locator(".selected").bounding_box()
            apart = message["y"] + message["height"] <= bar["y"] or bar["x"] + bar["width"] <= message["x"]
            assert apart, width


def corners(page) -> tuple[float, float, float, float]:
    """The left, top, right and bottom of the map, once it is there."""
    expect(page.get_by_role("status").first).to_contain_text("points")
    box = page.locator("canvas").bounding_box()
    return box["x"] + 3, box["y"] + 3, box["x"] + box["width"] - 3, box["y"] + box["height"] - 3


def test_a_finger_draws_a_loop_and_two_zoom_the_map(browser, shown):
    seen = shown.get("/v1/status")["sightings"]
    with tab(browser, shown.url, **PHONE) as page:
        visit(page, "#/map")
        left, top, right, bottom = corners(page)
        x, y = (left + right) / 2, (top + bottom) / 2
        touch(page, [(x - 40, y), (x + 40, y)], [(x - 60, y), (x + 60, y)], [(x - 80, y), (x + 80, y)])
        expect(page.get_by_role("status").first).to_contain_text("2.0 times larger")
        expect(page.locator(".selected")).to_be_hidden()
        touch(page, [(x - 80, y), (x + 80, y)], [(x - 20, y), (x + 20, y)])
        expect(page.get_by_role("status").first).not_to_contain_text("larger")
        touch(page, [(left, top)], [(right, top)], [(right, bottom)], [(left, bottom)], [(left, top + 5)])
        expect(page.locator(".selected")).to_contain_text(f"{seen} images selected")


def test_a_finger_sees_a_category_before_it_opens_it(browser, shown):
    with tab(browser, shown.url, **PHONE) as page:
        visit(page, "#/map")
        left, top, right, bottom = corners(page)
        page.locator("canvas").focus()
        page.keyboard.press("ArrowRight")  # the first point is the largest category
        name = page.locator(".tip b").inner_text()
        for _ in range(5):
            page.keyboard.press("+")  # now it is in the middle
        touch(page, [(left, top)])
        expect(page.locator(".tip")).to_be_hidden()
        touch(page, [((left + right) / 2, (top + bottom) / 2)])
        expect(page.locator(".tip b")).to_have_text(name)
        assert page.url.endswith("#/map")
        touch(page, [((left + right) / 2, (top + bottom) / 2)])
        expect(page.locator("h1")).to_have_text(name)


def test_the_map_stays_as_it_is_looked_at_when_something_is_renamed(at, shown):
    with at("#/map") as page:
        left, top, right, bottom = corners(page)
        page.get_by_role("button", name="Move map").click()
        page.mouse.move(left + 10, top + 10)
        page.mouse.wheel(0, -100)
        page.mouse.down()
        page.mouse.move(right, bottom, steps=3)
        page.mouse.up()
        expect(page.get_by_role("status").first).to_contain_text("1.2 times larger")
        expect(page.locator(".selected")).to_be_hidden()
        with page.expect_response("**/v1/map?*"):
            renamed(shown, 2, "another")
        page.wait_for_timeout(300)
        expect(page.get_by_role("status").first).to_contain_text("1.2 times larger")


def test_a_name_that_another_category_has_offers_to_merge_the_two(at, shown):
    with at("#/category/1") as page:
        type_name(page, "kind2")
        told = page.locator(".toast", has_text="Another category is called")
        expect(told.get_by_role("button", name="Merge the two")).to_be_visible()
        told.get_by_role("button", name="Undo").click()
        expect(page.locator("h1")).to_have_text("kind1")
    assert shown.get("/v1/categories/1")["name"] == "kind1"


def test_images_that_were_put_where_they_are_before_are_said_to_stay_and_there_is_nothing_to_undo(at, shown):
    put = "import('/assets/actions.js').then(({move}) => move([0], {id: 1}))"
    with at() as page:
        page.evaluate(put)
        expect(page.locator(".toast", has_text="1 image moved to")).to_be_visible()
        page.evaluate(put)
        told = page.locator(".toast", has_text="Nothing has changed")
        expect(told).to_be_visible()
        expect(told.get_by_role("button", name="Undo")).to_have_count(0)


def test_names_of_all_scripts_are_shown_as_they_are_written(at, shown):
    renamed(shown, 2, FAMILY)
    renamed(shown, 1, HEBREW)
    assert shown.get("/v1/categories/2")["count"] == 0
    with at() as page:
        expect(page.locator(".card", has_text=FAMILY).locator(".initial")).to_have_text("👩‍👩‍👧")
        name = page.locator(".card h2", has_text=HEBREW)
        assert name.evaluate("name => getComputedStyle(name).direction") == "rtl"
        assert name.evaluate("name => getComputedStyle(name).textAlign") == "left"
        visit(page, "#/category/1")
        page.keyboard.press("r")
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_have_text(HEBREW)


def test_a_folder_that_is_dropped_gives_its_images_in_order(at):
    with at() as page:
        assert page.evaluate(FOLDER) == ["9.png", "10.png", "z.jpg", "letter.txt"]


def test_a_run_that_has_seen_nothing_says_how_to_begin_until_it_has(browser, quiet, png):
    with tab(browser, quiet.url) as page:
        visit(page, "#/stream")
        expect(page.get_by_text("Nothing seen yet")).to_be_visible()
        expect(page.locator("#cut")).to_be_hidden()
        visit(page, "#/")
        expect(page.get_by_text("Drop images anywhere")).to_be_visible()
        quiet.observe(png(0, 10)).raise_for_status()
        expect(page.get_by_text("Drop images anywhere")).to_have_count(0)
        visit(page, "#/stream")
        expect(page.locator("#cut")).to_be_visible()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_on_a_phone(browser, shown, scheme):
    with tab(browser, shown.url, scheme=scheme, **PHONE) as page:
        for place in ("#/", "#/category/0", "#/map", "#/stream"):
            visit(page, place)
            assert findings(page) == [], place
