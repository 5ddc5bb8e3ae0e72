"""The page in a real Chromium, on a real server: what it shows, what keys do, who can use it."""

from __future__ import annotations

import json
import re
from urllib.parse import parse_qs, urlsplit

import pytest
from browsing import ask_in_vain, drop, expect, findings, needs_chromium, tab, type_name, visit, wait_for_pictures

pytestmark = needs_chromium
VIEWS = ("#/", "#/category/0", "#/map", "#/stream", "#/doubt")
HOSTILE = "<img src=x onerror='window.pwned = true'><b>bold</b>"


def discovered(shown) -> list[dict]:
    return shown.get("/v1/categories", origin="discovered", sort="newest")["items"]


def test_a_new_kind_slides_in_and_its_name_outlives_a_reload(at, shown, png):
    with at() as page:
        expect(page.locator(".card", has_text="kind0")).to_contain_text("4 images")
        before = page.locator(".card").count()
        page.locator("#files").set_input_files(
            [{"name": f"{n}.png", "mimeType": "image/png", "buffer": png(4, n)} for n in (10, 11)]
        )
        arrived = page.locator(".cards > li.arriving")
        expect(arrived).to_have_count(1)
        assert page.locator(".card").count() == before + 1
        expect(page.locator(".toast")).to_contain_text("1 new category")
        expect(page.locator("#said")).to_contain_text("new")
        arrived.locator("a").click()
        page.locator(".title h1").wait_for()
        type_name(page, "violet stripes")
        expect(page.locator("h1")).to_have_text("violet stripes")
        page.reload()
        expect(page.locator("h1")).to_have_text("violet stripes")
        wait_for_pictures(page, ".grid")
        assert page.locator(".grid img").count() == 2
    assert discovered(shown)[0]["name"] == "violet stripes"


def test_a_file_that_is_no_image_is_named_and_the_others_go_in(at, shown, png):
    seen = shown.get("/v1/status")["sightings"]
    with at("#/stream") as page:
        drop(page, {"good.png": png(0, 20), "letter.png": b"Dear image"})
        expect(page.locator(".toast.error")).to_contain_text("1 file not taken in")
        expect(page.locator(".feed li.arriving")).to_have_count(1)
    assert shown.get("/v1/status")["sightings"] == seen + 1


def test_names_with_markup_stay_text(at, shown, png):
    target = discovered(shown)[0]["id"]
    assert shown.client.patch(f"/v1/categories/{target}", json={"name": HOSTILE}).status_code == 200
    shown.client.post("/v1/observe", files=[("images", (f"{HOSTILE}.png", png(3, 30), "image/png"))])
    asked = []
    with at() as page:
        page.on("request", lambda request: asked.append(request.url))
        expect(page.locator(".card h2", has_text="onerror")).to_have_text(HOSTILE)
        for place in (*VIEWS, f"#/category/{target}"):
            visit(page, place)
            page.wait_for_timeout(200)  # time for a picture that must not be there to be asked for
            assert page.evaluate("window.pwned") is None
            assert page.locator("main b", has_text=re.compile("^bold$")).count() == 0
        expect(page.locator("h1")).to_have_text(HOSTILE)
    assert not [url for url in asked if url.endswith("/x")]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_in_any_view(at, scheme):
    with at(scheme=scheme) as page:
        for place in VIEWS:
            visit(page, place)
            assert findings(page) == [], place
        page.keyboard.press("?")
        page.locator("dialog").wait_for()
        assert findings(page) == [], "help"
        page.keyboard.press("Escape")
        visit(page, "#/category/0")
        page.locator(".grid li").first.click()
        page.keyboard.press("v")
        page.locator("dialog [role=option]").first.wait_for()
        assert findings(page) == [], "choosing a category"


def test_rename_merge_and_undo_need_no_mouse(at, shown, png):
    shown.observe(*(png(3, n) for n in (40, 41)), *(png(4, n) for n in (40, 41)))
    newest, other = discovered(shown)[:2]
    shown.client.patch(f"/v1/categories/{other['id']}", json={"name": "to be joined"})
    with at() as page:
        expect(page.locator(".card").first).to_contain_text(newest["name"])
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_have_text(newest["name"])
        page.keyboard.press("r")
        page.keyboard.type("by keyboard")
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_have_text("by keyboard")
        page.keyboard.press("m")
        page.locator("dialog input").wait_for()
        page.keyboard.type("to be joined")
        expect(page.locator("dialog [role=option]")).to_have_count(1)
        page.keyboard.press("Enter")
        page.wait_for_url(f"**/category/{other['id']}")
        assert shown.get(f"/v1/categories/{newest['id']}")["id"] == other["id"]
        expect(page.locator("h1")).to_be_focused()
        page.keyboard.press("u")
        expect(page.locator(".toast").last).to_contain_text("apart again")
    assert shown.get(f"/v1/categories/{newest['id']}")["name"] == "by keyboard"


def test_images_are_chosen_by_keyboard_and_split_off(at, shown):
    count = shown.get("/v1/categories/1")["count"]
    with at("#/category/1?order=stream") as page:
        page.locator(".grid li").first.focus()
        page.keyboard.press("Space")
        page.keyboard.press("Shift+ArrowRight")
        expect(page.locator(".selected")).to_contain_text("2 images selected")
        page.keyboard.press("Escape")
        expect(page.locator(".selected")).to_be_hidden()
        page.keyboard.press("Space")
        page.keyboard.press("x")
        expect(page.locator(".toast").last).to_contain_text("1 image split off")
        expect(page.locator(".grid li")).to_have_count(count - 1)
        page.wait_for_timeout(1000)  # the news of it comes back and the images are loaded anew
        expect(page.locator(".grid li:focus")).to_have_count(1)
        page.keyboard.press("Control+z")
        expect(page.locator(".grid li")).to_have_count(count)


