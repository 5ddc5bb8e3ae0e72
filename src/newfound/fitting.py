"""`fit`: from labelled images to a run."""

from __future__ import annotations

import copy
import dataclasses
import os
import shutil
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import newfound
from newfound import backbone as backbone_models
from newfound import presets
from newfound._arguments import a_path, whole, whole_or_none
from newfound._few_images import suited
from newfound._identity import Identity
from newfound._scenes import with_settings
from newfound.cache import TokenCache
from newfound.checkpoints import Checkpoint
from newfound.datasets import LabelledImages, check_trainable, load_dataset
from newfound.distributed import check_agreement, divide
from newfound.errors import RunError, SettingsError
from newfound.features import Encoder
from newfound.image_size import best_input
from newfound.images import contents_hash
from newfound.launching import make_fabric, together
from newfound.logs import TensorBoardLog
from newfound.method import Method, Settings, get_method
from newfound.method._creating import CreatorChoice
from newfound.progress import Reporter
from newfound.rehearsal import Rehearsal, rehearse, rehearse_once
from newfound.run import Run
from newfound.run_files import FORMAT, check_apart, held, make_folder
from newfound.teaching import lessons, readable, train
from newfound.training import blend_tail
from newfound.views import Augmentation, Views

_REHEARSAL = "rehearsal"  # what rehearsals keep in a run's folder until it is finished


