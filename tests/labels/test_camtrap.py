"""A Camtrap DP package is valid by its own rules, and says nothing that nobody knows."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from PIL import Image

from newfound.errors import DataError, SettingsError
from newfound.labels import export_labels
from newfound.labels._files import Options

_WHEN = {"type": "datetime", "format": "%Y-%m-%dT%H:%M:%S%z", "constraints": {"required": True}}
_ID = {"type": "string", "constraints": {"required": True, "unique": True}}
_KEY = {"type": "string", "constraints": {"required": True}}
_SHARE = {"type": "number", "constraints": {"minimum": 0, "maximum": 1}}


def _one_of(*values: str, required: bool = True) -> dict:
    return {"type": "string", "constraints": {"required": required, "enum": list(values)}}


# The fields that Camtrap DP 1.0 requires or restricts, of those that are written.
_RULES = {
    "deployments": {
        "deploymentID": _ID, "deploymentStart": _WHEN, "deploymentEnd": _WHEN,
        "latitude": {"type": "number", "constraints": {"required": True, "minimum": -90, "maximum": 90}},
        "longitude": {"type": "number", "constraints": {"required": True, "minimum": -180, "maximum": 180}},
        "timestampIssues": {"type": "boolean"},
    },
    "media": {
        "mediaID": _ID, "deploymentID": _KEY, "timestamp": _WHEN,
        "filePath": {"type": "string", "constraints": {"required": True, "pattern": r"(?=[^./~])((?!\.{2}).)*"}},
        "filePublic": {"type": "boolean", "constraints": {"required": True}},
        "fileMediatype": {"type": "string", "constraints": {"required": True, "pattern": "(image|video|audio)/.*"}},
    },
    "observations": {
        "observationID": _ID, "deploymentID": _KEY, "eventStart": _WHEN, "eventEnd": _WHEN,
        "observationLevel": _one_of("media", "event"),
        "observationType": _one_of("animal", "human", "vehicle", "blank", "unknown", "unclassified"),
        "bboxX": _SHARE, "bboxY": _SHARE, "bboxWidth": _SHARE, "bboxHeight": _SHARE,
        "classificationMethod": _one_of("human", "machine", required=False),
        "classificationTimestamp": _WHEN, "classificationProbability": _SHARE,
    },
}  # fmt: skip
_OF = ("deployments", "deploymentID")
_FOREIGN = {"media": [_OF], "observations": [_OF, ("media", "mediaID")]}


@pytest.fixture
def package(curator, tmp_path):
    """package(**options): the folder of a package with the cameras' places filled in."""
    cameras = tmp_path / "cameras.csv"
    cameras.write_text("deploymentID,latitude,longitude,habitat\ncam0,47.5,-52.7,bog\ncam1,47.6,-52.8,\n")

    def write(**options) -> Path:
        out = tmp_path / "package"
        values = Options(**({"deployments": cameras, "utc_offset": "-03:30"} | options))
        write.done = export_labels(curator(), "camtrap", out, options=values, overwrite=True)
        return out

    return write


