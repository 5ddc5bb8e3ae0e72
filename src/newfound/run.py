"""A run: a trained recogniser, and what can be done with it. `newfound.run_files` says what its folder holds."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors.numpy import save as save_arrays
from safetensors.torch import save

from newfound import hub, weights
from newfound._arguments import a_path
from newfound.datasets import load_dataset
from newfound.discoverer import Discoverer, Encodes
from newfound.discovery import Dictionary, events_of, standing
from newfound.evaluation import StreamResult, by_name, evaluate_stream
from newfound.evaluation.stream import Answer
from newfound.features import Encoder
from newfound.journal import Journal
from newfound.logs import write_csv, write_log
from newfound.method import Method
from newfound.progress import Reporter
from newfound.run_files import CHECKED, KNOWN, file_hash, not_written, replace, write_json

if TYPE_CHECKING:
    from newfound.export import Exported


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
        read_only: bool = False,
    ) -> Discoverer:
        """A discoverer that goes on where its journal stopped, or starts from the known classes.

        Args:
            journal: a file, or the URL of a database that several machines share (postgresql://...); None keeps what
                is found in memory.
            threshold: another cut than the run's own, or than the one the journal has, from now on.
            actor: who renames, merges and moves; without it, the user's name.
            wait: how many seconds to wait for others who write to the journal.
            encoder: what encodes in place of the run's own encoder, such as a `newfound.remote.RayEncoder` of this run.
            read_only: open a journal that is there, to look at it and to `predict`; what would change it raises
                JournalError. One on a read-only disk can be used so.

        Raises:
            JournalError: the journal cannot be used, or was written with another model.
        """
        opened = Journal.open(journal, wait=wait, read_only=read_only)
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
        folder = a_path(folder, "folder")
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
            replace(folder / "model.safetensors", lambda part: part.write_bytes(save(copies)))
            replace(folder / KNOWN, lambda part: part.write_bytes(save_arrays(self.known)))
            write_json(folder / "classes.json", self.classes)
            write_log(folder, self.log)
            write_csv(folder / "threshold.csv", ["step", "tau"], self.threshold_path)
            if self.skipped:
                write_csv(folder / "skipped.csv", ["image", "reason"], self.skipped)
            else:
                (folder / "skipped.csv").unlink(missing_ok=True)
            files = {name: file_hash(folder / name) for name in CHECKED}
            self.config |= {"bundle": bundle, "files": files}
            write_json(folder / "config.json", self.config)
        except OSError as error:
            raise not_written("the run", folder, error) from error
        self.folder = folder
        return folder

    def export(self, folder: str | os.PathLike[str], **options: Any) -> Exported:
        """Write the run as ONNX with a script that needs no newfound. See `newfound.export.export_run`."""
        from newfound.export import export_run

        return export_run(self, folder, **options)

    def push_to_hub(self, repo: str, **options: Any) -> str:
        """Publish the run on the Hugging Face hub with a model card; returns its page. See `newfound.hub.push`."""
        return hub.push(self, repo, **options)


__all__ = ["Run"]
