"""The tables of docs/scaling.md.

    python benchmarks/scale.py [--again]

Runs `newfound bench scale` on an otherwise idle machine if benchmarks/results/scale.json is not there (`--again`: in
any case), simulates from what was measured, and writes the tables.
"""

from __future__ import annotations

import json
import subprocess
import sys

from publish import RESULTS, ROOT, put

from newfound.benchmarks.scale_tables import markdown

STORE = RESULTS / "scale.json"


def main() -> None:
    if "--again" in sys.argv or not STORE.exists():
        command = [sys.executable, "-m", "newfound", "bench", "scale", "--results", str(STORE)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    put(ROOT / "docs" / "scaling.md", markdown(json.loads(STORE.read_text(encoding="utf-8"))), "scale tables")


if __name__ == "__main__":
    main()
