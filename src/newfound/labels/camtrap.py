"""Camtrap DP 1.0: a data package of deployments, media and observations, as biodiversity archives take them in.

What a package must say and nobody has told newfound is left empty and counted, never made up.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

from newfound.errors import SettingsError
from newfound.files import new_file
from newfound.journal.rows import as_path
from newfound.labels._files import Options, Places, read_header, read_rows
from newfound.labels.deployments import FIELDS, Deployments
from newfound.labels.findings import Finding, Findings, Picture
from newfound.labels.told import Told, box_of, number_in
from newfound.outputs.tables import csv_line
from newfound.remote_files import is_url

VERSION = "1.0.1"
DEPLOYMENTS, MEDIA, OBSERVATIONS = "deployments.csv", "media.csv", "observations.csv"
_SCHEMAS = f"https://raw.githubusercontent.com/tdwg/camtrap-dp/{VERSION}/"
_FIELDS = {
    DEPLOYMENTS: tuple(FIELDS),
    MEDIA: (
        "mediaID", "deploymentID", "captureMethod", "timestamp", "filePath", "filePublic", "fileName", "fileMediatype",
        "exifData", "favorite", "mediaComments",
    ),
    OBSERVATIONS: (
        "observationID", "deploymentID", "mediaID", "eventID", "eventStart", "eventEnd", "observationLevel",
        "observationType", "cameraSetupType", "scientificName", "count", "lifeStage", "sex", "behavior",
        "individualID", "individualPositionRadius", "individualPositionAngle", "individualSpeed", "bboxX", "bboxY",
        "bboxWidth", "bboxHeight", "classificationMethod", "classifiedBy", "classificationTimestamp",
        "classificationProbability", "observationTags", "observationComments",
    ),
}  # fmt: skip
_TYPES = {"human": "human", "person": "human", "vehicle": "vehicle", "blank": "blank", "empty": "blank"}
_ALLOWED = re.compile(r"(?![./~])((?!\.{2})[^\r\n])*")  # file paths: nothing that leads out of the package
_ZONE = re.compile(r"[+-](0\d|1[0-4]):[0-5]\d|Z")
_TAKEN, _OFFSET = 0x9003, 0x9011  # EXIF DateTimeOriginal and OffsetTimeOriginal


def write(findings: Findings, out: Path, options: Options) -> None:
    """Write a folder with datapackage.json and its three tables.

    Raises:
        SettingsError: An offset that is none.
        DataError: A file cannot be written, or that of deployments cannot be read.
    """
    if options.utc_offset is not None and not _ZONE.fullmatch(options.utc_offset):
        raise SettingsError(f"{options.utc_offset} is no offset from UTC; write +02:00, -05:30 or Z.")
    places = Places(options.places.root or findings.folder(), options.places.url)
    deployments = Deployments(options.deployments)
    taxa: dict[str, None] = {}
    with new_file(out / MEDIA) as media, new_file(out / OBSERVATIONS) as observations:
        media.write(csv_line(_FIELDS[MEDIA]))
        observations.write(csv_line(_FIELDS[OBSERVATIONS]))
        for picture, shown, taken, kind in _usable(findings, places, options.utc_offset):
            deployment = deployments.of(picture.path, places, taken.text, taken.sure)
            medium = _medium(picture, shown, deployment, taken.text, kind)
            media.write(_line(MEDIA, medium))
            for thing in picture.things:
                row = _observation(findings, thing, medium)
                taxa |= dict.fromkeys(filter(None, [row.get("scientificName")]))
                observations.write(_line(OBSERVATIONS, row))
    with new_file(out / DEPLOYMENTS) as file:
        file.write(csv_line(_FIELDS[DEPLOYMENTS]))
        file.writelines(_line(DEPLOYMENTS, row) for row in deployments.rows.values())
    with new_file(out / "datapackage.json") as file:
        json.dump(_package(findings, deployments, taxa), file, indent=2)
    findings.notes += deployments.notes(out / DEPLOYMENTS)


def read(path: Path, findings: Findings) -> tuple[Iterable[Told], dict[int, str]]:
    """What the observations of a package say, from its folder or its observations.csv.

    The label is the scientific name, or that in the tag `category` for what has none.
    """
    path = path / OBSERVATIONS if path.is_dir() else path
    rows = read_rows(path, ["observationID"])
    return [told for line, row in rows if (told := _told(row, f"{path}, line {line}")) is not None], {}


class _Taken(NamedTuple):
    """When an image was taken, and whether that is sure."""

    text: str
    sure: bool


def _usable(findings: Findings, places: Places, offset: str | None) -> Iterator[tuple[Picture, str, _Taken, str]]:
    """Pictures that a package can hold: their path in it, when they were taken, and their media type."""
    for picture in findings.pictures():
        shown = places.of(picture.path)
        if not _ALLOWED.fullmatch(shown):
            findings.leave_out(picture, "a path that Camtrap DP does not allow: --root is the folder that all lie in")
            continue
        header = read_header(picture.path)
        if header is None:
            findings.leave_out(picture, "gone, or cannot be read, so that it is not known when it was taken")
            continue
        yield picture, shown, _taken(picture.path, header[2], offset), header[3]


def _taken(path: str, exif: dict[int, Any], offset: str | None) -> _Taken:
    """When an image was taken: as its camera wrote down, else when its file was made, which is a guess."""
    try:
        zone = str(exif.get(_OFFSET, "")).strip("\0 ") or offset or ""
        known = bool(_ZONE.fullmatch(zone))
        moment = datetime.strptime(str(exif.get(_TAKEN)).strip("\0 "), "%Y:%m:%d %H:%M:%S")
        zone = zone.replace("Z", "+00:00") if known else "+00:00"
        return _Taken(moment.isoformat(timespec="seconds") + zone, known)
    except ValueError:
        made = os.path.getmtime(as_path(path)) if not is_url(path) else 0.0
        return _Taken(_moment(made), False)


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="seconds")


def _medium(picture: Picture, shown: str, deployment: str, taken: str, kind: str) -> dict[str, Any]:
    first = min(thing.number for thing in picture.things)
    return {
        "mediaID": f"m{first}", "deploymentID": deployment, "timestamp": taken, "filePath": shown,
        "filePublic": "false", "fileName": os.path.basename(picture.path), "fileMediatype": kind,
    }  # fmt: skip


def _observation(findings: Findings, thing: Finding, medium: dict[str, Any]) -> dict[str, Any]:
    named = thing.category in findings.named
    kind = _TYPES.get(thing.label.lower(), "animal" if named or thing.box is not None else "unknown")
    row: dict[str, Any] = {
        "observationID": f"s{thing.number}",
        **{name: medium[name] for name in ("deploymentID", "mediaID")},
        "eventStart": medium["timestamp"],
        "eventEnd": medium["timestamp"],
        "observationLevel": "media",
        "observationType": kind,
        "scientificName": thing.label if named and kind == "animal" else None,
        "classificationMethod": "machine" if thing.placed_by is None else "human",
        "classifiedBy": thing.placed_by or findings.model,
        "classificationTimestamp": _moment(thing.placed_at or thing.time),
        "classificationProbability": thing.probability,
        "observationTags": f"category:{_tag(thing.label)} | was:{_tag(thing.label)} | id:{thing.category}",
    }
    if thing.box is not None:
        row |= dict(zip(("bboxX", "bboxY", "bboxWidth", "bboxHeight"), thing.box, strict=True))
    return row


def _tag(text: str) -> str:
    """A name in a list of tags, which bars part."""
    return text.replace("|", "/").strip()


def _line(table: str, row: dict[str, Any]) -> str:
    return csv_line(row.get(name, "") for name in _FIELDS[table])


def _package(findings: Findings, deployments: Deployments, taxa: dict[str, None]) -> dict[str, Any]:
    days = deployments.days()
    tables = {DEPLOYMENTS: "deployments", MEDIA: "media", OBSERVATIONS: "observations"}
    return {
        "profile": f"{_SCHEMAS}camtrap-dp-profile.json",
        "name": "newfound-export",
        "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "contributors": [{"title": findings.model, "role": "contributor"}],
        "project": {
            "title": "found by newfound", "samplingDesign": "opportunistic", "captureMethod": ["activityDetection"],
            "individualAnimals": False, "observationLevel": ["media"],
        },
        "spatial": {"type": "MultiPoint", "coordinates": deployments.points()},
        "temporal": {"start": min(days), "end": max(days)} if days else {},
        "taxonomic": [{"scientificName": name} for name in taxa],
        "resources": [
            {"name": name, "path": path, "profile": "tabular-data-resource", "format": "csv",
             "mediatype": "text/csv", "encoding": "utf-8", "schema": f"{_SCHEMAS}{name}-table-schema.json"}
            for path, name in tables.items()
        ],
    }  # fmt: skip


def _told(row: dict[str, str | None], where: str) -> Told | None:
    tags = dict(tag.strip().partition(":")[::2] for tag in (row.get("observationTags") or "").split("|"))
    number = number_in((row["observationID"] or "").removeprefix("s"))
    label = row.get("scientificName") or tags.get("category")
    if number is None or not label:
        return None  # an observation that a person has added: it is of no sighting
    sides = [row.get(name) for name in ("bboxX", "bboxY", "bboxWidth", "bboxHeight")]
    box = box_of(sides, where) if all(sides) else None
    return Told(label, box=box, number=number, was=tags.get("was"))
