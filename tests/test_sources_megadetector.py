"""What MegaDetector found is looked at in place of whole frames: animals, sure enough, each once."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from newfound.crops import Box
from newfound.errors import DataError, SettingsError
from newfound.sources import from_megadetector

KINDS = {"1": "animal", "2": "person", "3": "vehicle"}


def found(conf: float, bbox: list[float], category: str = "1", **more) -> dict:
    return {"category": category, "conf": conf, "bbox": bbox, **more}


@pytest.fixture
def results(tmp_path, picture):
    """results(entry, ...): a results file; the frames cam1/a.png and cam1/b.png are in frames/, two pictures each."""
    frames = tmp_path / "frames" / "cam1"
    frames.mkdir(parents=True)
    for name, kinds in {"a.png": (0, 3), "b.png": (3, 1)}.items():
        pair = np.concatenate([picture(kind, 50 + number) for number, kind in enumerate(kinds)], axis=1)
        Image.fromarray(pair).save(frames / name)

    def write(*entries: dict) -> Path:
        path = tmp_path / "results.json"
        data = {"info": {"format_version": "1.4"}, "detection_categories": KINDS, "images": list(entries)}
        path.write_text(json.dumps(data))
        return path

    return write


def test_animals_that_are_sure_enough_are_cropped_and_nothing_else(results, tmp_path):
    path = results(
        {"file": "cam1/a.png", "detections": [
            found(0.9, [0.0, 0.1, 0.5, 0.5]), found(0.1, [0, 0, 1, 1]), found(0.9, [0, 0, 1, 1], "2"),
        ]},
        {"file": "cam1/b.png", "detections": []},
    )  # fmt: skip
    frames = tmp_path / "frames"
    (item,) = from_megadetector(path, [str(frames)])
    assert item.name == f"{frames}/cam1/a.png#xywh=percent:0,10,50,50"
    assert item.extra == {"detection": "animal", "detection_confidence": 0.9}
    assert [i.extra["detection"] for i in from_megadetector(path, [str(frames)], kinds=["person"])] == ["person"]
    assert len(list(from_megadetector(path, [str(frames)], confidence=0.1))) == 2


def test_crops_are_padded_and_boxes_end_at_the_edge(results, tmp_path):
    path = results({"file": "cam1/a.png", "detections": [found(0.9, [0.4, -0.01, 0.2, 0.51])]})
    (item,) = from_megadetector(path, [str(tmp_path / "frames")], pad=0.5)
    assert item.image.box == pytest.approx(Box(0.3, 0.0, 0.4, 0.75))


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({"file": "cam1/a.png", "failure": "image access failure", "detections": None}, "access failure"),
        ({"file": "cam1/gone.png", "detections": [found(0.9, [0, 0, 1, 1])]}, "is in none of"),
        ({"file": "a.mp4", "frame_rate": 20, "detections": [found(0.9, [0, 0, 1, 1], frame_number=0)]}, "is a video"),
        ({"file": "cam1/a.png", "detections": [found(0.9, [0.5, 0.5, 0.0, 0.2])]}, "without an area"),
        ({"file": "cam1/a.png", "detections": [found(0.9, [0, 0, 640, 480])]}, "in pixels"),
    ],
)
def test_a_frame_that_cannot_be_looked_at_gives_its_error(results, tmp_path, entry, told):
    (item,) = from_megadetector(results(entry), [str(tmp_path / "frames")])
    assert item.image is None
    assert told in item.error


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", '{"images": []}', '{"images": [{"detections": [{}]}], "detection_categories": {}}',
        '{"images": [{"detections": 5}], "detection_categories": {}}',
        '{"images": [], "detection_categories": {"1": 7}}',
        '{"images": [{"detections": [{"category": "1", "conf": 1, "bbox": [0, 0, NaN, 1]}]}], '
        '"detection_categories": {"1": "animal"}}',
    ],
)  # fmt: skip
def test_a_file_of_another_form_is_refused(tmp_path, text):
    (path := tmp_path / "results.json").write_text(text)
    with pytest.raises(DataError, match=r"results\.json"):
        from_megadetector(path, [str(tmp_path)])


def test_settings_are_checked_before_anything_is_read(results):
    path = results()
    for wrong in ({"confidence": 1.5}, {"pad": -1}, {"kinds": ["animals"]}):
        with pytest.raises(SettingsError):
            from_megadetector(path, ["."], **wrong)


def test_crops_are_discovered_once_and_their_boxes_are_exported(results, run_folder, tmp_path):
    from typer.testing import CliRunner

    from newfound.cli import app

    halves = [found(0.9, [0.0, 0.0, 0.5, 1.0]), found(0.8, [0.5, 0.0, 0.5, 1.0])]
    path = results({"file": "cam1/a.png", "detections": halves}, {"file": "cam1\\b.png", "detections": halves})

    def newfound(*words: object):
        result = CliRunner().invoke(app, list(map(str, words)), prog_name="newfound")
        assert result.exit_code == 0, result.stderr
        return result

    command = ("discover", run_folder, tmp_path / "frames", "--megadetector", path)
    lines = [json.loads(line) for line in newfound(*command).stdout.splitlines()]
    assert [line["detection_confidence"] for line in lines] == [0.9, 0.8, 0.9, 0.8]
    assert lines[0]["name"] == "kind0"  # the left half is the picture that the run knows, and no other
    again = newfound(*command)
    assert again.stdout == ""
    assert "4 images, all seen before" in again.stderr
    newfound("labels", "export", run_folder, "--format", "coco", "--out", tmp_path / "coco.json")
    data = json.loads((tmp_path / "coco.json").read_text())
    assert len(data["images"]) == 2
    assert sorted(a["bbox"] for a in data["annotations"]) == [[0, 0, 24, 24]] * 2 + [[24, 0, 24, 24]] * 2
