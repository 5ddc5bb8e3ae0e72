"""The table of all methods on Oxford Pets, in docs/results.md and, in short, in the README.

    python benchmarks/table1.py PETS_FOLDER [SEEDS]

Runs `newfound bench table1`, which keeps each result under benchmarks/results/table1 and measures only what is not
there yet, and writes the tables.
"""

from __future__ import annotations

import json
import subprocess
import sys

from publish import RESULTS, ROOT, put

from newfound.benchmarks import tables

COMMAND = ("bench", "table1", "--protocol", "pets", "--out", str(RESULTS / "table1"), "--json")
README_ROWS = (
    "closed set (control)", "frozen backbone (control)", "SMILE", "PHE", "LTC baseline (Eq. 3)", "LTC, `paper`",
    "LTC, `default`",
)  # fmt: skip
NOTE = (
    "`python benchmarks/table1.py PETS_FOLDER`. All rows are the presets' short form: 15 epochs on 8 cached views. "
    "`tf_efficientnet_lite0` was trained on ImageNet's labels, which include many of these breeds."
)


def main() -> None:
    data, seeds = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "0,1,2"
    command = [sys.executable, "-m", "newfound", *COMMAND, data, "--seeds", seeds]
    told = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    results = told["results"]
    missing = [f"Not run, for want of weights: {', '.join(told['missing'])}."] if told["missing"] else []
    put(ROOT / "docs" / "results.md", "\n".join([tables.markdown(results) + NOTE, *missing]), "table 1")
    some = {name: results[name] for name in README_ROWS if name in results}
    put(ROOT / "README.md", tables.markdown(some) + NOTE, "table 1")


if __name__ == "__main__":
    main()
