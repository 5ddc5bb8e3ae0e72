"""Data sets of the Hugging Face library `datasets`: labelled ones to learn from, streaming ones to discover in.

Images stay encoded until they are looked at: a row is a file object that :func:`newfound.images.open_image` reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PIL import Image

from newfound.errors import DataError

if TYPE_CHECKING:
    from newfound.datasets import LabelledImages

_LABELS = ("label", "labels", "class", "category")
_IMAGES = ("image", "img", "picture", "photo")


@dataclass(frozen=True)
class Row:
    """The encoded image of one row: a binary file to read, and the row's place in its data set."""

    index: int
    name: str
    _cells: Any = field(repr=False, compare=False)  # indexed by `index`
    _column: str = field(repr=False, compare=False)

    def read(self) -> bytes:
        """The bytes of the image. Raises OSError if its file is not there, or ValueError if the row has none."""
        cell = self._cells[self.index][self._column]
        if cell is None:
            raise ValueError("the row has no image")
        if cell.get("bytes"):
            content: bytes = cell["bytes"]
            return content
        return _file_bytes(cell["path"])


def columns(dataset: Any, image: str | None = None, label: str | None = None) -> LabelledImages:
    """The images of one column with the labels of another, as `newfound.fit` and `Run.evaluate` take them.

    Args:
        dataset: A `datasets.Dataset`; names come from its ClassLabel, other labels become text.
        image: The column of images; None: the only Image feature, or the one called image.
        label: The column of labels; None: the only ClassLabel, or the one called label, class or category.

    Raises:
        DataError: A streaming data set or several splits, columns that are not there or cannot be guessed, or a row
            without a label.
    """
    from newfound.datasets import LabelledImages, load_dataset

    _refuse_splits(dataset)
    if not hasattr(dataset, "num_rows"):
        raise DataError("a streaming data set has no end to learn from: load it without streaming=True, or take(n) it.")
    named = _label_column(dataset, label)
    rows, source = list(image_rows(dataset, image)), _called(dataset)
    feature, given = dataset.features[named], list(dataset.with_format(None)[named])
    missing = [i for i, value in enumerate(given) if value is None or (value == -1 and hasattr(feature, "int2str"))]
    if missing:
        raise DataError(f"{source}: row {missing[0]} has no {named}; leave such rows out, as with dataset.filter(...)")
    names = feature.int2str(given) if hasattr(feature, "int2str") and given else given
    return LabelledImages(rows, load_dataset((rows, names)).labels, source=source)


def image_rows(dataset: Any, image: str | None = None) -> Iterator[Any]:
    """The images of a data set, streaming or not, in its order and one at a time; they are decoded by who opens them.

    Raises:
        DataError: Several splits, or a column of images that is not there or cannot be guessed.
    """
    _refuse_splits(dataset)
    if dataset.features is None:  # a stream that does not know its columns before the first row
        yield from _unknown_columns(dataset, image)
        return
    column, name = _image_column(dataset, image), _called(dataset)
    from datasets import Image as ImageFeature

    cells = dataset.with_format(None).select_columns([column]).cast_column(column, ImageFeature(decode=False))
    if hasattr(dataset, "num_rows"):
        for index in range(dataset.num_rows):
            yield Row(index, f"row {index} of {name}", cells, column)
    else:
        for index, cell in enumerate(cells):
            yield Row(index, f"row {index} of {name}", {index: cell}, column)


def is_hf_dataset(source: Any) -> bool:
    """Whether this is a data set, or a dictionary of splits, of the library; found out without importing it."""
    kinds = {"Dataset", "IterableDataset", "DatasetDict", "IterableDatasetDict"}
    return any(c.__module__.partition(".")[0] == "datasets" and c.__name__ in kinds for c in type(source).__mro__)


def _refuse_splits(dataset: Any) -> None:
    if isinstance(dataset, dict):
        splits = ", ".join(map(repr, dataset))
        first = next(iter(dataset), "train")
        raise DataError(f"this is a dictionary of splits ({splits}): give one of them, as dataset[{first!r}]")


def _image_column(dataset: Any, wanted: str | None) -> str:
    found = [name for name, feature in dataset.features.items() if type(feature).__name__ == "Image"]
    return _one("image", "an Image feature", wanted, found, _IMAGES, dataset)


def _label_column(dataset: Any, wanted: str | None) -> str:
    found = [name for name, feature in dataset.features.items() if type(feature).__name__ == "ClassLabel"]
    if wanted is not None and wanted in dataset.features:
        return wanted
    plain = [name for name in _LABELS if name in dataset.features]
    return _one("label", "a ClassLabel", wanted, found or plain[:1], _LABELS, dataset)


def _one(role: str, kind: str, wanted: str | None, found: list[str], usual: Iterable[str], dataset: Any) -> str:
    """The column that was asked for, the only one of its kind, or the first with a usual name."""
    if wanted is not None:
        if wanted in found:
            return wanted
        raise DataError(f"{_called(dataset)} has no column {wanted!r} that is {kind}; it has {_listed(dataset)}.")
    if len(found) == 1:
        return found[0]
    for name in usual:
        if name in found:
            return name
    has = f"several columns that could be the {role}: {', '.join(found)}" if found else f"no column that is {kind}"
    raise DataError(
        f"{_called(dataset)} has {has}, among {_listed(dataset)}. Name it: newfound.hf_datasets.columns(dataset, "
        f"{role}=...), or cast_column it."
    )


def _unknown_columns(dataset: Any, wanted: str | None) -> Iterator[Any]:
    for row in dataset:
        found = [name for name, value in row.items() if isinstance(value, Image.Image)]
        if wanted is None and found:
            wanted = next((name for name in _IMAGES if name in found), found[0])
        if wanted not in row:
            raise DataError(f"the rows of this stream have no image, but {', '.join(row)}: cast_column one to Image().")
        yield row[wanted]


def _listed(dataset: Any) -> str:
    return ", ".join(f"{name} ({type(feature).__name__})" for name, feature in dataset.features.items())


def _called(dataset: Any) -> str:
    """What to call a data set in messages: its name on the hub and its split, as far as it has them."""
    parts = [str(part) for part in (dataset.info.dataset_name, dataset.split) if part]
    return " ".join(parts) or "the data set"


def _file_bytes(path: str) -> bytes:
    if "://" not in path:
        return Path(path).read_bytes()
    import fsspec

    with fsspec.open(path, "rb") as file:
        content: bytes = file.read()
    return content


__all__ = ["Row", "columns", "image_rows", "is_hf_dataset"]
