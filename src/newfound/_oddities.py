"""What about a labelled data set should make one wonder, though it can be used as it is."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from newfound._words import counted
from newfound.images import content_of

if TYPE_CHECKING:
    from newfound.datasets import LabelledImages

_NAMED = 3


def oddities(data: LabelledImages) -> list[str]:
    """Return a sentence for each thing about ``data`` that may not be meant; for most data sets there is none.

    Files of the same size are read to find equal images; no image is decoded.
    """
    found = []
    if data.stray_images:
        lie = counted(data.stray_images, "image lies", "images lie")
        found.append(f"{lie} in {data.source} beside the class folders and will not be used")
    if data.empty_classes:
        have = counted(len(data.empty_classes), "class folder has", "class folders have")
        found.append(f"{have} no image: {_some(data.empty_classes)}")
    if data.dead_links:
        lead = counted(len(data.dead_links), "link leads", "links lead")
        found.append(f"{lead} nowhere in {data.source}, where a class folder could be: {_some(data.dead_links)}")
    paths = [(Path(item), label) for item, label in zip(data.items, data.labels, strict=True) if _is_path(item)]
    if os.path.isdir(data.source) and (inner := _inner_folders(Path(data.source), [path for path, _ in paths])):
        found.append(
            f"the classes are the first folders in {data.source}: {_some(data.classes)}. Folders in these, such as "
            f"{_some(inner)}, are not told apart; if they are the classes, give the folder right above them, or a CSV "
            "of path,label"
        )
    if pairs := _contradictions(paths):
        (first, label), (second, other) = pairs[0]
        have = "an image has two labels:" if len(pairs) == 1 else f"{len(pairs)} images have two labels; the first:"
        found.append(f"{have} {first} is {label!r}, and {second}, which is equal, is {other!r}")
    if twins := _twins(data.classes):
        found.append(f"classes that differ only in capital letters are taken as different ones: {_some(twins)}")
    return found


def shared_images(data: LabelledImages, other: LabelledImages) -> list[Path]:
    """Return the files of ``data`` that are equal to one of ``other``, byte by byte; only files of the same size are
    read."""
    sizes = defaultdict[int, list[Path]](list)
    for path in (Path(item) for item in other.items if _is_path(item)):
        sizes[_size(path)].append(path)
    contents: dict[int, set[bytes | None]] = {0: set()}  # by size; what is empty, or not there, is no image
    found = []
    for path in (Path(item) for item in data.items if _is_path(item)):
        size = _size(path)
        if size not in contents:
            contents[size] = {content_of(taught) for taught in sizes.get(size, ())} - {None}
        if contents[size] and content_of(path) in contents[size]:
            found.append(path)
    return found


def copies(labelled: LabelledImages, stream: LabelledImages) -> list[str]:
    """Return a sentence if files of the stream are equal to labelled ones: whoever learns one has seen the other."""
    both = shared_images(stream, labelled)
    if not both:
        return []
    are = counted(len(both), "image of the stream is", "images of the stream are")
    return [f"{are} equal to a labelled one, such as {both[0]}: to be scored on what is new to a run, keep one of each"]


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _inner_folders(root: Path, paths: Sequence[Path]) -> list[str]:
    """The folders below the class folders, if all images lie in such, and one class at least has several."""
    inner = defaultdict[str, set[str]](set)
    for path in paths:
        parts = path.relative_to(root).parts if path.is_relative_to(root) else ()
        if len(parts) < 3:
            return []
        inner[parts[0]].add("/".join(parts[:2]))
    return sorted(set().union(*inner.values())) if any(len(folders) > 1 for folders in inner.values()) else []


def _contradictions(paths: Iterable[tuple[Path, str]]) -> list[tuple[tuple[Path, str], tuple[Path, str]]]:
    """For each image that is there with different labels, two of its places."""
    sizes = defaultdict[int, list[tuple[Path, str]]](list)
    for path, label in paths:
        sizes[_size(path)].append((path, label))
    found: dict[bytes, tuple[tuple[Path, str], tuple[Path, str]]] = {}
    for size, alike in sizes.items():
        if not size or len({label for _, label in alike}) == 1:
            continue
        first: dict[bytes, tuple[Path, str]] = {}
        for path, label in alike:
            content = content_of(path)
            if content is not None and first.setdefault(content, (path, label))[1] != label:
                found.setdefault(content, (first[content], (path, label)))
    return list(found.values())


def _twins(classes: Iterable[str]) -> list[str]:
    """Names that are one but for capital letters, as people who type them make."""
    alike = defaultdict[str, list[str]](list)
    for name in classes:
        alike[name.casefold()].append(name)
    return [" and ".join(names) for names in alike.values() if len(names) > 1]


def _is_path(item: object) -> bool:
    return isinstance(item, (str, os.PathLike))


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")
