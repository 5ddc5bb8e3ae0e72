"""The tables of docs/performance.md.

    python benchmarks/speed.py [--again | --no-measure] [STAGE...]

Runs `newfound bench speed` on an otherwise idle machine, a process a stage, for the stages that are named, or that
benchmarks/results/speed.jsonl does not have yet (`--again`: for all), measures the machine, and writes the
tables. With `--no-measure` it only writes what is there.
Each row keeps the commit that it was measured at.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import asdict

from publish import RESULTS, ROOT, put

from newfound.benchmarks import hardware, speed_history
from newfound.benchmarks.speed import ON_REQUEST, STAGES
from newfound.benchmarks.tables import plain_markdown

PAGE = ROOT / "docs" / "performance.md"


def main() -> None:
    history = speed_history.SpeedHistory(RESULTS)
    named = [word for word in sys.argv[1:] if not word.startswith("-")]
    missing = [stage for stage in (*STAGES, *ON_REQUEST) if "--again" in sys.argv or stage not in history.latest()]
    for stage in () if "--no-measure" in sys.argv else named or missing:
        command = ["bench", "speed", "--only", stage, "--out", str(RESULTS)]
        print("newfound", *command, flush=True)
        subprocess.run([sys.executable, "-m", "newfound", *command], check=True)
    latest = history.latest()
    kept = [latest[stage] for stage in (*STAGES, *ON_REQUEST) if stage in latest]
    put(PAGE, speed_history.table(kept), "speed table")
    if "--no-measure" not in sys.argv:
        put(PAGE, _limits(), "hardware")
    if (RESULTS / "growth.md").is_file():  # of `newfound bench growth --out benchmarks/results`
        figure = "![time a sighting, by categories and by images](../benchmarks/results/growth.svg)"
        put(PAGE, f"{(RESULTS / 'growth.md').read_text(encoding='utf-8')}\n{figure}\n", "growth")


def _limits() -> str:
    """What the machine itself can do, measured now."""
    limits = [asdict(limit) for limit in hardware.measure()]
    rows = [("limit", "measured (range)", "what"), *((
        one["name"], f"{one['value']:,.4g} ({one['low']:,.4g} to {one['high']:,.4g}) {one['unit']}", one["detail"],
    ) for one in limits)]  # fmt: skip
    return f"{plain_markdown(rows)}\n{speed_history.machine()}\n"


if __name__ == "__main__":
    main()
