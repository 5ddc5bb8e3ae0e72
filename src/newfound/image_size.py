"""How large images are shown to a backbone."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from newfound.backbone import DEFAULT, check_name
from newfound.errors import ImageError, MissingFileError
from newfound.images import open_image

_BEST = {DEFAULT: 320}  # pixels; measured, see docs/decisions.md
_USUAL = 224  # what timm takes where a model does not say
_LOOKED_AT = 32  # images, to tell how large they are


def best_input(
    name: str, image_size: int | None = None, *, preset: str = "default", images: Sequence[Any] = ()
) -> tuple[int, float | None]:
    """The input size and the crop, for `create`, that serve a backbone best; with a size given, the crop for it.

    What is scaled above the size that a model was trained at is shown whole: training crops have made things look
    larger to it than they look in whole images (Touvron et al., Fixing the train-test resolution discrepancy, 2019).
    Images that are smaller than that gain nothing by it, and the paper's presets have the size of training.
    """
    own = own_size(name)
    best = _BEST.get(name.split(".")[0], own) if preset == "default" else own
    size = image_size or (best if best <= own or _usual_side(images) >= own else own)
    return size, 1.0 if size > own else None


def own_size(name: str) -> int:
    """The input size that a model was trained at, by its timm name."""
    import timm

    check_name(name)
    config = timm.get_pretrained_cfg(name)
    return int(config.input_size[1]) if config else _USUAL


def _usual_side(images: Sequence[Any]) -> float:
    """The median of the shorter sides of some of the images; without any that can be read, infinite."""
    sides = []
    for place in range(0, len(images), max(1, len(images) // _LOOKED_AT)):
        try:
            sides.append(min(open_image(images[place]).size))
        except (ImageError, MissingFileError):  # it will be told of when it is learnt from
            continue
    return statistics.median(sides) if sides else float("inf")
