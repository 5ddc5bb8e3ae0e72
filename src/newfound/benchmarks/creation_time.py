"""How long a run's creator takes for 128 samples, beside what the encoder takes for as many: Table 4's last column."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from newfound.benchmarks.creator_inputs import creator_inputs
from newfound.datasets import LabelledImages
from newfound.errors import ImageError, MissingFileError
from newfound.images import open_image
from newfound.run import Run

SAMPLES, REPEATS = 128, 5
LONG = 60.0  # seconds; what takes longer is not repeated: diffusion on a CPU would take days


def creation_time(run: Run, labelled: LabelledImages) -> dict[str, Any] | None:
    """Seconds for 128 created samples and for encoding 128 samples, both in the space that the method creates in.

    Returns:
        {"samples", "space", "seconds", "encode_seconds", "repeats"}; None for a method that does not create while it
        learns. Seconds are medians of five repeats after one to warm up. If the first takes over a minute it stands
        alone; `repeats`, of the creation, is then 1.
    """
    creator = getattr(run.method, "creator", None)
    if creator is None:
        return None
    pixels, classes = _samples(run, labelled)
    batch, targets = creator_inputs(run, pixels), classes.to(run.encoder.device)

    def create() -> None:
        creator(batch.inputs, targets, batch.model, batch.reference, np.random.default_rng(0))

    def only_encode() -> None:
        with torch.no_grad():
            batch.model.encode(batch.inputs)

    created, encoded = (_times(work, batch.inputs.device) for work in (create, only_encode))
    return {
        "samples": SAMPLES, "space": batch.space, "seconds": statistics.median(created),
        "encode_seconds": statistics.median(encoded), "repeats": len(created),
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


def _times(work: Callable[[], None], device: torch.device) -> list[float]:
    """Seconds of each repeat; of the first run alone if that is long."""
    first = _time(work, device)
    if first > LONG:
        return [first]
    return [_time(work, device) for _ in range(REPEATS)]  # the first one warmed up


def _time(work: Callable[[], None], device: torch.device) -> float:
    start = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize(device)  # its calls return before their work is done
    return time.perf_counter() - start
