"""A tree of folders, one a category, that people sort with what they have: a file manager."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from pathlib import Path

from newfound.crops import Crop
from newfound.errors import DataError, ImageError, MissingFileError, NewfoundError
from newfound.images import content_of, find_images, open_image
from newfound.journal.rows import as_path
from newfound.labels._files import Options
from newfound.labels.findings import Findings, unnamed
from newfound.labels.told import Told
from newfound.outputs import Sorter
from newfound.outputs.sorting import safe_name
from newfound.remote_files import is_url

_FOLDER = re.compile(r"(\d+)-(.*)", re.DOTALL)


def write(findings: Findings, out: Path, options: Options) -> None:
    """Put every image, or what is inside its box, into OUT/ID-NAME/; what is there already is left as it is.

    Images that are gone, cannot be read, or are behind a URL are left out and counted.

    Raises:
        DataError: A file cannot be written.
    """
    sorter = Sorter(out, options.link)
    for picture in findings.pictures():
        for thing in picture.things:
            if thing.box is None and is_url(picture.path):
                findings.left_out["behind a URL, and no file to put into a folder"] += 1
                continue
            try:
                path = as_path(picture.path)
                image = path if thing.box is None else Crop(path, thing.box)
                if isinstance(image, str) and not (os.path.isfile(image) and os.access(image, os.R_OK)):
                    raise ImageError(f"cannot read {image}")
                sorter.put(image, picture.reference(thing), thing.category, thing.label)
            except ImageError:
                findings.left_out["gone, or cannot be read"] += 1


def read(path: Path, findings: Findings) -> tuple[Iterator[Told], dict[int, str]]:
    """What lies in which folder, by the content of the images, and the ids whose folders were renamed.

    A folder without an id in front names a category by itself.

    Raises:
        DataError: The folder is not there or cannot be read, or two folders have the same id.
    """
    if not path.is_dir():
        raise MissingFileError(f"there is no folder {path}")
    try:
        folders = sorted(entry for entry in path.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    except OSError as error:
        raise DataError(f"cannot look into the folder {path}: {error.strerror}") from error
    numbered = {folder: found for folder in folders if (found := _FOLDER.fullmatch(folder.name))}
    names: dict[int, str] = {}
    for folder, found in numbered.items():
        if int(found[1]) in names:
            raise DataError(f"{folder} is a second folder of category {found[1]}: take the id off one of the two.")
        names[int(found[1])] = found[2]
    renamed = {number: name for number, name in names.items() if not _is_called(findings, number, name)}
    return _images(folders, numbered, findings), renamed


def _is_called(findings: Findings, number: int, name: str) -> bool:
    """Whether a folder has the name that the category has, or had before a person gave it one."""
    category = findings.categories.get(number)
    if category is None:
        return True  # it lives on under another id, whose name is another's
    return name in (safe_name(category.name), unnamed(number, findings.taught))


def _images(folders: list[Path], numbered: dict[Path, re.Match[str]], findings: Findings) -> Iterator[Told]:
    for folder in folders:
        found = numbered.get(folder)
        label, category = (folder.name, None) if found is None else (found[2], int(found[1]))
        for image in find_images(folder):
            content = content_of(image) or b""
            if image.suffix.lower() == ".png" and findings.alike(content) is None:
                # What was inside a box was written as PNG: its content in the journal is that of the bitmap.
                content = content_of(_bitmap(image)) or b""
            yield Told(label, str(image), category=category, content=content)


def _bitmap(path: Path) -> bytes:
    """The bytes of the crop whose pixels these are; none if it cannot be read."""
    out = io.BytesIO()
    try:
        open_image(path).save(out, "BMP")
    except NewfoundError:
        return b""
    return out.getvalue()
