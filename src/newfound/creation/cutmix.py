"""CutMix as a creator: a piece of one known image in the place of the same piece of another."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from newfound.creation.mixup import Mixup
from newfound.errors import SettingsError

_MOST_PREFIX = 8  # class, distillation and register tokens before the patches; timm's models have up to 5
_STRETCH = math.log(4 / 3)  # how far a rectangle's shape may lean from the image's own, either way
_SHAPE_WEIGHT = 0.1  # the area matters more than the shape


@dataclass(frozen=True)
class CutMix(Mixup):
    """A rectangle of a partner of another class replaces the same rectangle; lambda ~ Beta(eta, eta) of the area stays.

    Mixup's settings mean the same here. Whole pixels (or tokens) are replaced: the share that stays lies in
    [min_lambda, 1 - min_lambda] wherever a rectangle of whole pixels can have such a share, and is else as near to it
    as they allow. It is never all of the image nor nothing.

    Works on [n, C, H, W], which are pixels or a CNN's tokens; on [n, H, W, C], Swin's tokens, known by H = W < C; and
    on a ViT's tokens [n, prefix + g * g, D], whose prefix (class token, registers) is blended by the share of the area.
    """

    def blend(self, inputs: Tensor, targets: Tensor, rng: np.random.Generator) -> Tensor:
        """New inputs of the same kind, detached; [0, ...] if no pair can be made.

        Raises:
            SettingsError: the inputs are no image, no map and no square grid of tokens, or too small to be cut.
        """
        prefix, height, width = _layout(inputs)
        first, second, shares = self.draw(targets, rng)
        stays = _masks(shares, height, width, self.min_lambda, rng).to(inputs.device)
        if inputs.ndim == 3:
            grid = stays.reshape(len(first), height * width, 1)
            area = grid.to(inputs).mean(dim=1, keepdim=True)
            lam = torch.cat([area.expand(-1, prefix, -1), grid.to(inputs)], dim=1)
            return (lam * inputs[first] + (1 - lam) * inputs[second]).detach()
        stays = stays[:, None] if inputs.shape[2:] == (height, width) else stays[..., None]
        return torch.where(stays, inputs[first], inputs[second]).detach()


def _layout(inputs: Tensor) -> tuple[int, int, int]:
    """How many tokens come before the grid, and the grid's height and width."""
    shape = tuple(inputs.shape)
    if len(shape) == 3:
        side = math.isqrt(shape[1])
        prefix = shape[1] - side * side
        if prefix > _MOST_PREFIX:
            raise SettingsError(
                f"cutmix cannot cut {shape[1]} tokens an image: they are no square grid of patches, with or without a "
                f'class token and registers before it. Take space="pixels" or another creator.'
            )
        size = (prefix, side, side)
    elif len(shape) == 4:
        channels_last = shape[1] == shape[2] < shape[3]
        size = (0, *(shape[1:3] if channels_last else shape[2:]))
    else:
        raise SettingsError(
            f"cutmix cannot cut inputs of the shape {list(shape)}: it takes images or maps [n, C, H, W] and tokens "
            f'[n, tokens, D]. Take space="pixels" or another creator.'
        )
    if size[1] * size[2] < 2:
        raise SettingsError(
            f"cutmix cannot cut a grid of {size[1]} x {size[2]}: take larger images (image_size), "
            f'space="pixels" or another creator.'
        )
    return size


def _masks(shares: np.ndarray, height: int, width: int, low: float, rng: np.random.Generator) -> Tensor:
    """Where the own image stays [n, height, width]: everywhere but in a rectangle of about 1 - share of the area."""
    h, w = np.arange(1, height + 1)[:, None] / height, np.arange(1, width + 1)[None, :] / width
    area, shape = h * w, np.log(h / w)
    outside = np.maximum(low - area, area - (1 - low)).clip(min=0).round(9)
    outside[-1, -1] = np.inf  # the whole image
    masks = np.ones((len(shares), height, width), bool)
    for mask, share in zip(masks, shares, strict=True):
        lean = rng.uniform(-_STRETCH, _STRETCH)
        misfit = np.abs(area - (1 - share)) + _SHAPE_WEIGHT * np.abs(shape - lean)
        misfit[outside > outside.min()] = np.inf
        rows, columns = np.add(np.unravel_index(misfit.argmin(), misfit.shape), 1)
        top, left = rng.integers(height - rows + 1), rng.integers(width - columns + 1)
        mask[top : top + rows, left : left + columns] = False
    return torch.from_numpy(masks)
