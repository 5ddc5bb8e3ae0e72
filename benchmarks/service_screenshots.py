"""The pictures of the service's page in the docs: a gallery, a category, light and dark, wide and narrow.

    python benchmarks/service_screenshots.py

The images are drawn here: flowers whose kind tells the number of petals, their shape and their colours. The backbone
as it is learns four kinds by name; the stream has all twelve. Needs Chromium and playwright (newfound[test]).
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
from PIL import Image
from playwright.sync_api import Browser, sync_playwright
from publish import ROOT

import newfound as nf
from newfound.service.core import Service
from newfound.service.server import in_a_thread
from newfound.service.settings import Settings

OUT = ROOT / "docs" / "images"
NAMES = ("daisy", "poppy", "aster", "cosmos")  # what is taught
GIVEN = ("bright stars", "pink wheel", "blue bell")  # names that a person gives to what was discovered
KINDS, TAUGHT, SEEN = 12, 8, 11  # kinds in all; images of each that are taught, and streamed
PIXELS = 160
COLOURS = 256  # of a screenshot that is kept
ACCENTS = "['--known', '--new'].map(name => getComputedStyle(document.body).getPropertyValue(name).trim())"
SHOTS = (
    ("service-gallery-light", 1280, "light", "#/"),
    ("service-gallery-dark", 1280, "dark", "#/"),
    ("service-category-light", 1280, "light", None),
    ("service-gallery-phone", 390, "dark", "#/"),
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
    """Observe all kinds, mixed, and name some; returns the category to show."""
    order = np.random.default_rng(1).permutation([(kind, n) for kind in range(KINDS) for n in range(SEEN)])
    for some in np.array_split(order, 6):
        files = [("images", (f"{kind}-{n}.png", _png(flower(kind, n)), "image/png")) for kind, n in some.tolist()]
        client.post("/v1/observe", files=files).raise_for_status()
    found = client.get("/v1/categories", params={"origin": "discovered", "sort": "size"}).json()["items"]
    for category, name in zip(found, GIVEN, strict=False):
        client.patch(f"/v1/categories/{category['id']}", json={"name": name}).raise_for_status()
    return found[0]["id"]


def _png(pixels: np.ndarray) -> bytes:
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    return out.getvalue()


def shoot(browser: Browser, url: str, name: str, width: int, scheme: str, place: str) -> Path:
    """A screenshot of a view, with few enough colours to be small."""
    size = {"width": width, "height": 844 if width < 600 else 800}
    page = browser.new_page(viewport=size, color_scheme="dark" if scheme == "dark" else "light")
    page.goto(f"{url}/{place}")
    page.locator("main img").first.wait_for()
    if "category" in place:
        for at in (1, 2, 4):
            page.locator(".grid li").nth(at).click()
        page.evaluate("scrollTo(0, 0)")
    page.wait_for_timeout(3000)  # for the pictures
    shot = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    accents = page.evaluate(ACCENTS)
    page.close()
    path = OUT / f"{name}.png"
    _with_few_colours(shot, accents).save(path, optimize=True)
    return path


def _with_few_colours(shot: Image.Image, accents: list[str]) -> Image.Image:
    """The picture with a palette in which small things keep their colours: they are shown to it on broad bands."""
    band = shot.height // 16
    shown = Image.new("RGB", (shot.width, shot.height + band * len(accents)))
    shown.paste(shot)
    for at, colour in enumerate(accents):
        shown.paste(colour, (0, shot.height + band * at, shot.width, shot.height + band * (at + 1)))
    return shot.quantize(palette=shown.quantize(COLOURS), dither=Image.Dither.NONE)


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as url:
        with httpx.Client(base_url=url, headers={"X-Newfound": "1"}, timeout=300) as client:
            category = fill(client)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            for name, width, scheme, place in SHOTS:
                path = shoot(browser, url, name, width, scheme, place or f"#/category/{category}")
                print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1000:.0f} kB")
            browser.close()


if __name__ == "__main__":
    main()
