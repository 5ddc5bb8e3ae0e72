"""How long a run's creator takes for 128 samples, beside what the encoder takes for as many: Table 4's last column."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from newfound.creation import Model, PixelScale
from newfound.datasets import LabelledImages
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
    rng = np.random.default_rng(0)
    chosen = rng.choice(len(labelled), SAMPLES, replace=len(labelled) < SAMPLES)
    inputs = torch.stack([run.encoder.views.centre(open_image(labelled.items[i])) for i in chosen])
    targets = torch.from_numpy(labelled.targets[chosen])
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
        "samples": SAMPLES, "space": space, "seconds": _median(create), "encode_seconds": _median(only_encode),
    }  # fmt: skip


def _median(work: Callable[[], None]) -> float:
    work()
    taken = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)
