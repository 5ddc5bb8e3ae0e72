"""Images that came over HTTP, kept by their content, and small copies of all images to show."""

from __future__ import annotations

import logging
import os
import re
import secrets
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from PIL import Image

from newfound.crops import Crop, crop_at
from newfound.errors import DataError, ImageError, MissingFileError
from newfound.files import put_in_place, sync_folder
from newfound.images import content_hash, content_of, thumbnail
from newfound.journal import Journal
from newfound.journal.rows import SightingRow, as_path

log = logging.getLogger("newfound.service")

SIZES = (160, 320, 640)
_WHOLE = 4096  # pixels of the longer side of what is shown in place of an original
_SEPARATOR = "--"  # between the content's hash and the name that a client gave
_MARK = re.compile(r"[0-9a-f]{32}--@[0-9a-f]{24}-\d+--")  # no client's name has an @ here
_NAME = 60
_ENDINGS = {b"\xff\xd8\xff": ".jpg", b"\x89PNG": ".png", b"GIF8": ".gif", b"BM": ".bmp", b"RIFF": ".webp",
            b"II*\0": ".tif", b"MM\0*": ".tif"}  # fmt: skip


class NotKept(DataError):
    """Images cannot be written to the disk of the service: it is full, or may not be written to."""


@dataclass(frozen=True)
class Kept:
    """An image of a request on the disk.

    Attributes:
        fresh: whether its file was written now.
        entered: its sighting, if this very request has been here before and came as far as that.
    """

    path: Path
    fresh: bool
    entered: SightingRow | None = None


@dataclass
class Hand:
    """The files that a request counts on.

    Attributes:
        useless: those that it wrote and that are no images.
        done: whether it is answered, or was given up.
    """

    files: list[Path] = field(default_factory=list)
    useless: set[Path] = field(default_factory=set)
    done: bool = False


class ImageStore:
    """`RUN/images/ab/HASH--NAME.jpg` for what was uploaded, `RUN/thumbnails/SIZE/ab/HASH.jpg` for what is shown.

    A client's name is only ever a part of a file's name, and no path that a client gives is opened.
    """

    def __init__(self, folder: Path, journal: Journal) -> None:
        self.images, self.thumbnails = folder / "images", folder / "thumbnails"
        self._journal = journal
        self._turn = threading.Lock()
        self._in_hand = Counter[Path]()  # how many requests count on a file
        self._useless: set[Path] = set()  # of these, what is to be deleted

    @contextmanager
    def hand(self) -> Iterator[Hand]:
        """For as long as a request counts on files. What is useless is deleted when no other counts on it any more."""
        hand = Hand()
        try:
            yield hand
        finally:
            with self._turn:
                hand.done = True
                self._useless |= hand.useless
                self._in_hand.subtract(hand.files)
                free = {path for path in hand.files if self._in_hand[path] == 0}
                unwanted = self._useless & free
                self._useless -= free
                for path in free:
                    del self._in_hand[path]
                for path in unwanted:
                    path.unlink(missing_ok=True)

    def keep(self, images: Sequence[tuple[bytes, str | None]], mark: str | None, hand: Hand) -> list[Kept]:
        """Write images that are not there yet to disk.

        Args:
            hand: of the request, which from now on counts on their files.
            mark: of a request that may come again and whose images are to be entered though they were seen before. It
                is a part of the names of their files, so that the journal tells what the request has entered.

        Raises:
            NotKept: The disk is full, or may not be written to.
        """
        hashes = [content_hash(data) for data, _ in images]
        contents = {bytes.fromhex(digest) for digest in hashes}
        if mark is not None:
            return self._marked(images, hashes, mark, self._journal.alike(contents), hand)
        seen = self._journal.find(contents)
        kept: list[Kept] = []
        for (data, name), digest in zip(images, hashes, strict=True):
            row = seen.get(bytes.fromhex(digest))
            there = None if row is None else self.file_of(row)
            if there is not None and not there.is_relative_to(self.images):
                there = None  # others may replace it before it is decided on
            path = there or self._folder(digest) / f"{digest}{_SEPARATOR}{safe_name(name, data)}"
            kept.append(Kept(path, fresh=there is None and self._written(path, digest, data, hand)))
        return kept

    def _marked(
        self, images: Sequence[tuple[bytes, str | None]], hashes: Sequence[str], mark: str, seen: Sequence[SightingRow],
        hand: Hand,
    ) -> list[Kept]:  # fmt: skip
        entered = {found[0]: row for row in seen if (found := _MARK.search(row.image or ""))}
        kept: list[Kept] = []
        for at, ((data, name), digest) in enumerate(zip(images, hashes, strict=True)):
            start = f"{digest}{_SEPARATOR}@{mark}-{hashes[:at].count(digest)}{_SEPARATOR}"  # it may be there twice
            path, row = self._folder(digest) / f"{start}{safe_name(name, data)}", entered.get(start)
            kept.append(Kept(path, fresh=row is None and self._written(path, digest, data, hand), entered=row))
        return kept

    def _written(self, path: Path, digest: str, data: bytes, hand: Hand) -> bool:
        """Whether a file had to be written. One that is here under another name gets this one too."""
        with self._turn:  # before it is looked for, so that no other request deletes it in between
            if not hand.done:
                hand.files.append(path)
                self._in_hand[path] += 1
        if _holds(path, bytes.fromhex(digest)):
            return False
        here = self._kept(bytes.fromhex(digest))
        if here is not None:
            with suppress(OSError):  # not all file systems can
                os.link(here, path)
                sync_folder(path.parent)
                return True
        _write(path, data)
        return True

    def file_of(self, row: SightingRow) -> Path | None:
        """Where the image of a sighting is now: where the journal says, or here if the run was moved; else None.

        A file that has been overwritten since is another image.
        """
        there = _local(row)
        if there is not None and (_holds(Path(there), row.content) or _pictures(Path(there), row.content)):
            return Path(there)
        return None if row.content is None else self._kept(row.content)

    def source_of(self, row: SightingRow) -> Path | Crop | None:
        """What the picture of a sighting is made from: a part of a file here, where its image is one; else its file."""
        crop = crop_at(_local(row))
        same = crop is not None and row.content in (None, content_of(crop))
        return crop if same else self.file_of(row)

    def small(self, row: SightingRow, size: int) -> bytes | None:
        """A JPEG that fits `size` pixels, made on first use; None if the image is gone or cannot be read."""
        cached = None
        if row.content is not None:
            digest = row.content.hex()
            cached = self.thumbnails / f"{size:d}" / digest[:2] / f"{digest}.jpg"
            with suppress(OSError):
                return cached.read_bytes()
        data = self._scaled(row, size)
        if data is not None and cached is not None:
            try:
                _write(cached, data, durable=False)
            except NotKept as error:  # it can be shown all the same
                log.warning("%s", error)
        return data

    def whole(self, row: SightingRow) -> bytes | None:
        """The image as a new JPEG: nothing of the bytes that a client sent is served. None as in `small`."""
        return self._scaled(row, _WHOLE)

    def _scaled(self, row: SightingRow, size: int) -> bytes | None:
        try:
            source = self.source_of(row)
            return None if source is None else thumbnail(source, size)
        except (ImageError, MissingFileError):
            return None

    def _kept(self, content: bytes) -> Path | None:
        """A file here with this content."""
        digest = content.hex()
        there = self._folder(digest).glob(f"{digest}{_SEPARATOR}*")
        return next((path for path in there if _holds(path, content)), None)

    def _folder(self, digest: str) -> Path:
        return self.images / digest[:2]


