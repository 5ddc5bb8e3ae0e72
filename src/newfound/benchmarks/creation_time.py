"""How long a run's creator takes for 128 samples, beside what the encoder takes for as many: Table 4's last column."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from newfound.creation import Model, PixelScale
from newfound.datasets import LabelledImages
from newfound.errors import ImageError, MissingFileError
from newfound.features import unit
from newfound.images import open_image
from newfound.run import Run

SAMPLES, REPEATS = 128, 5


def creation_time(run: Run, labelled: LabelledImages) -> dict[str, Any] | None:
    """Seconds for 128 created samples and for encoding 128 samples, both in the space that the method creates in.

    Returns:
        {"samples", "space", "seconds", "encode_seconds"}, medians of five; None for a method that does not create
        while it learns.
    """
    creator = getattr(run.method, "creator", None)
    if creator is None:
        return None
    backbone, space = run.encoder.backbone, run.method.settings.space  # type: ignore[attr-defined]
    inputs, targets = (part.to(run.encoder.device) for part in _samples(run, labelled))
    with torch.inference_mode(False), torch.no_grad():
        encode = (lambda x: unit(backbone(x))) if space == "pixels" else (lambda x: unit(backbone.tail(x)))
        if space == "tokens":
            inputs = backbone.trunk(inputs)
        reference = encode(inputs)
    scale = PixelScale(backbone.spec.mean, backbone.spec.std) if space == "pixels" else None
    model = Model(encode=encode, classify=run.method.head, pixels=scale)  # type: ignore[arg-type]

    def create() -> None:
        creator(inputs, targets, model, reference, np.random.default_rng(0))

    def only_encode() -> None:
        with torch.no_grad():
            encode(inputs)

    return {
        "samples": SAMPLES, "space": space,
        "seconds": _median(create, inputs.device), "encode_seconds": _median(only_encode, inputs.device),
    }  # fmt: skip


def _samples(run: Run, labelled: LabelledImages) -> tuple[Tensor, Tensor]:
    """The pixels and classes of 128 labelled images, or of fewer again and again; unreadable ones were not learnt."""
    targets, pixels, classes = labelled.targets, [], []
    for i in np.random.default_rng(0).permutation(len(labelled)):
        try:
            pixels.append(run.encoder.views.centre(open_image(labelled.items[i])))
        except (ImageError, MissingFileError):
            continue
        classes.append(int(targets[i]))
        if len(pixels) == SAMPLES:
            break
    rows = torch.arange(SAMPLES) % len(pixels)
    return torch.stack(pixels)[rows], torch.tensor(classes)[rows]


def _median(work: Callable[[], None], device: torch.device) -> float:
    taken = []
    for _ in range(1 + REPEATS):
        start = time.perf_counter()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize(device)  # its calls return before their work is done
        taken.append(time.perf_counter() - start)
    return statistics.median(taken[1:])  # the first one warms up
