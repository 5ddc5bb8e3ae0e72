"""Bytes become pixels here and nowhere else.

:func:`open_image` turns whatever a person has (a path, bytes, a file object, a PIL image, an array, a tensor)
into an upright 8-bit RGB image, or says in plain words why it cannot. Bad bytes get their named error here,
so that nothing behind this module has to look for them.
"""

from __future__ import annotations

import hashlib
import io
import os
import stat
import sys
import threading
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from PIL import Image, UnidentifiedImageError

from newfound._pixels import as_array, eight_bits, to_rgb, upright
from newfound.crops import crop_at
from newfound.errors import DataError, ImageError, MissingFileError, SettingsError
from newfound.files import is_file_or_dead_link, is_image_path

MAX_PIXELS = 100_000_000

# Only what Pillow decodes by itself: nothing that starts another program, as EPS does.
_FORMATS = ("JPEG", "PNG", "GIF", "BMP", "TIFF", "WEBP")
_MAGIC = (b"\xff\xd8\xff", b"\x89PNG", b"GIF8", b"BM", b"II*\0", b"MM\0*", b"II+\0", b"MM\0+", b"RIFF")
_FOREIGN = {
    b"<svg": "an SVG drawing",
    b"<html": "a web page",
    b"version https://git-lfs": "a Git LFS pointer and not the image itself (`git lfs pull` gets it)",
    b"%pdf": "a PDF document",
    b"%!ps": "a PostScript document",
    b"ftypavif": "an AVIF image",
    b"ftyphei": "a HEIC image",
    b"ftypmif1": "a HEIC image",
    b"ftypjp2": "a JPEG 2000 image",
    b"ftypjxl": "a JPEG XL image",
}


def open_image(source: Any, *, max_pixels: int | None = None) -> Image.Image:
    """Return ``source`` as a new upright image in mode RGB.

    ``source`` is a path, encoded bytes, a binary file object (left open and, if it can seek, where it was), a
    PIL image, or an array: H x W or H x W x 1, 3 or 4, of uint8, uint16, bool or floats in [0, 1]. A tensor
    may also be C x H x W. Alpha is laid over white, an animation gives its first frame, EXIF rotation is
    applied, 16 bits become 8 over their full range, and floats and integers of 32 bits, of which nobody knows what is
    white, over the range of their finite values.

    ``max_pixels`` is held against the header before anything is decoded. ``None`` stands for the environment
    variable ``NEWFOUND_MAX_PIXELS`` or, without it, for :data:`MAX_PIXELS`.

    Raises :class:`ImageError` for what is no readable image or too large, :class:`MissingFileError` for a
    path where nothing is, and :class:`SettingsError` for a limit that is not a positive number.
    """
    limit = _pixel_limit(max_pixels)
    if isinstance(source, Image.Image):
        return _decode(source, "the PIL image", limit)
    if is_array(source):
        return _decode(Image.fromarray(eight_bits(as_array(source))), "the array", limit)
    with _binary_file(source) as (file, name), _without_pillows_limit():
        try:
            image = Image.open(file, formats=_FORMATS)
        except Exception as error:  # as in _load
            raise ImageError(f"cannot read {name}: {_why(error, file)}") from error
        return _decode(image, name, limit)


@dataclass(frozen=True)
class _Held:
    """The bytes that a file had, under its name: a file object that `open_image` takes."""

    data: bytes
    name: str

    def read(self) -> bytes:
        return self.data


def read_once(source: Any) -> Any:
    """Return ``source`` as it is now, for both :func:`content_hash` and :func:`open_image`: so what is hashed is what
    is opened, though a camera may replace the file in between.

    Raises what :func:`open_image` raises for what cannot be read; nothing is decoded yet.
    """
    if isinstance(source, Image.Image) or is_array(source):
        return source
    with _binary_file(source) as (file, name):
        try:
            return _Held(file.read(), name)
        except (OSError, MemoryError) as error:
            why = getattr(error, "strerror", None) or "it does not fit into memory"
            raise ImageError(f"cannot read {name}: {why}") from error


