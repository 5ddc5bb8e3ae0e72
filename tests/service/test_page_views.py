"""The page in a real Chromium: the slider, the map by keyboard, what is ignored and taught, and a busy service."""

from __future__ import annotations

import pytest
from browsing import drop, expect, findings, needs_chromium, visit

pytestmark = needs_chromium


@pytest.fixture
def found(shown) -> dict:
    """The newest category that was discovered."""
    return shown.get("/v1/categories", origin="discovered", sort="newest")["items"][0]


@pytest.mark.parametrize("key", ["Home", "End"])
def test_the_slider_tells_what_another_cut_would_have_found(at, shown, key):
    with at("#/stream") as page:
        page.locator("#cut").focus()
        page.keyboard.press(key)
        cut = page.locator("#cut").evaluate("slider => slider.valueAsNumber")
        (told,) = shown.get("/v1/what-if", cut=cut)
        noun = "category" if told["categories"] == 1 else "categories"
        expect(page.locator("#would")).to_contain_text(f"there would be {told['categories']} {noun}")
        expect(page.locator("#would")).to_contain_text(f"{told['discovered']} of them discovered")


def test_the_finer_map_takes_the_place_of_the_plain_one_when_it_is_ready(at):
    with at("#/map") as page:
        status = page.get_by_role("status").first
        expect(status).to_contain_text("points")
        plain = status.inner_text()
        with page.expect_response(lambda answer: "method=tsne" in answer.url and answer.status == 200) as ready:
            page.get_by_text("t-SNE", exact=True).click()
        assert ready.value.json()["method"] == "tsne"
        expect(status).to_have_text(plain)  # the same points, elsewhere


def test_the_map_is_walked_chosen_from_and_left_by_keyboard(at):
    with at("#/map") as page:
        expect(page.get_by_role("status").first).to_contain_text("points")
        page.locator("canvas").focus()
        page.keyboard.press("ArrowRight")
        expect(page.locator(".tip")).to_be_visible()
        for key in ("ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp") * 15:
            if "image in" in page.locator("#said").inner_text():
                break
            page.keyboard.press(key)
            page.wait_for_timeout(50)  # what is said is put on the page a moment later
        expect(page.locator("#said")).to_contain_text("image in")
        page.keyboard.press("Space")
        expect(page.locator(".selected")).to_contain_text("1 image selected")
        page.keyboard.press("Space")
        expect(page.locator(".selected")).to_be_hidden()
        name = page.locator(".tip b").inner_text()
        page.keyboard.press("Enter")
        page.wait_for_url("**/category/*")
        expect(page.locator("h1")).to_have_text(name)


def test_what_is_ignored_leaves_the_gallery_until_it_is_not(at, shown, found):
    with at(f"#/category/{found['id']}") as page:
        page.get_by_role("button", name="Ignore").click()
        expect(page.get_by_role("button", name="Stop ignoring")).to_be_visible()
        assert shown.get(f"/v1/categories/{found['id']}")["ignored"]
        visit(page, "#/")
        expect(page.locator(".card h2", has_text=found["name"])).to_have_count(0)
        visit(page, f"#/category/{found['id']}")
        page.keyboard.press("i")
        expect(page.get_by_role("button", name="Ignore", exact=True)).to_be_visible()
        visit(page, "#/")
        expect(page.locator(".card h2", has_text=found["name"])).to_have_count(1)


def test_a_category_with_a_name_is_marked_to_be_taught_and_no_longer(at, shown, found):
    with at(f"#/category/{found['id']}") as page:
        page.keyboard.press("p")
        expect(page.locator(".toast.error")).to_contain_text("rename it first")
        shown.client.patch(f"/v1/categories/{found['id']}", json={"name": "stripes"}).raise_for_status()
        page.keyboard.press("p")
        expect(page.get_by_role("button", name="Do not teach")).to_be_visible()
        assert shown.get(f"/v1/categories/{found['id']}")["promoted"]
        page.get_by_role("button", name="Do not teach").click()
        expect(page.get_by_role("button", name="Teach next time")).to_be_visible()
        assert not shown.get(f"/v1/categories/{found['id']}")["promoted"]


def test_what_a_busy_service_sends_away_is_sent_again_and_goes_in_once(at, shown, png):
    keys = []

    def busy_at_first(route):
        keys.append(route.request.headers["idempotency-key"])
        if len(keys) > 1:
            route.continue_()
            return
        route.fulfill(
            status=429, headers={"Retry-After": "1"}, content_type="application/json", body='{"error": "come again"}'
        )

    seen = shown.get("/v1/status")["sightings"]
    with at() as page:
        page.route("**/v1/observe", busy_at_first)
        drop(page, {"late.png": png(0, 70)})
        expect(page.locator(".toast", has_text="1 image: nothing new.")).to_be_visible()
        expect(page.locator(".toast.error")).to_have_count(0)
    assert len(keys) == 2
    assert keys[0] == keys[1]
    assert shown.get("/v1/status")["sightings"] == seen + 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_where_there_is_something_to_decide(at, shown, borderline, scheme):
    shown.observe(borderline(60 if scheme == "light" else 61)).raise_for_status()
    with at("#/doubt", scheme=scheme) as page:
        expect(page.locator(".candidate").first).to_be_visible()
        assert findings(page) == []
