"""Pixels become model inputs: one centre view to decide on, random views to learn from.

A random view is a pure function of the image and a seed. Nothing reads a global random state, so a view can be
cached, computed again on another machine, or skipped, and stays the same.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torchvision.transforms import InterpolationMode
from torchvision.transforms.v2 import functional as F

from newfound.backbone import InputSpec


@dataclass(frozen=True)
class Augmentation:
    """How a training view differs from the image: the released code's values."""

    min_scale: float = 0.6  # random resized crop: the smallest share of the image's area
    flip: bool = True
    jitter: float = 0.2  # brightness, contrast and saturation


@dataclass(frozen=True)
class Views:
    """The views of an image for one backbone; a key names everything that shapes a view."""

    spec: InputSpec
    augmentation: Augmentation = Augmentation()

    def centre_key(self) -> str:
        return repr(("centre", asdict(self.spec)))

    def random_key(self) -> str:
        return repr(("random", asdict(self.spec), asdict(self.augmentation)))

    def centre(self, image: Image.Image) -> Tensor:
        """The view that decisions are made on: resize, centre crop, normalise. Float tensor [3, size, size]."""
        size = self.spec.size
        image = _without_far_ends(image)
        resized = F.resize(image, [max(size, math.floor(size / self.spec.crop_pct))], interpolation=self._mode())
        return self._normalise(F.pil_to_tensor(F.center_crop(resized, [size, size])))

    def random(self, image: Image.Image, seed: int | tuple[int, ...]) -> Tensor:
        """A training view: random resized crop, flip, colour jitter. The same seed gives the same view."""
        rng = np.random.default_rng(seed)
        top, left, height, width = _crop(image.height, image.width, self.augmentation.min_scale, rng)
        size = self.spec.size
        view = F.resized_crop(image, top, left, height, width, [size, size], interpolation=self._mode())
        if self.augmentation.flip and rng.random() < 0.5:
            view = F.horizontal_flip(view)
        return self._normalise(self._jitter(F.pil_to_tensor(view), rng))

    def _jitter(self, pixels: Tensor, rng: np.random.Generator) -> Tensor:
        strength = self.augmentation.jitter
        if strength > 0:
            factors = rng.uniform(1 - strength, 1 + strength, size=3)
            changes = (F.adjust_brightness, F.adjust_contrast, F.adjust_saturation)
            for which in rng.permutation(3):
                pixels = changes[which](pixels, float(factors[which]))
        return pixels

    def _normalise(self, pixels: Tensor) -> Tensor:
        """Bytes as floats around 0, rounded at every step as torchvision rounds them.

        In NumPy, which stays on this thread: PyTorch would give every thread that decodes a team of its own, and on
        few cores those are in the encoder's way.
        """
        values = pixels.numpy().astype(np.float32, order="C")
        values *= np.float32(1 / 255)
        values -= np.array(self.spec.mean, np.float32)[:, None, None]
        values /= np.array(self.spec.std, np.float32)[:, None, None]
        return torch.from_numpy(values)

    def _mode(self) -> InterpolationMode:
        return InterpolationMode(self.spec.interpolation if self.spec.interpolation != "random" else "bicubic")


def _without_far_ends(image: Image.Image) -> Image.Image:
    """A long thin image without the ends that a centre crop never shows; scaling them up could take gigabytes."""
    longest = 4 * min(image.size)
    if max(image.size) <= longest:
        return image
    return F.center_crop(image, [min(image.height, longest), min(image.width, longest)])


def _crop(height: int, width: int, min_scale: float, rng: np.random.Generator) -> tuple[int, int, int, int]:
    """A random box of `min_scale` to all of the area and a ratio of 3:4 to 4:3; a centre square after ten misses."""
    for _ in range(10):
        area = height * width * rng.uniform(min_scale, 1.0)
        ratio = float(np.exp(rng.uniform(np.log(3 / 4), np.log(4 / 3))))
        w, h = round((area * ratio) ** 0.5), round((area / ratio) ** 0.5)
        if 0 < w <= width and 0 < h <= height:
            return int(rng.integers(0, height - h + 1)), int(rng.integers(0, width - w + 1)), h, w
    side = min(height, width)
    return (height - side) // 2, (width - side) // 2, side, side