def test_tab_goes_through_the_page_and_leaves_it(at):
    with at("#/category/0") as page:
        page.evaluate("document.activeElement.blur()")
        visited = []
        for _ in range(60):
            page.keyboard.press("Tab")
            visited.append(page.evaluate("document.activeElement.outerHTML.slice(0, 80)"))
        assert "skip" in visited[0]
        assert visited[0] in visited[1:], "after the last element the focus comes round again"
        assert any('role="option"' in one for one in visited)


def test_nothing_scrolls_sideways_on_a_phone(at, shown):
    shown.client.patch("/v1/categories/0", json={"name": "an unusually long name " * 8 + "a" * 16})
    try:
        with at(width=390, scheme="dark") as page:
            for place in VIEWS:
                visit(page, place)
                assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), place
    finally:
        shown.client.post("/v1/undo")


def test_a_loop_on_the_map_selects_the_images_inside(at, shown):
    seen = shown.get("/v1/status")["sightings"]
    with at("#/map") as page:
        expect(page.get_by_role("status").first).to_contain_text("points")
        box = page.locator("canvas").bounding_box()
        right, bottom = box["x"] + box["width"] - 60, box["y"] + box["height"] - 3
        page.mouse.move(box["x"] + 3, box["y"] + 3)
        page.mouse.down()
        for x, y in ((right, box["y"] + 3), (right + 50, bottom), (box["x"] + 3, bottom), (box["x"] + 2, box["y"] + 9)):
            page.mouse.move(x, y, steps=3)
        page.mouse.up()
        expect(page.locator(".selected")).to_be_visible()
        chosen = int(re.match(r"\d+", page.locator(".selected b").inner_text())[0])
        assert seen / 2 < chosen <= seen
        page.keyboard.press("Escape")
        expect(page.locator(".selected")).to_be_hidden()


def test_one_key_decides_what_is_in_doubt_and_another_takes_it_back(at, shown, borderline):
    (seen,) = shown.observe(borderline(50)).json()["sightings"]
    assert abs(seen["score"] - seen["cut"]) < 0.01
    queue = shown.get("/v1/doubt")
    item, total = queue["items"][0], queue["total"]
    assert item["number"] == seen["number"]
    assert len(item["candidates"]) > 1, "there is something to decide"
    second = item["candidates"][1]["category"]
    where = f"/v1/categories/{second}/sightings"
    with at("#/doubt") as page:
        expect(page.locator(".candidate")).to_have_count(min(3, len(item["candidates"])))
        page.keyboard.press("2")
        expect(page.locator(".toast").last).to_contain_text("1 image moved")
        assert item["number"] in [one["number"] for one in shown.get(where, limit=500)["items"]]
        assert shown.get("/v1/doubt")["total"] == total - 1
        page.keyboard.press("u")
        expect(page.locator(".asked")).to_contain_text(item["image"])
        assert shown.get("/v1/doubt")["total"] == total


def test_a_locked_service_asks_for_its_token(browser, serving, tmp_path):
    with serving(tmp_path, token="open sesame", read_token="look only") as running, tab(browser, running.url) as page:
        page.goto("/")
        page.locator("#token").fill("wrong")
        page.keyboard.press("Enter")
        expect(page.locator(".wrong")).not_to_be_empty()
        page.locator("#token").fill("look only")
        page.keyboard.press("Enter")
        expect(page.locator(".card")).to_have_count(3)
        expect(page.locator("#live")).to_contain_text("live")
        expect(page.locator("#add")).to_be_hidden()
        page.context.clear_cookies()
        page.reload()
        page.locator("#token").fill("open sesame")
        page.keyboard.press("Enter")
        expect(page.locator("#add")).to_be_visible()


def test_of_ten_thousand_categories_only_what_is_looked_at_is_loaded(at, shown):
    (one,) = shown.get("/v1/categories", sort="id", limit=1)["items"]
    asked = []

    def answer(route):
        query = parse_qs(urlsplit(route.request.url).query)
        start, limit = int(query.get("cursor", ["0"])[0]), int(query["limit"][0])
        asked.append(start)
        items = [{**one, "id": n, "name": f"number {n}", "exemplars": []} for n in range(start, start + limit)]
        page = {"items": items, "total": 10_000, "next": str(start + limit) if start + limit < 10_000 else None}
        route.fulfill(body=json.dumps(page), content_type="application/json")

    with at() as page:
        page.route("**/v1/categories?*", answer)
        page.reload()
        expect(page.locator("main .heading")).to_contain_text("10,000 categories")
        first = page.locator(".card").count()
        assert first < 200
        page.locator(".card").last.scroll_into_view_if_needed()
        expect(page.locator(".card").nth(first)).to_be_attached()
        names = page.locator(".card h2").all_text_contents()
        assert names == [f"number {n}" for n in range(len(names))]
        assert len(asked) < 10


def test_what_cannot_be_reached_is_said_and_can_be_tried_again(at):
    with at() as page:
        ask_in_vain(page)
        page.get_by_role("button", name="Try again").click()
        expect(page.locator("h1")).to_have_text("Stream")


def test_who_prefers_stillness_sees_no_motion(at):
    with at(reduced_motion="reduce") as page:
        page.locator(".cards > li").first.evaluate("e => e.classList.add('arriving')")
        assert page.locator(".cards > li.arriving").evaluate("e => getComputedStyle(e).animationName") == "none"
