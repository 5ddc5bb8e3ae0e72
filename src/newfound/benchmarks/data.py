"""The benchmarks' data sets, found on disk or fetched, and the labelled set and stream that the protocol makes of them.

One environment variable, ``NEWFOUND_DATA``, names a folder that holds one folder a data set (`cub`, `pets`, ...; the
names the archives unpack to do as well). Each is read from its official layout, or from a folder with one folder a
class.
"""

from __future__ import annotations

import json
import os
import shlex
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from newfound.benchmarks._catalogue import DataSet as DataSet
from newfound.benchmarks._catalogue import data_sets as data_sets
from newfound.benchmarks._layouts import Layout, class_folders, layout_of, read
from newfound.benchmarks.splits import known_classes, labelled_fraction
from newfound.datasets import LabelledImages, load_dataset, split_protocol
from newfound.errors import DataError, MissingFileError, NewfoundError, SettingsError

VARIABLE = "NEWFOUND_DATA"
_ROUNDING = 50  # images: the paper gives sizes in thousands with one decimal
Root = str | os.PathLike[str] | None
Split = tuple[LabelledImages, LabelledImages]


def find(name: str, root: Root = None) -> Path:
    """The folder that holds a data set in a layout that can be read.

    Args:
        name: one of `data_sets()`.
        root: the data set's own folder, or one that holds folders of data sets; None for ``NEWFOUND_DATA``.

    Raises:
        SettingsError: there is no such data set.
        MissingFileError: it is not there; the message says where to get it and where to put it.
    """
    return _place(_data_set(name), root)[0]


def load(name: str, root: Root = None) -> LabelledImages:
    """The images that the protocol takes of a data set, labelled with its official class names.

    Raises what :func:`find` raises, and :class:`DataError` if what is there is damaged.
    """
    data_set = _data_set(name)
    folder, layout = _place(data_set, root)
    return read(folder, data_set, layout)


def protocol_split(name: str, root: Root = None, class_seed: int | None = None, *, check: bool = True) -> Split:
    """The labelled set and the stream of a benchmark: the same for every method and seed.

    Args:
        class_seed: another draw of the known classes, to choose settings on; None for the official ones.
        check: whether sizes that do not fit the data set are an error.

    Raises what :func:`load` and :func:`check_sizes` raise.
    """
    data = load(name, root)
    official = known_classes(name, data.classes)  # also checks that all classes are there
    known = official if class_seed is None else None
    labelled, stream = split_protocol(data, known, fraction=labelled_fraction(), seed=class_seed or 0)
    if check:
        check_sizes(name, labelled, stream, official=class_seed is None)
    return labelled, stream


def own_split(data: Any, known: str | os.PathLike[str], *, seed: int = 0) -> Split:
    """The same pair for data of one's own.

    Args:
        data: whatever :func:`newfound.load_dataset` takes.
        known: a file with the known classes: JSON as in ``{"known": ["heron", "owl"]}``, or text with a name a line.

    Raises:
        MissingFileError: there is no such file, or no such data.
        DataError: the file names fewer than two classes, or one that the data does not have.
    """
    parts = split_protocol(load_dataset(data), known_names(Path(known)), fraction=labelled_fraction(), seed=seed)
    if len(parts[0].classes) < 2:
        raise DataError(f"{known} names one class only ({parts[0].classes[0]}): at least 2 known ones are needed.")
    return parts


def check_sizes(name: str, labelled: LabelledImages, stream: LabelledImages, *, official: bool = True) -> None:
    """Raise :class:`DataError`, with the sizes found and expected, if this is not the data set's split.

    The images must be as many as the data set's split has and, with the `official` known classes, the labelled set and
    the stream as large as in the paper's table, up to its rounding.
    """
    problems = _misfits(_data_set(name), labelled, stream, official=official)
    if problems:
        raise DataError("; ".join(problems) + ".")


def download(name: str, root: Root = None) -> Path:
    """Fetch a data set with torchvision's downloader, check and unpack it; one that is there already is left alone.

    Args:
        root: the folder to put it into; None for ``NEWFOUND_DATA``.

    Returns:
        The folder that holds it.

    Raises:
        MissingFileError: it is not to be had without asking somebody, or ``root`` is not given.
        DataError: it could not be fetched or unpacked. Both say where to get it and where to put it.
    """
    data_set = _data_set(name)
    folder = _root(data_set, root)
    try:
        return find(name, folder)
    except MissingFileError:
        pass
    if not data_set.archives:
        raise MissingFileError(f"{data_set.title} cannot be fetched by a program. {data_set.where(str(folder))}")
    from torchvision.datasets.utils import download_and_extract_archive

    try:
        for archive in data_set.archives:
            download_and_extract_archive(archive.url, download_root=str(folder / archive.into), md5=archive.md5)
    except (OSError, RuntimeError, EOFError, tarfile.TarError) as error:  # no network, no space, a wrong checksum
        raise DataError(f"{data_set.title} could not be fetched ({error}). {data_set.where(str(folder))}") from error
    return find(name, folder)


