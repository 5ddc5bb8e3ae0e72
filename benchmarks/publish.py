"""What the scripts here share: where the documents are, and how a table gets into one."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"


def put(path: Path, text: str, name: str) -> None:
    """Replace what stands between the markers of a document."""
    start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, found, rest = path.read_text(encoding="utf-8").partition(start)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise SystemExit(f"{path} has no {start} ... {end}")
    path.write_text(f"{before}{start}\n{text}\n{end}{after}", encoding="utf-8")
