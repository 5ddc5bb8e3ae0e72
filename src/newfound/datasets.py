"""Labelled data sets to learn from, and unlabelled sources to discover in.

:func:`load_dataset` is the one door for labelled images: a folder of class folders, a CSV of path,label, or
arrays. :func:`iter_source` turns any unlabelled source into single images, lazily.
"""

from __future__ import annotations

import difflib
import math
import os
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from newfound import hf_datasets
from newfound._category_labels import label_texts
from newfound._words import counted
from newfound.errors import DataError, ImageError, MissingFileError
from newfound.files import is_dead_link, is_file_or_dead_link, is_image_path
from newfound.images import find_images, is_array, open_image
from newfound.tables import SEPARATORS, read_table
from newfound.tables import write_csv as write_csv

_NAMED = 10  # classes in a message
_LAYOUT = "give every class a folder of its own, as in birds/heron/1.jpg, or write a CSV of path,label"


@dataclass(frozen=True, eq=False)
class LabelledImages:
    """Images (paths, or arrays and PIL images) with the name of each one's class.

    ``classes`` are the distinct labels, sorted, and need not be given; ``source`` says in messages where the
    images come from. One that was loaded from a folder also tells which class folders held no image, how many
    images lay beside them, and which links lead nowhere in the place of class folders. Raises
    :class:`DataError` if there is not one label for each image.
    """

    items: Sequence[Any]
    labels: list[str]
    classes: list[str] = field(default_factory=list)
    source: str = "the data set"
    empty_classes: tuple[str, ...] = ()
    stray_images: int = 0
    dead_links: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.items) != len(self.labels):
            raise DataError(f"{self.source} has {len(self.items)} images but {len(self.labels)} labels")
        classes = sorted(set(self.labels))
        if self.classes and list(self.classes) != classes:
            raise DataError(f"the classes given for {self.source} are not its distinct labels, sorted")
        object.__setattr__(self, "classes", classes)

    def __len__(self) -> int:
        return len(self.items)

    @property
    def targets(self) -> np.ndarray:
        """The index in ``classes`` of each image's class, int64."""
        index = {name: i for i, name in enumerate(self.classes)}
        return np.array([index[label] for label in self.labels], dtype=np.int64)

    def counts(self) -> dict[str, int]:
        """Return how many images each class has, in the order of ``classes``."""
        counted = Counter(self.labels)
        return {name: counted[name] for name in self.classes}

    def subset(self, indices: Iterable[int] | np.ndarray) -> LabelledImages:
        """Return the images at ``indices`` (or where a boolean mask is true), in that order."""
        chosen = np.asarray(indices if isinstance(indices, np.ndarray) else list(indices))
        picked = (np.flatnonzero(chosen) if chosen.dtype == bool else chosen.astype(np.int64)).tolist()
        items, labels = [self.items[i] for i in picked], [self.labels[i] for i in picked]
        return LabelledImages(items, labels, source=self.source)

    def of_classes(self, names: Iterable[str]) -> LabelledImages:
        """Return the images of these classes. Raises :class:`DataError` if one is not a class here."""
        wanted = self._checked(names)
        return self.subset(i for i, label in enumerate(self.labels) if label in wanted)

    def without_classes(self, names: Iterable[str]) -> LabelledImages:
        """Return the images of all other classes. Raises :class:`DataError` if one is not a class here."""
        unwanted = self._checked(names)
        return self.subset(i for i, label in enumerate(self.labels) if label not in unwanted)

    def _checked(self, names: Iterable[str]) -> set[str]:
        asked = [names] if isinstance(names, str) else [str(name) for name in names]
        unknown = []
        for name in sorted(set(asked) - set(self.classes)):
            near = difflib.get_close_matches(name, self.classes, n=3)
            unknown.append(f"{name!r}" + (f" (near: {', '.join(map(repr, near))})" if near else ""))
        if unknown:
            raise DataError(f"{self.source} has no class named {', '.join(unknown)}")
        return set(asked)


