"""What `newfound bench speed --out` keeps: every row with its commit, so that a regression shows.

One JSON line a measurement, appended and never changed. A stage is slower or faster than before only if the ranges of
the two ratios over their repeats do not touch, and both were measured on the same kind of processor.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from newfound.benchmarks._timing import SpeedRow
from newfound.benchmarks.cells import commit
from newfound.benchmarks.store import read_lines
from newfound.benchmarks.tables import plain_markdown
from newfound.errors import DataError

FILE = "speed.jsonl"
Kept = dict[str, Any]


class SpeedHistory:
    """The measurements kept under a folder, oldest first."""

    def __init__(self, folder: str | os.PathLike) -> None:
        self.path = Path(folder) / FILE

    def latest(self) -> dict[str, Kept]:
        """The newest measurement of every stage."""
        return {kept["stage"]: kept for kept in read_lines(self.path, "stage")}

    def before(self) -> dict[str, Kept]:
        """What to compare with here: the newest of every stage on this kind of processor; if there is none, on any."""
        here = (kept for kept in read_lines(self.path, "stage") if _processor_of(kept) == _processor())
        return self.latest() | {kept["stage"]: kept for kept in here}

    def keep(self, row: SpeedRow) -> Kept:
        """Append a row with the commit, the time and the machine. Raises DataError if it cannot be written."""
        kept = row.as_dict() | {"commit": commit(), "time": time.strftime("%Y-%m-%d"), "machine": machine()}
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(kept, sort_keys=True) + "\n")
        except OSError as error:
            raise DataError(f"cannot write {self.path}: {error.strerror}") from error
        return kept


def verdict(row: SpeedRow, before: Kept | None) -> str:
    """How a row compares with the one kept before: slower, faster, as before, not at all, or "" without one."""
    if before is None:
        return ""
    if _processor_of(before) != _processor():
        return f"{before['ratio']:.2f} on {_processor_of(before)} at {before['commit']}"
    if row.low <= before["high"] and before["low"] <= row.high:
        return "as before"
    faster = (row.ratio > before["ratio"]) is not row.lower_is_better
    return f"{'faster' if faster else 'slower'} than at {before['commit']} ({before['ratio']:.2f})"


def table(kept: Iterable[Kept]) -> str:
    """The measurements as a Markdown table."""
    rows = [("stage", "ratio (range)", "to reach", "ours", "baseline", "what", "processor", "commit")]
    for one in kept:
        ours, baseline = (f"{one[side]:,.4g} {one['unit']}" for side in ("ours", "baseline"))
        ratio = f"{one['ratio']:.2f} ({one['low']:.2f} to {one['high']:.2f})"
        where = _processor_of(one)
        rows.append((one["stage"], ratio, one["target"], ours, baseline, one["detail"], where, one["commit"]))
    return plain_markdown(rows)


def _processor_of(kept: Kept) -> str:
    """What kind of processor measured a row; "not kept" of the oldest ones."""
    return str(kept.get("machine", "not kept")).partition(",")[0]


def machine() -> str:
    """The processor and what multiplies on it, in a few words."""
    import torch

    return f"{_processor()}, {os.cpu_count()} cores, torch {torch.__version__}, {torch.get_num_threads()} threads"


def _processor() -> str:
    model = platform.processor() or platform.machine()
    with suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        model = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return model.replace(",", "")
