"""Promises of diffusion as a creator, kept by a tiny pipeline of the true classes with random weights."""

from __future__ import annotations

import math
import shutil
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from newfound.creation import Diffusion, Model, PixelScale, make_creator
from newfound.creation.diffusion import slerp
from newfound.errors import SettingsError, WeightsError
from newfound.method.ltc import LTCSettings

pytestmark = pytest.mark.usefixtures("one_thread")

SCALE = PixelScale((0.5, 0.4, 0.3), (0.2, 0.3, 0.25))
MODEL = Model(encode=lambda x: x, classify=lambda f: f, pixels=SCALE)
TARGETS = torch.tensor([0, 1, 2, 0, 1, 2])
FEW = {"steps": 4, "guidance": 2.0}  # two steps of denoising


@pytest.fixture
def inputs(picture) -> torch.Tensor:
    """Six normalised pictures of three kinds [6, 3, 24, 24]."""
    images = np.stack([picture(kind, number) for number in range(2) for kind in range(3)])
    return SCALE.to_inputs(torch.from_numpy(images).permute(0, 3, 1, 2) / 255)


def create(creator: Diffusion, inputs: torch.Tensor, seed: int = 0, targets: torch.Tensor = TARGETS) -> torch.Tensor:
    return creator(inputs, targets, MODEL, torch.zeros(0, 4), np.random.default_rng(seed))


def test_created_images_have_the_size_and_the_normalisation_of_the_inputs(pipeline, inputs):
    created = create(Diffusion(pipeline=pipeline, **FEW), inputs)
    assert created.shape == inputs.shape
    assert created.dtype == inputs.dtype
    images = created * torch.tensor(SCALE.std).reshape(1, 3, 1, 1) + torch.tensor(SCALE.mean).reshape(1, 3, 1, 1)
    assert -1e-6 <= images.min() <= images.max() <= 1 + 1e-6
    assert len({image.numpy().tobytes() for image in created}) == 6


def test_an_image_is_what_the_pipeline_makes_of_the_blend_of_two_latents(pipeline, inputs):
    creator = Diffusion(pipeline=pipeline, prompt="a bird", strength=0.5, **FEW)
    small = inputs[:, :, :16, :16]  # the pipeline's own size: nothing is resized
    created = create(creator, small, seed=5)
    rng = np.random.default_rng(5)
    first, second, shares = creator.draw(TARGETS, rng)
    with torch.no_grad():
        latents = pipeline.vae.encode(SCALE.to_images(small) * 2 - 1).latent_dist.mode() * 0.18215
        blends = slerp(latents[first], latents[second], torch.from_numpy(shares).float())
        images = pipeline(
            prompt=["a bird"] * 6, image=blends, strength=0.5, num_inference_steps=4, guidance_scale=2.0,
            generator=torch.Generator().manual_seed(int(rng.integers(2**63))), output_type="pt",
        ).images  # fmt: skip
    torch.testing.assert_close(created, SCALE.to_inputs(images))
    assert (TARGETS[first] != TARGETS[second]).all()


def test_both_parents_leave_their_mark(pipeline, inputs):
    two, targets = inputs[:2], torch.tensor([0, 1])
    created = create(Diffusion(pipeline=pipeline, **FEW), two, targets=targets)
    for changed in range(2):
        other = two.clone()
        other[changed] = inputs[2]
        assert not torch.equal(create(Diffusion(pipeline=pipeline, **FEW), other, targets=targets)[0], created[0])


def test_the_same_generator_state_gives_the_same_images_and_no_global_state_is_read_or_changed(pipeline, inputs):
    creator = Diffusion(pipeline=pipeline, **FEW)
    created = create(creator, inputs, seed=1)
    np.random.seed(9)
    torch.manual_seed(9)
    before = torch.random.get_rng_state()
    assert torch.equal(create(creator, inputs, seed=1), created)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert not torch.equal(create(creator, inputs, seed=2), created)


def test_a_folder_does_what_the_object_does_and_is_read_when_it_is_first_needed(
    pipeline, tiny_pipeline_folder, inputs, tmp_path
):
    folder = tmp_path / "later"
    creator = Diffusion(pipeline=str(folder), **FEW)
    shutil.copytree(tiny_pipeline_folder, folder)
    assert torch.equal(create(creator, inputs), create(Diffusion(pipeline=pipeline, **FEW), inputs))
    shutil.rmtree(folder)
    create(creator, inputs)  # and only once


def test_more_images_than_go_through_the_pipeline_at_once_come_out_in_order(pipeline, inputs):
    many, targets = inputs.repeat(4, 1, 1, 1), TARGETS.repeat(4)
    created = create(Diffusion(pipeline=pipeline, **FEW), many, targets=targets)
    assert created.shape == many.shape
    assert len({image.numpy().tobytes() for image in created}) == 24


def test_a_size_of_ones_own_can_be_chosen(pipeline, inputs):
    own = create(Diffusion(pipeline=pipeline, size=32, **FEW), inputs)
    assert own.shape == inputs.shape
    assert not torch.equal(own, create(Diffusion(pipeline=pipeline, **FEW), inputs))


def test_created_images_can_be_learnt_from(pipeline, inputs):
    created = create(Diffusion(pipeline=pipeline, **FEW), inputs.requires_grad_(True))
    assert not created.requires_grad
    weight = torch.ones(3, 1, 1, requires_grad=True)
    (weight * created).square().sum().backward()  # what was made in inference mode would refuse
    assert weight.grad.abs().sum() > 0