def load_dataset(source: Any, *, labels: Iterable[Hashable] | None = None) -> LabelledImages:
    """Return labelled images from a folder of class folders, a ``.csv`` or ``.tsv`` file of path and label, a
    pair ``(images, labels)``, images with ``labels=``, or a ``datasets.Dataset`` (see :mod:`newfound.hf_datasets`).
    A :class:`LabelledImages` is returned as it is.

    Folder: the class is the name of the first-level folder, however deep an image lies below it. CSV: a
    header is recognised by its names (path, file, filename or image; label, class or category) and may be
    missing; paths are relative to the CSV's folder. Labels become text without white space around it.

    Raises :class:`MissingFileError` if the path, or one in the CSV, is not there, and :class:`DataError` for
    anything else that is not a labelled data set.
    """
    if isinstance(source, (LabelledImages, str, os.PathLike)):
        if labels is not None:
            raise DataError("labels= is for images in memory; a path or a data set brings its own labels")
        return source if isinstance(source, LabelledImages) else _load_path(Path(source))
    if labels is None and hf_datasets.is_hf_dataset(source):
        return hf_datasets.columns(source)
    if labels is None and isinstance(source, tuple) and len(source) == 2:
        source, labels = source
    if labels is not None and not isinstance(labels, Iterable):
        raise DataError(f"the labels are {labels!r}; give one for each image")
    if labels is None or not isinstance(source, Iterable):
        raise DataError(f"a {type(source).__name__} without labels is not a labelled data set; {_LAYOUT}")
    items = list(source)
    names = labels.tolist() if hasattr(labels, "tolist") else list(labels)
    return LabelledImages(items, label_texts(names), source=f"the data set of {counted(len(items), 'image')} in memory")


def _load_path(path: Path) -> LabelledImages:
    if os.path.isdir(path):
        return _load_folder(path)
    if not os.path.exists(path):
        raise MissingFileError(f"there is no folder or CSV file {path}")
    if path.suffix.lower() in SEPARATORS:
        return LabelledImages(*read_table(path), source=str(path))
    raise DataError(f"{path} is neither a folder nor a .csv or .tsv file; {_LAYOUT}")


def _load_folder(root: Path) -> LabelledImages:
    try:
        visible = sorted(name for name in os.listdir(root) if not name.startswith("."))
    except OSError as error:
        raise DataError(f"cannot look into the folder {root}: {error.strerror}") from error
    above = {root.resolve(), *root.resolve().parents}
    folders = {root / name: (root / name).resolve() for name in visible if os.path.isdir(root / name)}
    # A link back up would make one class of the whole data set, or put one class's images in another.
    found = {
        folder.name: find_images(folder, skip={*above, *folders.values()})
        for folder, real in folders.items()
        if real not in above
    }
    stray = sum(is_image_path(name) and is_file_or_dead_link(root / name) for name in visible)
    dead = tuple(name for name in visible if not is_image_path(name) and is_dead_link(root / name))
    items = [path for paths in found.values() for path in paths]
    if not items:
        has = f"{counted(stray, 'image')} but none in a class folder" if stray else "no images"
        also = f" ({', '.join(dead[:_NAMED])}: a link that leads nowhere)" if dead else ""
        raise DataError(f"{root} has {has}{also}; {_LAYOUT}")
    labels = label_texts([name for name, paths in found.items() for _ in paths])
    empty = tuple(name for name, paths in found.items() if not paths)
    return LabelledImages(items, labels, source=str(root), empty_classes=empty, stray_images=stray, dead_links=dead)


def check_trainable(data: LabelledImages, *, min_classes: int = 2, min_per_class: int = 2) -> None:
    """Raise :class:`DataError`, which says what to do, if there are too few classes or images of a class."""
    if len(data.classes) < min_classes:
        few = len(data.classes)
        has = f"one class only ({data.classes[0]})" if few == 1 else f"{few or 'no'} classes"
        raise DataError(f"{data.source} has {has}, but at least {min_classes} are needed; {_LAYOUT}")
    small = {name: count for name, count in data.counts().items() if count < min_per_class}
    if small:
        amount = "one image" if set(small.values()) == {1} else f"fewer than {min_per_class} images"
        named = ", ".join(list(small)[:_NAMED]) + (f" and {len(small) - _NAMED} more" if len(small) > _NAMED else "")
        raise DataError(
            f"these classes have {amount}: {named}; give each at least {min_per_class}, "
            f"or take it out of {data.source}"
        )


def drop_unreadable(
    data: LabelledImages, *, progress: Callable[[int], None] | None = None
) -> tuple[LabelledImages, list[tuple[str, str]]]:
    """Decode every image; return those that can be read, and the (name, reason) of those that cannot.

    ``progress`` is called with the number of images just looked at, which is 1.
    """
    readable: list[int] = []
    dropped: list[tuple[str, str]] = []
    for index, item in enumerate(data.items):
        try:
            open_image(item)
            readable.append(index)
        except (ImageError, MissingFileError) as error:
            dropped.append((item_name(item, index), str(error)))
        if progress is not None:
            progress(1)
    return (data.subset(readable) if dropped else data), dropped


