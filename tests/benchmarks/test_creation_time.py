"""Promises of the time to create: it is that of the run's own creator, on 128 samples, and changes nothing."""

from __future__ import annotations

import copy

import pytest
import torch

from newfound.benchmarks import creation_time as timing
from newfound.benchmarks.creation_time import REPEATS, SAMPLES, creation_time
from newfound.datasets import load_dataset

pytestmark = pytest.mark.usefixtures("one_thread")


class Counting:
    """A creator that notes what it is called with."""

    def __init__(self, creator) -> None:
        self.creator, self.calls = creator, []

    def __call__(self, inputs, targets, model, reference, rng):
        created = self.creator(inputs, targets, model, reference, rng)
        self.calls.append((inputs, targets, model, reference, created))
        return created


@pytest.fixture(scope="module")
def in_pixels(fit_tiny, pictures):
    return fit_tiny(pictures(kinds=3), epochs=1, creation_from_epoch=0, p_gen=1.0, cached=False, space="pixels")


@pytest.mark.parametrize("space", ["tokens", "pixels"])
def test_the_runs_own_creator_is_timed_on_128_samples(tiny_run, in_pixels, pictures, monkeypatch, space):
    run, labelled = tiny_run if space == "tokens" else in_pixels, load_dataset(pictures(kinds=3))
    counting = Counting(run.method.creator)
    monkeypatch.setattr(run.method, "creator", counting)
    took = creation_time(run, labelled)
    assert (took["samples"], took["space"]) == (128, space)
    assert took["seconds"] > 0
    assert took["encode_seconds"] > 0
    assert len(counting.calls) == 1 + REPEATS, "one to warm up"
    assert took["repeats"] == REPEATS
    for inputs, targets, model, reference, created in counting.calls:
        assert len(inputs) == len(targets) == len(reference) == len(created) == SAMPLES == 128
        assert set(targets.tolist()) == {0, 1, 2}
        assert (model.pixels is not None) == (space == "pixels")
        torch.testing.assert_close(model.encode(inputs).detach(), reference)  # in the space that the method creates in


def test_a_creation_that_takes_long_is_not_repeated(tiny_run, pictures, monkeypatch):
    counting = Counting(tiny_run.method.creator)
    monkeypatch.setattr(tiny_run.method, "creator", counting)
    monkeypatch.setattr(timing, "LONG", 0.0)  # seconds
    took = creation_time(tiny_run, load_dataset(pictures(kinds=3)))
    assert (len(counting.calls), took["repeats"]) == (1, 1)
    assert took["seconds"] > 0


def test_nothing_of_the_run_is_changed(tiny_run, pictures):
    state, learnt = copy.deepcopy(tiny_run.encoder.backbone.state_dict()), copy.deepcopy(tiny_run.method.state_dict())
    creation_time(tiny_run, load_dataset(pictures(kinds=3)))
    assert all(torch.equal(value, state[name]) for name, value in tiny_run.encoder.backbone.state_dict().items())
    assert all(torch.equal(value, learnt[name]) for name, value in tiny_run.method.state_dict().items())


def test_images_that_cannot_be_read_are_left_out_as_in_training(tiny_run, pictures, tmp_path, monkeypatch):
    images, labels = pictures(kinds=3)
    (tmp_path / "broken.png").write_bytes(b"no picture")
    broken = [tmp_path / "broken.png", tmp_path / "gone.png"]
    counting = Counting(tiny_run.method.creator)
    monkeypatch.setattr(tiny_run.method, "creator", counting)
    creation_time(tiny_run, load_dataset(([*broken, *images], ["kind0", "kind1", *labels])))
    assert len(counting.calls[0][0]) == SAMPLES


def test_more_than_128_images_are_drawn_from_without_repeats(tiny_run, pictures, monkeypatch):
    counting = Counting(tiny_run.method.creator)
    monkeypatch.setattr(tiny_run.method, "creator", counting)
    creation_time(tiny_run, load_dataset(pictures(kinds=3, each=60)))
    inputs, targets, *_ = counting.calls[0]
    assert len(inputs) == SAMPLES == len(torch.unique(inputs, dim=0))
    assert set(targets.tolist()) == {0, 1, 2}


@pytest.mark.parametrize("method", ["baseline", "frozen", "known-hinge", "smile"])
def test_a_method_that_does_not_create_while_it_learns_has_no_time(fit_tiny, pictures, method):
    options = {} if method == "frozen" else {"epochs": 0}
    run = fit_tiny(pictures(kinds=3), method=method, **options)
    assert creation_time(run, load_dataset(pictures(kinds=3))) is None


def test_nor_has_ltc_without_a_creator(fit_tiny, pictures):
    run = fit_tiny(pictures(kinds=3), epochs=0, creator=None)
    assert creation_time(run, load_dataset(pictures(kinds=3))) is None
