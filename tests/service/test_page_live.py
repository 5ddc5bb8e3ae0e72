"""The page in a real Chromium while others work too: news, breaks, and two people at the same category."""

from __future__ import annotations

import json

import pytest
from browsing import ask_in_vain, drop, expect, needs_chromium, renamed, tab, type_name, visit

pytestmark = [needs_chromium, pytest.mark.usefixtures("as_it_was")]
HIDE = """hidden => {
  Object.defineProperty(document, "hidden", {get: () => hidden, configurable: true});
  document.dispatchEvent(new Event("visibilitychange"));
}"""
BURST = """count => import("/assets/live.js").then(({live}) => {
  const time = Date.now() / 1000;
  for (let at = 0; at < count; at++) {
    const detail = {number: 1e6 + at, category: 0, name: "kind0", is_new: false, score: 1, cut: 0, time};
    live.dispatchEvent(new CustomEvent("sighting", {detail}));
  }
})"""
FOLLOW = "import('/assets/live.js').then(live => live.follow())"


def numbers(shown, category: int, **query) -> list[int]:
    return [one["number"] for one in shown.get(f"/v1/categories/{category}/sightings", **query)["items"]]


def test_what_is_selected_stays_so_while_others_edit_and_images_come_in(at, shown, png):
    with at("#/category/0?order=stream") as page:
        page.locator(".grid li").nth(1).click()
        page.locator(".grid li").nth(2).click()
        page.get_by_role("button", name="Clear").focus()
        renamed(shown, 1, "elsewhere")
        expect(page.locator(".neighbours")).to_contain_text("elsewhere")
        expect(page.get_by_role("button", name="Clear")).to_be_focused()
        shown.observe(png(0, 80)).raise_for_status()
        page.get_by_role("button", name="Show new images").click()
        expect(page.locator(".grid li")).to_have_count(len(numbers(shown, 0, limit=500)))
        expect(page.locator(".selected")).to_contain_text("2 images selected")
        chosen = page.locator(".grid [aria-selected=true]").evaluate_all("all => all.map(one => +one.dataset.number)")
        assert chosen == numbers(shown, 0, order="stream")[1:3]
        taken = shown.client.post("/v1/move", json={"sightings": chosen[:1], "category": 1})
        taken.raise_for_status()
        expect(page.locator(".selected")).to_contain_text("1 image selected")


def test_as_many_images_stay_as_were_loaded(at, shown, png):
    asked = []

    def few_at_a_time(route):
        asked.append(route.request.url)
        route.continue_(url=route.request.url.replace("limit=100", "limit=2"))

    with at() as page:
        page.route("**/v1/categories/0/sightings?*", few_at_a_time)
        visit(page, "#/category/0")
        expect(page.locator(".grid li")).to_have_count(len(numbers(shown, 0, limit=500)))
        assert len(asked) > 1
        page.unroute("**/v1/categories/0/sightings?*")
        page.route("**/v1/categories/0/sightings?*", lambda route: (asked.append(route.request.url), route.continue_()))
        asked.clear()
        renamed(shown, 1, "somewhere")
        expect(page.locator(".neighbours")).to_contain_text("somewhere")
        expect(page.locator("ul.grid")).not_to_have_attribute("aria-busy", "true")
        assert len(asked) == 1
        assert page.locator(".grid li").count() == len(numbers(shown, 0, limit=500))


def test_of_two_people_each_undoes_their_own(at, shown):
    with at("#/category/0") as ann, at("#/category/1") as bob:
        type_name(ann, "of Ann")
        expect(ann.locator("h1")).to_have_text("of Ann")
        type_name(bob, "of Bob")
        expect(bob.locator("h1")).to_have_text("of Bob")
        ann.keyboard.press("Control+z")
        expect(ann.locator("h1")).to_have_text("kind0")
        expect(bob.locator("h1")).to_have_text("of Bob")
        assert [shown.get(f"/v1/categories/{category}")["name"] for category in (0, 1)] == ["kind0", "of Bob"]
        ann.keyboard.press("u")
        expect(ann.locator(".toast").last).to_contain_text("Nothing that was done here is left to undo.")
        type_name(bob, "of Bob again")
        expect(bob.locator("h1")).to_have_text("of Bob again")
        bob.reload()
        visit(bob, "#/category/1")
        bob.keyboard.press("u")
        bob.keyboard.press("u")
        expect(bob.locator("h1")).to_have_text("kind1")


