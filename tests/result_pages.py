"""Folders of results made by hand."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from hand_made_results import result

from newfound.benchmarks.running import Record
from newfound.benchmarks.store import FILE
from newfound.benchmarks.studies import CLIP, Choice

HERE = "pets-tf_efficientnet_lite0-short"
PETS = result([0.5])["data"]
THEIRS = {"backbone": CLIP, "preset": "paper"}  # LTC as the paper has it; Strict All on Pets is 58.9 there


def record(out: Path, lines: dict[str, list[dict]], study: str = "table1", *, folder: str = HERE, **more) -> Path:
    """A study whose lines have these results, as if it had been run into `out`; returns `out`."""
    keys: dict[str, list[str]] = {}
    with (out / FILE).open("a") as store:
        for name, results in lines.items():
            keys[name] = [f"{folder} {study} {name} {i}" for i in range(len(results))]
            store.writelines(json.dumps(r | {"key": k}) + "\n" for k, r in zip(keys[name], results, strict=True))
    (out / folder).mkdir(exist_ok=True)
    kept = Record(study, more.pop("choice", Choice()), keys, more.pop("missing", {}), more.pop("figures", {}))
    (out / folder / f"{study}.json").write_text(json.dumps(dataclasses.asdict(kept)))
    return out