def erase(folder: Path, contents: Iterable[bytes]) -> None:
    """Delete all that a run's folder has of images: what was uploaded, and the small copies of every size.

    Raises:
        DataError: A file cannot be deleted.
    """
    for digest in {content.hex() for content in contents}:
        copies = (folder / "thumbnails").glob(f"*/{digest[:2]}/{digest}.jpg")
        for path in (*(folder / "images" / digest[:2]).glob(f"{digest}{_SEPARATOR}*"), *copies):
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise DataError(f"cannot delete {path}: {error.strerror or error}") from error


def safe_name(name: str | None, data: bytes) -> str:
    """What is left of a client's name in a file's name, with the ending that the content has."""
    ending = next((ending for magic, ending in _ENDINGS.items() if data.startswith(magic)), ".bin")
    stem = re.sub(r"[^\w .()+-]", "_", Path((name or "").replace("\\", "/")).name, flags=re.ASCII)
    stem = stem.rpartition(".")[0] or stem
    return (stem.strip(" .")[:_NAME] or "image") + ending


def shown_name(image: str | None) -> str | None:
    """What to call an image: its file's name, without the hash that the store puts before it."""
    if image is None:
        return None
    name = image.rstrip("/").rpartition("/")[2]
    return re.sub(r"^[0-9a-f]{32}--(@[0-9a-f]{24}-\d+--)?", "", name)


def _local(row: SightingRow) -> str | None:
    """What the journal calls an image, if that is a name on this machine: nothing is fetched to be shown."""
    return None if row.image is None or "://" in row.image else as_path(row.image)


def _holds(path: Path, content: bytes | None) -> bool:
    """Whether a file is there and has this content; any has, where none is known."""
    return path.is_file() and content in (None, content_of(path))


def _pictures(path: Path, content: bytes | None) -> bool:
    """Whether a program that opened this file itself, and passed the picture on, has passed on this content."""
    if not path.is_file():
        return False
    try:
        with Image.open(path) as image:
            return content_of(image) == content
    except Exception:  # Pillow raises whatever its decoders do
        return False


def _write(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Write a file whole or not at all; what is durable is on the disk afterwards. Raises NotKept if it cannot be."""
    part = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        file = _new_file(part)
        try:
            with file:
                file.write(data)
            os.chmod(part, 0o644)
            if durable:
                put_in_place(part, path)
            else:
                os.replace(part, path)
        except BaseException:
            part.unlink()
            raise
    except OSError as error:
        raise NotKept(f"cannot write {path}: {error.strerror or error}") from error


def _new_file(path: Path) -> IO[bytes]:
    """A file that was not there. Its folder is made if there is none, which is found out only by trying."""
    try:
        return path.open("xb")
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        sync_folder(path.parent.parent)
        return path.open("xb")
