"""The pictures of the service's page in the docs: its views, light and dark, wide and narrow.

    python benchmarks/service_screenshots.py

The images are drawn here: flowers whose kind tells the number of petals, their shape and their colours. The backbone
as it is learns six kinds by name; the stream has all twelve. Needs Chromium and playwright (newfound[test]).
"""

from __future__ import annotations

import io
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np
from PIL import Image, ImageColor
from playwright.sync_api import Browser, Page, sync_playwright
from publish import ROOT

import newfound as nf
from newfound.service.core import Service
from newfound.service.server import in_a_thread
from newfound.service.settings import Settings

OUT = ROOT / "docs" / "images"
NAMES = ("poppy", "marigold", "buttercup", "cosmos", "hellebore", "woodruff")  # what is taught
GIVEN = {7: "bluebell", 9: "violet star", 11: "pink wheel"}  # what a person calls some kinds that were discovered
KINDS, TAUGHT, SEEN = 12, 12, 11  # kinds in all; images of each that are taught, and streamed
PIXELS = 160
COLOURS = 256  # of a screenshot that is kept
EXACT = """['--paper', '--card', '--ink', '--soft', '--rule', '--known', '--new', '--live'].map(
  name => getComputedStyle(document.body).getPropertyValue(name).trim())"""
SHOTS = (  # "category" is the last of those that were named
    ("service-gallery-light", 1280, "light", "#/"),
    ("service-gallery-dark", 1280, "dark", "#/"),
    ("service-category-light", 1280, "light", "category"),
    ("service-map-light", 1280, "light", "#/map"),
    ("service-stream-dark", 1280, "dark", "#/stream"),
    ("service-gallery-phone", 390, "dark", "#/"),
    ("service-category-phone", 390, "light", "category"),
    ("service-doubt-phone", 390, "light", "#/doubt"),
)


def flower(kind: int, number: int) -> np.ndarray:
    """A flower of a kind, a little different each time: [PIXELS, PIXELS, 3]."""
    of_kind, own = np.random.default_rng((kind, 5)), np.random.default_rng((kind, number, 6))
    petals, depth, sharp = 3 + kind % 6 + kind // 6, of_kind.uniform(0.25, 0.6), of_kind.uniform(0.6, 2.2)
    hue = kind / KINDS + own.normal(0, 0.008)
    y, x = (np.mgrid[0:PIXELS, 0:PIXELS] / PIXELS - 0.5) - own.normal(0, 0.03, (2, 1, 1))
    angle, radius = np.arctan2(y, x) + own.uniform(0, 6.3), np.hypot(x, y)
    edge = own.uniform(0.34, 0.42) * (1 - depth + depth * np.abs(np.cos(petals * angle / 2)) ** sharp)
    ground = _colour(hue + 0.42, 0.28, 0.32 + 0.25 * (kind % 3)) * (1 + 0.25 * y[..., None])
    petal = _colour(hue, 0.6, 0.9) * (0.62 + 0.38 * (radius / edge))[..., None]
    heart = _colour(hue + 0.12 + 0.3 * (kind % 2), 0.75, 0.85)
    picture = _over(_over(ground, petal, edge - radius), heart, 0.08 + 0.015 * (kind % 4) - radius)
    return np.clip(255 * picture + own.normal(0, 3, picture.shape), 0, 255).astype(np.uint8)


def _colour(hue: float, saturation: float, value: float) -> np.ndarray:
    """From hue, saturation and value to red, green and blue."""
    wheel = np.clip(np.abs((hue * 6 + np.array([0, 4, 2])) % 6 - 3) - 1, 0, 1)
    return value * (1 - saturation + saturation * wheel)


