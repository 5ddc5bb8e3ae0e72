"""A part of an image is an image of its own, with a name that leads back to it."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image

from newfound.carrying import carry
from newfound.crops import WHOLE, Box, Crop, _pixels, crop_at, fragment, parted
from newfound.errors import DataError, ImageError
from newfound.images import content_hash, open_image
from newfound.journal import Journal
from newfound.loading import load
from newfound.sources import from_megadetector

_shares = st.floats(0, 1)


@pytest.fixture
def frame(tmp_path):
    """40 x 20 pixels whose red tells the column and whose green tells the row."""
    y, x = np.mgrid[0:20, 0:40]
    path = tmp_path / "frame.png"
    Image.fromarray(np.stack([x, y, x * 0], axis=-1).astype(np.uint8)).save(path)
    return path


def test_the_pixels_are_those_that_the_box_touches(frame):
    image = np.asarray(open_image(Crop(str(frame), Box(0.25, 0.5, 0.5, 0.26))))
    assert image.shape == (6, 20, 3)  # rows 10 to 15.2, columns 10 to 30
    assert image[0, 0].tolist() == [10, 10, 0]
    assert image[-1, -1].tolist() == [29, 15, 0]


def test_the_content_changes_with_the_box_and_with_the_image_and_not_with_the_name(frame, tmp_path):
    crop = Crop(str(frame), Box(0.25, 0.5, 0.5, 0.25))
    (other := tmp_path / "other.png").write_bytes(frame.read_bytes())
    assert content_hash(crop) == content_hash(Crop(str(other), crop.box))
    assert content_hash(crop) != content_hash(Crop(str(frame), Box(0.0, 0.5, 0.5, 0.25)))
    Image.new("RGB", (40, 20), "red").save(other)
    assert content_hash(crop) != content_hash(Crop(str(other), crop.box))


def test_a_frame_that_is_not_there_is_an_error_in_words(tmp_path):
    with pytest.raises(ImageError, match=r"nowhere\.jpg"):
        open_image(Crop(str(tmp_path / "nowhere.jpg"), WHOLE))


@given(st.tuples(_shares, _shares, _shares, _shares))
def test_a_name_leads_back_to_the_box_and_stays_the_same(values):
    box = Box(*values)
    path, found = parted("a#b.jpg" + fragment(box))
    assert path == "a#b.jpg"
    assert found == pytest.approx(box, abs=1e-6)
    assert fragment(found) == fragment(box)


@pytest.mark.parametrize(
    ("box", "inside"),
    [
        ((-0.5, 0.25, 1.0, 0.5), (0.0, 0.25, 0.5, 0.5)),
        ((0.75, 0.5, 0.5, 9.0), (0.75, 0.5, 0.25, 0.5)),
        ((-1.0, -1.0, 3.0, 3.0), WHOLE),
    ],
)
def test_of_a_box_that_reaches_beyond_the_image_what_is_inside_counts(box, inside, frame):
    crop = Crop(str(frame), Box(*box))
    assert crop.box == inside
    assert crop_at(crop.filename) == crop
    assert open_image(crop).size == (round(inside[2] * 40), round(inside[3] * 20))


@pytest.mark.parametrize(
    "box",
    [
        (0.5, 0.5, 0.0, 0.2), (0.5, 0.5, 0.2, -0.1), (1.5, 0.0, 0.5, 0.5), (0.0, -2.0, 1.0, 1.0),
        (math.nan, 0.0, 1.0, 1.0), (0.0, math.nan, 1.0, 1.0), (0.0, 0.0, math.nan, 1.0),
        (0.0, 0.0, math.inf, 1.0), (120, 80, 64, 64),
    ],
)  # fmt: skip
def test_a_box_with_nothing_of_the_image_in_it_is_an_error_in_words(box):
    with pytest.raises(ImageError, match=r"frame\.jpg: nothing of the image is in the box"):
        Crop("frame.jpg", Box(*box))


@given(st.tuples(_shares, _shares, _shares, _shares))
@example((0.9999999, 0.5, 0.5, 1e-9))
@example((0.1234565, 0.0, 0.8765435, 1.0))
def test_a_crop_is_found_again_by_its_name_or_is_none(values):
    try:
        crop = Crop("frame.jpg", Box(*values))
    except ImageError:
        assert min(values[2], values[3], 1 - values[0], 1 - values[1]) < 1e-15
    else:
        assert crop_at(crop.filename) == crop


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("frame.png#xywh=10,20,30,40", "in pixels; write it in percent"),
        ("frame.png#xywh=pixel:10,20,30,40", "in pixels; write it in percent"),
        ("frame.png#xywh=percent:110,20,30,40", "nothing of the image"),
        ("frame.png#xywh=percent:10,20,0,40", "nothing of the image"),
        ("frame.png#xywh=percent:10,20,30", "there is no file"),
    ],
)
def test_a_box_that_cannot_be_meant_says_what_to_write(name, told, frame):
    with pytest.raises((ImageError, DataError), match=told):
        open_image(str(frame.with_name(name)))


def test_names_of_whole_images_and_of_files_that_are_called_so_are_no_crops(frame, tmp_path):
    strange = tmp_path / "a.png#xywh=percent:1,2,3,4"
    assert crop_at(str(strange)) == Crop(str(tmp_path / "a.png"), Box(0.01, 0.02, 0.03, 0.04))
    strange.write_bytes(frame.read_bytes())
    assert crop_at(str(strange)) is None
    assert crop_at(str(frame)) is None
    assert crop_at("clip.mp4#t=1.000") is None
    assert crop_at(frame) is None


def test_padding_ends_at_the_edge_of_the_image():
    assert Box(0.1, 0.4, 0.2, 0.2).padded(1.0) == pytest.approx((0.0, 0.2, 0.5, 0.6))
    assert Box(0.1, 0.4, 0.2, 0.2).padded(0.0) == pytest.approx((0.1, 0.4, 0.2, 0.2))


def test_overlap_is_the_shared_area_over_the_whole():
    assert Box(0, 0, 0.5, 1).overlap(Box(0.25, 0, 0.5, 1)) == pytest.approx(1 / 3)
    assert Box(0, 0, 0.5, 1).overlap(Box(0.5, 0, 0.5, 1)) == 0
    assert WHOLE.overlap(WHOLE) == 1


def test_crops_are_encoded_again_from_their_names(run_folder, tmp_path, picture):
    Image.fromarray(np.concatenate([picture(0, 50), picture(3, 51)], axis=1)).save(tmp_path / "a.png")
    run = load(run_folder)
    discoverer = run.discoverer(tmp_path / "old.db")
    boxes = [Box(0.0, 0.0, 0.5, 1.0), Box(0.5, 0.0, 0.5, 1.0)]
    seen = discoverer.observe([Crop(str(tmp_path / "a.png"), box) for box in boxes])
    assert len({s.category for s in seen}) == 2
    discoverer.close()
    with Journal.open(tmp_path / "old.db") as old, Journal.open(tmp_path / "new.db") as new:
        carried = carry(old, new, run)
    assert (carried.sightings, carried.missing) == (2, [])


@given(left=st.integers(0, 38), width=st.integers(1, 30))
def test_what_is_read_is_what_the_name_says(left, width):
    crop = Crop("frame.png", Box(left / 1920, 0.0, width / 1920, 1.0))  # as detectors that work in pixels give it
    assert parted(crop.filename)[1] == crop.box
    assert _pixels(crop.box, 1920, 20) == (left, 0, left + width, 20)


@pytest.mark.parametrize("version", ["v4", "v5"])
def test_results_of_megadetector_are_read_whichever_version_wrote_them(version, frame, tmp_path):
    """v4 files have the format 1.0, with the largest confidence of each image; v5 files say what theirs mean."""
    info = {
        "v4": {"detector": "md_v4.1.0", "format_version": "1.0"},
        "v5": {"detector": "md_v5a.0.0.pt", "format_version": "1.3", "detector_metadata": {
            "megadetector_version": "v5a.0.0", "typical_detection_threshold": 0.2,
            "conservative_detection_threshold": 0.05}},
    }  # fmt: skip
    found = {"category": "1", "conf": 0.926, "bbox": [0.25, 0.5, 0.5, 0.25]}
    most = {"max_detection_conf": 0.926} if version == "v4" else {}
    failure = {"failure": "Failure image access"} | ({"detections": None} if version == "v5" else most)
    images = [{"file": "frame.png", "detections": [found], **most}, {"file": "gone.png", **failure}]
    kinds = {"1": "animal", "2": "person"} | ({"4": "vehicle"} if version == "v4" else {"3": "vehicle"})
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"info": info[version], "detection_categories": kinds, "images": images}))
    crop, gone = from_megadetector(path, [str(tmp_path)])
    assert crop.image == Crop(str(frame), Box(0.25, 0.5, 0.5, 0.25))
    assert gone.error == "MegaDetector could not read gone.png: Failure image access"
