"""Promises of CutMix: a rectangle of whole pixels or tokens changes hands, and how large it is."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from newfound.creation import CutMix, make_creator
from newfound.errors import SettingsError

pytestmark = pytest.mark.usefixtures("one_thread")

TARGETS = torch.tensor([0, 1])
seeds = st.integers(0, 2**32)
sides = st.integers(1, 12)


def flags(*shape: int) -> torch.Tensor:
    """Two samples, all zeros and all ones: in a blend, what came from whom can be read off."""
    return torch.stack([torch.zeros(shape), torch.ones(shape)]).double()


def own_share(blend: torch.Tensor) -> list[float]:
    """The share of each blend that its own sample kept; the first sample is 0, the second 1."""
    ones = blend.flatten(1).mean(dim=1).tolist()
    return [1 - ones[0], ones[1]]


def is_rectangle(changed: torch.Tensor) -> bool:
    rows, columns = changed.any(dim=1), changed.any(dim=0)
    return bool((changed == rows[:, None] & columns[None, :]).all()) and all(
        int(line.nonzero().max() - line.nonzero().min()) + 1 == int(line.sum()) for line in (rows, columns)
    )


@given(sides, sides, seeds, st.sampled_from([0.0, 0.1, 0.3, 0.5]))
@settings(max_examples=80)
def test_the_share_keeps_to_its_bounds_wherever_whole_pixels_can(height, width, seed, low):
    if height * width == 1:
        return
    blend = CutMix(eta=0.4, min_lambda=low).blend(flags(16, height, width), TARGETS, np.random.default_rng(seed))
    possible = {h * w / (height * width) for h in range(1, height + 1) for w in range(1, width + 1)} - {1.0}
    beyond = {area: max(low - area, area - (1 - low), 0.0) for area in possible}
    for own in own_share(blend):
        assert 0 < own < 1
        assert max(low - (1 - own), (1 - own) - (1 - low), 0) == pytest.approx(min(beyond.values()), abs=1e-8)


@given(sides, sides, seeds)
@settings(max_examples=50)
def test_what_changes_hands_is_one_rectangle_in_all_channels(height, width, seed):
    if height * width == 1:
        return
    blend = CutMix().blend(flags(16, height, width), TARGETS, np.random.default_rng(seed))
    assert (blend == blend[:, :1]).all()
    assert is_rectangle(blend[0, 0] == 1)
    assert is_rectangle(blend[1, 0] == 0)


def test_every_pixel_comes_from_its_own_place_in_one_of_two_samples_of_different_classes():
    targets = torch.tensor([0, 1, 2, 0, 1, 2])
    inputs = torch.arange(6 * 3 * 8 * 8).reshape(6, 3, 8, 8).double()  # each value occurs once
    blend = CutMix(min_lambda=0.2).blend(inputs, targets, np.random.default_rng(1))
    for i, image in enumerate(blend):
        parents = [j for j in range(6) if (image == inputs[j]).any()]
        assert len(parents) == 2
        assert i in parents
        assert targets[parents[0]] != targets[parents[1]]
        assert ((image == inputs[parents[0]]) | (image == inputs[parents[1]])).all()


def test_the_share_follows_the_beta_distribution_as_nearly_as_pixels_do():
    targets = torch.arange(2).repeat(500)
    inputs = targets.double().reshape(-1, 1, 1, 1).expand(-1, 1, 24, 24)
    blend = CutMix(eta=1.0).blend(inputs, targets, np.random.default_rng(2))
    ones = blend.flatten(1).mean(dim=1)
    own = torch.where(targets == 1, ones, 1 - ones).numpy()
    assert own.mean() == pytest.approx(0.5, abs=0.03)
    assert own.var() == pytest.approx(1 / 12, rel=0.1)  # of Beta(1, 1): uniform


def test_rectangles_lie_everywhere():
    rng = np.random.default_rng(3)
    changed = sum(CutMix(min_lambda=0.3).blend(flags(1, 4, 4), TARGETS, rng)[0, 0] for _ in range(200))
    assert (changed > 20).all()
    assert (changed < 180).all()


@pytest.mark.parametrize("prefix", [0, 1, 2, 5])
def test_of_a_vits_tokens_patches_are_replaced_and_the_prefix_is_blended_by_the_area(prefix):
    blend = CutMix(min_lambda=0.2).blend(flags(prefix + 36, 8), TARGETS, np.random.default_rng(4))
    patches = blend[:, prefix:].reshape(2, 6, 6, 8)
    assert set(patches.flatten().tolist()) == {0.0, 1.0}
    assert is_rectangle(patches[0, :, :, 0] == 1)
    for sample in range(2):
        area = patches[sample, :, :, 0].mean()
        torch.testing.assert_close(blend[sample, :prefix], area.expand(prefix, 8))


def test_swins_maps_have_their_channels_last():
    blend = CutMix().blend(flags(7, 7, 24), TARGETS, np.random.default_rng(5))
    assert (blend == blend[..., :1]).all()
    assert is_rectangle(blend[0, :, :, 0] == 1)


@pytest.mark.parametrize("name", ["test_efficientnet", "test_vit"])
def test_on_a_real_backbone_the_trunks_tokens_can_be_cut(tiny_backbone, name):
    backbone = tiny_backbone(name)
    tokens = backbone.trunk(torch.rand(4, 3, 32, 32))
    cut = CutMix(min_lambda=0.3).blend(tokens, torch.tensor([0, 1, 0, 1]), np.random.default_rng(6))
    assert cut.shape == tokens.shape
    assert torch.isfinite(backbone.tail(cut)).all()
    assert all(not torch.equal(cut[i], tokens[j]) for i in range(4) for j in range(4))


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((35, 8), "35 tokens an image: they are no square grid"),  # 25 patches would leave 10 tokens before them
        ((10,), r"shape \[2, 10\]"),
        ((3, 4, 4, 4), r"shape \[2, 3, 4, 4, 4\]"),
        ((48, 1, 1), "grid of 1 x 1"),
        ((2, 8), "grid of 1 x 1"),
    ],
)  # fmt: skip
def test_inputs_that_cannot_be_cut_are_refused_with_a_way_out(shape, message):
    with pytest.raises(SettingsError, match=f"{message}.*another creator"):
        CutMix().blend(flags(*shape), TARGETS, np.random.default_rng(0))


def test_a_batch_of_one_class_creates_nothing():
    blend = CutMix().blend(torch.rand(4, 3, 8, 8), torch.zeros(4, dtype=torch.long), np.random.default_rng(0))
    assert blend.shape == (0, 3, 8, 8)


def test_the_same_generator_state_gives_the_same_cut_and_no_global_state_is_read():
    inputs = torch.rand(2, 3, 8, 8, dtype=torch.float16, requires_grad=True)
    first = CutMix().blend(inputs, TARGETS, np.random.default_rng(3))
    np.random.seed(9)
    torch.manual_seed(9)
    assert torch.equal(first, CutMix().blend(inputs, TARGETS, np.random.default_rng(3)))
    assert first.dtype == torch.float16
    assert not first.requires_grad


def test_it_is_listed_and_takes_mixups_settings():
    creator = make_creator("cutmix", eta=0.7, min_lambda=0.1, eps=0.3)
    assert (creator.eta, creator.min_lambda, creator.spaces) == (0.7, 0.1, ("pixels", "tokens"))