def fit(
    data: Any,
    *,
    method: str = "ltc",
    backbone: str = backbone_models.DEFAULT,
    out: str | os.PathLike[str] | None = None,
    epochs: int | None = None,
    seed: int = 0,
    preset: str = "default",
    short: bool | None = None,
    weights: str | None = None,
    tune_blocks: int = 1,
    image_size: int | None = None,
    bundle: bool = False,
    overwrite: bool = False,
    cache: str | os.PathLike[str] | None = None,
    accelerator: str = "auto",
    devices: int | str = 1,
    num_nodes: int = 1,
    strategy: str = "auto",
    precision: str = "32-true",
    reporter: Reporter | None = None,
    **settings: Any,
) -> Run:
    """Learn the classes of a labelled data set, so that they are recognised and others discovered.

    Args:
        data: a folder of class folders, a CSV of path,label, or (images, labels).
        method: one of `newfound.methods()`.
        backbone: any timm image model; `newfound.backbones()` lists those that are tested.
        out: the run's folder; None keeps the run in memory. A training that was interrupted there goes on.
        epochs: None takes the preset's.
        seed: the same seed gives the same weights, threshold and log.
        preset: "default", "paper" or "released".
        short: the preset's form for small machines (15 epochs, cached views, creation in token space). None: short
            unless there is an accelerator.
        weights: None for pretrained weights, a local file, or "random".
        tune_blocks: how many of the backbone's last blocks learn.
        image_size: the input size in pixels. None is what the backbone was trained at; with the default preset the
            default backbone is shown images at 320, if they are not small.
        bundle: put the trunk's weights into the run too.
        overwrite: replace a run, or another unfinished training, in `out`.
        cache: the folder of the trunk's cached outputs (default: NEWFOUND_CACHE or ~/.cache/newfound).
        accelerator, devices, num_nodes, strategy, precision: Lightning Fabric's arguments. With several devices or
            nodes a process for each learns its share of every batch, of the same size in all, and the run is the one
            that a single process would make, but for rounding. On one machine the others are started by running the
            program again, so everything in a script up to here happens in each; all are given the run, and the first
            writes it.
        reporter: told of progress; silent by default.
        **settings: any setting of the method by name, such as lr=3e-4 or share=0.5.

    Returns:
        The trained run.

    Raises:
        DataError: the data cannot be learnt from; MissingFileError if it is not there.
        SettingsError: a name or value that does not exist, or an `out` among the folders of the classes.
        WeightsError: the backbone's weights cannot be had.
        RunError: `out` holds another run, another training is writing to it, or it cannot be written.
        NewfoundError: another process of the same training failed.
    """
    whole(seed, "seed")
    whole(tune_blocks, "tune_blocks", 1)
    whole_or_none(image_size, "image_size", 1)
    folder = None if out is None else a_path(out, "out")
    if short is None:
        short = not torch.cuda.is_available() and accelerator in ("auto", "cpu")
    asked = settings | {"epochs": epochs}
    resolve = partial(presets.resolve, method, preset, short=short)
    resolved = resolve(overrides=asked)
    fabric = make_fabric(accelerator, devices, num_nodes, strategy, precision)
    if fabric.world_size > 1 and not get_method(method).shares_batches:
        raise SettingsError(f"{method} trains in one process on one device, not on {fabric.world_size}.")
    if isinstance(resolved, CreatorChoice) and resolved.epochs and (creator := resolved.make_creator()):
        creator.ready()  # rather now than after hours
    reporter = reporter if reporter and fabric.is_global_zero else Reporter()
    labelled = load_dataset(data)
    check_trainable(labelled)
    check_apart(out, labelled.source)
    with together(fabric), ExitStack() as holding:
        size, crop = best_input(backbone, image_size, preset=preset, images=labelled.items)
        model = backbone_models.create(
            backbone, tune_blocks=tune_blocks, weights=weights, image_size=size, crop_pct=crop
        )  # fmt: skip
        model.to(fabric.device)
        # Not before there is something to learn from, and with: a slip shall not cost the run that is there.
        if folder and fabric.is_global_zero:
            make_folder(folder)
            holding.enter_context(held(folder))
            _clear(folder, overwrite)
        augmentation = Augmentation(resolved.min_scale, resolved.flip, resolved.jitter)
        store = TokenCache(cache)
        encoder = Encoder(model, Views(model.spec, augmentation), cache=store)
        labelled, skipped = readable(labelled, encoder, fabric, reporter)
        cosines = partial(resolve, overrides=asked | {"dictionary": "prototypes", "threshold": "rehearsed"})
        resolved = suited(resolved, labelled, asked=settings, cosines=cosines, say=reporter.say)
        config = _config(
            method, presets.label(preset, short=short), resolved, model.identity(), seed, precision, labelled, skipped
        )
        # Weights may lie elsewhere on another machine; what they are, their hash says.
        alike = config | {"data": config["data"]["hash"], "backbone": config["backbone"] | {"weights": ""}}
        check_agreement(alike, fabric)
        checkpoint = Checkpoint(folder, {k: v for k, v in config.items() if k != "newfound"}) if folder else None
        if checkpoint and fabric.is_global_zero and checkpoint.check():
            reporter.say(f"{folder} holds an interrupted training: going on from its last epoch")
        run = _train(config, resolved, labelled, encoder, fabric, checkpoint, reporter)
        run.skipped = skipped
        if folder and checkpoint and fabric.is_global_zero:
            run.save(folder, bundle=bundle)
            checkpoint.remove()
            shutil.rmtree(folder / _REHEARSAL, ignore_errors=True)
    if fabric.local_rank == 0:
        store.trim()
    return run


def _config(
    method: str, preset: str, resolved: Settings, identity: Identity, seed: int, precision: str,
    labelled: LabelledImages, skipped: list[tuple[str, str]],
) -> dict[str, Any]:  # fmt: skip
    """What a run is made from."""
    return {
        "format": FORMAT,
        "newfound": newfound.__version__,
        "method": method,
        "preset": preset,
        "settings": dataclasses.asdict(resolved),
        "backbone": dataclasses.asdict(identity),
        "seed": seed,
        "precision": precision,
        "data": {
            "source": labelled.source, "images": len(labelled), "classes": len(labelled.classes),
            "skipped": len(skipped), "hash": contents_hash(labelled.items, labelled.labels),
        },
    }  # fmt: skip


