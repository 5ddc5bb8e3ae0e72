"""Promises of the rehearsal: a threshold from the labelled set alone, found by hiding some of its classes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from lightning_fabric import Fabric

from newfound.cache import TokenCache
from newfound.discovery import PrototypeDictionary
from newfound.features import Encoder
from newfound.method import get_method
from newfound.rehearsal import _deal, _score, rehearse
from newfound.teaching import read, teach
from newfound.views import Views

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def encoder(tiny_backbone, tmp_path) -> Encoder:
    backbone = tiny_backbone()
    return Encoder(backbone, Views(backbone.spec), cache=TokenCache(tmp_path / "tokens"))


def rehearsed(encoder, pictures, *, method="baseline", kinds=5, each=5, seed=0, **settings):
    cls = get_method(method)
    values = {"epochs": 1, "batch_size": 16, "views": 2, "cached": True} | settings
    images, labels = pictures(kinds, each)
    targets = np.array([int(label[-1]) for label in labels])
    fabric = Fabric(accelerator="cpu", devices=1)
    return rehearse(encoder, images, targets, cls, cls.settings_class(**values), seed=seed, fabric=fabric)


@given(st.lists(st.integers(1, 9), min_size=4, max_size=12), st.integers(0, 2**32))
def test_hidden_classes_are_never_taught_and_every_image_plays_once(sizes, seed):
    targets = np.repeat(np.arange(len(sizes)), sizes)
    taught, stream = _deal(targets, np.random.default_rng(seed))
    assert sorted([*taught, *stream]) == list(range(len(targets)))
    shown = set(targets[taught])
    assert len(shown) == (len(sizes) + 1) // 2
    hidden = set(range(len(sizes))) - shown
    assert hidden <= set(targets[stream])
    for label in shown:
        if sizes[label] >= 2:
            assert label in targets[stream], "held-out images of a taught class are streamed too"


def test_the_chosen_threshold_is_the_middle_of_where_the_curve_is_highest(encoder, pictures):
    found = rehearsed(encoder, pictures)
    assert found.fallback is None
    peak = found.grid[int(np.argmax(found.scores))]
    assert found.flat[0] <= peak <= found.flat[1]
    assert found.threshold == pytest.approx(sum(found.flat) / 2, abs=0.011)  # the grid's step is 0.02
    inside = [s for t, s in zip(found.grid, found.scores, strict=True) if found.flat[0] <= t <= found.flat[1]]
    assert min(inside) >= max(found.scores) - 0.01
    assert len(found.grid) == len(found.scores)
    assert all(0 <= score <= 1 for score in found.scores)
    low, high = found.flat
    assert low <= found.threshold <= high
    assert f"{found.threshold:.2f}" in found.describe()
    assert "2 draws" in found.describe()


def test_it_separates_classes_that_are_easy_to_tell_apart(encoder, pictures):
    assert max(rehearsed(encoder, pictures, method="frozen", epochs=0).scores) > 0.8


def test_the_same_seed_rehearses_the_same(encoder, pictures):
    assert rehearsed(encoder, pictures, seed=1) == rehearsed(encoder, pictures, seed=1)


def test_the_encoder_is_as_it_was_afterwards(encoder, pictures):
    before = {key: value.clone() for key, value in encoder.backbone.model.state_dict().items()}
    rehearsed(encoder, pictures, method="ltc", lr=1e-2, space="tokens", centre=True)
    assert all(torch.equal(value, before[key]) for key, value in encoder.backbone.model.state_dict().items())
    assert not encoder.backbone.training


@pytest.mark.parametrize(("kinds", "each"), [(3, 5), (4, 3)])
def test_too_few_classes_or_images_fall_back_and_say_so(encoder, pictures, kinds, each):
    found = rehearsed(encoder, pictures, kinds=kinds, each=each)
    assert found.threshold == 0.7
    assert "not rehearsed" in found.describe()
    assert f"{kinds} classes" in found.describe()


def test_a_share_is_rehearsed_only_if_asked_for(encoder, pictures):
    assert rehearsed(encoder, pictures, share=0.5).share == 0.5
    found = rehearsed(encoder, pictures, share="rehearsed", lr=1e-2)
    assert found.share in (0.0, 0.25, 0.5, 0.75, 1.0)
    assert (found.share == 1) == ("of what was learnt" not in found.describe())
    assert rehearsed(encoder, pictures, method="frozen", epochs=0, share="rehearsed").share == 1.0
    assert rehearsed(encoder, pictures, kinds=2, share="rehearsed").share == 1.0


def test_what_was_learnt_is_kept_unless_giving_it_up_is_better(encoder, pictures, monkeypatch):
    monkeypatch.setattr("newfound.rehearsal._score", lambda *args: 0.9)
    assert rehearsed(encoder, pictures, share="rehearsed").share == 1.0


def test_a_perfect_dictionary_scores_one_and_a_closed_one_less():
    features = np.eye(4, dtype=np.float32)[[0, 0, 1, 2, 2, 3]]
    labels, names = np.array([10, 10, 11, 12, 12, 13]), np.array([10, 11])
    prototypes = np.eye(4, dtype=np.float32)[:2]
    assert _score(PrototypeDictionary(prototypes, 0.5), names, features, labels) == 1.0
    assert _score(PrototypeDictionary(prototypes, -1.0), names, features, labels) < 0.7


def test_a_label_that_looks_like_a_discovered_id_is_not_taken_for_one():
    features = np.eye(3, dtype=np.float32)[[0, 1, 2, 2]]
    labels, names = np.array([2, 5, 7, 7]), np.array([2, 5])  # the discovered category gets the id 2, a known label
    assert _score(PrototypeDictionary(np.eye(3)[:2], 0.5), names, features, labels) == 1.0


def test_prototypes_are_class_means_seen_from_the_labelled_mean_if_asked(encoder, pictures):
    images, labels = pictures(3, 4)
    targets = np.array([int(label[-1]) for label in labels])
    cls, features = get_method("frozen"), encoder.features(images)
    plain = teach(encoder, cls(encoder.backbone.dim, 3, cls.settings_class(centre=False)), images, targets)
    for k in range(3):
        mean = features[targets == k].mean(axis=0)
        assert plain["prototypes"][k] == pytest.approx(mean / np.linalg.norm(mean), abs=1e-5)
    assert "centre" not in plain
    centred = cls(encoder.backbone.dim, 3, cls.settings_class(centre=True))
    known = teach(encoder, centred, images, targets)
    assert known["centre"] == pytest.approx(features.mean(axis=0), abs=1e-6)
    seen = features - known["centre"]
    seen /= np.linalg.norm(seen, axis=1, keepdims=True)
    assert read(encoder, centred, known, images) == pytest.approx(seen, abs=1e-5)
    for k in range(3):
        mean = seen[targets == k].mean(axis=0)
        assert known["prototypes"][k] == pytest.approx(mean / np.linalg.norm(mean), abs=1e-5)
