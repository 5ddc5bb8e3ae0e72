"""Pixels of any kind become upright 8-bit RGB; part of :mod:`newfound.images`, which is the door."""

from __future__ import annotations

from typing import Any

import numpy as np
from PIL import ExifTags, Image

from newfound.errors import ImageError

_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_BITS_PER_SAMPLE = 258  # of TIFF's tags
_FLOAT_SLACK = 1e-3  # resampling overshoots [0, 1] a little


def upright(image: Image.Image) -> Image.Image:
    try:
        turn = _TURNS.get(image.getexif().get(ExifTags.Base.Orientation, 1))
    except Exception:  # a picture with damaged EXIF is still a picture
        return image
    return image if turn is None else image.transpose(turn)


def to_rgb(image: Image.Image) -> Image.Image:
    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        return Image.fromarray(_wide_grey(image)).convert("RGB")
    if image.has_transparency_data:
        white = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(white, image.convert("RGBA"))
    return image.convert("RGB")


def _wide_grey(image: Image.Image) -> np.ndarray:
    values = np.asarray(image)
    if image.mode == "F" or _has_32_bits(image) or values.min() < 0 or values.max() > 65535:
        grey = _stretched(values)
    else:  # mode I within 16 bits is how older versions of Pillow open a 16-bit PNG
        grey = _from_16_bits(values)
    if isinstance(transparent := image.info.get("transparency"), int):
        grey[values == transparent] = 255
    return grey


def _has_32_bits(image: Image.Image) -> bool:
    """Whether a TIFF says so. How large its values are does not tell: small ones would be nearly black as 16 bits."""
    return 32 in getattr(image, "tag_v2", {}).get(_BITS_PER_SAMPLE, ())


def _from_16_bits(values: np.ndarray) -> np.ndarray:
    return ((values.astype(np.uint32) + 128) // 257).astype(np.uint8)  # 65535 = 257 * 255; to the nearest


def _stretched(values: np.ndarray) -> np.ndarray:
    """Return values scaled from their finite range to 0..255; a constant image and NaN become black."""
    values = values.astype(np.float64)
    finite = values[np.isfinite(values)]
    low, high = (finite.min(), finite.max()) if finite.size else (0.0, 0.0)
    scaled = (np.clip(values, low, high) - low) / ((high - low) or 1.0)
    return np.rint(255 * np.nan_to_num(scaled)).astype(np.uint8)


def as_array(source: Any) -> np.ndarray:
    """Return an array or tensor as H x W or H x W x (1, 3, 4), its values unchanged."""
    try:
        # A tensor may live on another device or want a gradient; NumPy takes neither.
        array = np.asarray(source.detach().cpu() if hasattr(source, "detach") else source)
    except Exception as error:
        raise ImageError(f"cannot turn this {type(source).__name__} into an array: {error}") from error
    if array.ndim == 3 and not isinstance(source, np.ndarray) and array.shape[0] in (1, 3, 4):
        array = np.moveaxis(array, 0, -1)
    if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] not in (1, 3, 4)):
        raise ImageError(f"an array of shape {array.shape} is not an image; give H x W or H x W x 1, 3 or 4")
    if array.size == 0:
        raise ImageError(f"the array has no pixels: its shape is {array.shape}")
    return array


def eight_bits(array: np.ndarray) -> np.ndarray:
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[..., 0]
    if array.dtype == np.uint8:
        return array
    if array.dtype == bool:
        return array.astype(np.uint8) * 255
    if array.dtype == np.uint16:
        return _from_16_bits(array)
    if not np.issubdtype(array.dtype, np.floating):
        raise ImageError(f"an array of {array.dtype} is no image; give uint8, uint16, bool or floats")
    low, high = float(array.min()), float(array.max())
    if not (low >= -_FLOAT_SLACK and high <= 1 + _FLOAT_SLACK):  # written so that NaN fails, too
        raise ImageError(
            f"the array's values run from {low:g} to {high:g}, but floats must lie in [0, 1]; "
            "divide them by the largest value that a pixel can have"
        )
    return np.rint(255 * np.clip(array, 0, 1)).astype(np.uint8)