def content_hash(source: Any) -> str:
    """Return 32 hex digits that change whenever the image does.

    They are the BLAKE2b hash of a file's bytes, of an array's type, shape and values, or of a PIL image's
    mode, size and pixels. Raises what :func:`open_image` raises; the bytes of a file are not decoded, though.
    """
    if isinstance(source, Image.Image):
        _load(source, "the PIL image", _pixel_limit(None))
        image = upright(source)
        about = repr((image.mode, image.size, image.info.get("transparency")))
        return _digest(b"pil", [about.encode(), bytes(image.getpalette(None) or b""), image.tobytes()])
    if is_array(source):
        array = as_array(source)
        return _digest(b"array", [repr((array.dtype.str, array.shape)).encode(), array.tobytes()])
    with _binary_file(source) as (file, name):
        try:
            return _digest(b"", iter(lambda: file.read(1 << 20), b""))
        except OSError as error:
            raise ImageError(f"cannot read {name}: {error.strerror}") from error


def content_of(source: Any) -> bytes | None:
    """Return :func:`content_hash` as 16 bytes, or None for an image that cannot be read."""
    try:
        return bytes.fromhex(content_hash(source))
    except (ImageError, MissingFileError):
        return None


def contents_hash(sources: Iterable[Any], labels: Iterable[object]) -> str:
    """Return 32 hex digits that change with any of the images, their labels or their order.

    Raises what :func:`content_hash` raises.
    """
    pairs = zip(sources, labels, strict=True)
    return _digest(b"", (f"{content_hash(source)}:{label}\n".encode() for source, label in pairs))


def thumbnail(image: Any, size: int = 96) -> bytes:
    """Return ``image`` (anything :func:`open_image` takes) as a JPEG that fits ``size`` x ``size`` pixels."""
    small = open_image(image)
    small.thumbnail((size, size))
    out = io.BytesIO()
    small.save(out, "JPEG", quality=85)
    return out.getvalue()


def is_array(source: Any) -> bool:
    """Return whether ``source`` is an array or a tensor; text and PIL images are not."""
    return hasattr(source, "__array__") and not isinstance(source, (str, Image.Image))


def find_images(folder: str | os.PathLike[str], *, skip: Collection[Path] = ()) -> list[Path]:
    """Return all images below ``folder``, sorted by their path relative to it; also such as cannot be read: HEIC, and
    links that lead nowhere.

    Names that start with a dot are left out. Links are followed, but no folder is entered twice, nor one that
    ``folder`` lies in, nor one of the resolved folders in ``skip``: so a loop of links comes to an end.

    Raises :class:`MissingFileError` if ``folder`` is not there and :class:`DataError` if it, or a folder
    below it, cannot be listed.
    """
    root = Path(folder)
    real = root.resolve()
    entered = {*real.parents, *skip} - {real}
    found: list[Path] = []
    folders, links = [root], list[Path]()
    while folders or links:
        # Links come last and in order: an image is listed under its own folder rather than under a link.
        links.sort(reverse=True)
        here = folders.pop() if folders else links.pop()
        real = here.resolve()
        if real in entered:
            continue
        entered.add(real)
        for entry in _visible_entries(here):
            path = here / entry.name
            if os.path.isdir(path):
                (links if entry.is_symlink() else folders).append(path)
            elif is_image_path(path) and is_file_or_dead_link(path):
                found.append(path)
    return sorted(found, key=lambda path: path.relative_to(root).as_posix())


def _visible_entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return [entry for entry in entries if not entry.name.startswith(".")]
    except FileNotFoundError:
        raise MissingFileError(f"there is no folder {folder}") from None
    except NotADirectoryError:
        raise DataError(f"{folder} is a file; a folder of images is needed here") from None
    except OSError as error:
        raise DataError(f"cannot look into the folder {folder}: {error.strerror}") from error


def _pixel_limit(max_pixels: int | None) -> int:
    given = os.environ.get("NEWFOUND_MAX_PIXELS", MAX_PIXELS) if max_pixels is None else max_pixels
    try:
        limit = int(given)
    except (TypeError, ValueError):
        limit = 0
    if limit < 1:
        where = "NEWFOUND_MAX_PIXELS" if max_pixels is None else "max_pixels"
        raise SettingsError(f"{where} is {given!r}; it must be a whole number of pixels above 0")
    return limit


_lift_lock = threading.Lock()
_lifted: list[int | None] = []