def rows(package: Path, table: str) -> list[dict[str, str]]:
    with (package / f"{table}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_frictionless_finds_nothing_wrong_with_a_package(birds, boxed, curator, package):
    frictionless = pytest.importorskip("frictionless")
    curator().rename(2, "Ciconia ciconia")
    out = package()
    described = json.loads((out / "datapackage.json").read_text())
    for resource in described["resources"]:  # whose schemas are elsewhere: what matters of them is written down here
        header = (out / resource["path"]).open().readline().strip().split(",")
        rules = _RULES[resource["name"]]
        resource["schema"] = {"fields": [{"name": name, **rules.get(name, {"type": "string"})} for name in header]}
        resource["schema"]["missingValues"] = [""]
        resource["schema"]["foreignKeys"] = [
            {"fields": [key], "reference": {"resource": table, "fields": [key]}}
            for table, key in _FOREIGN.get(resource["name"], ())
        ]
        assert set(rules) <= set(header)
    described.pop("profile")
    report = frictionless.Package.from_descriptor(described, basepath=str(out)).validate()
    assert report.valid, report.flatten(["title", "message"])
    assert [task.stats["rows"] for task in report.tasks] == [2, 9, 10]


def test_the_description_has_what_the_profile_requires(birds, package):
    described = json.loads((package() / "datapackage.json").read_text())
    required = {"resources", "profile", "created", "contributors", "project", "spatial", "temporal", "taxonomic"}
    assert required <= set(described)
    assert {"title", "samplingDesign", "captureMethod", "individualAnimals", "observationLevel"} <= set(
        described["project"]
    )
    assert all("/1.0.1/" in resource["schema"] for resource in described["resources"])
    assert described["spatial"]["coordinates"] == [[-52.7, 47.5], [-52.8, 47.6]]


def test_only_named_categories_have_a_scientific_name(birds, curator, package):
    curator().rename(2, "Ciconia ciconia")
    out = package()
    names = [row["scientificName"] for row in sorted(rows(out, "observations"), key=lambda row: row["observationID"])]
    assert names == ["heron", "heron", "owl", *["Ciconia ciconia"] * 3, "", ""]
    taxa = json.loads((out / "datapackage.json").read_text())["taxonomic"]
    assert {taxon["scientificName"] for taxon in taxa} == {"heron", "owl", "Ciconia ciconia"}


def test_who_classified_is_the_model_or_the_person_who_moved_it(birds, curator, package):
    curator("grace").move([0], 1)
    found = rows(package(), "observations")
    by = {row["observationID"]: (row["classificationMethod"], row["classifiedBy"]) for row in found}
    assert by["s0"] == ("human", "grace")
    assert by["s1"][0] == "machine"
    assert by["s1"][1].startswith("newfound ")


def test_boxes_are_shares_of_the_image(boxed, package):
    sides = ("bboxX", "bboxY", "bboxWidth", "bboxHeight")
    found = sorted([float(row[side]) for side in sides] for row in rows(package(), "observations"))
    assert found == [[0.1, 0.2, 0.3, 0.5], [0.5, 0.0, 0.5, 1.0]]


def test_the_time_is_what_the_camera_wrote_down(photo, observe, package):
    exif = Image.Exif()
    exif.get_ifd(0x8769)[0x9003] = "2025:06:01 05:04:03"
    observe((photo("cam0/a.jpg", exif=exif), 0), (photo("cam0/b.png"), 0))
    out = package()
    times = {row["fileName"]: row["timestamp"] for row in rows(out, "media")}
    assert times["a.jpg"] == "2025-06-01T05:04:03-03:30"
    (deployment,) = rows(out, "deployments")
    assert deployment["deploymentStart"] == times["a.jpg"]
    assert deployment["deploymentEnd"] == times["b.png"]  # when its file was made, for want of better
    assert deployment["timestampIssues"] == "true"


def test_where_a_camera_stood_is_not_made_up(birds, package):
    out = package(deployments=None)
    assert {row["latitude"] for row in rows(out, "deployments")} == {""}
    assert "latitude" in package.done.notes[0]


@pytest.mark.parametrize("offset", ["CET", "+99:00", "+02:75"])
def test_an_offset_that_is_none_is_refused(offset, birds, package):
    with pytest.raises(SettingsError, match=r"\+02:00"):
        package(utc_offset=offset)


def test_an_offset_that_a_camera_made_up_is_not_believed(photo, observe, package):
    exif = Image.Exif()
    exif.get_ifd(0x8769)[0x9003], exif.get_ifd(0x8769)[0x9011] = "2025:06:01 05:04:03", "+99:99"
    observe((photo("cam0/a.jpg", exif=exif), 0))
    out = package()
    assert rows(out, "media")[0]["timestamp"] == "2025-06-01T05:04:03+00:00"
    assert rows(out, "deployments")[0]["timestampIssues"] == "true"


@pytest.mark.parametrize("place", ['"47,5",-52.7', "47.5,W52", "95,0", "nan,0"])
def test_a_place_that_is_none_is_refused_before_anything_is_written(place, birds, package, tmp_path):
    (cameras := tmp_path / "wrong.csv").write_text(f"deploymentID,latitude,longitude\ncam0,{place}\n")
    with pytest.raises(DataError, match=r"wrong\.csv: cam0 has the l"):
        package(deployments=cameras)
    assert not (tmp_path / "package").exists()
