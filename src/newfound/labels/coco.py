"""COCO: one JSON file of images, categories, and a box with a score for each thing; what most annotation tools read."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from newfound.crops import WHOLE, Box
from newfound.errors import DataError
from newfound.files import new_file
from newfound.labels._files import Options, Places, read_header, read_tool_json
from newfound.labels.findings import Finding, Findings, Picture
from newfound.labels.told import Told, box_of, number_in

_ID = "newfound_category"  # beside COCO's own id, which tools number anew
_WAS = "newfound_was"  # what was given to the tool: a category's name, an annotation's category


def write(findings: Findings, out: Path, options: Options) -> None:
    """Write a file. Images whose size cannot be read any more are left out and counted."""
    with new_file(out) as file, tempfile.TemporaryFile("w+", encoding="utf-8") as annotations:
        file.write('{"info": ' + json.dumps({"description": "found by newfound", "version": findings.model}))
        file.write(',\n"licenses": [],\n"categories": ')
        json.dump([_category(c.id, c.name, c.origin, c.ignored) for c in findings.categories.values()], file)
        file.write(',\n"images": [')
        _write_images(findings, options.places, file, annotations)
        file.write('\n],\n"annotations": [')
        annotations.seek(0)
        shutil.copyfileobj(annotations, file)
        file.write("\n]}\n")


def read(path: Path, findings: Findings) -> tuple[Iterable[Told], dict[int, str]]:
    """What a COCO file says of each annotation, and the names of categories where it has kept their ids.

    Raises:
        DataError: The file is not there, no COCO file, or speaks of categories or images that it does not list.
    """
    data = read_tool_json(path, "the tool")
    try:
        ours = {c["id"]: c[_ID] for c in data["categories"] if isinstance(c.get(_ID), int)}
        labels = {c["id"]: _name(c, path) for c in data["categories"]}
        images = {image["id"]: image for image in data["images"]}
        for annotation in data["annotations"]:
            _check_listed(annotation, labels, images, path)
        said = [_told(a, images[a["image_id"]], labels, ours, path) for a in data["annotations"]]
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path} is no COCO file: it lacks, or has in another form, {error}") from error
    renamed = {c[_ID]: str(c["name"]) for c in data["categories"] if c["id"] in ours and c["name"] != c.get(_WAS)}
    return said, renamed


def _name(category: dict[str, Any], path: Path) -> str:
    if not isinstance(category["name"], str):
        raise DataError(f"{path}: the category {category['id']} has no name; give it one.")
    return category["name"]


def _check_listed(annotation: dict[str, Any], labels: dict[int, str], images: dict[int, Any], path: Path) -> None:
    """Raise DataError for an annotation of a category or an image that the file does not list."""
    for key, listed, where in (("category_id", labels, "categories"), ("image_id", images, "images")):
        if annotation[key] not in listed:
            raise DataError(
                f"{path}: the annotation {annotation.get('id', 'without an id')} has {key} {annotation[key]}, which is "
                f'not among its "{where}"; add it there, or take the annotation out.'
            )


def _category(number: int, name: str, origin: str, ignored: bool) -> dict[str, Any]:
    category = {"id": number, "name": name, "supercategory": origin, _ID: number, _WAS: name}
    return category | ({"ignored": True} if ignored else {})


def _write_images(findings: Findings, places: Places, file: IO[str], annotations: IO[str]) -> None:
    """Both lists in one pass, so that every image is opened once."""
    between, before = "\n", "\n"
    for number, (picture, width, height) in enumerate(_sized(findings), start=1):
        image = {"id": number, "file_name": places.of(picture.path), "width": width, "height": height}
        file.write(between + json.dumps(image))
        between = ",\n"
        for thing in picture.things:
            annotations.write(before + json.dumps(_annotation(thing, number, width, height)))
            before = ",\n"


def _sized(findings: Findings) -> Iterator[tuple[Picture, int, int]]:
    for picture in findings.pictures():
        header = read_header(picture.path)
        if header is None:
            findings.leave_out(picture, "gone, or cannot be read, so that its size is not known")
        else:
            yield picture, *header[:2]


def _annotation(thing: Finding, image: int, width: int, height: int) -> dict[str, Any]:
    box = thing.box or WHOLE
    pixels = [round(value * size, 2) for value, size in zip(box, (width, height, width, height), strict=True)]
    facts = {
        "id": thing.number + 1,  # from 1: pycocotools takes 0 for none
        "image_id": image,
        "category_id": thing.category,
        "bbox": pixels,
        "area": round(pixels[2] * pixels[3], 2),
        "iscrowd": 0,
        "score": thing.score,
        "probability": thing.probability,
        "sighting": thing.number,
        _WAS: thing.category,
    }
    return {name: value for name, value in facts.items() if value is not None}


def _told(
    annotation: dict[str, Any], image: dict[str, Any], labels: dict[int, str], ours: dict[int, int], path: Path
) -> Told:
    number, category = number_in(annotation.get("sighting")), annotation["category_id"]
    width, height = image.get("width"), image.get("height")
    box, shares = box_of(annotation.get("bbox"), f"{path}: an annotation of {image['file_name']}"), None
    if box and width and height:
        shares = Box(box.x / width, box.y / height, box.width / width, box.height / height)
    label, meant = labels[category], ours.get(category)
    was = label if meant is not None and annotation.get(_WAS) == meant else None
    return Told(label, str(image["file_name"]), shares, number, was, meant)
