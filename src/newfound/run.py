"""A run: a trained recogniser, in memory and as a folder on disk.

    config.json              what it is: method, settings, backbone, threshold, versions, hashes of the other files
    classes.json             the names of the known classes, by id
    model.safetensors        the tail and the head; with bundle also the trunk
    known.safetensors        what the dictionary starts from: the model and sums of evidence, prototypes, or codes
    log.csv, threshold.csv   how training went: a row an epoch, a row whenever the threshold moved
    skipped.csv              images that could not be read, if any

config.json is written last: a folder without it is not a finished run. Nothing in it is ever unpickled.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file as load_arrays
from safetensors.numpy import save as save_arrays
from safetensors.torch import load_file, save

import newfound
from newfound import backbone as backbone_models
from newfound import hub, weights
from newfound._memory import keep_large_allocations
from newfound.cache import TokenCache
from newfound.datasets import load_dataset
from newfound.discoverer import Discoverer, Encodes
from newfound.discovery import Dictionary, events_of, standing
from newfound.errors import MissingFileError, NewfoundError, RunError, SettingsError
from newfound.evaluation import StreamResult, by_name, evaluate_stream
from newfound.evaluation.stream import Answer
from newfound.features import Encoder
from newfound.journal import Journal
from newfound.logs import write_csv, write_log
from newfound.method import Method, get_method
from newfound.progress import Reporter
from newfound.views import Views

if TYPE_CHECKING:
    from newfound.export import Exported

FORMAT = 3  # 1 had the methods with prototypes only, in a file of another name; 2 did not weigh evidence
_KNOWN, _KNOWN_1 = "known.safetensors", "prototypes.safetensors"
_CHECKED = ("classes.json", "model.safetensors", _KNOWN, "log.csv", "threshold.csv")
_DICTS = ("files", "backbone", "settings", "threshold")
_FIELDS: dict[str, type] = dict.fromkeys(_DICTS, dict) | {"bundle": bool, "method": str, "preset": str}


@dataclass
class Run:
    """What `fit` makes and `load` reads."""

    config: dict[str, Any]
    classes: list[str]
    known: dict[str, np.ndarray]  # what its dictionary starts from, as the method teaches it
    encoder: Encoder
    method: Method
    log: list[dict[str, float]] = field(default_factory=list)
    threshold_path: list[tuple[int, float]] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    folder: Path | None = None

    def __post_init__(self) -> None:
        self.method.eval()
        self.encoder.read_with(lambda features: self.method.read(features, self.known))

    @property
    def threshold(self) -> float:
        return float(self.config["threshold"]["value"])

    @property
    def label(self) -> str:
        """Method and preset as they are named wherever results are shown."""
        return f"{self.config['method']}, {self.config['preset']}"

    def dictionary(self, threshold: float | None = None) -> Dictionary:
        """A fresh dictionary that knows the classes of this run.

        Args:
            threshold: another cut than the run's own.
        """
        return self.method.dictionary(self.known, self.threshold if threshold is None else threshold)

    def discoverer(
        self,
        journal: str | os.PathLike[str] | None = None,
        *,
        threshold: float | None = None,
        actor: str | None = None,
        wait: float = 30.0,
        encoder: Encodes | None = None,
    ) -> Discoverer:
        """A discoverer that goes on where its journal stopped, or starts from the known classes.

        Args:
            journal: a file, or the URL of a database that several machines share (postgresql://...); None keeps what
                is found in memory.
            threshold: another cut than the run's own, or than the one the journal has, from now on.
            actor: who renames, merges and moves; without it, the user's name.
            wait: how many seconds to wait for others who write to the journal.
            encoder: what encodes in place of the run's own encoder, such as a `newfound.remote.RayEncoder` of this run.

        Raises:
            JournalError: the journal cannot be used, or was written with another model.
        """
        opened = Journal.open(journal, wait=wait)
        try:
            return Discoverer(
                encoder or self.encoder, self.dictionary(threshold), self.classes, opened,
                fingerprint=self.fingerprint(), about={**self.about(), "runtime": self.encoder.runtime},
                threshold=threshold, actor=actor,
            )  # fmt: skip
        except BaseException:
            opened.close()
            raise

    def fingerprint(self) -> str:
        """32 hex digits that change with anything that features or decisions depend on."""
        digest = hashlib.blake2b(digest_size=16)
        backbone = self.encoder.backbone
        digest.update(json.dumps([self.classes, self.config["settings"], self.config.get("rehearsed", {})]).encode())
        digest.update(json.dumps([backbone.trunk_hash(), self.encoder.views.centre_key()]).encode())
        tensors = {**backbone.tail_state(), **self.method.state_dict()}
        arrays = {name: value.detach().cpu().numpy() for name, value in tensors.items()} | self.known
        for name in sorted(arrays):
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(arrays[name]).tobytes())
        digest.update(self.encoder.alters.encode())  # empty unless features differ by more than their last bits
        return digest.hexdigest()

    def about(self) -> dict[str, Any]:
        """What a journal notes of the model that answers."""
        return {name: self.config[name] for name in ("method", "preset")} | {"backbone": self.encoder.backbone.name}

    def evaluate(
        self,
        data: Any,
        *,
        orders: int = 3,
        seed: int = 0,
        class_order: bool = False,
        threshold: float | None = None,
        max_clusters: int | None = None,
        reporter: Reporter | None = None,
    ) -> StreamResult:
        """Stream a labelled data set in several random orders and score the answers against its labels.

        Labels that are this run's classes are old, all others new. Nothing is chosen by what is scored.

        Args:
            data: a folder of class folders, a CSV of path,label, or (images, labels); unreadable images are left out.
            orders, seed, class_order, max_clusters: as in `newfound.evaluation.evaluate_stream`.
            threshold: another cut than the run's own.
        """
        features, labels = self.read_stream(data, reporter)
        return self.score_stream(
            features, labels,
            orders=orders, seed=seed, class_order=class_order, threshold=threshold, max_clusters=max_clusters,
        )  # fmt: skip

    def read_stream(self, data: Any, reporter: Reporter | None = None) -> tuple[np.ndarray, list[Any]]:
        """What the dictionary is given for each readable image of a labelled data set, and the images' labels."""
        stream = load_dataset(data)
        with (reporter or Reporter()).stage("encoding the stream", len(stream)) as progress:
            features, readable, _ = self.encoder.readable(stream.items, progress)
        return features, stream.subset(readable).labels

    def score_stream(
        self,
        features: np.ndarray,
        labels: list[Any],
        *,
        orders: int = 3,
        seed: int = 0,
        class_order: bool = False,
        threshold: float | None = None,
        max_clusters: int | None = None,
    ) -> StreamResult:
        """As `evaluate`, for a stream that `read_stream` has read: other orders or cuts need no image again."""
        novelty = self.novelty(features)

        def decide(order: np.ndarray) -> Answer:
            dictionary = self.dictionary(threshold)
            given = dictionary.observe(features[order]).category
            now = standing(dictionary, given, events_of(dictionary))
            at_once, changed = by_name(given, self.classes), (now != given).any()
            return *at_once, novelty[order], by_name(now, self.classes) if changed else None

        return evaluate_stream(
            decide, labels, self.classes,
            orders=orders, seed=seed, class_order=class_order, max_clusters=max_clusters,
        )  # fmt: skip

    def novelty(self, features: np.ndarray) -> np.ndarray:
        """How little features resemble any known class: minus the best score (s_max), the AUROC's input."""
        return -self.dictionary().predict(features).score

    def save(self, folder: str | os.PathLike[str], *, bundle: bool = False) -> Path:
        """Write the run; with `bundle` the trunk too, so that loading needs no other source of weights."""
        folder = Path(folder)
        backbone = self.encoder.backbone
        bundle = bundle or backbone.weights == weights.RANDOM  # a random trunk cannot be had again
        try:
            folder.mkdir(parents=True, exist_ok=True)
            tensors = {f"tail.{k}": v for k, v in backbone.tail_state().items()}
            tensors |= {f"head.{k}": v for k, v in self.method.state_dict().items()}
            if bundle:
                tensors |= {f"trunk.{k}": v for k, v in backbone.trunk_state().items()}
            copies = {k: v.detach().cpu().clone().contiguous() for k, v in tensors.items()}
            # As bytes: safetensors' own files can be read by their owner only, and runs are shared.
            _replace(folder / "model.safetensors", lambda part: part.write_bytes(save(copies)))
            _replace(folder / _KNOWN, lambda part: part.write_bytes(save_arrays(self.known)))
            _write_json(folder / "classes.json", self.classes)
            write_log(folder, self.log)
            write_csv(folder / "threshold.csv", ["step", "tau"], self.threshold_path)
            if self.skipped:
                write_csv(folder / "skipped.csv", ["image", "reason"], self.skipped)
            else:
                (folder / "skipped.csv").unlink(missing_ok=True)
            files = {name: _file_hash(folder / name) for name in _CHECKED}
            self.config |= {"bundle": bundle, "files": files}
            _write_json(folder / "config.json", self.config)
        except OSError as error:
            raise RunError(f"the run cannot be written to {folder}: {error.strerror or error}.") from error
        self.folder = folder
        return folder

    def export(self, folder: str | os.PathLike[str], **options: Any) -> Exported:
        """Write the run as ONNX with a script that needs no newfound. See `newfound.export.export_run`."""
        from newfound.export import export_run

        return export_run(self, folder, **options)

    def push_to_hub(self, repo: str, **options: Any) -> str:
        """Publish the run on the Hugging Face hub with a model card; returns its page. See `newfound.hub.push`."""
        return hub.push(self, repo, **options)


def load(
    folder: str | os.PathLike[str],
    *,
    weights: str | None = None,
    cache: TokenCache | None = None,
    runtime: str | os.PathLike[str] = "torch",
    revision: str | None = None,
    token: str | None = None,
) -> Run:
    """Read a run from disk, or from the Hugging Face hub, and check all of it.

    Args:
        folder: what `fit(out=...)` or `newfound train --out` wrote; or "org/name", where no such folder is here, for
            what `push_to_hub` has published.
        weights: where the trunk's weights are now, if they came from a local file that has moved.
        cache: a cache for the trunk's outputs.
        runtime: what the encoder runs on: "torch", "onnx", "openvino", "auto" for the fastest of them that is
            installed, or the folder of an export of this run. All but "torch" go without the cache.
        revision, token: of a run on the hub, as in `newfound.hub.download`.

    Raises:
        MissingFileError: there is no such folder or model, or no finished run in it.
        HubError: the hub cannot be reached, refuses, or has a model of another kind under this name.
        RunError: files are missing or damaged, do not fit together, or were written by a newer newfound.
        WeightsError: the trunk's weights cannot be had.
    """
    if hub.is_hub_id(folder) and not os.path.isdir(folder):
        folder = hub.download(str(folder), revision=revision, token=token)
    elif revision is not None:
        raise SettingsError(f"revision={revision!r} is for runs on the hub; {folder} is a folder, which has one only.")
    folder = Path(folder)
    if not folder.is_dir():
        raise MissingFileError(f"there is no run folder {folder}.")
    if not (folder / "config.json").is_file():
        unfinished = (folder / "checkpoint.safetensors").is_file()
        hint = "its training was interrupted; train again with the same settings to go on" if unfinished else (
            "a run is a folder that `newfound train --out` wrote")  # fmt: skip
        raise MissingFileError(f"{folder} holds no finished run: {hint}.")
    config = _read_json(folder / "config.json")
    _check_version(folder, config)
    for name, kind in _FIELDS.items():
        if not isinstance(_field(folder, config, name), kind):
            raise RunError(f"{folder / 'config.json'} is damaged: {name!r} is not a {kind.__name__}.")
    known_file = _KNOWN_1 if config["format"] == 1 else _KNOWN
    for name in (known_file if name == _KNOWN else name for name in _CHECKED):
        if not (folder / name).is_file():
            raise RunError(f"{folder} is incomplete: {name} is missing.")
        if _file_hash(folder / name) != config["files"].get(name):
            raise RunError(f"{folder / name} has changed since the run was written, or is damaged.")
    try:
        classes = _read_json(folder / "classes.json")
        known = load_arrays(folder / known_file)
        tensors = load_file(folder / "model.safetensors")
    except (SafetensorError, KeyError, OSError) as error:
        raise RunError(f"{folder} cannot be read: {error}.") from error
    keep_large_allocations()  # before the first forward pass, which the backbone tries itself on
    backbone = _restore_backbone(folder, config, tensors, weights)
    method = _restore_method(folder, config, tensors, backbone.dim, len(classes))
    encoder = Encoder(backbone, Views(backbone.spec), cache=cache)
    if runtime != encoder.runtime:
        from newfound.runtimes import faster

        encoder = faster(encoder, runtime)
    try:
        run = Run(
            config=config,
            classes=classes,
            known=known,
            encoder=encoder,
            method=method,
            log=[{k: float(v) for k, v in row.items() if v != ""} for row in _read_csv(folder / "log.csv")],
            threshold_path=[(int(r["step"]), float(r["tau"])) for r in _read_csv(folder / "threshold.csv")],
            skipped=[(r["image"], r["reason"]) for r in _read_csv(folder / "skipped.csv")],
            folder=folder,
        )
        dictionary = run.dictionary()
    except (NewfoundError, KeyError, TypeError, ValueError, RuntimeError, IndexError) as error:
        raise RunError(f"the threshold, settings or known classes in {folder} are damaged: {error}") from error
    if (dictionary.known, dictionary.dimension) != (len(classes), encoder.dimension):
        raise RunError(
            f"{folder} does not fit together: {len(classes)} classes and {encoder.dimension}-dimensional features, "
            f"but a dictionary of {dictionary.known} classes and {dictionary.dimension} dimensions."
        )
    return run


def _restore_method(folder: Path, config: dict[str, Any], tensors: dict[str, Any], dim: int, classes: int) -> Method:
    head = {k.removeprefix("head."): v for k, v in tensors.items() if k.startswith("head.")}
    try:
        cls = get_method(config["method"])
        settings = cls.settings_class(**(config["settings"] | config.get("rehearsed", {})))
        method = cls(dim, config.get("trained_classes", classes), settings)
        method.load_state_dict(head)
    except (SettingsError, TypeError, RuntimeError) as error:
        raise RunError(f"the method, settings or head in {folder} are damaged: {error}") from error
    return method


def _restore_backbone(
    folder: Path, config: dict[str, Any], tensors: dict[str, Any], where: str | None
) -> backbone_models.Backbone:
    described = config["backbone"]
    for name in ("name", "tune_blocks", "weights", "image_size", "trunk_hash"):
        if name not in described:
            raise RunError(f"{folder / 'config.json'} is damaged: its backbone has no {name!r}.")
    source = weights.RANDOM if config["bundle"] else where or described["weights"]
    backbone = backbone_models.create(
        described["name"],
        tune_blocks=described["tune_blocks"],
        weights=None if source == "pretrained" else source,
        image_size=described["image_size"],
    )
    parts = ("trunk.", "tail.") if config["bundle"] else ("tail.",)
    state = {k.split(".", 1)[1]: v for k, v in tensors.items() if k.startswith(parts)}
    wanted = set(backbone.model.state_dict() if config["bundle"] else backbone.tail_state())
    if not wanted <= set(state):
        raise RunError(f"{folder} does not fit {described['name']}: {len(wanted - set(state))} tensors are missing.")
    try:
        backbone.model.load_state_dict(state, strict=False)
    except RuntimeError as error:
        raise RunError(f"the weights in {folder} do not fit {described['name']} of this timm: {error}") from error
    if backbone.trunk_hash() != described["trunk_hash"]:
        raise RunError(
            f"{folder} was trained on another trunk of {described['name']} than the one found here "
            f"(weights: {source}). Give the right file with weights=PATH, or save runs with bundle=True (--bundle)."
        )
    backbone.weights = described["weights"]
    return backbone


def _check_version(folder: Path, config: dict[str, Any]) -> None:
    found = _field(folder, config, "format")
    if not isinstance(found, int) or found > FORMAT:
        raise RunError(
            f"{folder} was written by newfound {config.get('newfound', '?')} in format {found}; this is newfound "
            f"{newfound.__version__}, which reads up to format {FORMAT}. Update newfound."
        )


def _field(folder: Path, config: dict[str, Any], name: str) -> Any:
    if not isinstance(config, dict) or name not in config:
        raise RunError(f"{folder / 'config.json'} has no {name!r}: it is damaged or not newfound's.")
    return config[name]


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunError(f"{path} cannot be read: {error}.") from error


def _read_csv(path: Path) -> list[dict[str, str]]:
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _write_json(path: Path, value: Any) -> None:
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    _replace(path, lambda part: part.write_text(text, encoding="utf-8"))


def _replace(path: Path, write: Callable[[Path], Any]) -> None:
    part = path.with_name(path.name + ".part")
    write(part)
    os.replace(part, path)


def _file_hash(path: Path) -> str:
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


__all__ = ["FORMAT", "Run", "load"]