def _over(below: np.ndarray, above: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """One layer over another, with an edge that is a pixel and a half wide."""
    share = np.clip(inside * PIXELS / 1.5 + 0.5, 0, 1)[..., None]
    return share * above + (1 - share) * below


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """The service of a run that was taught some kinds; gives its address."""
    images = [flower(kind, 100 + n) for kind in range(len(NAMES)) for n in range(TAUGHT)]
    labels = [name for name in NAMES for _ in range(TAUGHT)]
    run = nf.fit((images, labels), method="frozen", image_size=112, out=folder)
    service = Service(run, folder / "journal.db", Settings())
    with in_a_thread(service) as address:
        yield address


def fill(client: httpx.Client) -> int:
    """Observe all kinds, mixed, and name some; returns the last that was named."""
    homes: dict[int, int] = {}
    order = np.random.default_rng(1).permutation([(kind, n) for kind in range(KINDS) for n in range(SEEN)])
    for some in np.array_split(order, 6):
        files = [("images", (f"{kind}-{n}.png", _png(flower(kind, n)), "image/png")) for kind, n in some.tolist()]
        answer = client.post("/v1/observe", files=files).raise_for_status()
        homes |= {int(kind): one["category"] for kind, one in zip(some[:, 0], answer.json()["sightings"], strict=True)}
    for kind, name in GIVEN.items():
        client.patch(f"/v1/categories/{homes[kind]}", json={"name": name}).raise_for_status()
    return homes[max(GIVEN)]


def _png(pixels: np.ndarray) -> bytes:
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    return out.getvalue()


def shoot(browser: Browser, url: str, name: str, width: int, scheme: str, place: str) -> Path:
    """A screenshot of a view, with few enough colours to be small."""
    phone = width < 600
    size = {"width": width, "height": 844 if phone else 800}
    dark = "dark" if scheme == "dark" else "light"
    page = browser.new_page(viewport=size, color_scheme=dark, is_mobile=phone, has_touch=phone)
    page.goto(f"{url}/{place}")
    page.locator("main :is(img, canvas)").first.wait_for()
    page.evaluate("document.documentElement.style.scrollbarGutter = 'auto'")  # there is no bar that needs it
    _use(page, place)
    page.wait_for_timeout(3000)  # for the pictures
    shot = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    exact = page.evaluate(EXACT)
    page.close()
    path = OUT / f"{name}.png"
    _with_few_colours(shot, exact).save(path, optimize=True)
    return path


def _use(page: Page, place: str) -> None:
    """Do in a view what people do there."""
    if "category" in place:
        for at in (1, 2, 4):
            page.locator(".grid li").nth(at).click()
        page.evaluate("scrollTo(0, 0)")
    elif "map" in place:
        page.wait_for_timeout(1000)
        page.locator("canvas").focus()
        page.keyboard.press("ArrowRight")
    elif "stream" in place:
        for key in ("Home", *["PageUp"] * 7):
            page.locator("#cut").press(key)
            page.wait_for_timeout(700)


def _with_few_colours(shot: Image.Image, exact: list[str]) -> Image.Image:
    """The picture with a palette that holds the page's own colours as they are."""
    colours = np.array([ImageColor.getrgb(colour) for colour in exact], np.uint8)
    free = COLOURS - len(colours)
    few = shot.quantize(free, dither=Image.Dither.NONE)
    palette = np.array(few.getpalette(), np.uint8).reshape(-1, 3)[:free]
    indices = np.array(few)
    for at, colour in enumerate(colours):
        indices[(np.asarray(shot) == colour).all(axis=-1)] = len(palette) + at
    made = Image.fromarray(indices, "P")
    made.putpalette(np.concatenate([palette, colours]).ravel().tolist())
    return made


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as url:
        with httpx.Client(base_url=url, headers={"X-Newfound": "1"}, timeout=300) as client:
            category = fill(client)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            for name, width, scheme, place in SHOTS:
                path = shoot(browser, url, name, width, scheme, place.replace("category", f"#/category/{category}"))
                print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1000:.0f} kB")
            browser.close()


if __name__ == "__main__":
    main()
