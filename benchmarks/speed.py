"""The speed table of docs/results.md.

    python benchmarks/speed.py [--again]

Runs `newfound bench speed` on an otherwise idle machine for every stage that benchmarks/results/speed.json does not
have yet (`--again`: for all of them) and writes the table. Each row keeps the commit that it was measured at.
"""

from __future__ import annotations

import json
import subprocess
import sys

from publish import RESULTS, ROOT, put

from newfound.benchmarks.cells import commit
from newfound.benchmarks.speed import STAGES

STORE = RESULTS / "speed.json"


def main() -> None:
    rows = {} if "--again" in sys.argv or not STORE.exists() else json.loads(STORE.read_text())
    for stage in STAGES:
        if stage not in rows:
            command = [sys.executable, "-m", "newfound", "bench", "speed", "--only", stage, "--json"]
            (row,) = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
            rows[stage] = row | {"commit": commit()}
            STORE.write_text(json.dumps(rows, indent=1) + "\n")
    lines = ["| stage | ours | baseline | ratio (range) | target | what | commit |", "|---|---|---|---|---|---|---|"]
    for stage in STAGES:
        row = rows[stage]
        ours, baseline = (f"{row[side]:,.1f} {row['unit']}" for side in ("ours", "baseline"))
        spread = f"{row['ratio']:.2f} ({row['low']:.2f} to {row['high']:.2f})"
        cells = [stage, ours, baseline, spread, row["target"], row["detail"], row["commit"]]
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "2 threads of a shared machine; `python benchmarks/speed.py`."]
    put(ROOT / "docs" / "results.md", "\n".join(lines), "speed table")


if __name__ == "__main__":
    main()
