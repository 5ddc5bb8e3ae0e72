"""Promises of a creator's inputs: in the space that the run creates in, with their own features as the reference."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from newfound.benchmarks.creator_inputs import creator_inputs
from newfound.features import unit
from newfound.images import open_image

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("space", ["tokens", "pixels"])
def test_inputs_are_what_training_gives_a_creator(tiny_run, pictures, monkeypatch, space):
    monkeypatch.setattr(tiny_run.method, "settings", replace(tiny_run.method.settings, space=space, cached=False))
    pixels = torch.stack([tiny_run.encoder.views.centre(open_image(image)) for image in pictures(kinds=2)[0]])
    given = creator_inputs(tiny_run, pixels)
    backbone = tiny_run.encoder.backbone
    assert given.space == space
    assert torch.equal(given.inputs, pixels if space == "pixels" else backbone.trunk(pixels))
    with torch.no_grad():
        torch.testing.assert_close(given.reference, unit(backbone(pixels)))
    assert (given.model.pixels is not None) == (space == "pixels")


@pytest.mark.parametrize("space", ["tokens", "pixels"])
def test_a_creator_can_follow_gradients_to_its_inputs(tiny_run, pictures, monkeypatch, space):
    monkeypatch.setattr(tiny_run.method, "settings", replace(tiny_run.method.settings, space=space, cached=False))
    pixels = torch.stack([tiny_run.encoder.views.centre(open_image(image)) for image in pictures(kinds=2)[0]])
    given = creator_inputs(tiny_run, pixels)
    inputs = given.inputs.clone().requires_grad_()
    (slope,) = torch.autograd.grad(given.model.classify(given.model.encode(inputs)).square().sum(), inputs)
    assert slope.abs().sum() > 0
    assert not given.reference.requires_grad
