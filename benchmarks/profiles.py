"""Where the time of training and of discovery goes: the profiles in docs/performance.md.

    python benchmarks/profiles.py

Trains LTC on scikit-learn's digits from cached tokens under PyTorch's profiler, then discovers them as a folder of
PNG files, with a journal in a file, under Python's. The tables count each function's own time.
"""

from __future__ import annotations

import cProfile
import pstats
import tempfile
from pathlib import Path

import torch
from PIL import Image
from publish import ROOT, put

import newfound as nf
from newfound.benchmarks.cells import commit
from newfound.benchmarks.tables import plain_markdown
from newfound.benchmarks.training_speed import digits

PAGE = ROOT / "docs" / "performance.md"
SHOWN = 12


def main() -> None:
    torch.set_num_threads(2)
    labelled, stream = digits(256)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        settings = {"short": True, "epochs": 4, "views": 4, "cache": path / "cache"}
        nf.fit(labelled, out=path / "warm", **settings)  # fills the cache, so that it is not what is profiled
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
            run = nf.fit(labelled, out=path / "run", **settings)
        put(PAGE, _training_table(profiler), "profile of training")
        incoming = path / "incoming"
        incoming.mkdir()
        for number, item in enumerate(stream.items):
            Image.fromarray(item).resize((256, 256)).save(incoming / f"{number:04}.png")
        discoverer = run.discoverer(path / "journal.db")
        profile = cProfile.Profile()
        profile.enable()
        discoverer.observe(incoming)
        profile.disable()
        discoverer.close()
        put(PAGE, _discovery_table(profile), "profile of discovery")


def _training_table(profiler: torch.profiler.profile) -> str:
    averages = sorted(profiler.key_averages(), key=lambda event: -event.self_cpu_time_total)
    total = sum(event.self_cpu_time_total for event in averages)
    rows = [("operator", "share of the time", "calls")]
    rows += [(f"`{e.key}`", f"{100 * e.self_cpu_time_total / total:.1f} %", f"{e.count:,}") for e in averages[:SHOWN]]
    return f"{plain_markdown(rows)}\n256 digits, 4 epochs from cached tokens, rehearsal included; commit {commit()}."


def _discovery_table(profile: cProfile.Profile) -> str:
    stats = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    total = sum(own for _, _, own, _, _ in stats.values())
    rows = [("function", "share of the time", "calls")]
    for (file, _, name), (_, calls, own, _, _) in sorted(stats.items(), key=lambda item: -item[1][2])[:SHOWN]:
        place = "" if file == "~" else "/".join(Path(file).parts[-2:]) + ": "
        rows.append((f"`{place}{name}`", f"{100 * own / total:.1f} %", f"{calls:,}"))
    return f"{plain_markdown(rows)}\n300 PNG files of 256 x 256 pixels, the main thread; commit {commit()}."


if __name__ == "__main__":
    main()