def test_undo_says_whose_later_edit_is_in_the_way_and_goes_on_when_that_is_taken_back(at, shown):
    with at("#/category/0") as page:
        type_name(page, "mine")
        expect(page.locator("h1")).to_have_text("mine")
        theirs = shown.client.patch("/v1/categories/0", json={"name": "theirs"}).json()["edits"][0]
        expect(page.locator("h1")).to_have_text("theirs")
        page.locator(".toast", has_text="Now called").get_by_role("button", name="Undo").click()
        expect(page.locator(".toast.error")).to_contain_text(f"event {theirs}, renamed by")
        expect(page.locator("h1")).to_have_text("theirs")
        shown.client.post("/v1/undo", json={"event": theirs}).raise_for_status()
        expect(page.locator("h1")).to_have_text("mine")
        page.keyboard.press("u")
        expect(page.locator("h1")).to_have_text("kind0")


def test_undo_is_offered_until_someone_else_has_taken_the_edit_back(at, shown):
    with at("#/category/0") as page:
        type_name(page, "mine")
        offer = page.locator(".toast", has_text="Now called")
        expect(offer).to_be_visible()
        renamed(shown, 1, "elsewhere")
        expect(page.locator(".neighbours")).to_contain_text("elsewhere")
        expect(offer.get_by_role("button", name="Undo")).to_be_visible()
        mine = shown.get("/v1/categories/0")["events"][0]["number"]
        shown.client.post("/v1/undo", json={"event": mine}).raise_for_status()
        expect(offer).to_have_count(0)


def test_a_category_whose_last_image_was_moved_leaves_the_gallery(at, shown):
    known = numbers(shown, 1)[0]
    with at() as page:
        made = shown.client.post("/v1/categories/1/split", json={"sightings": [known]}).json()
        card = page.locator(f".cards [data-id='{made['id']}']")
        expect(card).to_be_visible()
        shown.client.post("/v1/move", json={"sightings": [known], "category": 1}).raise_for_status()
        expect(card).to_have_count(0)


def test_a_name_that_someone_gave_meanwhile_is_there_when_one_stops_typing(at, shown):
    with at("#/category/1") as page:
        page.keyboard.press("r")
        page.get_by_label("Name of the category").fill("half a na")
        renamed(shown, 1, "whole name")
        expect(page.locator("#totals")).not_to_be_empty()
        page.wait_for_timeout(1000)  # what is typed is not taken away
        expect(page.get_by_label("Name of the category")).to_have_value("half a na")
        page.keyboard.press("Escape")
        expect(page.locator("h1")).to_have_text("whole name")
        expect(page.locator("h1")).to_be_focused()


def test_what_someone_has_put_together_again_is_shown_where_it_lives_now(at, shown):
    split = shown.client.post("/v1/categories/0/split", json={"sightings": numbers(shown, 0)[:1]}).json()
    with at(f"#/category/{split['id']}") as page:
        expect(page.locator("h1")).to_have_text(split["name"])
        shown.client.post("/v1/undo").raise_for_status()
        page.wait_for_url("**/category/0")
        expect(page.locator("h1")).to_have_text("kind0")


def test_a_tab_that_nobody_sees_lets_go_and_catches_up_when_it_is_looked_at(browser, shown, png):
    with tab(browser, shown.url) as page:
        page.clock.install()
        visit(page, "#/")
        expect(page.locator("#live")).to_have_attribute("data-state", "live")
        page.evaluate(HIDE, True)
        page.clock.fast_forward(21_000)
        expect(page.locator("#live")).to_have_attribute("data-state", "waiting")
        before = page.locator(".card", has_text="kind0").locator(".count").inner_text()
        shown.observe(png(0, 90)).raise_for_status()
        page.wait_for_timeout(700)
        expect(page.locator(".card", has_text="kind0").locator(".count")).to_have_text(before)
        page.evaluate(HIDE, False)
        expect(page.locator("#live")).to_have_attribute("data-state", "live")
        expect(page.locator(".card", has_text="kind0").locator(".count")).to_have_text(
            f"{shown.get('/v1/categories/0')['count']} images"
        )


