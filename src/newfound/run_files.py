"""A run's folder: its files, how they are written and read, and what each has to hold.

    config.json              what it is: method, settings, backbone, threshold, versions, hashes of the other files
    classes.json             the names of the known classes, by id
    model.safetensors        the tail and the head; with bundle also the trunk
    known.safetensors        what the dictionary starts from: the model and sums of evidence, prototypes, or codes
    log.csv, threshold.csv   how training went: a row an epoch, a row whenever the threshold moved
    skipped.csv              images that could not be read, if any
    training.lock            there while a training writes to the folder

config.json is written last: a folder without it is not a finished run. Nothing in it is ever unpickled.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import newfound
from newfound._arguments import is_whole
from newfound._identity import Identity
from newfound.errors import RunError, SettingsError
from newfound.files import put_in_place

# 1 had prototypes only, in a file of another name; 2 did not weigh evidence; 3 took features as they are; 4 had the
# model's own crop
FORMAT = 5
KNOWN, KNOWN_1 = "known.safetensors", "prototypes.safetensors"
CHECKED = ("classes.json", "model.safetensors", KNOWN, "log.csv", "threshold.csv")
_DICTS = ("files", "backbone", "settings", "threshold")
_FIELDS: dict[str, type] = dict.fromkeys(_DICTS, dict) | {"bundle": bool, "method": str, "preset": str}
_ADDED = {"crop_pct": None}  # to what a run says of its backbone, with format 5


def check_apart(out: str | os.PathLike[str] | None, source: str) -> None:
    """Raise SettingsError if a run would lie in the folder of its data, where its own folders would become classes."""
    if out is not None and os.path.isdir(source) and Path(out).resolve().is_relative_to(Path(source).resolve()):
        raise SettingsError(f"{out} lies in {source}, whose folders are the classes: choose a folder outside of it.")


def make_folder(folder: Path) -> None:
    """Make a run's folder, and see that there is room for it, rather now than after hours. Raises RunError if not."""
    if folder.exists() and not folder.is_dir():
        raise RunError(f"{folder} is a file; a run needs a folder.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"room")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise not_written("the run", folder, error) from error


def not_written(what: str, folder: Path, error: OSError) -> RunError:
    """The error for whatever of a run cannot be written: where, why, and what to do."""
    return RunError(
        f"{what} cannot be written to {folder}: {error.strerror or error}; make room, or choose another folder (--out)."
    )


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keep a folder to one training. The system lets go of it when a process dies: a crash holds nobody up.

    Raises RunError if another training has it.
    """
    from filelock import FileLock, Timeout

    path = folder / "training.lock"
    lock = FileLock(path, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise RunError(
            f"another training is writing to {folder}. Wait until it ends, or choose another folder."
        ) from None
    except (OSError, NotImplementedError):
        pass  # not every file system can lock, and one that cannot be written to says so when it is
    try:
        yield
    finally:
        if lock.is_locked:
            with suppress(OSError):  # Windows removes no file that is open
                path.unlink()
            lock.release()


def check_version(folder: Path, config: dict[str, Any]) -> None:
    """Raises RunError if a newer newfound wrote this."""
    found = field_of(folder, config, "format")
    if not isinstance(found, int) or found > FORMAT:
        raise RunError(
            f"{folder} was written by newfound {config.get('newfound', '?')} in format {found}; this is newfound "
            f"{newfound.__version__}, which reads up to format {FORMAT}. Update newfound."
        )


def read_config(folder: Path) -> dict[str, Any]:
    """A run's configuration, whose fields are of their kinds. Raises RunError if they are not, or it is newer."""
    config: dict[str, Any] = read_json(folder / "config.json")
    check_version(folder, config)
    for name, kind in _FIELDS.items():
        if not isinstance(field_of(folder, config, name), kind):
            raise RunError(f"{folder / 'config.json'} is damaged: {name!r} is not a {kind.__name__}.")
    return config


def field_of(folder: Path, config: dict[str, Any], name: str) -> Any:
    """A value of the configuration. Raises RunError if it is not there."""
    if not isinstance(config, dict) or name not in config:
        raise RunError(f"{folder / 'config.json'} has no {name!r}: it is damaged or not newfound's.")
    return config[name]


def read_backbone(folder: Path, config: dict[str, Any]) -> Identity:
    """What a run says of its backbone. Raises RunError if that cannot be."""
    file, described = folder / "config.json", _ADDED | field_of(folder, config, "backbone")
    for name, sound in _SOUND.items():
        if name not in described:
            raise RunError(f"{file} is damaged: its backbone has no {name!r}.")
        if not sound(described[name]):
            raise RunError(f"{file} is damaged: the {name!r} of its backbone is {described[name]!r}.")
    return Identity(**{name: described[name] for name in _SOUND})


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


_SOUND: dict[str, Callable[[Any], bool]] = {
    "name": _is_text,
    "tune_blocks": is_whole,
    "weights": _is_text,
    "image_size": lambda value: value is None or is_whole(value),
    "crop_pct": lambda value: value is None or (isinstance(value, float) and 0 < value <= 1),
    "trunk_hash": _is_text,
    "split": _is_text,
}


def read_json(path: Path) -> Any:
    """What a JSON file holds. Raises RunError if it cannot be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunError(f"{path} cannot be read: {error}.") from error


def read_csv(path: Path) -> list[dict[str, str]]:
    """The rows of a table; none if there is no such file."""
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file whole, or not at all."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    content = text.encode("utf-8", "backslashreplace")  # a path may be no text: JSON has the same escapes
    replace(path, lambda part: part.write_bytes(content))


def replace(path: Path, write: Callable[[Path], Any]) -> None:
    """Have a file written beside the one it takes the place of; if that fails, nothing is left of it."""
    part = path.with_name(path.name + ".part")
    try:
        write(part)
        put_in_place(part, path)
    except BaseException:
        part.unlink(missing_ok=True)  # on a full disk, room for who tries again
        raise


def file_hash(path: Path) -> str:
    """32 hex digits of a file's bytes."""
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
