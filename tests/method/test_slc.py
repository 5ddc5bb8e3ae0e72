"""Promises of SLC: a known class may have many leaders, the radius makes them, and nothing else is clustered."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from newfound import presets
from newfound.errors import SettingsError
from newfound.features import unit
from newfound.method import Batch
from newfound.method.baseline import Baseline, BaselineSettings
from newfound.method.slc import SLC, SLCSettings

pytestmark = pytest.mark.usefixtures("one_thread")

AXES = torch.eye(5)
TARGETS = torch.tensor([0, 0, 0, 0, 1, 1])  # class 0 is found near the first two axes, class 1 near the third


def near(axis: int, seed: int) -> Tensor:
    """A unit vector whose cosine with the axis is about 0.99."""
    noise = torch.from_numpy(np.random.default_rng(seed).normal(0, 0.06, AXES.shape[1])).float()
    return unit(AXES[axis] + noise)


FEATURES = torch.stack([near(axis, seed) for seed, axis in enumerate([0, 1, 0, 1, 2, 2])])


def slc(**settings) -> SLC:
    return SLC(5, 2, SLCSettings(**settings))


def random_set(seed: int) -> tuple[Tensor, Tensor]:
    rng = np.random.default_rng(seed)
    targets = torch.from_numpy(np.append([0, 1, 2], rng.integers(0, 3, 27)))
    return unit(torch.from_numpy(rng.normal(size=(30, 4)) + 0.5).float()), targets


def test_a_class_with_two_modes_is_recognised_in_both_which_one_prototype_cannot_do():
    method = slc()
    stream = torch.stack([near(axis, 100 + axis) for axis in (0, 1, 2)]).numpy()
    leaders = method.dictionary(method.teach(FEATURES, TARGETS), 0.9)
    assert leaders.observe(stream).category.tolist() == [0, 0, 1]
    plain = Baseline(5, 2, BaselineSettings())  # its prototype of class 0 lies between the axes, at a cosine of 0.7
    assert plain.dictionary(plain.teach(FEATURES, TARGETS), 0.9).observe(stream).category.tolist() == [2, 3, 1]


def test_a_sample_far_from_all_leaders_leads_a_new_category():
    method = slc()
    dictionary = method.dictionary(method.teach(FEATURES, TARGETS), 0.9)
    out = dictionary.observe(torch.stack([near(3, 7), near(4, 8), near(3, 9)]).numpy())
    assert out.category.tolist() == [2, 3, 2]
    assert out.created.tolist() == [True, True, False]
    assert dictionary.known == 2


def test_the_radius_makes_the_leaders():
    # At 0.9 there is one for each axis in use, at 1 nearly every sample leads, at -1 the first sample leads them all.
    method = slc()
    known = method.teach(FEATURES, TARGETS)
    counts = [len(method.dictionary(known, threshold).owners) for threshold in (-1.0, 0.9, 1.0)]
    assert counts == [1, 3, 6]


def test_a_leader_belongs_to_the_class_that_most_of_its_samples_have():
    method = slc()
    features = torch.stack([near(axis, seed) for seed, axis in enumerate([0, 0, 0, 1])])
    known = method.teach(features, torch.tensor([1, 0, 0, 1]))  # a class 1 leads two of class 0; the last leads itself
    assert method.dictionary(known, 0.9).owners.tolist() == [0, 1]


@given(st.integers(0, 200), st.floats(-0.5, 0.95), st.booleans())
def test_every_labelled_sample_is_within_the_radius_of_a_leader(seed, threshold, centre):
    features, targets = random_set(seed)
    method = slc(centre=centre)
    known = method.teach(features, targets)
    out = method.dictionary(known, threshold).predict(method.read(features, known).numpy())
    assert not out.created.any()
    assert (out.score >= threshold).all()


def test_what_is_taught_is_the_labelled_set_as_the_stream_will_be_read():
    method = slc(centre=True)
    known = method.teach(FEATURES, TARGETS)
    assert {name: array.dtype.name for name, array in known.items()} == {
        "centre": "float32", "features": "float32", "targets": "int64",
    }  # fmt: skip
    assert np.array_equal(known["features"], method.read(FEATURES, known).numpy())
    np.testing.assert_allclose(known["features"], unit(FEATURES - FEATURES.mean(0)).numpy(), atol=1e-6)
    assert "centre" not in slc().teach(FEATURES, TARGETS)


def test_a_dictionary_is_fresh_each_time():
    method = slc()
    known = method.teach(FEATURES, TARGETS)
    before = {name: array.copy() for name, array in known.items()}
    method.dictionary(known, 0.9).observe(AXES.numpy())
    assert len(method.dictionary(known, 0.9)) == 2
    assert all(np.array_equal(known[name], before[name]) for name in known)


def test_it_learns_what_the_baseline_learns():
    settings = {"alpha": 0.4, "head": "linear"}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        mine, theirs = slc(**settings), Baseline(5, 2, BaselineSettings(**settings))
    theirs.load_state_dict(mine.state_dict())
    batch = Batch(FEATURES, FEATURES.flip(1), TARGETS, unit, 0, np.random.default_rng(0))
    assert torch.equal(mine.loss(batch)["loss"], theirs.loss(batch)["loss"])


@pytest.mark.parametrize("preset", presets.PRESETS)
@pytest.mark.parametrize("short", [True, False])
def test_every_preset_lets_the_labelled_set_choose_the_radius_and_keeps_leaders_as_they_are(preset, short):
    settings = presets.resolve("slc", preset, short=short, overrides={})
    assert (settings.threshold, settings.update, settings.merge_every) == ("rehearsed", "fixed", None)
    assert presets.resolve("slc", preset, short=short, overrides={"threshold": 0.6}).threshold == 0.6


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ({"update": "running"}, 'update=.running.*take update="fixed"'),
        ({"merge_every": 1000}, "merge_every=1000.*merge_every=None"),
        ({"threshold": 1.5}, "threshold=1.5"),
        ({"share": 2.0}, "share=2.0"),
    ],
)
def test_what_does_not_apply_to_leaders_is_refused(bad, says):
    with pytest.raises(SettingsError, match=says):
        SLCSettings(**bad)


def test_the_settings_are_the_baselines():
    names = [{field.name for field in dataclasses.fields(cls)} for cls in (SLCSettings, BaselineSettings)]
    assert names[0] == names[1]


def test_leaders_are_found_once_for_the_same_labelled_set_and_threshold(monkeypatch):
    import newfound.method.slc as module

    calls = []
    real = module.lead
    monkeypatch.setattr(module, "lead", lambda *args: calls.append(args[2]) or real(*args))
    method = module.SLC(4, 2, module.SLCSettings())
    known = {"features": np.eye(4, dtype=np.float32), "targets": np.array([0, 0, 1, 1])}
    first = method.dictionary(known, 0.5)
    first.observe(-np.eye(4, dtype=np.float32))
    second = method.dictionary(known, 0.5)
    assert len(second) == 2, "what the first dictionary discovered is not in the second"
    method.dictionary(known, 0.6)
    method.dictionary(dict(known, features=known["features"].copy()), 0.6)
    assert calls == [0.5, 0.6, 0.6]
