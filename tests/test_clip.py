"""CLIP's towers: which checkpoint belongs to a backbone, and what open_clip's models give or why they cannot be had."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Pillow
from tiny_clip import make_tiny_clip

from newfound.clip import _CHECKPOINTS, checkpoint_of, load_towers
from newfound.errors import SettingsError, WeightsError

open_clip = pytest.importorskip("open_clip", reason="newfound[naming] is not installed")


@pytest.fixture(scope="module")
def tiny_clip(tmp_path_factory) -> tuple[str, Path]:
    return make_tiny_clip(tmp_path_factory.mktemp("clip"))


def test_a_backbones_checkpoint_is_the_same_model_in_both_libraries():
    from timm.models import get_pretrained_cfg

    assert checkpoint_of("vit_base_patch16_clip_quickgelu_224.openai") == "ViT-B-16/openai"
    for strange in ("vit_base_patch16_clip_224.laion2b_ft_in1k", "vit_base_patch16_clip_224", "resnet50.a1_in1k"):
        assert checkpoint_of(strange) is None
    for name in (f"{name}.{tag}" for name, (_, tags) in _CHECKPOINTS.items() for tag in tags):
        model, _, tag = checkpoint_of(name).partition("/")
        theirs, ours = open_clip.get_model_config(model), get_pretrained_cfg(name)
        assert ours is not None, name
        assert tag in open_clip.list_pretrained_tags_by_model(model), name
        assert theirs["vision_cfg"]["image_size"] == ours.input_size[1], name
        assert ours.num_classes in (0, theirs["embed_dim"]), name
        described = open_clip.get_pretrained_cfg(model, tag)
        assert tuple(described.get("mean") or open_clip.OPENAI_DATASET_MEAN) == pytest.approx(ours.mean), name


def test_the_towers_give_unit_rows_that_do_not_depend_on_what_is_asked_with_them(tiny_clip):
    towers = load_towers(*tiny_clip)
    rng = np.random.default_rng(0)
    pictures = [Pillow.fromarray(rng.integers(0, 256, (20, 30, 3), dtype=np.uint8)) for _ in range(35)]
    rows, texts = towers.pictures(pictures), towers.words(["a heron", "an owl"])
    assert rows.shape == (35, 16)
    assert texts.shape == (2, 16)
    np.testing.assert_allclose(np.linalg.norm(np.concatenate([rows, texts]), axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(rows[34:], towers.pictures(pictures[34:]), atol=1e-5)
    np.testing.assert_allclose(texts[1:], towers.words(["an owl"]), atol=1e-5)
    assert towers.scale == pytest.approx(1 / 0.07)


def test_weights_that_were_trained_with_quickgelu_get_it(tiny_clip, monkeypatch):
    name, file = tiny_clip
    from open_clip import pretrained

    tags = {"quick": {"file": str(file), "quick_gelu": True}, "plain": {"file": str(file)}}
    monkeypatch.setitem(pretrained._PRETRAINED, name, tags)
    quick, plain = (load_towers(f"{name}/{tag}").words(["a heron"]) for tag in ("quick", "plain"))
    np.testing.assert_array_equal(plain, load_towers(name, file).words(["a heron"]))
    assert not np.array_equal(quick, plain)


def test_weights_that_cannot_be_had_are_told(tiny_clip, tmp_path, monkeypatch):
    name, file = tiny_clip
    with pytest.raises(SettingsError, match="open_clip has no model 'ViT-B-99'"):
        load_towers("ViT-B-99/openai")
    with pytest.raises(SettingsError, match=r"'ViT-B-16/mine' names no weights that open_clip knows.*openai"):
        load_towers("ViT-B-16/mine")
    with pytest.raises(SettingsError, match="names no weights"):
        load_towers(name)
    with pytest.raises(WeightsError, match="there is no weight file"):
        load_towers(name, tmp_path / "none.pt")
    other = tmp_path / "other.safetensors"
    other.write_bytes(file.read_bytes()[:1000])
    with pytest.raises(WeightsError, match="does not hold both towers of newfound-tiny"):
        load_towers(name, other)
    monkeypatch.setattr("open_clip.pretrained.hf_hub_download", _no_network)
    with pytest.raises(WeightsError, match=r"weights ViT-B-16/openai cannot be had here.*--weights"):
        load_towers("ViT-B-16/openai")


def _no_network(*_, **__):
    raise ConnectionError("no network")
