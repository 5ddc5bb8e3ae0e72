"""Camtrap DP 1.0: a data package of deployments, media and observations, as biodiversity archives take them in.

A deployment is a folder of images. What a package must say and nobody has told newfound, above all where a camera
stood, is left empty and counted, never made up.
"""

from __future__ import annotations

import csv
import json
import mimetypes
import os
import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone
from itertools import product
from pathlib import Path
from typing import Any

from newfound.crops import Box
from newfound.errors import DataError, MissingFileError, SettingsError
from newfound.files import new_file
from newfound.labels._files import Options, Places, read_header
from newfound.labels.findings import Finding, Findings, Picture
from newfound.labels.told import Told, number_in
from newfound.remote_files import is_url

VERSION = "1.0.1"
DEPLOYMENTS, MEDIA, OBSERVATIONS = "deployments.csv", "media.csv", "observations.csv"
_SCHEMAS = f"https://raw.githubusercontent.com/tdwg/camtrap-dp/{VERSION}/"
_FIELDS = {
    DEPLOYMENTS: (
        "deploymentID", "locationID", "locationName", "latitude", "longitude", "coordinateUncertainty",
        "deploymentStart", "deploymentEnd", "setupBy", "cameraID", "cameraModel", "cameraDelay", "cameraHeight",
        "cameraDepth", "cameraTilt", "cameraHeading", "detectionDistance", "timestampIssues", "baitUse", "featureType",
        "habitat", "deploymentGroups", "deploymentTags", "deploymentComments",
    ),
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
_ALLOWED = re.compile(r"(?![./~])((?!\.{2}).)*", re.DOTALL)  # file paths: nothing that leads out of the package
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
    deployments = _Deployments(_given(options.deployments))
    taxa: dict[str, None] = {}
    with new_file(out / MEDIA) as media_file, new_file(out / OBSERVATIONS) as observations_file:
        media, observations = _table(media_file, MEDIA), _table(observations_file, OBSERVATIONS)
        for picture, shown, taken, sure in _usable(findings, places, options.utc_offset):
            deployment = deployments.of(picture.path, places, taken, sure)
            medium = _medium(picture, shown, deployment, taken)
            media.writerow(medium)
            for thing in picture.things:
                row = _observation(findings, thing, medium)
                taxa |= dict.fromkeys(filter(None, [row.get("scientificName")]))
                observations.writerow(row)
    with new_file(out / DEPLOYMENTS) as file:
        _table(file, DEPLOYMENTS).writerows(deployments.rows.values())
    with new_file(out / "datapackage.json") as file:
        json.dump(_package(findings, deployments, taxa), file, indent=2)
    if nowhere := [name for name, row in deployments.rows.items() if not _located(row)]:
        findings.notes.append(
            f"the package is not valid yet: {len(nowhere)} of {len(deployments.rows)} deployments have no latitude and "
            f"longitude, such as {nowhere[0]}; fill in {out / DEPLOYMENTS}, or give --deployments FILE.csv"
        )


def read(path: Path, findings: Findings) -> tuple[Iterable[Told], dict[int, str]]:
    """What the observations of a package say, from its folder or its observations.csv.

    The label is the scientific name, or that in the tag `category` for what has none.
    """
    path = path / OBSERVATIONS if path.is_dir() else path
    return [told for row in _rows(path) if (told := _told(row, path)) is not None], {}


class _Deployments:
    """A deployment for each folder: what a person has told of it, or what its images tell."""

    def __init__(self, given: dict[str, dict[str, str]]) -> None:
        self.rows: dict[str, dict[str, Any]] = {}
        self._given = given

    def of(self, path: str, places: Places, taken: str, sure: bool) -> str:
        """The id of the deployment that an image is of; its times are widened to hold the image's."""
        inside = Places(places.root).of(path)
        name = os.path.dirname(inside) or os.path.basename(os.path.abspath(places.root))
        row = self.rows.setdefault(name, {"deploymentID": name, **self._given.get(name, {})})
        for field, pick in (("deploymentStart", min), ("deploymentEnd", max)):
            if not self._given.get(name, {}).get(field):
                row[field] = pick(row.get(field, taken), taken, key=datetime.fromisoformat)
        if not sure and "timestampIssues" not in self._given.get(name, {}):
            row["timestampIssues"] = "true"
        return name


def _usable(findings: Findings, places: Places, offset: str | None) -> Iterator[tuple[Picture, str, str, bool]]:
    """Pictures that a package can hold: their path in it, when they were taken, and whether that is sure."""
    for picture in findings.pictures():
        shown = places.of(picture.path)
        if not _ALLOWED.fullmatch(shown):
            findings.leave_out(picture, "a path that Camtrap DP does not allow: --root is the folder that all lie in")
            continue
        when = _taken(picture.path, offset)
        if when is None:
            findings.leave_out(picture, "gone, or cannot be read, so that it is not known when it was taken")
            continue
        yield picture, shown, *when


def _taken(path: str, offset: str | None) -> tuple[str, bool] | None:
    """When an image was taken: as its camera wrote down, else when its file was made, which is a guess."""
    header = read_header(path)
    if header is None:
        return None
    exif = header[2]
    try:
        zone = str(exif.get(_OFFSET, "")).strip("\0 ") or offset or ""
        known = bool(_ZONE.fullmatch(zone))
        moment = datetime.strptime(str(exif.get(_TAKEN)).strip("\0 "), "%Y:%m:%d %H:%M:%S")
        return moment.isoformat(timespec="seconds") + (zone if known else "+00:00").replace("Z", "+00:00"), known
    except ValueError:
        made = os.path.getmtime(path) if not is_url(path) else 0.0
        return _moment(made), False


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="seconds")


