"""Promises of the class-token shortcut: the model's own features and gradients, or the model's own way."""

from __future__ import annotations

import copy
from functools import partial

import pytest
import timm
import torch
from torch import nn

from newfound import _class_token, backbone

pytestmark = pytest.mark.usefixtures("one_thread")


def is_short(cut: backbone.Backbone) -> bool:
    return any(isinstance(step, partial) and step.func is _class_token._last_block for step in cut._steps)


def tokens_of(cut: backbone.Backbone, n: int = 3) -> torch.Tensor:
    pixels = torch.randn(n, 3, cut.spec.size, cut.spec.size, generator=torch.Generator().manual_seed(3))
    return cut.trunk(pixels)


def the_long_way(cut: backbone.Backbone, tokens: torch.Tensor) -> torch.Tensor:
    for module, kwargs in cut._chain:
        tokens = module(tokens, **kwargs)
    return cut.model.forward_head(tokens)


# A plain ViT; LayerScale; CLIP's norm before the blocks and projection behind them; class token with registers and
# normalised queries and keys.
KINDS = ["vit_tiny_patch16_224", "vit_small_patch14_dinov2", "vit_base_patch32_clip_224", "test_vit"]


@pytest.mark.parametrize("tune_blocks", [1, 2])
@pytest.mark.parametrize("name", KINDS)
def test_features_and_gradients_are_those_of_the_whole_block(name, tune_blocks):
    size = 56 if "14" in name else 64
    cut = backbone.create(name, weights="random", image_size=size, tune_blocks=tune_blocks)
    assert is_short(cut)
    tokens = tokens_of(cut)
    results = []
    for way in (cut.tail, partial(the_long_way, cut)):
        inputs = tokens.clone().requires_grad_(True)
        feature = way(inputs)
        cut.zero_grad()
        feature.square().mean().backward()
        learnt = {n: p.grad.clone() for n, p in cut.model.named_parameters() if p.grad is not None}
        results.append((feature.detach(), inputs.grad, learnt))
    (short, short_input, short_grads), (long, long_input, long_grads) = results
    torch.testing.assert_close(short, long, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(short_input, long_input, rtol=1e-4, atol=1e-6)
    assert short_grads.keys() == long_grads.keys()
    for key, gradient in short_grads.items():
        torch.testing.assert_close(gradient, long_grads[key], rtol=1e-4, atol=1e-5)


def test_queries_and_keys_that_are_normalised_stay_so():
    model = timm.create_model("vit_tiny_patch16_224", num_classes=0, img_size=64, qk_norm=True).eval()
    (short,) = [s for s in _class_token.steps(model, [(model.blocks[-1], {})]) if isinstance(s, partial)]
    tokens = torch.randn(2, model.patch_embed.num_patches + 1, 192)
    with torch.no_grad():
        torch.testing.assert_close(short(tokens), model.blocks[-1](tokens)[:, :1], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("settings", [{"global_pool": "avg"}, {"proj_drop_rate": 0.1}, {"attn_drop_rate": 0.1}])
def test_what_needs_all_tokens_or_draws_by_shape_goes_the_models_own_way(settings):
    model = timm.create_model("vit_tiny_patch16_224", num_classes=0, img_size=64, **settings).eval()
    chain = [(model.blocks[-1], {}), (model.norm, {})]
    assert [step.func for step in _class_token.steps(model, chain)] == [model.blocks[-1], model.norm]


def test_a_block_of_another_kind_goes_the_models_own_way():
    class Other(timm.models.vision_transformer.Block):
        pass

    model = timm.create_model("vit_tiny_patch16_224", num_classes=0, img_size=64).eval()
    other = copy.deepcopy(model.blocks[-1])
    other.__class__ = Other
    model.blocks[-1] = other
    assert [step.func for step in _class_token.steps(model, [(other, {})])] == [other]


def test_parts_behind_the_last_block_must_treat_each_token_alone():
    model = timm.create_model("vit_tiny_patch16_224", num_classes=0, img_size=64).eval()
    mixing = nn.Conv1d(17, 17, 1)
    chain = [(model.blocks[-1], {}), (mixing, {})]
    assert [step.func for step in _class_token.steps(model, chain)] == [model.blocks[-1], mixing]
