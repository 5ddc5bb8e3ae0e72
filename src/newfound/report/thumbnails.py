"""Images inside the page: small JPEGs in data URIs."""

from __future__ import annotations

import base64

from newfound.errors import ImageError, MissingFileError
from newfound.images import open_image, thumbnail
from newfound.report.markup import Markup, element
from newfound.report.story import Story

_SIDE = 96  # pixels
_COARSE = 48  # below this, pixels are shown as they are: smoothing an 8 x 8 digit leaves a blur


class Thumbnails:
    """The thumbnails of a story's images, each made once."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._made: dict[int, tuple[str, bool] | None] = {}

    def show(self, position: int, note: str = "") -> Markup:
        """An img; a grey square in the place of an image that cannot be read (any more)."""
        text = self._story.describe(position) + note
        if position not in self._made:
            self._made[position] = self._make(position)
        made = self._made[position]
        if made is None:
            return element("span", class_="missing", role="img", aria_label=f"{text}: cannot be read", title=text)
        uri, coarse = made
        return element("img", src=uri, alt=text, title=text, class_="coarse" if coarse else None)

    def _make(self, position: int) -> tuple[str, bool] | None:
        try:
            image = open_image(self._story.items[position])
        except (ImageError, MissingFileError):
            return None
        data = base64.b64encode(thumbnail(image, _SIDE)).decode("ascii")
        return f"data:image/jpeg;base64,{data}", max(image.size) < _COARSE
