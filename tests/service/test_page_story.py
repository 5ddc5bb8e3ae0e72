"""The whole story in a real Chromium: images are dropped, a category slides in, people mend it, nothing is lost."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from browsing import chromium, drop, expect, needs_chromium, tab, wait_for_pictures

pytestmark = [needs_chromium, pytest.mark.slow]
KEPT = "NEWFOUND_SCREENSHOTS"  # a folder to keep the screenshots in


@pytest.fixture
def shoot(tmp_path):
    """shoot(page, name): keeps a screenshot, in the folder of the variable or beside the test's other files."""
    folder = Path(os.environ.get(KEPT, tmp_path / "screenshots"))
    folder.mkdir(parents=True, exist_ok=True)
    return lambda page, name: page.screenshot(path=folder / f"{name}.png")


def told(running) -> dict[int, tuple[str, int]]:
    """Each category by id: its name and how many images it has."""
    return {one["id"]: (one["name"], one["count"]) for one in running.get("/v1/categories", limit=500)["items"]}


def as_shown(page) -> dict[str, int]:
    """The cards: each name with its count."""
    return page.locator(".card").evaluate_all(
        "cards => Object.fromEntries(cards.map(card => [card.querySelector('h2').textContent, "
        "parseInt(card.querySelector('.count').textContent)]))"
    )


def test_dropped_images_become_categories_that_people_mend_and_nothing_is_lost(serving, tmp_path, png, shoot):
    with chromium() as browser:
        with serving(tmp_path) as running, tab(browser, running.url) as page:
            page.goto("/")
            expect(page.locator(".card")).to_have_count(3)
            expect(page.locator("#live")).to_contain_text("live")

            drop(page, {f"{kind}-{n}.png": png(kind, n) for n in range(20, 24) for kind in (0, 3, 4)})
            expect(page.locator(".cards > li.arriving")).to_have_count(2)
            expect(page.locator(".toast").last).to_contain_text("12 images: 2 new categories")
            expect(page.locator("#totals")).to_contain_text("12 images")
            shoot(page, "1-arrived")
            fresh = [one["id"] for one in running.get("/v1/categories", origin="discovered", sort="id")["items"]]
            assert [told(running)[number][1] for number in fresh] == [4, 4]

            page.locator(".arriving a").last.click()
            page.get_by_role("button", name="Rename").click()
            page.get_by_label("Name of the category").fill("diagonal stripes")
            page.get_by_role("button", name="Save").click()
            expect(page.locator("h1")).to_have_text("diagonal stripes")

            first, last = page.locator(".grid li").nth(0), page.locator(".grid li").nth(1)
            first.click()
            last.click(modifiers=["Shift"])
            page.get_by_role("button", name="Split off").click()
            expect(page.locator(".grid li")).to_have_count(2)
            shoot(page, "2-split")
            made = max(told(running))
            assert made not in fresh
            assert told(running)[made][1] == 2

            name = told(running)[made][0]
            page.get_by_role("button", name="Merge…").click()
            page.locator("dialog input").fill(name)
            page.locator("dialog [role=option]", has_text=name).click()
            expect(page.locator(".toast").last).to_contain_text("are one")
            expect(page.locator(".grid li")).to_have_count(4)
            assert made not in told(running)

            page.locator(".toast").last.get_by_role("button", name="Undo").click()
            expect(page.locator(".grid li")).to_have_count(2)
            assert told(running)[made][1] == 2

            page.locator(".grid li").first.click()
            page.get_by_role("button", name="Move…").click()
            page.locator("dialog input").fill("kind1")
            page.locator("dialog [role=option]", has_text="kind1").click()
            expect(page.locator(".grid li")).to_have_count(1)

            page.goto("/")
            page.reload()
            expect(page.locator(".card")).to_have_count(6)
            before, shown = told(running), as_shown(page)
            assert shown == dict(before.values())
            assert shown["diagonal stripes"] == 1
            assert shown["kind1"] == 1
            shoot(page, "3-reloaded")

        with serving(tmp_path) as running, tab(browser, running.url) as page:
            page.goto("/")
            expect(page.locator(".card")).to_have_count(6)
            assert told(running) == before
            assert as_shown(page) == shown
            wait_for_pictures(page, ".cards")
            shoot(page, "4-restarted")
