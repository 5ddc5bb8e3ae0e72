"""The first table of docs/results.md: LTC, its presets and its controls on Oxford Pets, as anybody can run them.

    python benchmarks/pets.py PETS_FOLDER

Runs `newfound split`, `train` and `evaluate` for each row, keeps one JSON file a row under benchmarks/results/pets
(rows that are there are not run again: an interrupted table goes on), and writes the table into docs/results.md and
README.md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "pets"
ROWS = {  # name in the table: arguments of `newfound train`
    "frozen backbone": ["--method", "frozen", "--short"],
    "closed set (control)": ["--method", "closed", "--short"],
    "baseline (Eq. 3)": ["--method", "baseline", "--short"],
    "LTC, `paper` (short)": ["--method", "ltc", "--preset", "paper", "--short"],
    "LTC, `released` (short)": ["--method", "ltc", "--preset", "released", "--short"],
    "LTC, `default` (short)": ["--method", "ltc", "--preset", "default", "--short"],
}
README_ROWS = ("frozen backbone", "closed set (control)", "LTC, `paper` (short)", "LTC, `default` (short)")
KEPT = ("orders", "seed", "mean", "std", "scores")  # of what `newfound evaluate --out` writes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", help="the folder of class folders of Oxford Pets")
    data = parser.parse_args().data
    RESULTS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        newfound("split", data, "--out", work, "--protocol", "pets", "--seed", "0")
        for name, arguments in ROWS.items():
            path = RESULTS / f"{slug(name)}.json"
            if not path.exists():
                path.write_text(json.dumps(measure(arguments, Path(work)), indent=1) + "\n")
                print(f"{name}: done", file=sys.stderr)
    results = {name: json.loads((RESULTS / f"{slug(name)}.json").read_text()) for name in ROWS}
    put(ROOT / "docs" / "results.md", table(results, list(ROWS)))
    put(ROOT / "README.md", table(results, README_ROWS))


def measure(arguments: list[str], work: Path) -> dict:
    run, out = work / "run", work / "out.json"
    start = time.time()
    newfound("train", str(work / "labelled.csv"), "--out", str(run), "--seed", "0", "--overwrite", *arguments)
    trained = time.time()
    newfound("evaluate", str(run), str(work / "stream.csv"), "--orders", "3", "--seed", "0", "--out", str(out))
    config = json.loads((run / "config.json").read_text())
    command = f"newfound train split/labelled.csv --out run --seed 0 {' '.join(arguments)}"
    return {
        "train": command,
        "evaluate": "newfound evaluate run split/stream.csv --orders 3 --seed 0",
        "commit": git("rev-parse", "--short", "HEAD"),
        "backbone": config["backbone"]["name"],
        "threshold": config["threshold"],
        "seconds_to_train": round(trained - start),
        "result": {key: value for key, value in json.loads(out.read_text()).items() if key in KEPT},
    }


def table(results: dict[str, dict], names) -> str:
    lines = [
        "| | Strict All / Old / New | Greedy All / Old / New | Named All / Old / New | categories (37) |",
        "|---|---|---|---|---|",
    ]
    for name in names:
        mean, std = results[name]["result"]["mean"], results[name]["result"]["std"]
        cells = [
            " / ".join(f"{100 * mean[p][kind]:.1f}" for kind in ("all", "old", "new"))
            + f" (± {100 * std[p]['all']:.1f})"
            for p in ("strict", "greedy", "named")
        ]
        lines.append(f"| {name} | {' | '.join(cells)} | {mean['categories']:.0f} |")
    commits = sorted({results[name]["commit"] for name in names})
    lines += [
        "",
        "Oxford Pets, 19 known classes of 37, 942 labelled and 2,738 streamed images; backbone "
        "`tf_efficientnet_lite0`; seed 0; mean (± spread of All) over 3 random stream orders; commit "
        f"{', '.join(commits)}; `python benchmarks/pets.py PETS_FOLDER`. The backbone was trained on ImageNet's "
        "labels, which include many of these breeds.",
    ]
    return "\n".join(lines)


def put(path: Path, text: str, name: str = "pets table") -> None:
    """Replace what stands between the markers of the file."""
    start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, _, rest = path.read_text().partition(start)
    _, _, after = rest.partition(end)
    path.write_text(f"{before}{start}\n{text}\n{end}{after}")


def newfound(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "newfound", *arguments], check=True, stdout=subprocess.DEVNULL)


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def slug(name: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in name.lower()).strip("-").replace("--", "-")


if __name__ == "__main__":
    main()
