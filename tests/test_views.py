"""Promises of newfound.views: a view is a pure function of the image, the settings and a seed."""

from __future__ import annotations

import dataclasses
import os
import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from torchvision.transforms.v2 import functional as F

from newfound.backbone import InputSpec
from newfound.views import Augmentation, Views, _crop

SPEC = InputSpec(size=32, mean=(0.5, 0.4, 0.3), std=(0.25, 0.5, 0.2), interpolation="bicubic", crop_pct=0.875)
PLAIN = Augmentation(min_scale=1.0, flip=False, jitter=0.0)


def gradient(height: int = 40, width: int = 60) -> Image.Image:
    y, x = np.mgrid[0:height, 0:width]
    return Image.fromarray(np.stack([4 * x, 6 * y, 2 * (x + y)], axis=-1).astype(np.uint8))


def plain_colour(colour: tuple[int, int, int], size: tuple[int, int] = (50, 30)) -> Image.Image:
    return Image.new("RGB", size, colour)


@given(st.integers(0, 2**40), st.integers(0, 2**20))
@settings(max_examples=20)
def test_the_same_seed_gives_the_same_view_whatever_the_global_random_states(seed, other):
    views = Views(SPEC)
    first = views.random(gradient(), (seed, 3))
    random.seed(other)
    np.random.seed(other)
    torch.manual_seed(other)
    again = views.random(gradient(), (seed, 3))
    assert torch.equal(first, again)


def test_making_a_view_leaves_the_global_random_states_alone():
    torch.manual_seed(1)
    np.random.seed(1)
    expected = (torch.rand(3).tolist(), np.random.rand(3).tolist())
    torch.manual_seed(1)
    np.random.seed(1)
    Views(SPEC).random(gradient(), 5)
    Views(SPEC).centre(gradient())
    assert (torch.rand(3).tolist(), np.random.rand(3).tolist()) == expected


def test_another_seed_gives_another_view():
    views = Views(SPEC)
    seen = {views.random(gradient(), (seed, view)).numpy().tobytes() for seed in range(4) for view in range(4)}
    assert len(seen) == 16


@pytest.mark.parametrize("size", [(1, 1), (1, 90), (90, 1), (7, 300), (32, 32), (500, 400)])
def test_every_picture_becomes_a_square_of_the_models_size(size):
    image = gradient(*size)
    for view in (Views(SPEC).centre(image), Views(SPEC).random(image, 0)):
        assert view.shape == (3, 32, 32)
        assert view.dtype == torch.float32
        assert torch.isfinite(view).all()


def test_pixels_are_normalised_with_the_models_mean_and_spread():
    view = Views(SPEC).centre(plain_colour((255, 102, 0)))
    expected = [(1.0 - 0.5) / 0.25, (0.4 - 0.4) / 0.5, (0.0 - 0.3) / 0.2]
    assert view.mean(dim=(1, 2)).tolist() == pytest.approx(expected, abs=1e-5)
    flat = Views(SPEC, PLAIN).random(plain_colour((255, 102, 0)), 0)
    assert flat.mean(dim=(1, 2)).tolist() == pytest.approx(expected, abs=1e-5)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0.01, 2)), min_size=3, max_size=3))
def test_every_byte_becomes_the_very_number_that_torchvision_makes_of_it(channels):
    mean, std = zip(*channels, strict=True)
    every = torch.arange(256, dtype=torch.uint8).view(1, 16, 16).repeat(3, 1, 1)
    theirs = F.normalize(F.to_dtype(every, torch.float32, scale=True), list(mean), list(std))
    assert torch.equal(Views(dataclasses.replace(SPEC, mean=mean, std=std))._normalise(every), theirs)


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="Linux lists the threads of a process")
def test_a_thread_that_makes_views_starts_no_others():
    spec = dataclasses.replace(SPEC, size=224)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(lambda: None).result()
            running = len(os.listdir("/proc/self/task"))
            pool.submit(Views(spec).centre, gradient(300, 400)).result()
            assert len(os.listdir("/proc/self/task")) <= running
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(("size", "crop_pct"), [(28, 0.875), (32, 1.0), (32, 0.9)])
def test_the_centre_view_is_what_timm_would_show_the_model(size, crop_pct):
    from timm.data import create_transform

    spec = dataclasses.replace(SPEC, size=size, crop_pct=crop_pct)
    theirs = create_transform(
        input_size=(3, size, size), is_training=False, mean=spec.mean, std=spec.std,
        interpolation=spec.interpolation, crop_pct=spec.crop_pct,
    )  # fmt: skip
    image = gradient(64, 96)
    assert (Views(spec).centre(image) - theirs(image)).abs().max() < 0.02


