"""A Camtrap DP package is valid by its own rules, and says nothing that nobody knows."""

from __future__ import annotations

import csv
import json
from datetime import datetime
from pathlib import Path

import pytest
from PIL import Image

from newfound.errors import DataError, SettingsError
from newfound.labels import export_labels
from newfound.labels._files import Options


def _field(kind: str = "string", **constraints: object) -> dict:
    """A field as a table schema describes it; what is not said is not required."""
    format = {"format": "%Y-%m-%dT%H:%M:%S%z"} if kind == "datetime" else {}
    return {"type": kind, "constraints": constraints, **format}


def _one_of(*values: str, **constraints: object) -> dict:
    return _field(enum=list(values), **constraints)


_TEXT, _ID, _KEY = _field(), _field(required=True, unique=True), _field(required=True)
_WHEN, _METRES = _field("datetime", required=True), _field("number", minimum=0)
_SHARE, _SIDE = (_field("number", minimum=least, maximum=1) for least in (0, 1e-15))
# Camtrap DP 1.0.1 (https://camtrap-dp.tdwg.org/data), field by field, in its own order.
_RULES = {
    "deployments": {
        "deploymentID": _ID, "locationID": _TEXT, "locationName": _TEXT,
        "latitude": _field("number", required=True, minimum=-90, maximum=90),
        "longitude": _field("number", required=True, minimum=-180, maximum=180),
        "coordinateUncertainty": _field("integer", minimum=1), "deploymentStart": _WHEN, "deploymentEnd": _WHEN,
        "setupBy": _TEXT, "cameraID": _TEXT, "cameraModel": _TEXT, "cameraDelay": _field("integer", minimum=0),
        "cameraHeight": _METRES, "cameraDepth": _METRES, "cameraTilt": _field("integer", minimum=-90, maximum=90),
        "cameraHeading": _field("integer", minimum=0, maximum=360), "detectionDistance": _METRES,
        "timestampIssues": _field("boolean"), "baitUse": _field("boolean"),
        "featureType": _one_of(
            "roadPaved", "roadDirt", "trailHiking", "trailGame", "roadUnderpass", "roadOverpass", "roadBridge",
            "culvert", "burrow", "nestSite", "carcass", "waterSource", "fruitingTree",
        ),
        "habitat": _TEXT, "deploymentGroups": _TEXT, "deploymentTags": _TEXT, "deploymentComments": _TEXT,
    },
    "media": {
        "mediaID": _ID, "deploymentID": _KEY, "captureMethod": _one_of("activityDetection", "timeLapse"),
        "timestamp": _WHEN, "filePath": _field(required=True, pattern=r"^(?=^[^./~])(^((?!\.{2}).)*$).*$"),
        "filePublic": _field("boolean", required=True), "fileName": _TEXT,
        "fileMediatype": _field(required=True, pattern="^(image|video|audio)/.*$"), "exifData": _field("any"),
        "favorite": _field("boolean"), "mediaComments": _TEXT,
    },
    "observations": {
        "observationID": _ID, "deploymentID": _KEY, "mediaID": _TEXT, "eventID": _TEXT, "eventStart": _WHEN,
        "eventEnd": _WHEN, "observationLevel": _one_of("media", "event", required=True),
        "observationType": _one_of("animal", "human", "vehicle", "blank", "unknown", "unclassified", required=True),
        "cameraSetupType": _one_of("setup", "calibration"), "scientificName": _TEXT,
        "count": _field("integer", minimum=1), "lifeStage": _one_of("adult", "subadult", "juvenile"),
        "sex": _one_of("female", "male"), "behavior": _TEXT, "individualID": _TEXT,
        "individualPositionRadius": _METRES,
        "individualPositionAngle": _field("number", minimum=-90, maximum=90), "individualSpeed": _METRES,
        "bboxX": _SHARE, "bboxY": _SHARE, "bboxWidth": _SIDE, "bboxHeight": _SIDE,
        "classificationMethod": _one_of("human", "machine"), "classifiedBy": _TEXT,
        "classificationTimestamp": _field("datetime"), "classificationProbability": _SHARE,
        "observationTags": _TEXT, "observationComments": _TEXT,
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


def validated(out: Path):
    """What frictionless says of a package, its tables held against the rules above: their schemas are elsewhere."""
    frictionless = pytest.importorskip("frictionless")
    described = json.loads((out / "datapackage.json").read_text())
    for resource in described["resources"]:
        rules = _RULES[resource["name"]]
        assert (out / resource["path"]).open().readline().strip().split(",") == list(rules)
        resource["schema"] = {"fields": [{"name": name, **rule} for name, rule in rules.items()], "missingValues": [""]}
        resource["schema"]["foreignKeys"] = [
            {"fields": [key], "reference": {"resource": table, "fields": [key]}}
            for table, key in _FOREIGN.get(resource["name"], ())
        ]
    described.pop("profile")
    return frictionless.Package.from_descriptor(described, basepath=str(out)).validate()


def test_frictionless_finds_nothing_wrong_with_a_package(birds, boxed, curator, package):
    curator().rename(2, "Ciconia ciconia")
    report = validated(package())
    assert report.valid, report.flatten(["title", "message"])
    assert [task.stats["rows"] for task in report.tasks] == [2, 9, 10]


def test_a_package_without_the_places_of_its_cameras_is_not_valid_and_said_not_to_be(birds, package):
    assert not validated(package(deployments=None)).valid
    assert "not valid yet" in package.done.notes[0]


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
    with pytest.raises(DataError, match=r"wrong\.csv, line 2: cam0 has the l"):
        package(deployments=cameras)
    assert not (tmp_path / "package").exists()


@pytest.mark.parametrize(
    ("column", "value", "told"),
    [
        ("coordinateUncertainty", "0", "a whole number of at least 1 metres"),
        ("deploymentStart", "2025-06-01 05:04", "with its offset"),
        ("cameraTilt", "-91", "from -90 to 90"),
        ("cameraHeading", "12.5", "a whole number from 0 to 360"),
        ("cameraHeight", "-1", "a number of at least 0 metres"),
        ("baitUse", "food", "true or false"),
        ("featureType", "road", "one of roadPaved"),
    ],
)
def test_what_camtrap_dp_does_not_allow_of_a_camera_is_refused(column, value, told, birds, package, tmp_path):
    (cameras := tmp_path / "wrong.csv").write_text(f"deploymentID,{column}\ncam1,\ncam0,{value}\n")
    with pytest.raises(DataError, match=rf"wrong\.csv, line 3: cam0 has the {column} {value}; write .*{told}"):
        package(deployments=cameras)


def test_what_a_person_knows_of_a_camera_is_in_the_package_and_valid(birds, package, tmp_path):
    known = {
        "latitude": "47.5", "longitude": "-52.7", "deploymentStart": "2025-01-01T00:00:00Z", "cameraDelay": "30",
        "cameraHeight": "1.2", "baitUse": "FALSE", "featureType": "nestSite", "habitat": "bog; wet",
    }  # fmt: skip
    with (cameras := tmp_path / "cameras.csv").open("w", newline="") as file:
        table = csv.writer(file, delimiter=";")  # as a spreadsheet saves it where numbers are written with a comma
        table.writerows([["deploymentID", *known], ["cam0", *known.values()], ["cam1", *known.values()]])
    out = package(deployments=cameras)
    assert all({name: row[name] for name in known} == known for row in rows(out, "deployments"))
    assert validated(out).valid


def test_what_was_told_of_cameras_in_vain_is_said(birds, package, tmp_path):
    (cameras := tmp_path / "cameras.csv").write_text("deploymentID,latitude,longitude,lens\ncam0,1,2,x\nkam1,1,2,y\n")
    package(deployments=cameras)
    assert [note.partition(str(tmp_path))[2] for note in package.done.notes[1:]] == [
        "/cameras.csv tells of kam1, but no image is in a folder of that name",
        "/cameras.csv has columns that Camtrap DP does not, left out: lens",
    ]


def test_a_person_classified_when_the_image_was_moved(birds, curator, package):
    curator("grace").move([0], 1)
    (moved,) = curator().events()
    by = {row["observationID"]: row["classificationTimestamp"] for row in rows(package(), "observations")}
    assert datetime.fromisoformat(by["s0"]).timestamp() == int(moved.time)


def test_the_media_type_is_that_of_the_content(photo, observe, package):
    path = photo("cam0/a.png")
    observe((path.rename(path.with_suffix(".pdf")), 0))
    assert [row["fileMediatype"] for row in rows(package(), "media")] == ["image/png"]


def test_a_path_with_a_line_break_is_left_out_because_camtrap_dp_does_not_allow_it(photo, observe, package):
    observe((photo("cam0/a\nb.png"), 0), (photo("cam0/c.png"), 0))
    assert [row["fileName"] for row in rows(package(), "media")] == ["c.png"]
    assert list(package.done.left_out.values()) == [1]
