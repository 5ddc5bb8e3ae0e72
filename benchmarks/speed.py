"""The speed table of docs/results.md.

    python benchmarks/speed.py [--again]

Runs `newfound bench speed` on an otherwise idle machine (once: the result is kept in benchmarks/results/speed.json;
`--again` measures anew) and writes the table.
"""

from __future__ import annotations

import json
import subprocess
import sys

from publish import RESULTS, ROOT, put

from newfound.benchmarks.table1 import commit

STORE = RESULTS / "speed.json"


def main() -> None:
    if "--again" in sys.argv or not STORE.exists():
        command = [sys.executable, "-m", "newfound", "bench", "speed", "--json"]
        rows = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        STORE.write_text(json.dumps({"commit": commit(), "rows": rows}, indent=1) + "\n")
    stored = json.loads(STORE.read_text())
    lines = ["| stage | ours | baseline | ratio (range) | target | what |", "|---|---|---|---|---|---|"]
    for row in stored["rows"]:
        ours, baseline = (f"{row[side]:,.1f} {row['unit']}" for side in ("ours", "baseline"))
        spread = f"{row['ratio']:.2f} ({row['low']:.2f} to {row['high']:.2f})"
        lines.append(f"| {row['stage']} | {ours} | {baseline} | {spread} | {row['target']} | {row['detail']} |")
    lines += ["", f"2 threads of a shared machine; commit {stored['commit']}; `python benchmarks/speed.py --again`."]
    put(ROOT / "docs" / "results.md", "\n".join(lines), "speed table")


if __name__ == "__main__":
    main()