def test_a_very_long_picture_is_not_blown_up_before_it_is_cropped(monkeypatch):
    areas = []
    resize = Image.Image.resize

    def spy(image, size, *args, **kwargs):
        areas.append(size[0] * size[1])
        return resize(image, size, *args, **kwargs)

    monkeypatch.setattr(Image.Image, "resize", spy)
    Views(SPEC).centre(gradient(1, 3000))
    assert max(areas) <= 100 * 32 * 32, "3,000 pixels must not become millions"


def test_the_centre_view_does_not_depend_on_the_augmentation():
    assert torch.equal(Views(SPEC).centre(gradient()), Views(SPEC, PLAIN).centre(gradient()))


@given(st.integers(1, 300), st.integers(1, 300), st.floats(0.05, 1.0), st.integers(0, 2**32))
def test_a_crop_lies_inside_the_picture_and_keeps_its_share_of_it(height, width, min_scale, seed):
    top, left, h, w = _crop(height, width, min_scale, np.random.default_rng(seed))
    assert 0 <= top <= top + h <= height
    assert 0 <= left <= left + w <= width
    assert h > 0
    assert w > 0
    if min(height, width) >= 20 and h != w:  # else it may be the square that is taken where no box fits
        assert h * w >= 0.9 * min_scale * height * width  # sides are whole pixels


def test_flips_happen_half_of_the_time_and_can_be_switched_off():
    half_black = np.zeros((40, 40, 3), np.uint8)
    half_black[:, 20:] = 255
    image = Image.fromarray(half_black)

    def flipped(views: Views) -> float:
        results = [views.random(image, seed) for seed in range(200)]
        return float(np.mean([v[0, :, :8].mean() > v[0, :, -8:].mean() for v in results]))

    plain = dataclasses.replace(PLAIN, flip=True)
    assert flipped(Views(SPEC, plain)) == pytest.approx(0.5, abs=0.12)
    assert flipped(Views(SPEC, PLAIN)) == 0.0


def test_jitter_changes_colours_within_its_strength():
    views = Views(SPEC, Augmentation(min_scale=1.0, flip=False, jitter=0.2))
    grey = plain_colour((100, 100, 100))
    values = torch.stack([views.random(grey, seed)[0].mean() for seed in range(60)]) * 0.25 + 0.5
    assert values.min() >= 0.8 * 100 / 255 - 0.01  # grey has no contrast and no saturation to change
    assert values.max() <= 1.2 * 100 / 255 + 0.01
    assert values.std() > 0.02


def test_the_key_names_everything_that_shapes_a_view():
    base = Views(SPEC).random_key()
    assert base == Views(SPEC, Augmentation()).random_key()
    spec_changes = {"size": 64, "mean": (0.5,) * 3, "std": (0.1,) * 3, "interpolation": "bilinear", "crop_pct": 1.0}
    keys = [Views(dataclasses.replace(SPEC, **{name: value})).random_key() for name, value in spec_changes.items()]
    for change in ({"min_scale": 0.5}, {"flip": False}, {"jitter": 0.1}):
        keys.append(Views(SPEC, Augmentation(**change)).random_key())
        assert Views(SPEC, Augmentation(**change)).centre_key() == Views(SPEC).centre_key()
    assert len({base, *keys}) == 9
    fields = {f.name for cls in (InputSpec, Augmentation) for f in dataclasses.fields(cls)}
    assert fields == {*spec_changes, "min_scale", "flip", "jitter"}, "a new field needs a line above"
