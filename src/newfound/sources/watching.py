"""Folders that fill: every image once, as soon as it is completely written.

Folders are listed again and again, which works on every system and on network drives, where no notice is given of
what other machines write.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from newfound.errors import DataError, MissingFileError
from newfound.files import is_file_or_dead_link, is_image_path
from newfound.sources.items import Item
from newfound.sources.stopping import Stop

GIVE_UP = 30.0  # seconds for which an unreadable file may stay as it is before that is an error
_SHARE = 0.2  # of the time, at most, goes into listing folders
_SHORTEST_PAUSE = 0.05
_CHECKS = 2000  # files that were given before, to be looked at for a change in one poll: each costs a system call

Version = tuple[int, int]  # size and time of modification
_NOWHERE: Version = (-1, -1)  # of a link that leads to no file, or not yet


@dataclass
class _File:
    """What is known of a file that is being watched."""

    version: Version
    since: float  # when this version was seen first
    given: bool = False
    unreadable: bool = False  # it was given and could not be read
    hopeless: bool = False  # what it is given for now is its last chance


class FolderWatch:
    """The images below some folders, each given once it has been complete for a while.

    Complete means that size and time of modification have not changed for `settle` seconds, and that it can be read:
    one that cannot is waited for, until it has not changed for `give_up` seconds. A file that changes after it was
    given is given again; where there are many, that may take some polls to be noticed. A link that leads nowhere is a
    file that cannot be read, unless it was read before. Hidden names are left out, and so are names that do not end
    like an image's: downloads and copies under way have such names (a.jpg.part, .a.jpg.Xy3z, a.crdownload) until they
    are renamed.

    Raises MissingFileError or DataError for a folder that is not there when the watch begins. One that goes away later
    is waited for.
    """

    def __init__(
        self,
        folders: Iterable[str | os.PathLike[str]],
        *,
        settle: float = 1.0,
        give_up: float = GIVE_UP,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settle, self.give_up, self._clock = settle, give_up, clock
        self._files: dict[str, _File] = {}
        self._polls = 0
        self._closed: dict[str, str] = {}  # folders that cannot be looked into, and why
        self.folders = [Path(folder) for folder in folders]
        for folder in self.folders:
            if not folder.exists():
                raise MissingFileError(f"there is no folder {folder}")
            if not folder.is_dir():
                raise DataError(f"{folder} is a file; only folders can be watched")

    @property
    def waiting(self) -> int:
        """How many images are there but not complete yet."""
        return sum(not file.given or (file.unreadable and not file.hopeless) for file in self._files.values())

    def poll(self) -> list[Item]:
        """What has become complete since the last call, by path, and an error for each folder that is closed to us."""
        now = self._clock()
        before, self._files = self._files, {}
        closed, self._closed = self._closed, {}
        self._polls += 1
        shares = 1 + len(before) // _CHECKS
        ready = []
        for entry in self._list():
            path, file = entry.path, before.get(entry.path)
            settled = file is not None and file.given and not file.unreadable
            if file is None or not settled or hash(path) % shares == self._polls % shares:
                version = _version(entry)
                if version is None:
                    continue
                # What a link leads to may go when it has been read: that is no change.
                same = file is not None and (file.version == version or (settled and version == _NOWHERE))
                file = file if file is not None and same else _File(version, now)
            self._files[path] = file
            if self._is_due(file, now):
                file.hopeless, file.given = file.unreadable, True
                ready.append(path)
        for folder in self._closed:  # its files are not gone, only out of sight
            below = os.path.join(folder, "")
            self._files |= {path: file for path, file in before.items() if path.startswith(below)}
        refused = [Item(None, folder, error=why) for folder, why in self._closed.items() if folder not in closed]
        return refused + [Item(path, str(Path(path)), try_later=self._try_later) for path in sorted(ready)]

    def _is_due(self, file: _File, now: float) -> bool:
        if not file.given:
            return now - file.since >= self.settle
        return file.unreadable and not file.hopeless and now - file.since >= self.give_up

    def _try_later(self, item: Item) -> bool:
        """Called for a file that could not be read; returns whether it will be given again."""
        file = self._files.get(item.image)
        if file is None:  # it has gone in the meantime
            return True
        file.unreadable = True
        return not file.hopeless

    def _list(self) -> Iterator[os.DirEntry[str]]:
        """The images below the folders as they are now; links are followed, but no folder is entered twice."""
        entered = set()
        folders = [str(folder) for folder in reversed(self.folders)]
        while folders:
            folder = folders.pop()
            try:
                about = os.stat(folder)
                if (about.st_dev, about.st_ino) in entered:
                    continue
                entered.add((about.st_dev, about.st_ino))
                with os.scandir(folder) as entries:
                    visible = [entry for entry in entries if not entry.name.startswith(".")]
            except OSError as error:
                self._closed[folder] = f"cannot look into the folder {folder}: {error.strerror}"
                continue
            for entry in visible:
                link = entry.is_symlink()  # which may lead nowhere, or to itself
                if os.path.isdir(entry.path) if link else entry.is_dir():
                    folders.append(entry.path)
                elif is_image_path(entry.name) and (is_file_or_dead_link(entry.path) if link else entry.is_file()):
                    yield entry


def _version(entry: os.DirEntry[str]) -> Version | None:
    """None for a file that has gone since its folder was listed, `_NOWHERE` for a link to nothing."""
    try:
        about = entry.stat()
    except OSError:
        return _NOWHERE if os.path.islink(entry.path) else None
    return about.st_size, about.st_mtime_ns


def watch(folders: FolderWatch, stop: Stop) -> Iterator[Iterator[Item]]:
    """Batches of what becomes complete in the folders, until a signal asks to stop."""
    while not stop.asked:
        began = time.monotonic()
        batch = folders.poll()
        took = time.monotonic() - began
        if batch:
            yield iter(batch)
        pause = max(folders.settle / 2, _SHORTEST_PAUSE, took * (1 / _SHARE - 1))
        stop.wait(lambda: time.sleep(pause))  # noqa: B023  (called at once)
