"""One image of a source, and what its source knows of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from newfound.errors import DataError, SettingsError
from newfound.remote_files import images_at


@dataclass(frozen=True)
class Item:
    """An image to be decided on, or the error that there is in its place.

    `try_later` is for sources whose images may not be complete yet. It is called with the item if it could not be
    read, and returns whether the source will give it again; only if not is that an error.
    """

    image: Any  # what `open_image` takes; None where there is an error
    name: str  # what answers call it: its path, or the video and the time
    extra: dict[str, Any] = field(default_factory=dict)  # what its sender wrote beside it, to be given back
    error: str | None = None
    try_later: Callable[[Item], bool] | None = None


def from_paths(paths: Iterable[str], extra: dict[str, Any] | None = None) -> Iterator[Item]:
    """The images of files, folders and URLs, in order; what cannot be listed gives an item with its error."""
    for path in paths:
        if not path.strip():  # as of a variable that is not set; it would stand for the working folder
            yield Item(None, path, extra or {}, "the path is empty")
            continue
        try:
            for image in images_at(path):
                yield Item(image, str(image), extra or {})
        except (DataError, SettingsError) as error:  # SettingsError: what a URL's protocol needs is not installed
            yield Item(None, path, extra or {}, str(error))


def chunks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Lists of `size` items; the last one may be shorter."""
    rest = iter(items)
    while chunk := list(islice(rest, size)):
        yield chunk
