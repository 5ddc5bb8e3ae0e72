"""What MegaDetector found in images, as crops to be decided on in place of whole frames."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from newfound.crops import Box, Crop
from newfound.errors import DataError, SettingsError
from newfound.files import read_json
from newfound.remote_files import is_url
from newfound.sources.items import Item

ANIMAL = "animal"
_PIXELS = 2.0  # a share of an image is at most 1, and a little more by rounding or by boxes that reach beyond


def from_megadetector(
    file: str | os.PathLike[str],
    folders: Sequence[str],
    *,
    confidence: float = 0.2,
    pad: float = 0.0,
    kinds: Collection[str] = (ANIMAL,),
) -> Iterator[Item]:
    """The detections of a MegaDetector results file (batch format 1.x), in its order; a frame without any gives none.

    An item is named after its frame and its box, as cam1/0001.jpg#xywh=percent:10,20,30.5,40, and brings the
    detection's kind and confidence along. A frame that MegaDetector could not read, that is not there, or that is a
    video gives an item with the error.

    Args:
        folders: where the file's paths start from; the first that has a frame counts.
        confidence: what a detection needs at least.
        pad: how much larger than its box a crop is on every side, as a share of the box.
        kinds: the names of detection categories to look at.

    Raises:
        SettingsError: A confidence that is not from 0 to 1, a pad below 0, or a kind that the file does not know.
        DataError: The file is not there, or no MegaDetector file.
    """
    if not 0 <= confidence <= 1:
        raise SettingsError(f"a confidence is a number from 0 to 1, not {confidence}.")
    if not 0 <= pad < float("inf"):
        raise SettingsError(f"a crop can be padded by 0 or more of its box, not {pad}.")
    results = _read(Path(file))
    names = results["detection_categories"]
    for kind in kinds:
        if kind not in names.values():
            raise SettingsError(f"{file} has no detections called {kind!r}; there are {', '.join(names.values())}.")
    wanted = {number for number, name in names.items() if name in kinds}
    return _items(results["images"], names, wanted, folders, confidence, pad, str(file))


def _items(
    images: list[Any], names: dict[str, str], wanted: set[str], folders: Sequence[str], confidence: float, pad: float,
    file: str,
) -> Iterator[Item]:  # fmt: skip
    for entry in images:
        name = str(entry.get("file", "")).replace("\\", "/")
        if entry.get("failure"):
            yield Item(None, name, error=f"MegaDetector could not read {name}: {entry['failure']}")
            continue
        found = [d for d in entry.get("detections") or [] if d["category"] in wanted and d["conf"] >= confidence]
        if not found:
            continue
        if "frame_rate" in entry or any("frame_number" in detection for detection in found):
            yield Item(None, name, error=f"{name} is a video; only the detections in images can be looked at")
            continue
        path = _path(name, folders)
        if path is None:
            yield Item(None, name, error=f"{name}, of {file}, is in none of {', '.join(folders)}")
            continue
        for detection in found:
            if max(detection["bbox"]) > _PIXELS:
                yield Item(None, name, error=f"{name} has a box in pixels, not in shares: {detection['bbox']}")
                continue
            box = _box(detection["bbox"])
            if box is None:
                yield Item(None, name, error=f"{name} has a detection without an area: {detection['bbox']}")
                continue
            crop = Crop(path, box.padded(pad))
            kind = names[detection["category"]]
            yield Item(crop, crop.filename, {"detection": kind, "detection_confidence": detection["conf"]})


def _box(values: Any) -> Box | None:
    """The box, as far as it is in the image; None if nothing of it is."""
    x, y, width, height = (float(value) for value in values)
    left, top, right, bottom = max(0.0, x), max(0.0, y), min(1.0, x + width), min(1.0, y + height)
    return Box(left, top, right - left, bottom - top) if right > left and bottom > top else None


def _path(name: str, folders: Sequence[str]) -> str | None:
    """Where a frame is: the whole path, or a URL; None if it is nowhere."""
    for folder in folders:
        if is_url(folder):
            return f"{folder.rstrip('/')}/{name}"
        path = os.path.abspath(os.path.join(folder, name))
        if os.path.isfile(path):
            return path
    return None


def _read(path: Path) -> dict[str, Any]:
    results = read_json(path)
    if not isinstance(results, dict) or not _is_batch(results):
        raise DataError(
            f'{path} is no MegaDetector results file: it needs "images" and "detection_categories", and for each '
            "detection a category, a conf and a bbox of four shares (batch format 1.x)."
        )
    return results


def _is_batch(results: dict[str, Any]) -> bool:
    images, names = results.get("images"), results.get("detection_categories")
    if not isinstance(images, list) or not isinstance(names, dict):
        return False
    if not all(isinstance(name, str) for name in names.values()) or not all(isinstance(e, dict) for e in images):
        return False
    found = [entry.get("detections") or [] for entry in images]
    return all(isinstance(some, list) and all(map(_is_detection, some)) for some in found)


def _is_detection(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("category"), str):
        return False
    numbers = [value.get("conf"), *(value["bbox"] if isinstance(value.get("bbox"), list) else [])]
    return len(numbers) == 5 and all(type(n) in (int, float) and math.isfinite(n) for n in numbers)
