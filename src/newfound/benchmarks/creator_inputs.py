"""What a run's creator is called with, as in training: for whoever measures or shows what it creates."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from newfound.creation import Model, PixelScale
from newfound.features import unit
from newfound.run import Run


@dataclass(frozen=True)
class CreatorInputs:
    """A batch for a creator.

    Args:
        space: the one that the run creates in, "pixels" or "tokens"; the inputs are in it.
        model: encodes inputs of that space.
        reference: the inputs' unit features; a batch is its own reference.
    """

    space: str
    inputs: Tensor
    model: Model
    reference: Tensor


def creator_inputs(run: Run, pixels: Tensor) -> CreatorInputs:
    """The batch that images [n, 3, h, w] are for the creator of a run whose method creates while it learns."""
    backbone, space = run.encoder.backbone, run.method.settings.space  # type: ignore[attr-defined]

    def encode(inputs: Tensor) -> Tensor:
        return unit(backbone(inputs) if space == "pixels" else backbone.tail(inputs))

    with torch.inference_mode(False), torch.no_grad():
        inputs = pixels.to(run.encoder.device)
        inputs = inputs if space == "pixels" else backbone.trunk(inputs)
        reference = encode(inputs)
    scale = PixelScale(backbone.spec.mean, backbone.spec.std) if space == "pixels" else None
    model = Model(encode=encode, classify=run.method.head, pixels=scale)  # type: ignore[arg-type]
    return CreatorInputs(space, inputs, model, reference)
