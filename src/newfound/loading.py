"""Runs from their folders, or from the Hugging Face hub: everything is checked before anything is believed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.numpy import load_file as load_arrays
from safetensors.torch import load_file
from torch import nn

from newfound import backbone as backbone_models
from newfound import hub
from newfound import weights as weight_sources
from newfound._arguments import a_path
from newfound._memory import keep_large_allocations
from newfound._words import counted
from newfound.cache import TokenCache
from newfound.devices import AUTO, check_device
from newfound.errors import MissingFileError, NewfoundError, RunError, SettingsError
from newfound.features import Encoder
from newfound.method import Method, get_method
from newfound.run import Run
from newfound.run_files import CHECKED, KNOWN, KNOWN_1, file_hash, read_backbone, read_config, read_csv, read_json
from newfound.views import Views

_ON_PYTORCH = ("torch", "auto")  # runtimes


def load(
    folder: str | os.PathLike[str],
    *,
    weights: str | None = None,
    cache: TokenCache | None = None,
    runtime: str | os.PathLike[str] = "torch",
    device: str | None = None,
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
        device: where PyTorch computes, as it names devices ("cpu", "cuda:1", "mps"). None, or "auto": the first GPU of
            CUDA if there is one; other runtimes use the processor.
        revision, token: of a run on the hub, as in `newfound.hub.download`.

    Raises:
        MissingFileError: there is no such folder or model, or no finished run in it.
        HubError: the hub cannot be reached, refuses, or has a model of another kind under this name.
        RunError: files are missing or damaged, do not fit together, or were written by a newer newfound.
        WeightsError: the trunk's weights cannot be had.
        SettingsError: there is no such runtime or device here.
    """
    a_path(folder, "folder")
    device = None if device == AUTO else device
    if device is not None:
        check_device(device)  # rather now than after a download
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
    config, classes, known, tensors = _read_checked(folder)
    keep_large_allocations()  # before the first forward pass, which the backbone tries itself on
    backbone = _restore_backbone(folder, config, tensors, weights)
    method = _restore_method(folder, config, tensors, backbone.dim, len(classes))
    encoder = Encoder(backbone, Views(backbone.spec), cache=cache)
    _move([backbone, method], device, runtime)
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
            log=[{k: float(v) for k, v in row.items() if v != ""} for row in read_csv(folder / "log.csv")],
            threshold_path=[(int(r["step"]), float(r["tau"])) for r in read_csv(folder / "threshold.csv")],
            skipped=[(r["image"], r["reason"]) for r in read_csv(folder / "skipped.csv")],
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


def _read_checked(folder: Path) -> tuple[dict[str, Any], list[str], dict[str, np.ndarray], dict[str, torch.Tensor]]:
    """The configuration, the classes, what is known of them, and the weights; every file is the one that was written.

    Raises RunError.
    """
    config = read_config(folder)
    known = KNOWN_1 if config["format"] == 1 else KNOWN
    for name in (known if name == KNOWN else name for name in CHECKED):
        if not (folder / name).is_file():
            raise RunError(f"{folder} is incomplete: {name} is missing.")
        if file_hash(folder / name) != config["files"].get(name):
            raise RunError(f"{folder / name} has changed since the run was written, or is damaged.")
    try:
        tensors = load_file(folder / "model.safetensors")
        return config, read_json(folder / "classes.json"), load_arrays(folder / known), tensors
    except (SafetensorError, KeyError, OSError) as error:
        raise RunError(f"{folder} cannot be read: {error}.") from error


def usual_device(runtime: str | os.PathLike[str]) -> str:
    """Where a runtime computes if nobody says so."""
    return "cuda" if runtime in _ON_PYTORCH and torch.cuda.is_available() else "cpu"


def _move(parts: list[nn.Module], device: str | None, runtime: str | os.PathLike[str]) -> None:
    chosen = device or usual_device(runtime)
    if chosen != "cpu" and runtime not in _ON_PYTORCH:
        raise SettingsError(f"device={device!r} is for PyTorch; the runtime {runtime} uses the processor.")
    try:
        for part in parts:
            part.to(chosen)
    except (RuntimeError, AssertionError) as error:  # the name of no device, or of one that PyTorch does not find
        raise SettingsError(f"device={device!r} cannot be used here: {error}") from error


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
    told = read_backbone(folder, config)
    source = weight_sources.RANDOM if config["bundle"] else where or told.weights
    backbone = backbone_models.create(
        told.name,
        tune_blocks=told.tune_blocks,
        weights=None if source == "pretrained" else source,
        image_size=told.image_size,
        crop_pct=told.crop_pct,
    )
    parts = ("trunk.", "tail.") if config["bundle"] else ("tail.",)
    state = {k.split(".", 1)[1]: v for k, v in tensors.items() if k.startswith(parts)}
    wanted = set(backbone.model.state_dict() if config["bundle"] else backbone.tail_state())
    if not wanted <= set(state):
        missing = counted(len(wanted - set(state)), "tensor is", "tensors are")
        raise RunError(f"{folder} does not fit {told.name}: {missing} missing.")
    try:
        backbone.model.load_state_dict(state, strict=False)
    except RuntimeError as error:
        raise RunError(f"the weights in {folder} do not fit {told.name} of this timm: {error}") from error
    if backbone.trunk_hash() != told.trunk_hash:
        raise RunError(
            f"{folder} was trained on another trunk of {told.name} than the one found here "
            f"(weights: {source}). Give the right file with weights=PATH, or save runs with bundle=True (--bundle)."
        )
    backbone.weights = told.weights
    return backbone


__all__ = ["load"]
