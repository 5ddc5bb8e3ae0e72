"""Files that people and programs read: written whole, or not at all; and which of them look like images."""

from __future__ import annotations

import glob
import json
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath
from typing import IO, Any

from newfound.errors import DataError, MissingFileError, NewfoundError

IMAGE_SUFFIXES = frozenset({".jpg", ".jpeg", ".jfif", ".png", ".webp", ".bmp", ".tif", ".tiff", ".gif"})
# Taken for images as well, though they cannot be read: a person who sees pictures must hear of each left out.
_FOREIGN_SUFFIXES = frozenset({".heic", ".heif", ".avif", ".jp2", ".jxl"})

# What readers may take for the end of a line, and bytes of names that are no text, which would make a file no UTF-8.
_ESCAPED_IN_JSON = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def is_image_path(path: str | os.PathLike[str]) -> bool:
    """Return whether the name ends like an image's, in any case; the file itself is not looked at."""
    return PurePath(path).suffix.lower() in IMAGE_SUFFIXES | _FOREIGN_SUFFIXES


def is_file_or_dead_link(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is here, or a link that leads to none, which whoever reads it tells of."""
    return os.path.isfile(path) or is_dead_link(path)


def is_dead_link(path: str | os.PathLike[str]) -> bool:
    """Return whether this is a link that leads nowhere."""
    return os.path.islink(path) and not os.path.exists(path)


def part_of(path: Path) -> Path:
    """A name beside a file, to write it under until it is whole: another each time, so that no two writers share it."""
    return path.with_name(f"{path.name}.{_token()}.part")


def parts_of(path: Path) -> list[Path]:
    """What is there under such names: of writers that are at it, or that were killed."""
    return sorted(path.parent.glob(f"{glob.escape(path.name)}.{'[0-9a-f]' * 8}.part"))


def _token() -> str:
    return secrets.token_hex(4)


def put_in_place(part: Path, path: Path) -> None:
    """Give a written file its name. After a power failure there is the old file or the new one, and it is whole."""
    with part.open("r+b") as file:
        os.fsync(file.fileno())
    os.replace(part, path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Have the names in a folder outlive a power failure, as far as the system can promise it."""
    with suppress(OSError):  # Windows opens no folders, and some network drives cannot sync them
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_text(path: Path, text: str) -> None:
    """Write a file, and the folders on the way. Raises DataError if it cannot be written."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, content: bytes) -> None:
    """As `write_text`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file():  # a pipe or a terminal, which cannot be replaced
            path.write_bytes(content)
            return
        part = part_of(path)
        try:
            part.write_bytes(content)
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror}") from error


@contextmanager
def new_file(path: Path) -> Iterator[IO[str]]:
    """A text file that gets its name when the block is done, and leaves nothing behind if it is not.

    A pipe or a terminal is written to as it is. Raises DataError if it cannot be written.
    """
    part = part_of(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        there = path.exists() and not path.is_file()  # what cannot be replaced, and as root must not be
        with (path if there else part).open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
            yield file
        if not there:
            os.replace(part, path)
    except OSError as error:
        if isinstance(error, NewfoundError):
            raise
        raise DataError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        with suppress(OSError):  # where not even that can be done, nothing was written
            part.unlink(missing_ok=True)


def json_text(value: Any, *, encoding: str | None = "utf-8", indent: int | None = None) -> str:
    """A value as JSON, with names as people write them, unless it goes where the encoding has not all letters.

    Raises ValueError for NaN and infinities, which JSON does not have.
    """
    everything = encoding is None or encoding.replace("-", "").lower() == "utf8"  # None: a text, not a file
    text = json.dumps(value, ensure_ascii=not everything, allow_nan=False, indent=indent)
    return _ESCAPED_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def read_json(path: Path) -> Any:
    """What a JSON file holds. Raises DataError if it is not there or not JSON."""
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        raise MissingFileError(f"there is no file {path}") from None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise DataError(f"{path} is not JSON: {error}") from None
