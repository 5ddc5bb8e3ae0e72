"""Images behind URLs: listed here, read where they are encoded.

A URL is anything that fsspec opens: s3://, gs://, https://, file://, memory://. What its protocol needs beyond fsspec,
such as s3fs, is installed by whoever uses it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from newfound.errors import DataError, MissingFileError, SettingsError
from newfound.files import is_image_path

_URL = re.compile(r"[a-z][a-z0-9+.\-]*(::.*)?://", re.IGNORECASE)  # :: as in zip::s3://
_WILD = re.compile(r"[*?\[]")
_LIST = "@"


@dataclass(frozen=True)
class RemoteFile:
    """An image behind a URL: a file object that `open_image` takes, and that can be sent to another process.

    The file system goes with it, so that what a URL alone would not say, as the archive of zip://, is not lost.
    """

    system: Any  # of fsspec; pickled as what it was made from
    path: str

    @property
    def filename(self) -> str:
        """Its URL: what answers and journals call it."""
        return self.system.unstrip_protocol(self.path)

    name = filename  # what messages call it

    def __str__(self) -> str:
        return self.filename

    def read(self) -> bytes:
        """All of its bytes. Raises OSError, whatever the protocol raises."""
        try:
            return self.system.cat_file(self.path)
        except FileNotFoundError:
            raise OSError("there is no such file") from None
        except Exception as error:  # each protocol has errors of its own
            raise OSError(str(error) or type(error).__name__) from error


def is_url(source: object) -> bool:
    """Return whether a source is a URL and not a path."""
    return isinstance(source, str) and _URL.match(source) is not None


def images_at(source: str) -> Iterator[Any]:
    """The images of a path, as `iter_source` gives them, or of a URL, as `find_remote` does. Raises DataError."""
    if is_url(source):
        return iter(find_remote(source))
    from newfound.datasets import iter_source  # here: commands start without NumPy

    return iter_source(source)


def find_remote(url: str) -> list[RemoteFile]:
    """Return the images at a URL, sorted by their path.

    A name that ends like an image's is one, and is not asked for before it is read. With an asterisk it is a pattern,
    and with other wildcards if nothing has that very name. A folder, or one that a pattern matches, stands for all that
    lies below it: names that end like an image's, without those that start with a dot.

    Raises MissingFileError if nothing is there, DataError if it cannot be listed, and SettingsError if what its
    protocol needs is not installed.
    """
    system, path = _opened(url)
    if is_image_path(path) and not _WILD.search(path):
        return [RemoteFile(system, path)]
    try:
        found = _listed(system, path)
    except Exception as error:  # as in read
        raise DataError(f"cannot list {url}: {str(error) or type(error).__name__}") from error
    if found is None:
        raise MissingFileError(f"there is nothing at {url}")
    return [RemoteFile(system, name) for name in found]


def _listed(system: Any, path: str) -> list[str] | None:
    """The images at a path, sorted; None if nothing is there."""
    kind = None if "*" in path else _kind(system, path)
    if kind == "file":
        return [path]
    if kind is None:
        plain, *wild = _WILD.split(path)
        if not wild:
            return None
        root = plain.rpartition("/")[0]  # below it, hidden names are hidden: what is written out is meant
        matched = system.glob(path, detail=True).items()
        found = {name for name, about in matched if about["type"] == "file"}
        folders = [name for name, about in matched if about["type"] == "directory"]
    else:
        root, found, folders = path.rstrip("/"), set(), [path]
    found.update(*map(system.find, folders))
    return sorted(name for name in found if is_image_path(name) and "/." not in f"/{name[len(root) :].lstrip('/')}")


def _kind(system: Any, path: str) -> str | None:
    try:
        return system.info(path)["type"]
    except FileNotFoundError:
        return None


def _opened(url: str) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise SettingsError(f'{url} needs fsspec, which is not installed: pip install "newfound[ray]"') from None
    try:
        return url_to_fs(url)
    except (ImportError, ValueError) as error:  # the protocol's package is missing, or there is no such protocol
        raise SettingsError(f"{url} cannot be opened: {error}") from error
    except Exception as error:  # as in read
        raise DataError(f"cannot open {url}: {str(error) or type(error).__name__}") from error


def with_lists(sources: Iterable[str]) -> Iterator[str]:
    """The sources, each @FILE replaced by the lines of FILE: a path or a URL each; empty lines are passed over.

    What is there under its whole name, @ included, is no list; a list that is not there stays as it is, for whoever
    reads it to report.
    """
    for source in sources:
        name = source.removeprefix(_LIST)
        if name == source or os.path.exists(source) or not os.path.isfile(name):
            yield source
            continue
        with open(name, encoding="utf-8-sig", errors="surrogateescape") as lines:  # names need not be UTF-8
            for line in lines:
                if line.strip():
                    yield line.rstrip("\r\n")