def test_a_view_that_could_not_be_reached_opens_when_the_service_is_back(at):
    with at() as page:
        ask_in_vain(page)
        page.evaluate(FOLLOW)
        expect(page.locator("h1")).to_have_text("Stream")


def test_the_rest_of_an_upload_that_broke_off_is_sent_and_nothing_goes_in_twice(at, shown, png):
    keys = []

    def break_once(route):
        keys.append(route.request.headers["idempotency-key"])
        route.abort() if len(keys) == 2 else route.continue_()

    seen = shown.get("/v1/status")["sightings"]
    with at() as page:
        page.route("**/v1/observe", break_once)
        drop(page, {f"{n}.png": png(0, 100 + n) for n in range(20)})
        failed = page.locator(".toast.error")
        expect(failed).to_contain_text("16 images of 20 went in")
        failed.get_by_role("button", name="Send the rest").click()
        expect(page.locator(".toast", has_text="20 images: ")).to_be_visible()
    assert shown.get("/v1/status")["sightings"] == seen + 20
    assert keys[1] == keys[2] != keys[0]


def test_a_file_that_is_too_large_for_the_service_does_not_hold_the_others_up(at, shown, png):
    def with_little_room(route):
        told = route.fetch().json()
        route.fulfill(json=told | {"limits": told["limits"] | {"body": 2**20}})

    seen = shown.get("/v1/status")["sightings"]
    with at() as page:
        page.route("**/v1/status", with_little_room)
        visit(page, "#/stream")
        drop(page, {"huge.png": png(0, 140) + bytes(2**20), "small.png": png(0, 141)})
        expect(page.locator(".toast.error")).to_contain_text("1 file not taken in. huge.png is larger than 1 MB.")
        expect(page.locator(".toast", has_text="1 image: ")).to_be_visible()
    assert shown.get("/v1/status")["sightings"] == seen + 1


def test_of_two_answers_of_the_slider_the_later_question_counts(at):
    first = []

    def slowly(route):
        if not first:
            first.append(route)
        else:
            told = [{"cut": 0.0, "categories": 5, "discovered": 2, "sightings": 9}]
            route.fulfill(body=json.dumps(told), content_type="application/json")

    with at("#/stream") as page:
        page.route("**/v1/what-if?*", slowly)
        page.locator("#cut").focus()
        page.keyboard.press("Home")
        expect(page.locator("#would")).to_contain_text("Replaying")
        page.wait_for_timeout(300)
        page.keyboard.press("End")
        expect(page.locator("#would")).to_contain_text("there would be 5 categories")
        late = [{"cut": 0.0, "categories": 99, "discovered": 96, "sightings": 9}]
        first[0].fulfill(body=json.dumps(late), content_type="application/json")
        page.wait_for_timeout(300)
        expect(page.locator("#would")).to_contain_text("there would be 5 categories")


def test_what_someone_else_decides_leaves_the_queue_and_what_comes_joins_it(at, shown, borderline):
    def queue() -> list[dict]:
        return shown.get("/v1/doubt", limit=500)["items"]

    with at("#/doubt") as page:
        for item in queue():
            shown.client.post("/v1/move", json={"sightings": [item["number"]], "category": 0}).raise_for_status()
        expect(page.get_by_text("Nothing is in doubt")).to_be_visible()
        shown.observe(borderline(70)).raise_for_status()
        expect(page.locator(".heading")).to_contain_text("1 image to decide")
        expect(page.locator(".asked")).to_be_visible()
        (item,) = queue()
        shown.client.post("/v1/move", json={"sightings": [item["number"]], "category": 0}).raise_for_status()
        expect(page.get_by_text("Nothing is in doubt")).to_be_visible()


def test_a_long_stream_does_not_fill_the_page_and_leaves_no_gap(at, shown):
    newest = shown.get("/v1/sightings", limit=50)["items"]
    with at("#/stream") as page:
        with page.expect_response("**/v1/sightings?*"):
            page.evaluate(BURST, 700)
        expect(page.locator(".feed li")).to_have_count(len(newest))
        sources = page.locator(".feed img").evaluate_all("all => all.map(one => one.getAttribute('src'))")
        assert sources == [f"v1/sightings/{one['number']}/thumbnail?size=160" for one in newest]