def _train(
    config: dict[str, Any], settings: Any, labelled: LabelledImages, encoder: Encoder, fabric: Any,
    checkpoint: Checkpoint | None, reporter: Reporter,
) -> Run:  # fmt: skip
    items, targets, seed = list(labelled.items), labelled.targets, config["seed"]
    method_class = get_method(config["method"])
    if settings.cached and settings.epochs:
        with reporter.stage("caching views", len(items)) as progress:
            divide(items, fabric, lambda part: encoder.cached_views(part, settings.views, seed=0))
            encoder.cached_views(items, settings.views, seed=0, progress=progress)
    folder = checkpoint.folder if checkpoint else None
    chosen: Rehearsal | None = None
    if settings.threshold == "rehearsed" and method_class.discovers:
        stage = folder / _REHEARSAL if folder else None
        key = {**checkpoint.fingerprint, "newfound": newfound.__version__} if checkpoint else {}
        played = partial(
            rehearse, encoder, items, targets, method_class, settings, seed=seed, fabric=fabric, folder=stage,
            reporter=reporter,
        )  # fmt: skip
        chosen = rehearse_once(played, fabric, stage, key)
        reporter.say(chosen.describe())
    before = copy.deepcopy(encoder.backbone.tail_state())
    with (
        (reporter if settings.epochs else Reporter()).stage("learning", settings.epochs * len(items)) as progress,
        closing(TensorBoardLog(folder if fabric.is_global_zero else None)) as board,
    ):
        trained = train(
            encoder, items, targets, method_class, settings, seed=seed, fabric=fabric,
            folder=folder, checkpoint=checkpoint, progress=progress, on_epoch=board.write,
        )  # fmt: skip
    if trained.created:
        virtual = trained.method.classes - len(labelled.classes)
        config["created"] = {"images": trained.created, "virtual_classes": virtual}
        reporter.say(f"learnt from {trained.created} created images too, with {virtual} virtual classes among theirs")
    config["share"] = _share(settings, chosen)
    blend_tail(encoder.backbone, before, config["share"])
    if chosen and chosen.settings:
        config["rehearsed"] = chosen.settings
        trained.method = with_settings(trained.method, chosen.settings)
    taught = lessons(encoder, items, targets)
    with torch.inference_mode():
        known = trained.method.eval().teach(*taught)
        config["threshold"] = _threshold(settings, trained.method, chosen, taught)
    config["trained_classes"] = trained.method.classes
    return Run(
        config=config,
        classes=labelled.classes,
        known=known,
        encoder=encoder,
        method=trained.method,
        log=trained.log,
        threshold_path=trained.threshold_path,
    )


def _share(settings: Settings, chosen: Rehearsal | None) -> float:
    share = getattr(settings, "share", 1.0)
    if isinstance(share, str):
        return chosen.share if chosen else 1.0
    return float(share)


def _threshold(
    settings: Any, method: Method, chosen: Rehearsal | None, taught: tuple[Tensor, Tensor]
) -> dict[str, Any]:  # fmt: skip
    """The cut of a run and where it came from."""
    if not method.discovers:
        return {"value": -1.0, "rule": "closed set: nothing is new"}
    if chosen is not None and chosen.fallback:
        value, rule = method.own_cut(*taught)
        return {"value": value, "rule": f"{rule}; not rehearsed: {chosen.fallback}"}
    if chosen is not None:
        tried = {"trials": chosen.trials} if len(chosen.trials) > 1 else {}
        return {
            "value": chosen.threshold, "rule": chosen.describe(), "grid": chosen.grid, "scores": chosen.scores, **tried,
        }  # fmt: skip
    if isinstance(settings.threshold, str):
        value, rule = method.own_cut(*taught)
        return {"value": value, "rule": rule}
    return {"value": float(settings.threshold), "rule": "fixed by setting; nothing is rehearsed"}


def _clear(folder: Path, overwrite: bool) -> None:
    """Take away what is to be overwritten. Raises RunError if a run is there that is not."""
    if overwrite:
        for name in ("config.json", "checkpoint.safetensors", "skipped.csv"):
            (folder / name).unlink(missing_ok=True)
        for name in ("tensorboard", "virtual", _REHEARSAL):
            shutil.rmtree(folder / name, ignore_errors=True)
    if (folder / "config.json").exists():
        raise RunError(f"{folder} already holds a run. Choose another folder, or pass overwrite=True (--overwrite).")


__all__ = ["fit"]
