"""From labelled images to a method that has learnt them, and to what its dictionary shall know of them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from newfound.checkpoints import Checkpoint
from newfound.datasets import LabelledImages, check_trainable, item_name
from newfound.distributed import divide
from newfound.errors import DataError, ImageError
from newfound.features import Encoder, Progress
from newfound.images import content_hash
from newfound.method import Method, Settings
from newfound.progress import Reporter
from newfound.training import EpochEnd, Trained, diverged, learn


def readable(
    data: LabelledImages, encoder: Encoder, fabric: Any, reporter: Reporter
) -> tuple[LabelledImages, list[tuple[str, str]]]:
    """The images that can be read, and (name, reason) of the others; their tokens are in the cache afterwards.

    Raises DataError if too few are left to learn from.
    """
    with reporter.stage("reading images", len(data)) as progress:
        divide(list(data.items), fabric, encoder.readable)
        _, positions, errors = encoder.readable(data.items, progress)
    skipped = [(item_name(data.items[i], i), str(error)) for i, error in errors.items()]
    if skipped:
        are = "image cannot be read and is" if len(skipped) == 1 else "images cannot be read and are"
        reporter.say(f"{len(skipped)} {are} left out; the first: {skipped[0][1]}")
        if not positions:
            raise DataError(f"none of the {len(data)} images of {data.source} can be used; the first: {skipped[0][1]}")
        few, data = f"{len(skipped)} of {len(data)}, the first: {skipped[0][1]}", data.subset(positions)
        try:
            check_trainable(data)
        except DataError as error:
            raise DataError(f"without the images that cannot be used ({few}), {error}") from None
    return data, skipped


def train(
    encoder: Encoder,
    items: Sequence,
    targets: np.ndarray,
    method_class: type[Method],
    settings: Settings,
    *,
    seed: int,
    fabric,
    folder: Path | None = None,
    checkpoint: Checkpoint | None = None,
    progress: Progress | None = None,
    on_epoch: EpochEnd | None = None,
) -> Trained:
    """Let a method learn the labelled images and those that it makes itself; the encoder's tail learns in place.

    Args:
        folder: where a method may keep the images that it makes.
        checkpoint, progress, on_epoch: as in `newfound.training.learn`.
    """
    images, classes = method_class.more_images(encoder, items, targets, settings, seed=seed, folder=folder)
    if checkpoint and images:
        made = [f"{content_hash(image)}:{label}" for image, label in zip(images, classes, strict=True)]
        checkpoint.fingerprint["created images"] = hashlib.blake2b("\n".join(made).encode(), digest_size=16).hexdigest()
    items, targets = [*items, *images], np.concatenate([targets, classes]).astype(np.int64)
    method = build_method(encoder, items, targets, method_class, settings, seed)
    trained = learn(
        encoder, items, targets, method,
        seed=seed, fabric=fabric, checkpoint=checkpoint, progress=progress, on_epoch=on_epoch,
    )  # fmt: skip
    if settings.epochs:
        try:
            encoder.features(items[:1])
        except ImageError as error:  # the image was fine before: the last step was too long
            raise diverged("features are no longer finite", settings.epochs - 1, settings.lr) from error
    trained.created = len(images)
    return trained


def build_method(
    encoder: Encoder, items: Sequence, targets: np.ndarray, method_class: type[Method], settings: Settings, seed: int
) -> Method:
    """A method started on the images' features; its own initial weights come from the seed alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        method = method_class(encoder.backbone.dim, int(targets.max()) + 1, settings).to(encoder.device)
    if settings.epochs:
        features = torch.from_numpy(encoder.features(items)).to(encoder.device)
        method.start(features, torch.from_numpy(targets).to(encoder.device))
    return method


@torch.inference_mode()
def lessons(encoder: Encoder, items: Sequence, targets: np.ndarray) -> tuple[Tensor, Tensor]:
    """What `Method.teach` is given: the features of the labelled set's centre views, and their classes."""
    features = torch.from_numpy(encoder.features(items)).to(encoder.device)
    return features, torch.from_numpy(targets).to(encoder.device)
