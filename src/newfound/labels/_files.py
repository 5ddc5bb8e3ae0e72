"""Files that other tools read and write, and how paths are written in them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

from newfound.errors import NewfoundError
from newfound.remote_files import is_url


@dataclass(frozen=True)
class Places:
    """How paths are written: below `root` relative to it, and then with `url` before them; else as they are."""

    root: str = ""
    url: str = ""

    def of(self, path: str) -> str:
        """The path, or the URL, of a picture as another tool shall see it."""
        root = os.path.join(os.path.abspath(self.root), "") if self.root else ""
        if not root or not path.startswith(root):
            return path
        inside = path[len(root) :].replace(os.sep, "/")
        return self.url + quote(inside) if self.url else inside


@dataclass(frozen=True)
class Options:
    """What some of the formats can be told.

    Attributes:
        places: How paths are written; for COCO, CSV, Label Studio and Camtrap DP.
        link: How images get into folders: copy, symlink or hard.
        deployments: A CSV with what is known of the cameras; for Camtrap DP.
        utc_offset: Of the cameras' clocks, such as +02:00; for Camtrap DP.
    """

    places: Places = Places()
    link: str = "copy"
    deployments: Path | None = None
    utc_offset: str | None = None


def write_items(file: IO[str], items: Iterable[Any]) -> None:
    """A JSON list, an item a line, none of which is kept."""
    file.write("[")
    between = "\n"
    for item in items:
        file.write(between + json.dumps(item))
        between = ",\n"
    file.write("\n]")


def read_header(path: str) -> tuple[int, int, dict[int, Any]] | None:
    """Width, height and EXIF tags of an image, upright, without decoding it; None if it is gone or no image."""
    from PIL import ExifTags, Image

    if is_url(path) and (path := _fetched(path)) is None:  # type: ignore[assignment]
        return None
    try:
        with Image.open(path) as image:
            exif = image.getexif()
            tags = {**exif, **exif.get_ifd(ExifTags.IFD.Exif)}
            width, height = image.size
            if image.format == "TIFF":  # whose size Pillow turns by itself, in some versions before it is loaded
                width, height = tags[ExifTags.Base.ImageWidth], tags[ExifTags.Base.ImageLength]
            if tags.get(ExifTags.Base.Orientation, 1) in (5, 6, 7, 8):  # lies on its side
                width, height = height, width
            return width, height, tags
    except Exception:  # decoders that are given damaged bytes raise almost anything
        return None


def _fetched(url: str) -> IO[bytes] | None:
    import io

    from newfound.remote_files import find_remote

    try:
        return io.BytesIO(find_remote(url)[0].read())
    except (OSError, NewfoundError, IndexError):  # the last: a name with wildcards that nothing has any more
        return None
