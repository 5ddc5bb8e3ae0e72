"""A part of an image as an image of its own, named by a media fragment: frame.jpg#xywh=percent:10,20,30.5,40."""

from __future__ import annotations

import io
import math
import os
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from newfound.errors import ImageError, NewfoundError
from newfound.remote_files import find_remote, is_url

if TYPE_CHECKING:
    from PIL import Image

_NUMBER = r"\d+(?:\.\d+)?"
_FRAGMENT = re.compile(rf"#xywh=percent:({_NUMBER}),({_NUMBER}),({_NUMBER}),({_NUMBER})\Z")
_IN_PIXELS = re.compile(r"#xywh=(pixel:)?[-\d.,]+\Z")
_DIGITS = 4  # of a percentage: less than a hundredth of a pixel in any image that can be read
_FINEST = 10**-_DIGITS / 100  # what a name can tell, as a share


class Box(NamedTuple):
    """Left, top, width and height as shares of the upright image's."""

    x: float
    y: float
    width: float
    height: float

    def padded(self, share: float) -> Box:
        """Larger on every side by a share of its own width and height, as far as the image goes."""
        left, top = max(0.0, self.x - share * self.width), max(0.0, self.y - share * self.height)
        right = min(1.0, self.x + self.width * (1 + share))
        bottom = min(1.0, self.y + self.height * (1 + share))
        return Box(left, top, right - left, bottom - top)

    def inside(self) -> Box | None:
        """As much of it as lies in the image; None if that has no area, or a side is no number."""
        if not all(map(math.isfinite, self)):
            return None
        left, top, right, bottom = self.x, self.y, self.x + self.width, self.y + self.height
        if min(left, top) >= 0 and max(right, bottom) <= 1 + _FINEST and min(self.width, self.height) >= _FINEST:
            return self  # to the last bit: it is named by it
        left, top, right, bottom = max(0.0, left), max(0.0, top), min(1.0, right), min(1.0, bottom)
        if left >= right or top >= bottom:
            return None
        return Box(left, top, max(right - left, _FINEST), max(bottom - top, _FINEST))

    def overlap(self, other: Box) -> float:
        """The area both share over the area that either covers: 1 for the same box, 0 for boxes apart."""
        wide = min(self.x + self.width, other.x + other.width) - max(self.x, other.x)
        high = min(self.y + self.height, other.y + other.height) - max(self.y, other.y)
        both = max(0.0, wide) * max(0.0, high)
        either = self.width * self.height + other.width * other.height - both
        return both / either if either > 0 else 0.0


WHOLE = Box(0.0, 0.0, 1.0, 1.0)


@dataclass(frozen=True)
class Crop:
    """What lies inside a box of an image file: a file object that `open_image` takes, cut out when it is read.

    Its bytes are those of an uncompressed bitmap of the upright image's pixels, so its content hash says what can be
    seen and changes with the image and with the box, but not with the file's name.

    Raises ImageError for a box that has nothing of the image in it; of one that reaches beyond, what is inside counts.
    """

    path: str  # of a file, or a URL
    box: Box

    def __post_init__(self) -> None:
        box = self.box.inside()
        if box is None:
            raise ImageError(f"{self.path}: nothing of the image is in the box {tuple(self.box)}, in shares of 0 to 1")
        # As exact as the name can tell it: who reads the crop again by its name gets the very same pixels.
        object.__setattr__(self, "box", Box(*(float(_percent(share)) / 100 for share in box)))

    @property
    def filename(self) -> str:
        """What answers and journals call it: the whole path and the box."""
        return self.path + fragment(self.box)

    name = filename  # what messages call it

    def __str__(self) -> str:
        return self.filename

    def read(self) -> bytes:
        """The bitmap. Raises OSError if the image is not there or cannot be read."""
        try:
            image = _frame(self.path, _version(self.path))
        except NewfoundError as error:
            raise OSError(str(error)) from error
        out = io.BytesIO()
        image.crop(_pixels(self.box, *image.size)).save(out, "BMP")
        return out.getvalue()


def fragment(box: Box) -> str:
    """What follows the path in a crop's name."""
    return "#xywh=percent:" + ",".join(_percent(value) for value in box)


def parted(reference: str) -> tuple[str, Box | None]:
    """The path and the box in an image's name; no box where it names a whole image."""
    found = _FRAGMENT.search(reference)
    if found is None:
        return reference, None
    return reference[: found.start()], Box(*(float(value) / 100 for value in found.groups()))


def crop_at(reference: object) -> Crop | None:
    """The crop that a journal calls so; None for all else, and for a file that has this very name.

    Raises ImageError for a box that is in pixels, or that has nothing of the image in it.
    """
    if not isinstance(reference, str) or "#xywh=" not in reference or os.path.exists(reference):
        return None
    if (found := _IN_PIXELS.search(reference)) and os.path.isfile(reference[: found.start()]):
        raise ImageError(f"{reference} has a box in pixels; write it in percent, as #xywh=percent:10,20,30.5,40")
    path, box = parted(reference)
    return None if box is None else Crop(path, box)


def _percent(share: float) -> str:
    text = f"{100 * share:.{_DIGITS}f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _pixels(box: Box, width: int, height: int) -> tuple[int, int, int, int]:
    """All pixels that the box touches, and at least one."""
    nearly = 0.01  # what rounding to so many digits adds at the most to a box that ends at a pixel's edge
    left = min(math.floor(box.x * width + nearly), width - 1)
    top = min(math.floor(box.y * height + nearly), height - 1)
    right = min(math.ceil((box.x + box.width) * width - nearly), width)
    bottom = min(math.ceil((box.y + box.height) * height - nearly), height)
    return left, top, max(right, left + 1), max(bottom, top + 1)


def _version(path: str) -> Any:
    """Changes when the file does."""
    if is_url(path):
        return None
    try:
        about = os.stat(path)
    except OSError:
        return None
    return about.st_mtime_ns, about.st_size


@lru_cache(maxsize=2)  # the crops of a frame follow each other, and two threads decode
def _frame(path: str, version: Any) -> Image.Image:
    from newfound.images import open_image

    return open_image(next(iter(find_remote(path)), path) if is_url(path) else path)
