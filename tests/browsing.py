"""A real Chromium for tests of the page: contexts that notice errors, files dropped on a page, axe."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

CHROMIUM = shutil.which("chromium")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed (apt-get install chromium)")
PATIENCE = 90_000  # milliseconds: the machine may be very busy
_DROP = """files => {
  const carried = new DataTransfer();
  for (const [name, data] of files) {
    const bytes = Uint8Array.from(atob(data), letter => letter.charCodeAt(0));
    carried.items.add(new File([bytes], name, {type: "image/png"}));
  }
  for (const type of ["dragenter", "dragover", "drop"]) {
    document.body.dispatchEvent(new DragEvent(type, {dataTransfer: carried, bubbles: true, cancelable: true}));
  }
}"""


@contextmanager
def chromium() -> Iterator:
    """A browser; skips the test where playwright is not installed."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (newfound[test])")
    api.expect.set_options(timeout=PATIENCE)
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def tab(browser, url: str, *, width: int = 1280, scheme: str = "light", **options) -> Iterator:
    """A page of its own; an error in its scripts, or one that its security policy reports, fails the test."""
    size = {"width": width, "height": 844 if width < 600 else 800}
    context = browser.new_context(base_url=url, viewport=size, color_scheme=scheme, **options)
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda told: errors.append(told.text) if "Content Security Policy" in told.text else None)
    try:
        yield page
    finally:
        context.close()
    assert errors == []


def expect(found):
    """Playwright's assertions, which wait until they hold; imported late, as playwright may not be installed."""
    from playwright.sync_api import expect

    return expect(found)


def visit(page, place: str) -> None:
    """Go to a view and wait until it is there and has loaded its lists."""
    if not page.url.endswith(place):  # the same address again would load nothing
        page.evaluate("document.querySelector('main h1')?.setAttribute('data-left', '')")
        page.goto(f"/{place}")
    page.locator("main h1:not([data-left])").wait_for()
    page.locator("main [aria-busy]").wait_for(state="detached")


def type_name(page, name: str) -> None:
    """Name the category that is shown, by keyboard."""
    page.keyboard.press("r")
    page.get_by_label("Name of the category").fill(name)
    page.keyboard.press("Enter")


def renamed(shown, category: int, name: str) -> None:
    """Someone else gives a category a name."""
    shown.client.patch(f"/v1/categories/{category}", json={"name": name}).raise_for_status()


def ask_in_vain(page) -> None:
    """Ask for the stream's view while the service does not answer, until the page says so; then it does again."""
    page.route("**/v1/status", lambda route: route.abort())
    page.goto("/#/stream")
    expect(page.get_by_role("alert")).to_contain_text("cannot be reached")
    page.unroute("**/v1/status")


def wait_for_pictures(page, where: str) -> None:
    """Wait until all pictures in a part of the page are loaded."""
    script = "images => images.length > 0 && images.every(image => image.complete && image.naturalWidth > 0)"
    for _ in range(PATIENCE // 100):
        if page.locator(f"{where} img").evaluate_all(script):
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"the pictures in {where} do not load")


def drop(page, files: dict[str, bytes]) -> None:
    """Drop files, by name, on the page."""
    page.evaluate(_DROP, [[name, base64.b64encode(data).decode()] for name, data in files.items()])


def findings(page) -> list[str]:
    """What axe finds that is serious or critical, with the places."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    found = axe.Axe().run(page).response["violations"]
    return [
        f"{one['id']} ({one['impact']}): " + "; ".join(node["html"][:120] for node in one["nodes"][:3])
        for one in found
        if one["impact"] in ("serious", "critical")
    ]
