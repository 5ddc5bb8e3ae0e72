"""How large images are shown to a backbone."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image

from newfound import backbone, fit, load
from newfound.errors import SettingsError
from newfound.image_size import best_input, own_size
from newfound.views import Views

DINO = "vit_base_patch16_224.dino"


@pytest.mark.parametrize("name", ["tf_efficientnet_lite0", "tf_efficientnet_lite0.in1k"])
def test_the_default_backbone_is_shown_whole_images_larger_than_it_was_trained_at(name):
    assert own_size(name) == 224
    assert best_input(name) == (320, 1.0)


def test_another_backbone_is_shown_what_it_was_trained_at():
    assert best_input(DINO) == (224, None)
    assert best_input("test_efficientnet") == (own_size("test_efficientnet"), None)


@pytest.mark.parametrize(("size", "crop"), [(112, None), (224, None), (225, 1.0), (448, 1.0)])
@pytest.mark.parametrize("name", [backbone.DEFAULT, DINO])
def test_a_size_that_is_asked_for_is_taken_and_shown_whole_if_it_is_larger_than_that_of_training(name, size, crop):
    assert best_input(name, size) == (size, crop)


def test_a_backbone_that_timm_does_not_have_is_refused_with_one_that_is_near():
    with pytest.raises(SettingsError, match="tf_efficientnet_lite0"):
        best_input("tf_efficientnet_lite_0")


def test_what_is_shown_whole_has_all_of_its_shorter_side_in_the_view():
    image = Image.new("RGB", (100, 80), "white")
    image.paste("black", (0, 0, 100, 1))  # a line at the very edge
    rows = {}
    for size in (64, 192):
        pixels, crop = best_input("test_efficientnet", size)
        model = backbone.create("test_efficientnet", weights="random", image_size=pixels, crop_pct=crop)
        rows[size] = Views(model.spec).centre(image)[:, 0].mean().item()
    assert rows[192] < 0 < rows[64]


def test_a_run_keeps_the_size_and_the_crop_it_was_taught_at(fit_tiny, pictures, picture, tmp_path):
    run = fit_tiny(pictures(kinds=3, each=3), method="frozen", out=tmp_path / "run", image_size=192)
    kept = json.loads((tmp_path / "run" / "config.json").read_text(encoding="utf-8"))["backbone"]
    assert (kept["image_size"], kept["crop_pct"]) == (192, 1.0)
    again = load(tmp_path / "run")
    assert again.encoder.views.spec == run.encoder.views.spec
    images = [picture(kind, 9) for kind in range(3)]
    assert np.array_equal(again.encoder.features(images), run.encoder.features(images))


def test_a_run_of_format_4_is_still_shown_what_it_was_taught_on(fit_tiny, pictures, tmp_path):
    fit_tiny(pictures(kinds=3, each=3), method="frozen", out=tmp_path / "run", image_size=192)
    file = tmp_path / "run" / "config.json"
    config = json.loads(file.read_text(encoding="utf-8"))
    del config["backbone"]["crop_pct"]
    file.write_text(json.dumps(config | {"format": 4}), encoding="utf-8")
    spec = load(tmp_path / "run").encoder.views.spec
    assert spec.size == 192
    assert spec.crop_pct < 1


def large(count: int) -> list[Image.Image]:
    return [Image.new("RGB", (400, 300), (20 * n, 0, 0)) for n in range(count)]


def small(count: int) -> list[Image.Image]:
    return [Image.new("RGB", (400, 96), (20 * n, 0, 0)) for n in range(count)]


def test_images_that_are_mostly_small_are_not_scaled_beyond_the_size_of_training(tmp_path):
    name = backbone.DEFAULT
    assert best_input(name, images=large(7) + small(4)) == (320, 1.0)
    assert best_input(name, images=large(4) + small(7)) == (224, None)
    assert best_input(name, 320, images=small(4)) == (320, 1.0), "what was asked for is done"
    (tmp_path / "broken.jpg").write_bytes(b"no image")
    unreadable = [tmp_path / "broken.jpg", tmp_path / "gone.jpg"]
    assert best_input(name, images=unreadable) == (320, 1.0)
    assert best_input(name, images=unreadable + small(1)) == (224, None)


def test_the_papers_presets_show_what_the_backbone_was_trained_at(monkeypatch):
    asked = []

    def create(name, *, image_size, crop_pct, **_):
        asked.append((name, image_size, crop_pct))
        raise SettingsError("that is enough")

    monkeypatch.setattr(backbone, "create", create)
    for preset in ("default", "paper", "released"):
        with pytest.raises(SettingsError, match="that is enough"):
            fit((large(6), list("aabbcc")), preset=preset)
    name = backbone.DEFAULT
    assert asked == [(name, 320, 1.0), (name, 224, None), (name, 224, None)]
