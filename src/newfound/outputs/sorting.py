"""Folders of images by category, as links or copies."""

from __future__ import annotations

import filecmp
import io
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from newfound.errors import DataError, SettingsError
from newfound.files import part_of

LINKS = ("copy", "symlink", "hard")
NEW = "new"  # the folder for what `predict` finds unlike any category

_LONGEST = 120  # bytes of a name: file systems take 255, and a suffix may follow
_UNSAFE = re.compile(r'[\x00-\x1f\x7f<>:"/\\|?*]')
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)  # names that Windows keeps to itself


class Sorter:
    """Puts images into DIR/ID-NAME/FILE.

    The id is there because names can be equal, or differ only in what a file system does not tell apart. Of different
    images with the same file name the later ones get part of their content's hash behind it. What is there already is
    left as it is: sorting the same images again changes nothing.

    Args:
        link: "copy", "symlink" or "hard"; where links are not possible a copy is made. What has no file, as a frame
            of a video, is written as PNG.
    """

    def __init__(self, folder: str | os.PathLike[str], link: str = "copy") -> None:
        if link not in LINKS:
            raise SettingsError(f"{link!r} is no way to sort images; there are {', '.join(LINKS)}")
        self.folder, self.link = Path(folder), link

    def put(self, image: Any, file_name: str, category: int | None, name: str | None) -> Path:
        """Put an image into its category's folder; returns where it is now. Raises DataError if it cannot be written.

        Args:
            image: a path, or anything else that `open_image` takes.
            file_name: what to call it; of a path, only the last part counts.
        """
        folder = self.folder / (NEW if category is None else f"{category}-{safe_name(name or '')}")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if isinstance(image, (str, os.PathLike)):
                return self._put_file(Path(image), folder, _file_name(os.path.basename(file_name)))
            return self._put_pixels(image, folder, _file_name(re.split(r"[/\\]", file_name)[-1] + ".png"))
        except OSError as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"cannot sort {file_name} into {folder}: {error.strerror or error}") from error

    def _put_file(self, source: Path, folder: Path, name: str) -> Path:
        for target in _candidates(folder / name, source):
            if not os.path.lexists(target):
                _make(source, target, self.link)
                return target
            if target.exists() and (os.path.samefile(source, target) or filecmp.cmp(source, target, shallow=False)):
                return target
        raise DataError(f"cannot sort {source} into {folder}: its names there are taken by other images")

    def _put_pixels(self, image: Any, folder: Path, name: str) -> Path:
        from newfound.images import open_image  # here: commands start without NumPy and Pillow

        out = io.BytesIO()
        open_image(image).save(out, "PNG")
        for target in _candidates(folder / name, out.getvalue()):
            if not os.path.lexists(target):
                with _appearing(target) as part:
                    part.write_bytes(out.getvalue())
                return target
            if target.exists() and target.read_bytes() == out.getvalue():
                return target
        raise DataError(f"cannot sort a frame into {folder}: its names there are taken by other images")


def safe_name(text: str) -> str:
    """A name that every common file system takes: no separator, nothing reserved, not too long, not empty."""
    text = _UNSAFE.sub("_", text)
    if len(encoded := text.encode("utf-8", "surrogatepass")) > _LONGEST:
        text = encoded[:_LONGEST].decode("utf-8", "ignore")
    text = text.strip(" ").rstrip(". ")
    return f"_{text}" if _RESERVED.fullmatch(text) else text or "_"


def _file_name(name: str) -> str:
    stem, ending = os.path.splitext(name)
    return safe_name(stem) + _UNSAFE.sub("_", ending)


def _candidates(target: Path, content: Any) -> Iterator[Path]:
    """The name itself, then the name with a short and with the whole hash of the content."""
    yield target
    from newfound.images import content_hash

    digest = content_hash(content)
    for length in (8, len(digest)):
        yield target.with_name(f"{target.stem}-{digest[:length]}{target.suffix}")


def _make(source: Path, target: Path, link: str) -> None:
    try:
        if link == "symlink":
            os.symlink(source.resolve(), target)
            return
        if link == "hard":
            os.link(source.resolve(), target)
            return
    except OSError:  # another device, or a system that does not allow it
        pass
    with _appearing(target) as part:
        shutil.copy2(source, part)


@contextmanager
def _appearing(target: Path) -> Iterator[Path]:
    """A file to write that becomes the target when it is whole: never half a file under an image's name, nor beside."""
    part = part_of(target.with_name(f".{target.name}"))
    try:
        yield part
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)