@dataclass(frozen=True)
class Statistics:
    """A line of the paper's table of data sets; sizes are None where the paper or this machine has none."""

    data_set: DataSet
    labelled: int | None
    stream: int | None
    note: str

    def cells(self) -> list[str]:
        about, paper = self.data_set, self.data_set.paper or (None, None)
        classes = f"{about.classes}"
        if about.paper_classes is not None:
            classes += f" (paper: {about.paper_classes}, a misprint)"
        printed = ["-" if size is None else f"{size}K" for size in paper]
        here = ["-" if size is None else f"{size:,}" for size in (self.labelled, self.stream)]
        return [about.title, classes, str(about.known), *printed, *here, self.note]


def statistics(root: Root = None) -> list[Statistics]:
    """Classes and sizes of every data set: as in the paper, and as found here where the data is here."""
    return [_statistics(data_set, root) for data_set in data_sets().values()]


def _statistics(data_set: DataSet, root: Root) -> Statistics:
    try:
        folder = find(data_set.name, root)
    except MissingFileError:
        return Statistics(data_set, None, None, data_set.note)
    try:
        labelled, stream = protocol_split(data_set.name, folder, check=False)
    except NewfoundError as error:
        return Statistics(data_set, None, None, str(error))
    notes = [data_set.note, *_misfits(data_set, labelled, stream, official=True)]
    return Statistics(data_set, len(labelled), len(stream), "; ".join(filter(None, notes)))


def statistics_table(rows: Sequence[Statistics]) -> list[list[str]]:
    """Text cells, the header first."""
    header = ["", "classes", "known", "|D_S| paper", "|D_Q| paper", "|D_S| here", "|D_Q| here", "note"]
    return [header, *(row.cells() for row in rows)]


def _data_set(name: str) -> DataSet:
    known = data_sets()
    if name not in known:
        raise SettingsError(f"there is no data set {name!r}; choose one of {', '.join(known)}.")
    return known[name]


def _root(data_set: DataSet, root: Root) -> Path:
    given = os.environ.get(VARIABLE) if root is None else root
    if not given:
        raise MissingFileError(
            f"{data_set.title} is looked for in the folder that the environment variable {VARIABLE} names, and it is "
            f"not set. {_fetched(data_set, 'FOLDER')}{data_set.where(VARIABLE)}"
        )
    return Path(given)


def _place(data_set: DataSet, root: Root) -> tuple[Path, Layout]:
    base = _root(data_set, root)
    named = [base / name for name in data_set.folders if (base / name).is_dir()]
    for folder in _candidates(base, named, data_set):
        layout = layout_of(folder, data_set)
        if layout is not None:
            return folder, layout
    problem = f"there is no {data_set.title} in {base}."
    for folder in named or [base]:
        count = len(class_folders(folder))
        problem += f" {folder} has neither its published layout nor a folder for each of {data_set.classes} classes"
        problem += f" (folders there: {count:,})." if folder.is_dir() else ": it does not exist."
    raise MissingFileError(f"{problem} {_fetched(data_set, str(base))}{data_set.where(str(base))}")


def _fetched(data_set: DataSet, root: str) -> str:
    """The command that fetches a data set, as a sentence; nothing if none does."""
    command = f"`newfound bench data --download {data_set.name} --root {shlex.quote(root)}`"
    return f"{command} fetches it; or fetch it yourself. " if data_set.archives else ""


def _candidates(base: Path, named: list[Path], data_set: DataSet) -> Iterator[Path]:
    yield from named
    for folder in named:  # cub/CUB_200_2011, as an archive that was unpacked in a folder of its own
        yield from (folder / name for name in data_set.folders if (folder / name).is_dir())
    if base.is_dir():
        yield base


def _misfits(data_set: DataSet, labelled: LabelledImages, stream: LabelledImages, *, official: bool) -> list[str]:
    """What does not fit the data set; the paper's sizes are those of the official known classes only."""
    problems, total = [], len(labelled) + len(stream)
    if data_set.images is not None and total != data_set.images:
        problems.append(
            f"the {data_set.split} images of {data_set.title} are {data_set.images:,}, but these are {total:,}: are "
            "they another split, or are some missing?"
        )
    if official and data_set.paper is not None:
        sizes = (("labelled set", len(labelled)), ("stream", len(stream)))
        for (part, found), thousands in zip(sizes, data_set.paper, strict=True):
            most, least = 1000 * thousands + _ROUNDING, 1000 * thousands * (1 - data_set.below) - _ROUNDING
            if not least <= found <= most:
                problems.append(
                    f"the {part} of {data_set.title} has {thousands}K images in the paper, but this one has {found:,}"
                )
    return problems


def known_names(path: Path) -> list[str]:
    """The known classes that a file names: JSON with a list `known`, or text with one name a line."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        names = json.loads(text)["known"] if path.suffix.lower() == ".json" else text.splitlines()
        if not isinstance(names, list):
            raise TypeError("known is not a list")
    except FileNotFoundError:
        raise MissingFileError(
            f"there is no file {path} to read the names of the known classes from: write one, with a name a line."
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"the split file {path} cannot be read ({error}): write JSON as in "
            '{"known": ["heron", "owl"]}, or a text file with one class name a line.'
        ) from error
    return [str(name).strip() for name in names if str(name).strip()]
