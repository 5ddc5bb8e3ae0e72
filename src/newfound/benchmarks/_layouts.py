"""How the data sets' official archives are laid out, and how the protocol's split is read from them.

Nothing here decodes an image, and nothing unpickles. Images are listed in the order that a folder of class folders
would have them in, so that the same seed labels the same images whichever way the data set is kept.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from newfound.benchmarks._catalogue import DATA_SETS, DataSet
from newfound.benchmarks.splits import SYNSET
from newfound.datasets import LabelledImages, load_dataset
from newfound.errors import DataError, MissingFileError, NewfoundError
from newfound.images import find_images

_SYNSET_LIST = "synsets.txt"
_SIDE, _CHANNELS = 32, 3  # of CIFAR's images
_FOLDER_NAMES = {folder for data_set in DATA_SETS.values() for folder in data_set.folders}


@dataclass(frozen=True)
class Layout:
    """Whether a folder is laid out in this way, and how to read it."""

    holds: Callable[[Path, DataSet], bool]
    read: Callable[[Path, DataSet], LabelledImages]


def layout_of(folder: Path, data_set: DataSet) -> Layout | None:
    """The layout in which the folder holds the data set; None if it does in none that is known."""
    own = _INATURALIST if data_set.name.startswith("inat2017") else _OFFICIAL[data_set.name]
    return next((layout for layout in (own, _CLASS_FOLDERS) if layout.holds(folder, data_set)), None)


def read(folder: Path, data_set: DataSet, layout: Layout) -> LabelledImages:
    """The images of the protocol's split. Raises DataError or MissingFileError if the folder is damaged."""
    try:
        return layout.read(folder, data_set)
    except NewfoundError:
        raise
    except FileNotFoundError as error:
        raise MissingFileError(
            f"{folder} has no {error.filename}, which belongs to {data_set.title}: unpack it again."
        ) from error
    except (OSError, KeyError, IndexError, ValueError) as error:
        raise DataError(f"{folder} is not {data_set.title} as it is published ({error}): unpack it again.") from error


def class_folders(folder: Path) -> list[Path]:
    """The visible folders in a folder, sorted; none if it cannot be listed."""
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith(".") and path.is_dir())
    except OSError:
        return []


def _listed(pairs: Iterable[tuple[Path, str]], folder: Path) -> LabelledImages:
    ordered = sorted(pairs, key=lambda pair: (pair[1], pair[0].name))
    missing = [path for path, _ in ordered if not os.path.isfile(path)]
    if missing:
        raise MissingFileError(
            f"{folder} lacks {len(missing):,} of the {len(ordered):,} images it lists, such as {missing[0]}: "
            "unpack it again."
        )
    return LabelledImages([path for path, _ in ordered], [label for _, label in ordered], source=str(folder))