def test_a_batch_of_one_class_creates_nothing_and_loads_nothing(inputs):
    created = create(Diffusion(pipeline="no/such-pipeline"), inputs, targets=torch.zeros(6, dtype=torch.long))
    assert created.shape == (0, 3, 24, 24)


def test_tokens_are_refused_with_what_to_do_instead(pipeline):
    tokens = Model(encode=lambda x: x, classify=lambda f: f)
    with pytest.raises(SettingsError, match=r"works on pixels; take space=pixels and cached=False.*diffgre-\*"):
        Diffusion(pipeline=pipeline)(torch.rand(6, 5, 8), TARGETS, tokens, torch.zeros(0, 4), np.random.default_rng(0))


@pytest.mark.parametrize("cached", [True, False])
def test_a_method_that_would_give_it_tokens_is_refused_before_anything_is_read(cached):
    with pytest.raises(
        SettingsError, match=r"'diffusion' works on pixels, not on tokens: .*space=\"pixels\" and cached=F"
    ):
        LTCSettings(creator="diffusion", space="tokens", cached=cached)
    with pytest.raises(SettingsError, match=r"cached views hold only tokens: take cached=False\.$"):
        LTCSettings(creator="diffusion", space="pixels", cached=True)
    assert LTCSettings(creator="diffusion", space="pixels", steps=7).make_creator().steps == 7


def damaged(folder):
    (folder / "unet" / "diffusion_pytorch_model.safetensors").write_bytes(b"not weights")


def incomplete(folder):
    shutil.rmtree(folder / "vae")


def empty(folder):
    shutil.rmtree(folder)
    folder.mkdir()


def pickled(folder):
    weights = folder / "unet" / "diffusion_pytorch_model.safetensors"
    weights.rename(weights.with_suffix(".bin"))


@pytest.mark.parametrize("harm", [damaged, incomplete, empty, pickled])
def test_a_folder_that_is_no_pipeline_is_named_with_what_is_needed(tiny_pipeline_folder, inputs, tmp_path, harm):
    folder = tmp_path / "broken"
    shutil.copytree(tiny_pipeline_folder, folder)
    harm(folder)
    with pytest.raises(WeightsError, match=r"pipeline '.*broken' cannot be had here.*Stable Diffusion.*pipeline=PATH"):
        create(Diffusion(pipeline=str(folder), **FEW), inputs)


def test_weights_that_cannot_be_fetched_are_named_with_what_to_do(inputs, monkeypatch):
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(WeightsError, match=r"'no/such-pipeline' cannot be had here.*local folder.*pipeline=PATH"):
        create(Diffusion(pipeline="no/such-pipeline"), inputs)


def test_missing_packages_are_named_with_the_command_that_brings_them(inputs, monkeypatch):
    monkeypatch.setitem(sys.modules, "diffusers", None)  # what an import finds when it is not installed
    with pytest.raises(SettingsError, match=r"pip install 'newfound\[diffusion\]'"):
        create(Diffusion(), inputs)


def test_a_pipeline_of_another_kind_is_refused(inputs):
    with pytest.raises(SettingsError, match=r"pipeline of Stable Diffusion.*4 channels; object has none"):
        create(Diffusion(pipeline=object()), inputs)


@pytest.mark.parametrize(
    "bad", [{"strength": 0.0}, {"strength": 1.1}, {"steps": 0}, {"steps": 1}, {"size": 4}, {"min_lambda": 0.6}], ids=str
)
def test_values_that_cannot_be_are_refused_when_the_creator_is_made(bad):
    with pytest.raises(SettingsError, match=next(iter(bad))):
        make_creator("diffusion", **bad)


def test_it_is_listed_and_keeps_away_from_the_images_themselves():
    creator = make_creator("diffusion", eta=0.7, eps=0.3, prompt="a bird")
    assert (creator.eta, creator.prompt, creator.min_lambda, creator.spaces) == (0.7, "a bird", 0.3, ("pixels",))


def test_a_spherical_blend_divides_the_angle():
    a, b = torch.tensor([[2.0, 0.0]]), torch.tensor([[0.0, 2.0]])
    # A third of the right angle from b: 60 degrees up from a.
    third = slerp(a, b, torch.tensor([1 / 3]))
    assert third[0].tolist() == pytest.approx([2 * math.cos(math.pi / 3), 2 * math.sin(math.pi / 3)], abs=1e-6)
    torch.testing.assert_close(slerp(a, b, torch.tensor([1.0])), a)
    torch.testing.assert_close(slerp(a, b, torch.tensor([0.0])), b, rtol=0, atol=1e-6)


@given(st.integers(0, 2**32), st.floats(0, 1))
def test_a_spherical_blend_of_equally_long_latents_is_as_long_as_they_are(seed, share):
    rows = torch.from_numpy(np.random.default_rng(seed).normal(size=(2, 1, 4, 3, 3)))
    a, b = (row / row.norm() for row in rows)
    blend = slerp(a, b, torch.tensor([share], dtype=torch.float64))
    assert blend.norm().item() == pytest.approx(1.0, abs=1e-6)


def test_nearly_parallel_and_opposite_latents_blend_straight():
    a = torch.tensor([[1.0, 2.0], [1.0, 0.0], [0.0, 0.0]])
    b = torch.tensor([[2.0, 4.0], [-1.0, 0.0], [1.0, 1.0]])
    blend = slerp(a, b, torch.full((3,), 0.25))
    assert blend[0].tolist() == pytest.approx([1.75, 3.5])  # 0.25 * 1 + 0.75 * 2
    assert torch.isfinite(blend).all()
