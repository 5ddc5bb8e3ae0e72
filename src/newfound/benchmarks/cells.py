"""A cell of the paper's evaluation: one method with its settings, trained at one seed on one data set, and scored.

What a cell is called in a table does not matter to it: tables and figures that need the same cell share it. The stream
selects nothing, neither the epoch nor the threshold nor the seed; oracle scores, which do, are kept apart.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shlex
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, get_args, get_type_hints

import torch

import newfound
from newfound import presets
from newfound._oddities import copies, oddities
from newfound.backbone import DEFAULT
from newfound.benchmarks.creation_time import creation_time
from newfound.benchmarks.data import own_split, protocol_split
from newfound.benchmarks.oracle import oracle
from newfound.benchmarks.store import Result
from newfound.benchmarks.studies import Variant
from newfound.datasets import LabelledImages, item_name, load_dataset
from newfound.errors import SettingsError, UnfinishedError, WeightsError
from newfound.fitting import fit
from newfound.image_size import own_size
from newfound.images import content_hash
from newfound.loading import load
from newfound.method import Settings, get_method
from newfound.progress import Reporter, Stopwatch
from newfound.run import Run
from newfound.weights import RANDOM

OWN = "own"  # the name of data that is no benchmark's


@dataclass(frozen=True)
class Setup:
    """What all cells of a table have in common: data, backbone, stream orders.

    Args:
        protocol: the benchmark whose data and official known classes are taken, or "own".
        data: its folder, in its official layout or with one folder a class; None looks for it in NEWFOUND_DATA.
        known: for data of one's own, the file that names the known classes.
        class_seed: another draw of the known classes than the official one, to choose settings on; for data of one's
            own, another draw of the labelled images.
        orders: random stream orders for each cell.
        short: the presets' form for small machines.
        weights: a local file for the backbone, if its own cannot be had.
        check: whether sizes that are not the data set's are an error.
        image_size: the input size in pixels; None for what the backbone was trained at, as in the paper.
        pipeline: of Stable Diffusion, for the cells that create with it, if the usual one cannot be had: a local folder
            or an id of the model hub.
    """

    protocol: str
    data: str | None = None
    backbone: str = DEFAULT
    class_seed: int | None = None
    orders: int = 3
    short: bool = True
    weights: str | None = None
    known: str | None = None
    check: bool = True
    image_size: int | None = None
    pipeline: str | None = None

    def __post_init__(self) -> None:
        if (self.protocol == OWN) != (self.known is not None):
            raise SettingsError("a file of known classes goes with data of one's own, and with nothing else.")
        if self.protocol == OWN and self.data is None:
            raise SettingsError("say where the data is whose known classes these are: its folder is missing.")
        if self.orders < 1:
            raise SettingsError(f"orders={self.orders}: a stream needs at least one.")

    @cached_property
    def source(self) -> str:
        """What results say of the weights: a hash tells files of the same name apart."""
        if self.weights is None or self.weights == RANDOM:
            return self.weights or "pretrained"
        if not Path(self.weights).is_file():
            raise WeightsError(f"there is no weight file {self.weights}.")
        digest = hashlib.blake2b(Path(self.weights).read_bytes(), digest_size=8).hexdigest()
        return f"{Path(self.weights).name} ({digest})"

    @cached_property
    def diffusion(self) -> str | None:
        """What results say of the pipeline: names and sizes of its files tell folders of the same name apart."""
        if self.pipeline is None or not Path(self.pipeline).is_dir():
            return self.pipeline
        folder = Path(self.pipeline).resolve()
        kinds = (".json", ".safetensors")
        files = sorted((str(f.relative_to(folder)), f.stat().st_size) for f in folder.rglob("*") if f.suffix in kinds)
        return f"{folder.name} ({digest(files)})"

    @property
    def pixels(self) -> int:
        """The input size."""
        return self.image_size or own_size(self.backbone)

    @cached_property
    def split(self) -> tuple[LabelledImages, LabelledImages]:
        """The labelled set and the stream: the same for every method and seed."""
        if self.known is not None:
            return own_split(self.data, self.known, seed=self.class_seed or 0)
        return protocol_split(self.protocol, self.data, self.class_seed, check=self.check)

    @property
    def oddities(self) -> list[str]:
        """What about data of one's own may not be meant, a sentence each; a benchmark's is as published."""
        return [*oddities(load_dataset(self.data)), *copies(*self.split)] if self.known is not None else []

    @cached_property
    def listed(self) -> list[str]:
        """The images with their labels; of a benchmark those of the stream, as its images are what their names say."""
        labelled, stream = self.split
        if self.known is None:
            names = [Path(item_name(item, position)).name for position, item in enumerate(stream.items)]
            labels = stream.labels
        else:
            names = [content_hash(item) for item in (*labelled.items, *stream.items)]
            labels = [*labelled.labels, *stream.labels]
        return [f"{name}:{label}" for name, label in zip(names, labels, strict=True)]

    @cached_property
    def about(self) -> dict[str, Any]:
        """What a result says of its data; equal for all cells of a table."""
        labelled, stream = self.split
        name = f"own {Path(str(self.data)).resolve().name}" if self.known is not None else self.protocol
        return {
            "protocol": name, "class_seed": self.class_seed, "labelled": len(labelled), "stream": len(stream),
            "known": len(labelled.classes), "classes": len(set(labelled.classes) | set(stream.classes)),
            "hash": hashlib.blake2b("\n".join(self.listed).encode(), digest_size=8).hexdigest(),
        }  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """One training and its scores."""

    variant: Variant
    seed: int
    setup: Setup = field(hash=False)

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The settings that do differ from the preset's, by name: naming a preset's own value changes nothing."""
        unlike = dict(self.variant.settings)
        for name in sorted(unlike):  # what a setting is by itself may depend on others
            rest = {other: value for other, value in unlike.items() if other != name}
            with suppress(SettingsError):  # it is needed
                if self._resolve(rest) == self._resolve(unlike):
                    unlike = rest
        hints = get_type_hints(get_method(self.variant.method).settings_class)
        return {name: _spelled(value, hints.get(name)) for name, value in sorted(unlike.items())}

    @cached_property
    def resolved(self) -> Settings:
        """All settings but where diffusion's weights are, which is the setup's."""
        return self._resolve(self.settings)

    def _resolve(self, settings: Mapping[str, Any]) -> Settings:
        v = self.variant
        return presets.resolve(v.method, v.preset, short=self.setup.short, overrides=dict(settings))

    @property
    def pipeline(self) -> str | None:
        """The pipeline of diffusion that the setup gives, if this cell has a use for it."""
        return self.setup.pipeline if getattr(self.resolved, "creator", None) == "diffusion" else None

    @cached_property
    def identity(self) -> dict[str, Any]:
        """All that the result depends on but the code; cells with equal identities are one."""
        v, s = self.variant, self.setup
        also = {"image_size": s.image_size, "pipeline": s.diffusion if self.pipeline else None}
        return {
            "data": s.about, "backbone": s.backbone, "weights": s.source, "method": v.method,
            "preset": presets.label(v.preset, short=s.short), "settings": self.settings,
            "resolved": digest(_scored(given(self.resolved))), "seed": self.seed, "orders": s.orders,
        } | {name: value for name, value in also.items() if value}  # fmt: skip

    @cached_property
    def key(self) -> str:
        return digest(self.identity)

    @cached_property
    def training(self) -> str:
        """The key of the training alone, which the number of stream orders does not change."""
        return digest({name: value for name, value in self.identity.items() if name != "orders"})

    @property
    def command(self) -> str:
        """What trains the same by hand, on the labelled images of `newfound split`."""
        v, s = self.variant, self.setup
        extra = f" --weights {shlex.quote(Path(s.weights).name)}" if s.weights else ""
        if self.pipeline:
            place = Path(self.pipeline).name if Path(self.pipeline).is_dir() else self.pipeline
            extra += f" --set {shlex.quote(f'pipeline={place}')}"
        for name, value in self.settings.items():
            text = value if isinstance(value, str) else json.dumps(value)
            extra += f" --epochs {text}" if name == "epochs" else f" --set {shlex.quote(f'{name}={text}')}"
        form = "--short" if s.short else "--full"
        return (
            f"newfound train labelled.csv --out RUN --method {v.method} --preset {v.preset} {form} "
            f"--backbone {s.backbone} --image-size {s.pixels} --seed {self.seed}{extra}"
        )

    def measure(self, keep: Path | None = None, reporter: Reporter | None = None) -> Result:
        """Train and score.

        Args:
            keep: a folder for trained runs. One that is there is scored and not trained again, and a training that
                was interrupted goes on.
        """
        watch = Stopwatch(reporter or Reporter())
        labelled, stream = self.setup.split
        made_at, whole = commit(), keep is None or not (keep / self.training).exists()
        start, cpu = time.perf_counter(), time.process_time()
        run = self.train(keep, watch)
        trained, trained_cpu = time.perf_counter(), time.process_time()
        features, labels = run.read_stream(stream, watch)
        scores = [one.as_dict() for one in run.score_stream(features, labels, orders=self.setup.orders).scores]
        by_class = run.score_stream(features, labels, class_order=True).scores[0].as_dict()
        evaluated = time.perf_counter()
        return self.identity | {
            "key": self.key, "command": self.command,
            "threshold": {name: run.config["threshold"][name] for name in ("value", "rule")},
            "share": run.config["share"],
            "threshold_path": [run.threshold_path[i] for i in _few(len(run.threshold_path))],
            "scores": scores, "class_order": by_class,
            "unread": {"labelled": len(run.skipped), "stream": len(stream) - len(labels)},
            "oracle": oracle(run, features, labels, orders=self.setup.orders, seed=0),
            "creation": creation_time(run, labelled),
            # The rest of a training that was begun before tells nothing of what the whole costs.
            "cost": {
                "train": round(trained - start, 1), "train_cpu": round(trained_cpu - cpu, 1),
                "evaluate": round(evaluated - trained, 1), "threads": torch.get_num_threads(),
                "stages": {name: round(seconds, 1) for name, seconds in watch.seconds.items()},
            } if whole else None,
            "commit": made_at, "newfound": newfound.__version__,
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }  # fmt: skip

    def train(self, keep: Path | None = None, reporter: Reporter | None = None) -> Run:
        """The trained run; read from `keep` if it is there.

        An unfinished training that cannot go on there, as one of an earlier newfound, is begun anew, and that is said.
        """
        v, s, folder = self.variant, self.setup, keep / self.training if keep else None
        settings = self.settings | ({"pipeline": self.pipeline} if self.pipeline else {})
        if folder is not None and (folder / "config.json").is_file():
            return load(folder, weights=s.weights)
        trained = partial(
            fit, s.split[0], method=v.method, preset=v.preset, short=s.short, backbone=s.backbone, weights=s.weights,
            image_size=s.pixels, seed=self.seed, out=folder, reporter=reporter, **settings,
        )  # fmt: skip
        try:
            return trained()
        except UnfinishedError:  # the folder is the grid's own, and named by all that this training depends on
            (reporter or Reporter()).say(f"the unfinished training in {folder} cannot go on: starting afresh")
            return trained(overwrite=True)


