"""Files that other tools read and write, and how paths are written in them."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

from newfound.errors import DataError, MissingFileError, NewfoundError
from newfound.files import read_json
from newfound.journal.rows import as_path
from newfound.remote_files import is_url

_SEPARATORS = ",;\t"  # spreadsheets take the semicolon where numbers are written with a comma


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


def read_tool_json(path: Path, tool: str) -> Any:
    """What a tool has written as JSON. Raises DataError if it is not there, empty, or cut off."""
    if path.is_file() and path.stat().st_size == 0:
        raise DataError(f"{path} is empty: export it from {tool} again.")
    try:
        return read_json(path)
    except MissingFileError:
        raise
    except DataError as error:
        raise DataError(f"{error}; if it was cut off, export it from {tool} again.") from error


def read_rows(path: Path, needed: Collection[str]) -> Iterator[tuple[int, dict[str, str | None]]]:
    """The rows of a table, by column, each with the line it ends on; a cell that a row does not have is None.

    The names of columns count without the spaces around them. Commas, semicolons or tabs may be between cells.

    Raises:
        MissingFileError: There is no file.
        DataError: It cannot be read, is no table, or has not all of the needed columns.
    """
    line = 1
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            separator = max(_SEPARATORS, key=file.readline().count)
            file.seek(0)
            table = csv.DictReader(file, delimiter=separator, strict=True)
            table.fieldnames = columns = [name.strip() for name in table.fieldnames or ()]
            if missing := [name for name in needed if name not in columns]:
                there = f"its columns are {', '.join(columns)}" if columns else "it is empty"
                raise DataError(f"{path} has no column {' and no column '.join(missing)}: {there}.")
            for row in table:
                line = table.line_num
                yield line, row
    except FileNotFoundError:
        raise MissingFileError(f"there is no file {path}") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text ({error.reason}); save it as 'CSV UTF-8'") from None
    except csv.Error as error:
        raise DataError(f"{path} cannot be read as a table after line {line}: {error}") from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error


def read_header(path: str) -> tuple[int, int, dict[int, Any], str] | None:
    """Width, height, EXIF tags and media type of an image, upright, without decoding it.

    None if it is gone or no image.
    """
    from PIL import ExifTags, Image

    source = _fetched(path) if is_url(path) else as_path(path)
    if source is None:
        return None
    try:
        with Image.open(source) as image:
            exif = image.getexif()
            tags = {**exif, **exif.get_ifd(ExifTags.IFD.Exif)}
            width, height = image.size
            if image.format == "TIFF":  # whose size Pillow turns by itself, in some versions before it is loaded
                width, height = tags[ExifTags.Base.ImageWidth], tags[ExifTags.Base.ImageLength]
            if tags.get(ExifTags.Base.Orientation, 1) in (5, 6, 7, 8):  # lies on its side
                width, height = height, width
            return width, height, tags, image.get_format_mimetype() or f"image/{image.format}".lower()
    except Exception:  # decoders that are given damaged bytes raise almost anything
        return None


def _fetched(url: str) -> IO[bytes] | None:
    import io

    from newfound.remote_files import find_remote

    try:
        return io.BytesIO(find_remote(url)[0].read())
    except (OSError, NewfoundError, IndexError):  # the last: a name with wildcards that nothing has any more
        return None
