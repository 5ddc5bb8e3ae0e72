"""Deployments of Camtrap DP: a folder of images each, with what its images tell and what a person knows of the camera.

What nobody has told, above all where a camera stood, is left empty, never made up.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from newfound.errors import DataError
from newfound.labels._files import Places, read_rows

_ID = "deploymentID"
_FEATURES = (
    "roadPaved", "roadDirt", "trailHiking", "trailGame", "roadUnderpass", "roadOverpass", "roadBridge", "culvert",
    "burrow", "nestSite", "carcass", "waterSource", "fruitingTree",
)  # fmt: skip


def _number(least: float, most: float = float("inf"), unit: str = "") -> tuple[str, Callable[[str], bool]]:
    span = f"from {least:g} to {most:g}" if most < float("inf") else f"of at least {least:g}"
    return f"a number {span}{unit}, with a point", lambda text: least <= float(text) <= most


def _whole(least: int, most: float = float("inf"), unit: str = "") -> tuple[str, Callable[[str], bool]]:
    span = f"from {least} to {most:g}" if most < float("inf") else f"of at least {least}"
    return f"a whole number {span}{unit}", lambda text: least <= int(text) <= most


_TIME = "a time with its offset, such as 2025-06-01T05:04:03+02:00", lambda text: bool(_parsed(text))
_TRUTH = "true or false", ("true", "True", "TRUE", "1", "false", "False", "FALSE", "0").__contains__
# Every column of Camtrap DP 1.0, in its order; for those that are not free text what they hold, in words and as a test.
FIELDS: dict[str, tuple[str, Callable[[str], bool]] | None] = {
    _ID: None, "locationID": None, "locationName": None,
    "latitude": _number(-90, 90, " degrees"), "longitude": _number(-180, 180, " degrees"),
    "coordinateUncertainty": _whole(1, unit=" metres"), "deploymentStart": _TIME, "deploymentEnd": _TIME,
    "setupBy": None, "cameraID": None, "cameraModel": None, "cameraDelay": _whole(0, unit=" seconds"),
    "cameraHeight": _number(0, unit=" metres"), "cameraDepth": _number(0, unit=" metres"),
    "cameraTilt": _whole(-90, 90, " degrees"), "cameraHeading": _whole(0, 360, " degrees"),
    "detectionDistance": _number(0, unit=" metres"), "timestampIssues": _TRUTH, "baitUse": _TRUTH,
    "featureType": (f"one of {', '.join(_FEATURES)}", _FEATURES.__contains__), "habitat": None,
    "deploymentGroups": None, "deploymentTags": None, "deploymentComments": None,
}  # fmt: skip


class Deployments:
    """A deployment for each folder.

    Args:
        path: a CSV with what a person knows of them: deploymentID, the folder, and any other column of Camtrap DP.

    Raises:
        DataError: The file cannot be read, or has a value that Camtrap DP does not allow.
    """

    def __init__(self, path: Path | None) -> None:
        self.rows: dict[str, dict[str, Any]] = {}
        self._path, self._given, self._foreign = path, dict[str, dict[str, str]](), list[str]()
        if path is not None:
            for line, row in read_rows(path, [_ID]):
                self._foreign = [name for name in row if name and name not in FIELDS]
                told = {name: value.strip() for name, value in row.items() if name in FIELDS and value}
                self._given[_checked(told, f"{path}, line {line}")] = told

    def of(self, image: str, places: Places, taken: str, sure: bool) -> str:
        """The id of the deployment that an image is of; its times are widened to hold the image's."""
        inside = Places(places.root).of(image)
        name = os.path.dirname(inside) or os.path.basename(os.path.abspath(places.root))
        given = self._given.get(name, {})
        row = self.rows.setdefault(name, {_ID: name, **given})
        for field, pick in (("deploymentStart", min), ("deploymentEnd", max)):
            if field not in given:
                row[field] = pick(row.get(field, taken), taken, key=datetime.fromisoformat)
        if not sure and "timestampIssues" not in given:
            row["timestampIssues"] = "true"
        return name

    def points(self) -> list[list[float]]:
        """Longitude and latitude of those that have both, as GeoJSON has them."""
        return [[float(row["longitude"]), float(row["latitude"])] for row in self.rows.values() if _located(row)]

    def days(self) -> list[str]:
        """The days on which they were begun and ended."""
        return [row[field][:10] for row in self.rows.values() for field in ("deploymentStart", "deploymentEnd")]

    def notes(self, table: Path) -> list[str]:
        """What is missing of them in a package, and what was told of them in vain."""
        notes = []
        nowhere = [name for name, row in self.rows.items() if not _located(row)]
        if nowhere:
            notes.append(
                f"the package is not valid yet: {len(nowhere)} of {len(self.rows)} deployments have no latitude and "
                f"longitude, such as {nowhere[0]}; fill in {table}, or give --deployments FILE.csv"
            )
        if unused := [name for name in self._given if name not in self.rows]:
            notes.append(f"{self._path} tells of {unused[0]}, but no image is in a folder of that name")
        if self._foreign:
            notes.append(f"{self._path} has columns that Camtrap DP does not, left out: {', '.join(self._foreign)}")
        return notes


def _checked(told: dict[str, str], where: str) -> str:
    """The id of a deployment whose values are all allowed. Raises DataError for one that is not."""
    if not told.get(_ID):
        raise DataError(f"{where}: there is no {_ID}, which is the folder of its images.")
    for name, value in told.items():
        rule = FIELDS[name]
        if rule is not None and not _holds(rule[1], value):
            raise DataError(f"{where}: {told[_ID]} has the {name} {value}; write {rule[0]}.")
    return told[_ID]


def _holds(allows: Callable[[str], bool], value: str) -> bool:
    try:
        return allows(value)
    except ValueError:
        return False


def _parsed(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S%z")


def _located(deployment: dict[str, Any]) -> bool:
    return bool(deployment.get("latitude") and deployment.get("longitude"))