def item_name(item: Any, index: int) -> str:
    """Return what to call an image in messages: its path, or 'image 17' for one in memory."""
    return str(item) if isinstance(item, (str, os.PathLike)) else f"image {index}"


def iter_source(source: Any) -> Iterator[Any]:
    """Yield the single images of an unlabelled source, lazily, in forms that ``open_image`` takes.

    A folder gives the images below it, an array of N x H x W (x C) its N images; lists and iterators may hold
    any of these. A path that leads nowhere is yielded too: whoever reads it reports it. Raises
    :class:`DataError` for something that can hold no image, such as a number.
    """
    if isinstance(source, LabelledImages):
        yield from source.items
    elif isinstance(source, (str, os.PathLike)) and os.path.isdir(source):
        yield from find_images(source)
    elif hf_datasets.is_hf_dataset(source):
        yield from hf_datasets.image_rows(source)
    elif is_array(source):
        yield from _array_images(source)
    elif _is_one_image(source):
        yield source
    elif isinstance(source, Iterable):
        for part in source:
            yield from iter_source(part)
    else:
        raise DataError(f"{source!r} is not an image; give paths, folders, PIL images or arrays")


def is_finite(source: Any) -> bool:
    """Return whether ``source`` is known to end: False for iterators, and for lists that hold one."""
    if isinstance(source, LabelledImages) or is_array(source) or _is_one_image(source):
        return True
    if isinstance(source, (list, tuple)):
        return all(is_finite(part) for part in source)
    return isinstance(source, Sized)


def _is_one_image(source: Any) -> bool:
    in_memory = (bytes, bytearray, memoryview, Image.Image)
    return isinstance(source, (str, os.PathLike, *in_memory)) or hasattr(source, "read")


def _array_images(source: Any) -> Iterable[Any]:
    tensor = hasattr(source, "detach")
    array = source if tensor else np.asarray(source)
    if not tensor and array.dtype.kind in "OU":  # an array of paths, or of images of different sizes
        return iter_source(array.tolist())
    # Channels are where open_image looks for them: last in an array, first or last in a tensor.
    ends = {*array.shape[-1:], *(array.shape[:1] if tensor else ())}
    many = array.ndim == 4 or (array.ndim == 3 and not ends & {1, 3, 4})
    return array if many else [array]


def split_protocol(
    data: LabelledImages, known: Iterable[str] | None = None, *, fraction: float = 0.5, seed: int = 0
) -> tuple[LabelledImages, LabelledImages]:
    """Return the labelled set and the stream of the on-the-fly category discovery protocol.

    The labelled set is a draw of ``fraction`` (rounded down) of the samples of all ``known`` classes taken
    together; the stream is the rest of them and all of the other classes, both in the order of ``data``.
    Without ``known``, a seeded draw makes half of the classes known, rounded up. Though the draw is not class
    by class, a known class that has two samples keeps two labelled ones: the class with the most gives up one
    of its own for each that is missing, and where all are down to two the labelled set grows.

    Raises :class:`DataError` for a name in ``known`` that is no class here, for no known class at all, and
    for a fraction outside (0, 1].
    """
    if not 0 < fraction <= 1:
        raise DataError(f"the labelled fraction is {fraction}; it must be above 0 and at most 1")
    rng = np.random.default_rng(seed)
    if known is None:
        half = rng.permutation(len(data.classes))[: math.ceil(len(data.classes) / 2)]
        known = [data.classes[i] for i in half]
    names = data._checked(known)
    if not names:
        raise DataError(f"none of the classes of {data.source} is known; name at least one")
    order = rng.permutation([i for i, label in enumerate(data.labels) if label in names]).tolist()
    size = math.floor(fraction * len(order) + 1e-9)  # 0.29 * 100 is 28.999...
    drawn, rest = order[:size], order[size:]
    have = Counter(data.labels[i] for i in drawn)
    for name in sorted(names):
        spare = [i for i in rest if data.labels[i] == name]
        for index in spare[: max(0, 2 - have[name])]:
            drawn.append(index)
            have[name] += 1
            richest = min(have, key=lambda other: (-have[other], other))
            if have[richest] > 2:
                drawn.remove(next(i for i in drawn if data.labels[i] == richest))
                have[richest] -= 1
    labelled = np.zeros(len(data), dtype=bool)
    labelled[drawn] = True
    return data.subset(labelled), data.subset(~labelled)
