"""Table 1 of the paper: every method on the same data, backbone, training loop and stream orders, over several seeds.

One row of the table is a method with its preset; one result is a row at one seed, kept as a JSON file of its own, so
that an interrupted table goes on and every figure can be traced to what made it. The stream selects nothing: not the
epoch, not the threshold, not the seed.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import newfound
from newfound.backbone import DEFAULT
from newfound.benchmarks.data import protocol_split
from newfound.datasets import LabelledImages, item_name
from newfound.errors import DataError, SettingsError, WeightsError
from newfound.fitting import fit
from newfound.progress import Reporter
from newfound.weights import RANDOM

KEPT = ("orders", "seed", "mean", "std", "scores")  # of an evaluation's result


@dataclass(frozen=True)
class Row:
    """A line of the table: what it is called, and how to train it."""

    name: str
    method: str
    preset: str = "default"
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def slug(self) -> str:
        extra = [f"{key}-{value}" for key, value in self.settings.items()]
        return "-".join([self.method, self.preset, *extra]).replace("/", "-")

    def command(self, seed: int, bench: Bench) -> str:
        """What trains the same by hand."""
        extra = "".join(f" --set {key}={value}" for key, value in self.settings.items())
        extra = f" --weights {Path(bench.weights).name}{extra}" if bench.weights else extra
        form = "--short" if bench.short else "--full"
        return (
            f"newfound train labelled.csv --out RUN --method {self.method} --preset {self.preset} {form} "
            f"--backbone {bench.backbone} --seed {seed}{extra}"
        )


ROWS = (
    Row("closed set (control)", "closed"),
    Row("frozen backbone (control)", "frozen"),
    Row("SLC", "slc"),
    Row("MLDG", "mldg"),
    Row("RankStat", "rankstat"),
    Row("WTA", "wta"),
    Row("SMILE", "smile"),
    Row("PHE", "phe"),
    Row("DiffGRE on SMILE", "diffgre-smile"),
    Row("DiffGRE on PHE", "diffgre-phe"),
    Row("DiffGRE on SMILE, mixup for diffusion", "diffgre-smile", settings={"creator": "mixup"}),
    Row("DiffGRE on PHE, mixup for diffusion", "diffgre-phe", settings={"creator": "mixup"}),
    Row("LTC baseline (Eq. 3)", "baseline"),
    Row("LTC, `paper`", "ltc", "paper"),
    Row("LTC, `released`", "ltc", "released"),
    Row("LTC, `default`", "ltc"),
)


@dataclass(frozen=True)
class Bench:
    """What all results of a table have in common.

    Args:
        protocol: the benchmark whose data and official known classes are taken.
        data: its folder, in its official layout or with one folder a class; None looks for it in NEWFOUND_DATA.
        class_seed: another draw of the known classes instead, to choose settings on; None for the official ones.
        orders: random stream orders for each result.
        short: the presets' form for small machines.
        weights: a local file for the backbone, if its own cannot be had.
        check: whether sizes that are not the data set's are an error.
    """

    protocol: str
    data: str | None = None
    backbone: str = DEFAULT
    class_seed: int | None = None
    orders: int = 3
    short: bool = True
    weights: str | None = None
    check: bool = True

    @property
    def source(self) -> str:
        """What results say of the weights: a hash tells files of the same name apart."""
        if self.weights is None or self.weights == RANDOM:
            return self.weights or "pretrained"
        digest = hashlib.blake2b(Path(self.weights).read_bytes(), digest_size=8).hexdigest()
        return f"{Path(self.weights).name} ({digest})"

    def split(self) -> tuple[LabelledImages, LabelledImages]:
        """The labelled set and the stream: the same for every method and seed."""
        return protocol_split(self.protocol, self.data, self.class_seed, check=self.check)

    def about(self, labelled: LabelledImages, stream: LabelledImages) -> dict[str, Any]:
        """What a result says of its data and how it was asked; equal for all results of a table."""
        names = [Path(item_name(item, position)).name for position, item in enumerate(stream.items)]
        listed = "\n".join(f"{name}:{label}" for name, label in zip(names, stream.labels, strict=True))
        return {
            "protocol": self.protocol, "class_seed": self.class_seed, "labelled": len(labelled), "stream": len(stream),
            "known": len(labelled.classes), "classes": len(set(labelled.classes) | set(stream.classes)),
            "hash": hashlib.blake2b(listed.encode(), digest_size=8).hexdigest(),
        }  # fmt: skip

    def folder(self, out: str | os.PathLike) -> Path:
        classes = "official" if self.class_seed is None else f"class-seed-{self.class_seed}"
        return Path(out) / self.protocol / classes / (self.backbone + ("-short" if self.short else ""))


def run_table1(
    bench: Bench,
    out: str | os.PathLike,
    *,
    seeds: Iterable[int] = (0, 1, 2),
    methods: Sequence[str] | None = None,
    reporter: Reporter | None = None,
) -> tuple[dict[str, list[dict[str, Any]]], dict[str, str]]:
    """Train and score what is not there yet; seed after seed, so that an interrupted table compares all methods.

    Args:
        out: where results are kept.
        methods: only the rows of these methods; None for all.

    Returns:
        The results of every row by name, in the table's order, and why rows could not be run.

    Raises:
        SettingsError: a method that no row has, or no seed.
        WeightsError: there is no such weight file.
        DataError: the data is not this benchmark's, `out` cannot be written, or it holds results of other data.
    """
    rows = _chosen(methods)
    if bench.weights not in (None, RANDOM) and not Path(bench.weights).is_file():
        raise WeightsError(f"there is no weight file {bench.weights}.")
    seeds = sorted(set(seeds))
    if not seeds or seeds[0] < 0:
        raise SettingsError(f"seeds={seeds}: give at least one, from 0 up.")
    reporter = reporter or Reporter()
    folder = bench.folder(out)
    _check_writable(folder)
    split = bench.split()
    about = bench.about(*split)
    results: dict[str, list[dict[str, Any]]] = {row.name: [] for row in rows}
    missing: dict[str, str] = {}
    for seed in seeds:
        for row in rows:
            path = folder / f"{row.slug}-seed{seed}.json"
            if not path.is_file() and row.name not in missing:
                reporter.say(f"{row.name}, seed {seed}")
                try:
                    _write(path, _measure(row, seed, bench, split, reporter) | {"data": about})
                except WeightsError as error:
                    missing[row.name] = str(error)
                    reporter.say(f"{row.name} is left out: {error}")
            if path.is_file():
                results[row.name].append(_read(path, bench, about))
    return {name: found for name, found in results.items() if found}, missing


def _chosen(methods: Sequence[str] | None) -> list[Row]:
    unknown = set(methods or ()) - {row.method for row in ROWS}
    if unknown:
        names = dict.fromkeys(row.method for row in ROWS)
        raise SettingsError(f"no row has the method {', '.join(sorted(unknown))}; choose from {', '.join(names)}.")
    return [row for row in ROWS if methods is None or row.method in methods]


def _measure(
    row: Row, seed: int, bench: Bench, split: tuple[LabelledImages, LabelledImages], reporter: Reporter
) -> dict[str, Any]:
    labelled, stream = split
    start = time.perf_counter()
    run = fit(
        labelled, method=row.method, preset=row.preset, short=bench.short, backbone=bench.backbone,
        weights=bench.weights, seed=seed, reporter=reporter, **row.settings,
    )  # fmt: skip
    trained = time.perf_counter()
    result = run.evaluate(stream, orders=bench.orders, seed=0, reporter=reporter).as_dict()
    return {
        "name": row.name,
        "method": row.method,
        "preset": run.config["preset"],
        "settings": row.settings,
        "seed": seed,
        "command": row.command(seed, bench),
        "backbone": bench.backbone,
        "weights": bench.source,
        "threshold": run.config["threshold"],
        "share": run.config["share"],
        "commit": commit(),
        "newfound": newfound.__version__,
        "seconds": {"train": round(trained - start, 1), "evaluate": round(time.perf_counter() - trained, 1)},
        "result": {key: value for key, value in result.items() if key in KEPT},
    }


def commit() -> str:
    """The commit of the source this runs from, with a plus if files differ from it; "unknown" outside a checkout."""

    def git(*arguments: str) -> str:
        here = Path(__file__).resolve().parent
        return subprocess.run(["git", *arguments], cwd=here, check=True, capture_output=True, text=True).stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no", "--", ".")
        return git("rev-parse", "--short", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _check_writable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".probe"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise DataError(f"results cannot be written to {folder}: {error.strerror}.") from error


def _write(path: Path, value: dict[str, Any]) -> None:
    try:
        part = path.with_suffix(".part")
        part.write_text(json.dumps(value, indent=1, allow_nan=False) + "\n", encoding="utf-8")
        os.replace(part, path)
    except OSError as error:
        raise DataError(f"the result cannot be written to {path}: {error.strerror}.") from error


def _read(path: Path, bench: Bench, about: dict[str, Any]) -> dict[str, Any]:
    """A stored result. Raises DataError if it is damaged, or of other data, weights or orders than asked for."""
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        found = stored["data"] | {"weights": stored.get("weights"), "orders": stored["result"]["orders"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"the result {path} cannot be read ({error}); remove it to measure it again.") from error
    asked = about | {"weights": bench.source, "orders": bench.orders}
    # A result of an earlier version may say less of itself.
    told = {key: value for key, value in found.items() if key in asked and (value is not None or key == "class_seed")}
    differing = [f"{key} {value} instead of {asked[key]}" for key, value in told.items() if value != asked[key]]
    if differing:
        raise DataError(
            f"the result {path} is of {', '.join(differing)}: choose another folder, or remove it to measure it again."
        )
    return stored