def commit() -> str:
    """The commit of the source this runs from, with a plus if files differ from it; "unknown" outside a checkout."""

    def git(*arguments: str) -> str:
        here = Path(__file__).resolve().parent.parent
        return subprocess.run(["git", *arguments], cwd=here, check=True, capture_output=True, text=True).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", "benchmarks/cells.py")  # not of a project that this is installed in
        changed = git("status", "--porcelain", "--untracked-files=no", "--", ".")
        return git("rev-parse", "--short", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _spelled(value: Any, kind: Any) -> Any:
    """One spelling of a number: 1 and 1.0 train the same, and so do 0.0 and -0.0."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) + 0.0 if number and float in (kind, *get_args(kind)) else value


def _few(count: int) -> list[int]:
    """At most 21 positions spread over a path, both ends among them."""
    return sorted({round(i * (count - 1) / 20) for i in range(21)}) if count else []


def given(settings: Settings) -> dict[str, Any]:
    """The settings that are not at their default: so a new setting leaves old results valid."""
    values = {field.name: (getattr(settings, field.name), field.default) for field in dataclasses.fields(settings)}
    return {name: value for name, (value, default) in values.items() if value != default}


def _scored(settings: dict[str, Any]) -> dict[str, Any]:
    """Without the settings that no score depends on, only probabilities, of which cells keep none."""
    return {name: value for name, value in settings.items() if name not in ("even_at", "new_slope", "new_shift")}


def digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, allow_nan=False)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