def _medium(picture: Picture, shown: str, deployment: str, taken: str) -> dict[str, Any]:
    kind = mimetypes.guess_type(picture.path)[0] or "image/jpeg"
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
        "classificationTimestamp": _moment(thing.time),
        "classificationProbability": thing.probability,
        "observationTags": f"category:{_tag(thing.label)} | was:{_tag(thing.label)} | id:{thing.category}",
    }
    if thing.box is not None:
        row |= dict(zip(("bboxX", "bboxY", "bboxWidth", "bboxHeight"), thing.box, strict=True))
    return row


def _tag(text: str) -> str:
    """A name in a list of tags, which bars part."""
    return text.replace("|", "/").strip()


def _located(deployment: dict[str, Any]) -> bool:
    return bool(deployment.get("latitude") and deployment.get("longitude"))


def _package(findings: Findings, deployments: _Deployments, taxa: dict[str, None]) -> dict[str, Any]:
    rows = deployments.rows.values()
    points = [[float(row["longitude"]), float(row["latitude"])] for row in rows if _located(row)]
    days = [row[field][:10] for row in rows for field in ("deploymentStart", "deploymentEnd")]
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
        "spatial": {"type": "MultiPoint", "coordinates": points},
        "temporal": {"start": min(days), "end": max(days)} if days else {},
        "taxonomic": [{"scientificName": name} for name in taxa],
        "resources": [
            {"name": name, "path": path, "profile": "tabular-data-resource", "format": "csv",
             "mediatype": "text/csv", "encoding": "utf-8", "schema": f"{_SCHEMAS}{name}-table-schema.json"}
            for path, name in tables.items()
        ],
    }  # fmt: skip


def _table(file: Any, name: str) -> csv.DictWriter[str]:
    table = csv.DictWriter(file, _FIELDS[name], restval="", lineterminator="\n", extrasaction="ignore")
    table.writeheader()
    return table


def _given(path: Path | None) -> dict[str, dict[str, str]]:
    """What a person knows of deployments, by id."""
    if path is None:
        return {}
    rows = [{name: value for name, value in row.items() if name and value} for row in _rows(path)]
    if any("deploymentID" not in row for row in rows):
        raise DataError(f"{path} needs a deploymentID, the folder of its images, in every row.")
    for row, (field, most) in product(rows, (("latitude", 90), ("longitude", 180))):
        if field in row and not _is_degrees(row[field], most):
            raise DataError(
                f"{path}: {row['deploymentID']} has the {field} {row[field]}; write degrees from -{most} to {most}, "
                "with a point, such as 47.56"
            )
    return {row["deploymentID"]: row for row in rows}


def _is_degrees(text: str, most: int) -> bool:
    try:
        return -most <= float(text) <= most
    except ValueError:
        return False


def _rows(path: Path) -> list[dict[str, str]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return list(csv.DictReader(file))
    except FileNotFoundError:
        raise MissingFileError(f"there is no file {path}") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"cannot read {path}: {error}") from error


def _told(row: dict[str, str], path: Path) -> Told | None:
    tags = dict(tag.strip().partition(":")[::2] for tag in (row.get("observationTags") or "").split("|"))
    if "observationID" not in row:
        raise DataError(f"{path} has no column observationID: it is no table of observations.")
    number = number_in((row["observationID"] or "").removeprefix("s"))
    label = row.get("scientificName") or tags.get("category")
    if number is None or not label:
        return None  # an observation that a person has added: it is of no sighting
    sides = [row.get(name) for name in ("bboxX", "bboxY", "bboxWidth", "bboxHeight")]
    try:
        box = Box(*map(float, sides)) if all(sides) else None  # type: ignore[arg-type]
    except ValueError:
        raise DataError(f"{path}: observation {row['observationID']} has a box that is no four numbers.") from None
    return Told(label, box=box, number=number, was=tags.get("was"))
