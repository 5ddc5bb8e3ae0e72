"""The pipeline's speed rows compare like with like; how fast a machine is, is not tested."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

from newfound.benchmarks import pipeline_speed

pytestmark = pytest.mark.usefixtures("one_thread")
TINY = "test_efficientnet"


@pytest.fixture(scope="module")
def parts():
    with pipeline_speed._parts(4, TINY) as parts:
        yield parts


def test_the_bare_encoder_and_the_whole_pipeline_make_the_same_features(parts):
    bare = parts.encode(torch.stack([parts.decode(path) for path in parts.paths]))
    ours = parts.encoder.features(parts.paths)
    assert np.abs(bare / np.linalg.norm(bare, axis=1, keepdims=True) - ours).max() < 5e-3, "but for half precision"


def test_the_photos_differ_and_are_jpeg_files_of_the_size_that_is_told(parts):
    assert len({path.read_bytes() for path in parts.paths}) == len(parts.paths)
    with Image.open(parts.paths[0]) as image:
        assert (image.format, image.size) == ("JPEG", pipeline_speed._SIZE)


def test_every_discoverer_starts_from_an_empty_journal_in_a_file(parts):
    for _ in range(2):
        with parts.discoverer() as discoverer:
            assert not any(sighting.repeated for sighting in discoverer.observe(parts.paths))
            assert discoverer.keeper.journal.position().sightings == len(parts.paths)
            assert list(parts.folder.glob("*/journal.db"))


def test_the_pipeline_is_timed_beside_its_parts_and_says_how_much_of_the_cores_they_had():
    row = pipeline_speed.pipeline(6, block=3, repeats=2, backbone=TINY)
    assert row.stage == "pipeline"
    assert 0 < row.low <= row.ratio <= row.high
    assert "% of 1 cores" in row.detail


@pytest.mark.parametrize(
    ("measure", "stage"),
    [(pipeline_speed.one_image, "one-image"), (pipeline_speed.one_image_observed, "one-image-observe")],
)
def test_one_image_is_held_against_its_own_decoding_and_encoding(measure, stage):
    row = measure(6, backbone=TINY)
    assert row.stage == stage
    assert row.ratio == pytest.approx(row.ours / row.baseline)
    assert "p50 / p99" in row.detail


def test_the_decoder_is_held_against_pillow_making_the_same_pixels(parts):
    views = parts.encoder.views
    for path in parts.paths:
        bare = np.asarray(pipeline_speed.bare_view(path, views.spec))
        assert torch.equal(views._normalise(torch.from_numpy(bare.copy()).permute(2, 0, 1)), parts.decode(path))


def test_the_decoder_is_timed_beside_pillow():
    row = pipeline_speed.decoder(3, repeats=2, backbone=TINY)
    assert row.stage == "decoder"
    assert 0 < row.low <= row.ratio <= row.high
