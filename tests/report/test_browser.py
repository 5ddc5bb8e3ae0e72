"""The report in a real Chromium: what it looks like, not what it says."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from newfound.report import render, write_report

CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed (apt-get install chromium)")
OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--force-device-scale-factor=1",
)  # fmt: skip
# The report allows no script, so a page around it looks inside and writes down what it finds.
PROBE = """<!doctype html><meta charset="utf-8"><style>iframe {{ width: {width}px; height: 900px; border: 0 }}</style>
<iframe srcdoc="{page}"></iframe><pre id="found"></pre><script>
window.pwned = false;
addEventListener("load", () => {{
  const d = document.querySelector("iframe").contentDocument;
  const small = [...d.querySelectorAll("p, td, th, figcaption, caption, li, svg text")]
    .filter(e => e.textContent.trim() && parseFloat(getComputedStyle(e).fontSize) < 11).length;
  document.querySelector("#found").textContent = JSON.stringify({{
    wide: d.documentElement.scrollWidth, scripts: d.scripts.length, pwned: window.pwned, small: small,
    images: d.images.length, broken: [...d.images].filter(i => !i.naturalWidth).length,
    charts: [...d.querySelectorAll("svg.chart")].map(s => Math.round(s.getBoundingClientRect().width)),
    styled: getComputedStyle(d.body).maxWidth,
  }});
}});
</script>"""


def chromium(tmp_path: Path, *arguments: str) -> str:
    command = [str(CHROMIUM), *OPTIONS, f"--user-data-dir={tmp_path / 'profile'}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


@pytest.mark.parametrize("width", [390, 1280])
def test_the_report_fits_its_window_and_shows_every_image(make_story, tmp_path, width):
    hostile = "</script><script>parent.pwned = true</script><img src=x onerror='parent.pwned = true'>"
    story = make_story()
    page = render(make_story(names=story.names | {3: hostile}, title="a" * 300))
    probe = tmp_path / "probe.html"
    probe.write_text(PROBE.format(width=width, page=html.escape(page)), encoding="utf-8")
    dom = chromium(tmp_path, f"--window-size={width + 40},1000", "--dump-dom", probe.as_uri())
    found = json.loads(html.unescape(re.search(r'<pre id="found">(.*?)</pre>', dom)[1]))
    assert found["wide"] == width
    assert found["images"] > 20
    assert found["broken"] == 0
    assert found["small"] == 0
    assert found["scripts"] == 0
    assert not found["pwned"]
    assert found["charts"]
    assert all(chart < width for chart in found["charts"])
    assert found["styled"] == "1216px", "the style sheet is in force"


def test_the_report_is_light_or_dark_as_the_reader_prefers(make_story, tmp_path):
    report = write_report(tmp_path / "report.html", make_story())
    brightness = {}
    for name, value in (("dark", 0), ("light", 1)):
        shot = tmp_path / f"{name}.png"
        scheme = f"--blink-settings=preferredColorScheme={value}"
        chromium(tmp_path, scheme, "--window-size=800,600", f"--screenshot={shot}", report.as_uri())
        brightness[name] = float(np.median(np.asarray(Image.open(shot).convert("L"))))
    assert brightness["dark"] < 60
    assert brightness["light"] > 200
