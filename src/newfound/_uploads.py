"""Images on their way to a service: read from wherever they are, and gathered into requests."""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from newfound.crops import crop_at
from newfound.datasets import item_name
from newfound.errors import ImageError, MissingFileError

_BYTES = 16 << 20  # that a request holds before the last of its images; a service takes 64 MiB unless told otherwise


@dataclass(frozen=True)
class Upload:
    """An image on its way to the service, or why it cannot go."""

    item: Any
    name: str
    data: bytes = b""
    error: str | None = None


def requests(items: Iterable[Any], most: int) -> Iterator[list[Upload]]:
    """Images to send together, in order: at most so many, and as few as hold enough bytes."""
    images: list[Upload] = []
    size = 0
    for index, item in enumerate(items):
        name = os.path.basename(item_name(item, index)).encode("utf-8", "replace").decode()
        try:
            images.append(Upload(item, name, _bytes(item)))
        except (ImageError, MissingFileError, OSError) as error:
            images.append(Upload(item, name, error=str(error)))
        size += len(images[-1].data)
        if len(images) == most or size >= _BYTES:
            yield images
            images, size = [], 0
    if images:
        yield images


def _bytes(item: Any) -> bytes:
    """An image as the bytes of a file: its own, or PNG for one in memory."""
    item = crop_at(item) or item
    if isinstance(item, (str, os.PathLike)):
        path = Path(item)
        if not path.is_file():  # a pipe could keep us waiting for ever
            raise ImageError(f"{path} is not a file") if path.exists() else MissingFileError(f"there is no file {path}")
        return path.read_bytes()
    if isinstance(item, (bytes, bytearray, memoryview)):
        return bytes(item)
    if hasattr(item, "read"):
        content = item.read()
        if isinstance(content, str):
            raise ImageError(f"{getattr(item, 'name', 'the file')} was opened as text; open it in binary mode ('rb')")
        return bytes(content)
    from newfound.images import open_image

    out = io.BytesIO()
    open_image(item).save(out, "PNG")
    return out.getvalue()


def body(images: list[Upload], again: bool) -> dict[str, Any]:
    """What holds images in a request: their bytes as they are, or JSON where more is to be said."""
    if not again:
        return {"files": [("images", (image.name, image.data, "application/octet-stream")) for image in images]}
    told = [{"name": image.name, "data": base64.b64encode(image.data).decode()} for image in images]
    return {"json": {"images": told, "again": True}}