def _table(path: Path, columns: int) -> list[list[str]]:
    """The words of each line; the last of `columns` takes the rest of it."""
    rows = [line.split(maxsplit=columns - 1) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    for row in rows:
        if len(row) != columns:
            raise DataError(f"{path} has the line {' '.join(row)!r}, where {columns} words are needed.")
    return rows


def _cub(folder: Path, _: DataSet) -> LabelledImages:
    names = dict(_table(folder / "classes.txt", 2))
    number = dict(_table(folder / "image_class_labels.txt", 2))
    training = {image for image, flag in _table(folder / "train_test_split.txt", 2) if flag == "1"}
    images = _table(folder / "images.txt", 2)
    return _listed(
        ((folder / "images" / path, names[number[image]]) for image, path in images if image in training), folder
    )


def _pets(folder: Path, _: DataSet) -> LabelledImages:
    rows = _table(folder / "annotations" / "trainval.txt", 4)  # Abyssinian_100 1 1 1: image, class, species, breed
    return _listed(
        (
            (folder / "images" / f"{image}.jpg", f"{int(number):02d}.{image.rpartition('_')[0]}")
            for image, number, _species, _breed in rows
        ),
        folder,
    )


def _food(folder: Path, _: DataSet) -> LabelledImages:
    images = [line for (line,) in _table(folder / "meta" / "train.txt", 1)]  # apple_pie/1005649
    return _listed(((folder / "images" / f"{image}.jpg", image.split("/")[0]) for image in images), folder)


def _cars_parts(folder: Path) -> tuple[Path, Path] | None:
    """The folders of the annotations and of the images: as published, or with the archives' own folders around."""
    for devkit in (folder / "devkit", folder / "car_devkit" / "devkit"):
        for images in (folder / "cars_train" / "cars_train", folder / "cars_train"):
            if (devkit / "cars_train_annos.mat").is_file() and images.is_dir():
                return devkit, images
    return None


def _cars(folder: Path, _: DataSet) -> LabelledImages:
    parts = _cars_parts(folder)
    assert parts is not None  # the layout holds
    devkit, images = parts
    names = _matlab(devkit / "cars_meta.mat", "class_names")
    labels = {  # a class folder's name could not have a slash either (Ram C/V Cargo Van)
        number: f"{number:03d}.{str(name).replace('/', '-')}" for number, name in enumerate(names, start=1)
    }
    annotations = _matlab(devkit / "cars_train_annos.mat", "annotations")
    return _listed(((images / str(row["fname"]), labels[int(row["class"])]) for row in annotations), folder)


def _matlab(path: Path, variable: str) -> np.ndarray:
    from scipy.io import loadmat

    try:
        return np.atleast_1d(loadmat(path, squeeze_me=True)[variable])
    except FileNotFoundError:
        raise
    except Exception as error:  # damaged bytes make the reader raise almost anything
        raise DataError(f"{path} cannot be read as a MATLAB file with {variable} ({error}).") from error


@dataclass(frozen=True)
class _Cifar:
    """Records of some label bytes and the planes of an image; `label` says which byte is the class."""

    batches: tuple[str, ...]
    names: str
    label_bytes: int
    label: int

    def holds(self, folder: Path, _: DataSet) -> bool:
        return all((folder / name).is_file() for name in (self.names, self.batches[0]))

    def read(self, folder: Path, _: DataSet) -> LabelledImages:
        names = [name for (name,) in _table(folder / self.names, 1)]
        items: list[Any] = []
        labels: list[str] = []
        for batch in self.batches:
            records = self._records(folder / batch)
            numbers = records[:, self.label].tolist()
            if max(numbers) >= len(names):
                raise DataError(f"{folder / batch} has the class {max(numbers)}, but {self.names} has {len(names)}.")
            planes = records[:, self.label_bytes :].reshape(-1, _CHANNELS, _SIDE, _SIDE)
            items += list(np.ascontiguousarray(planes.transpose(0, 2, 3, 1)))
            labels += [names[number] for number in numbers]
        return LabelledImages(items, labels, source=str(folder))

    def _records(self, path: Path) -> np.ndarray:
        length = self.label_bytes + _CHANNELS * _SIDE * _SIDE
        found = np.fromfile(path, dtype=np.uint8)
        if not len(found) or len(found) % length:
            raise DataError(f"{path} has {len(found):,} bytes, not whole images of {length:,} each: unpack it again.")
        return found.reshape(-1, length)


_CIFAR10 = _Cifar(tuple(f"data_batch_{n}.bin" for n in range(1, 6)), "batches.meta.txt", label_bytes=1, label=0)
_CIFAR100 = _Cifar(("train.bin",), "fine_label_names.txt", label_bytes=2, label=1)  # coarse label, fine label


def _synset_folders(folder: Path) -> dict[str, Path]:
    parts = sorted(folder.glob("train.X*"))  # a copy in which the training set comes in four folders
    nested = (folder / "train", folder / "ILSVRC" / "Data" / "CLS-LOC" / "train", folder)
    parts = parts or [next(part for part in nested if part.is_dir())]
    return {path.name: path for part in parts for path in class_folders(part) if SYNSET.match(path.name)}


def _imagenet(folder: Path, data_set: DataSet) -> LabelledImages:
    found = _synset_folders(folder)
    listing = folder / _SYNSET_LIST
    chosen = sorted({name for (name,) in _table(listing, 1)}) if listing.is_file() else sorted(found)
    if len(chosen) != data_set.classes:
        raise DataError(
            f"{listing if listing.is_file() else folder} has {len(chosen):,} synsets. {data_set.title} is "
            f"{data_set.classes} of ImageNet's, and the paper does not say which: list yours, one a line, in {listing}."
        )
    absent = [name for name in chosen if name not in found]
    if absent:
        raise MissingFileError(f"{folder} has no folder for {len(absent)} synsets of {listing}, such as {absent[0]}.")
    pairs = [(path, name) for name in chosen for path in find_images(found[name])]
    return LabelledImages([path for path, _ in pairs], [name for _, name in pairs], source=str(folder))


def _group(folder: Path, data_set: DataSet) -> Path | None:
    group = data_set.name.rpartition("_")[2].capitalize()
    return next((path for path in (folder / "train_val_images" / group, folder / group) if path.is_dir()), None)


def _has(*files: str) -> Callable[[Path, DataSet], bool]:
    return lambda folder, _: all((folder / file).exists() for file in files)


def _is_class_folders(folder: Path, data_set: DataSet) -> bool:
    """As many folders as classes; but ten folders of data sets are not CIFAR-10."""
    names = {path.name for path in class_folders(folder)}
    return len(names) == data_set.classes and not names & _FOLDER_NAMES


_CLASS_FOLDERS = Layout(_is_class_folders, lambda folder, _: load_dataset(folder))
_INATURALIST = Layout(
    lambda folder, data_set: _group(folder, data_set) is not None,
    lambda folder, data_set: load_dataset(_group(folder, data_set)),
)
_OFFICIAL = {
    "cub": Layout(_has("images.txt", "train_test_split.txt", "images"), _cub),
    "cars": Layout(lambda folder, _: _cars_parts(folder) is not None, _cars),
    "pets": Layout(_has("annotations/trainval.txt", "images"), _pets),
    "food101": Layout(_has("meta/train.txt", "images"), _food),
    "cifar10": Layout(_CIFAR10.holds, _CIFAR10.read),
    "cifar100": Layout(_CIFAR100.holds, _CIFAR100.read),
    "imagenet100": Layout(lambda folder, data_set: len(_synset_folders(folder)) >= data_set.classes, _imagenet),
}
