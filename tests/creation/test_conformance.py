"""What every creator promises. A creator that `newfound.creators()` lists is tested here."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from torch import Tensor

import newfound as nf
from newfound.creation import Model, PixelScale, make_creator
from newfound.errors import SettingsError
from newfound.features import unit
from newfound.method import get_method

CREATORS = list(nf.creators())
CREATING = [name for name in nf.methods() if get_method(name).creates]
CNN, VIT = "test_efficientnet", "test_vit"
SPACES = ("pixels", "tokens")

pytestmark = pytest.mark.usefixtures("one_thread")


@dataclasses.dataclass
class Scene:
    """A batch of four pictures of two classes, a backbone, and what a creator is called with."""

    backbone: object
    inputs: Tensor
    targets: Tensor
    model: Model
    reference: Tensor

    def create(self, creator, *, seed: int = 0, targets: Tensor | None = None) -> Tensor:
        chosen = self.targets if targets is None else targets
        return creator(self.inputs, chosen, self.model, self.reference, np.random.default_rng(seed))


@pytest.fixture
def scene(tiny_backbone, picture):
    """scene(space, backbone)"""
    from PIL import Image

    from newfound.views import Views

    def make(space: str, name: str = CNN) -> Scene:
        backbone = tiny_backbone(name)
        views = Views(backbone.spec)
        pixels = torch.stack([views.centre(Image.fromarray(picture(kind, n))) for kind in (0, 1) for n in (0, 1)])
        inputs = pixels if space == "pixels" else backbone.trunk(pixels)
        forward = backbone if space == "pixels" else backbone.tail
        head = torch.nn.Linear(backbone.dim, 2)
        scale = PixelScale(backbone.spec.mean, backbone.spec.std) if space == "pixels" else None
        model = Model(encode=lambda x: unit(forward(x)), classify=head, pixels=scale)
        with torch.no_grad():
            reference = model.encode(inputs)
        return Scene(backbone, inputs, torch.tensor([0, 0, 1, 1]), model, reference)

    return make


@pytest.fixture
def creator(tiny_pipeline_folder):
    return lambda name: make_creator(name, pipeline=tiny_pipeline_folder, steps=2, eta=1.0, min_lambda=0.3)


def works_in(name: str, space: str) -> bool:
    return space in make_creator(name).spaces


@pytest.mark.parametrize("backbone", [CNN, VIT])
@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("name", CREATORS)
def test_it_makes_new_inputs_of_the_same_kind_or_says_where_it_can_work(scene, creator, name, space, backbone):
    it = scene(space, backbone)
    before = it.inputs.clone()
    if not works_in(name, space):
        with pytest.raises(SettingsError, match=f"{name} works on .*space="):
            it.create(creator(name))
        return
    made = it.create(creator(name))
    assert made.shape == it.inputs.shape
    assert made.dtype == it.inputs.dtype
    assert torch.isfinite(made).all()
    assert not made.requires_grad
    assert torch.equal(it.inputs, before), "the batch is as it was"
    for row in made:
        nearest = (it.inputs - row).flatten(1).norm(dim=1).min()
        assert nearest > 1e-3 * it.inputs[0].norm(), "what is made is none of what it was made from"


@pytest.mark.parametrize("name", CREATORS)
def test_the_same_randomness_makes_the_same_and_nothing_else_matters(scene, creator, name):
    it = scene(make_creator(name).spaces[0])
    first = it.create(creator(name), seed=1)
    torch.manual_seed(5)
    np.random.seed(5)
    state = torch.random.get_rng_state()
    assert torch.equal(it.create(creator(name), seed=1), first)
    assert torch.equal(torch.random.get_rng_state(), state), "no global randomness is used"
    assert not torch.equal(it.create(creator(name), seed=2), first)


@pytest.mark.parametrize("name", CREATORS)
def test_a_batch_of_one_class_has_no_pairs_and_makes_nothing(scene, creator, name):
    it = scene(make_creator(name).spaces[0])
    made = it.create(creator(name), targets=torch.zeros(4, dtype=torch.int64))
    assert made.shape == (0, *it.inputs.shape[1:])


@pytest.mark.parametrize("name", CREATORS)
def test_the_model_learns_nothing_from_creating(scene, creator, name):
    it = scene(make_creator(name).spaces[0])
    before = {key: value.clone() for key, value in it.backbone.state_dict().items()}
    it.create(creator(name))
    assert all(p.grad is None for p in it.backbone.parameters())
    assert all(p.grad is None for p in it.model.classify.parameters())
    assert all(torch.equal(value, before[key]) for key, value in it.backbone.state_dict().items())


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("method", CREATING)
@pytest.mark.parametrize("name", CREATORS)
def test_every_method_that_takes_a_creator_can_learn_with_it(
    fit_tiny, pictures, tiny_pipeline_folder, name, method, space
):
    has = {field.name for field in dataclasses.fields(get_method(method).settings_class)}
    options = {"creator": name, "pipeline": tiny_pipeline_folder, "steps": 2, "epochs": 2, "cached": space == "tokens"}
    options |= {key: value for key, value in {"space": space, "p_gen": 1.0}.items() if key in has}
    if "space" in has and not works_in(name, space):
        with pytest.raises(SettingsError, match=f"{name}.* works on"):
            fit_tiny(pictures(2, 4), method=method, **options)
        return
    run = fit_tiny(pictures(2, 4), method=method, **options)
    assert len(run.log) == 2
    if "p_gen" in has:
        assert run.log[-1]["created"] > 0