@contextmanager
def _without_pillows_limit() -> Iterator[None]:
    """Lift Pillow's own, process-wide pixel limit while ours is in charge, and put it back.

    Pillow warns at 89 million pixels and refuses twice as many, whatever limit was asked for here. Several
    threads may be inside at once: the one that leaves last restores what the first one found. It is a number all
    the while, not None: Pillow, cropping in another thread, asks whether it is None and then multiplies it.
    """
    with _lift_lock:
        _lifted.append(Image.MAX_IMAGE_PIXELS)
        if Image.MAX_IMAGE_PIXELS is not None:
            Image.MAX_IMAGE_PIXELS = sys.maxsize
    try:
        yield
    finally:
        with _lift_lock:
            before = _lifted.pop()
            if not _lifted:
                Image.MAX_IMAGE_PIXELS = before


@contextmanager
def _binary_file(source: Any) -> Iterator[tuple[IO[bytes], str]]:
    """Yield a seekable file with the encoded bytes, and what to call it in messages."""
    source = crop_at(source) or source
    if isinstance(source, (str, os.PathLike)):
        with _open_path(Path(source)) as file:
            yield file, str(source)
    elif isinstance(source, (bytes, bytearray, memoryview)):
        yield io.BytesIO(source), "the image bytes"
    elif hasattr(source, "read"):
        name = str(getattr(source, "name", "the image file object"))
        try:
            start = source.tell() if hasattr(source, "seekable") and source.seekable() else None
            data = source.read()
            if start is not None:  # so that the same file can be hashed and then opened
                source.seek(start)
        except (OSError, ValueError) as error:
            raise ImageError(f"cannot read {name}: {error}") from error
        if isinstance(data, str):
            raise ImageError(f"{name} was opened as text; open it in binary mode ('rb')")
        yield io.BytesIO(data), name
    else:
        kind = type(source).__name__
        raise ImageError(f"{kind} is not an image; give a path, bytes, a file, a PIL image or an array")


def _open_path(path: Path) -> IO[bytes]:
    try:
        kind = path.stat().st_mode
        file = path.open("rb") if stat.S_ISREG(kind) else None  # a pipe could keep us waiting for ever
    except (FileNotFoundError, NotADirectoryError):
        why = f": it is a link to {os.readlink(path)}, where nothing is" if path.is_symlink() else ""
        raise MissingFileError(f"there is no file {path}{why}") from None
    except (OSError, ValueError) as error:
        reason = str(getattr(error, "strerror", error)).lower()
        raise ImageError(f"cannot read {path}: {reason}") from error
    if file is None:
        what = "a folder" if stat.S_ISDIR(kind) else "not a regular file"
        raise ImageError(f"{path} is {what}, where one image is needed")
    return file


def _why(error: Exception, file: IO[bytes] | None = None) -> str:
    """Say in plain words why Pillow could not make an image of ``file``."""
    if file is None or not isinstance(error, UnidentifiedImageError):
        if "truncated" in str(error).lower():
            return "the file is cut off, it ends before the image does"
        return f"the image data are damaged ({str(error) or type(error).__name__})"
    file.seek(0)
    head = file.read(1024)
    if not head:
        return "the file is empty (0 bytes)"
    if head.startswith(_MAGIC):
        return "its header is damaged, cut off, or says that the image has no pixels"
    what = next((name for mark, name in _FOREIGN.items() if mark in head.lower()), "not an image")
    return f"it is {what}; what can be read is {', '.join(_FORMATS)}"


def _load(image: Image.Image, name: str, limit: int) -> None:
    width, height = image.size
    if width * height == 0:
        raise ImageError(f"{name} has no pixels: it is {width} x {height}")
    if width * height > limit:
        raise ImageError(
            f"{name} is {width} x {height} = {width * height:,} pixels, more than the limit of {limit:,}; if "
            "you trust it, raise max_pixels or the environment variable NEWFOUND_MAX_PIXELS"
        )
    try:
        with _without_pillows_limit():
            image.load()
    except Exception as error:  # decoders that are given hostile bytes raise almost anything
        raise ImageError(f"cannot read {name}: {_why(error)}") from error


def _decode(image: Image.Image, name: str, limit: int) -> Image.Image:
    _load(image, name, limit)
    try:
        rgb = to_rgb(upright(image))
    except (OSError, ValueError, KeyError) as error:
        raise ImageError(f"cannot turn {name} (mode {image.mode}) into RGB: {error}") from error
    rgb.info = {}  # above all the EXIF rotation, which must not be applied twice
    return rgb


def _digest(kind: bytes, parts: Iterable[bytes]) -> str:
    digest = hashlib.blake2b(digest_size=16, person=kind)
    for part in parts:
        digest.update(part)
    return digest.hexdigest()
