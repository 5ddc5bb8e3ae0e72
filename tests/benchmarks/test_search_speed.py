"""Searches are timed only beside searches that give the same ids; how fast a machine is, is not tested."""

from __future__ import annotations

import numpy as np
import pytest

from newfound.benchmarks import search_speed
from newfound.discovery import _outline_search
from newfound.discovery._pruning import Pruning


@pytest.fixture
def small(monkeypatch):
    """Dictionaries that are warm soon, and pruned though they are small."""
    monkeypatch.setattr(search_speed, "_WARM", 300)
    monkeypatch.setattr(search_speed, "_DIMENSION", 64)
    monkeypatch.setattr(_outline_search, "_STEP", 0)
    for name, value in {"rent": 256, "loss": 10.0}.items():
        monkeypatch.setattr(Pruning, name, value)


def test_observe_is_timed_only_beside_a_loop_that_gives_the_same_ids():
    row = search_speed.observe_speed(samples=400, repeats=1)
    assert "ids equal to the plain loop: True" in row.detail
    assert row.low <= row.ratio <= row.high
    assert row.ours > 0
    assert row.baseline > 0


@pytest.mark.parametrize(
    "measure",
    [
        search_speed.observe_clustered_speed,
        search_speed.observe_one_speed,
        search_speed.observe_random_large_speed,
    ],
)
def test_large_dictionaries_are_timed_only_beside_a_search_of_all_with_the_same_ids(measure, small):
    row = measure(categories=9_000, repeats=1)
    assert "ids equal to a search of all: True" in row.detail
    assert row.ours > 0
    assert row.baseline > 0


def test_a_million_categories_have_rows_of_their_own(monkeypatch):
    asked = []

    def told(stage, prototypes, *_):
        asked.append((stage, prototypes))

    monkeypatch.setattr(search_speed, "_large", told)
    monkeypatch.setattr(search_speed, "clustered", lambda categories: (categories, None))
    search_speed.observe_clustered_million_speed()
    search_speed.observe_one_million_speed()
    assert asked == [("observe-clustered-million", 10**6), ("observe-one-million", 10**6)]


def test_samples_are_made_of_other_features_than_prototypes():
    directions = np.eye(6, 12, dtype=np.float32)
    prototypes, samples = search_speed.perturbed(directions, 50, samples=40)
    assert np.abs(samples @ prototypes.T).max() == 0
    assert prototypes[:, :4].any(axis=0).all()


def test_perturbed_features_are_as_many_as_asked_for_and_of_unit_length():
    features, _ = search_speed.clustered(60, samples=1)
    rows, samples = search_speed.perturbed(features, 700, samples=9)
    assert rows.shape == (700, 512)
    assert samples.shape == (9, 512)
    assert (rows**2).sum(axis=1) == pytest.approx(1.0, abs=1e-5)


def test_the_memory_of_a_growing_dictionary_is_told_as_the_largest_on_the_way(small):
    row = search_speed.dictionary_memory(categories=10_000, known=8_500)
    assert 1.0 <= row.low <= row.ratio == row.high
    assert row.ratio <= 1.6
