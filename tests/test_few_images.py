"""Promises for small labelled sets: cosines where evidence would be a guess, evidence where it was asked for."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from newfound import presets
from newfound._few_images import suited
from newfound.datasets import LabelledImages, load_dataset

pytestmark = pytest.mark.usefixtures("one_thread")


def resolved(method: str = "frozen", preset: str = "default", **asked):
    return presets.resolve(method, preset, short=True, overrides=asked)


def as_suits(settings, labelled, *, asked=(), method="ltc", say):
    """The settings that suit these images; with cosines, what the preset has for them."""
    return suited(settings, labelled, asked=asked, cosines=partial(resolved, method, dictionary="prototypes"), say=say)


def copies(sizes: list[int]) -> LabelledImages:
    """Classes of so many copies of one image each."""
    labels = [k for k, size in enumerate(sizes) for _ in range(size)]
    return load_dataset(([np.full((4, 4, 3), k, np.uint8) for k in labels], [f"kind{k}" for k in labels]))


@pytest.mark.parametrize("asked", ["rehearsed", 12.0])
def test_where_a_class_is_copies_of_one_image_cosines_are_compared_and_it_is_said(asked):
    said: list[str] = []
    settings, few = resolved(threshold=asked), copies([3, 2, 3, 4])
    found = as_suits(settings, few, asked={"threshold", "dictionary"}, method="frozen", say=said.append)
    assert (found.dictionary, found.threshold) == ("prototypes", "rehearsed")
    (line,) = said
    assert "copies of one image" in line
    assert 'dictionary="prototypes"' in line


@pytest.mark.parametrize(("kinds", "each"), [(3, 9), (5, 3)], ids=["few classes", "few images"])
def test_where_nothing_can_be_rehearsed_cosines_are_compared_and_it_is_said(kinds, each, pictures):
    said: list[str] = []
    found = as_suits(resolved("ltc"), load_dataset(pictures(kinds=kinds, each=each)), say=said.append)
    assert (found.dictionary, found.update) == ("prototypes", "fixed")
    assert found.lr == resolved("ltc", dictionary="prototypes").lr == 1e-4, "it learns as for cosines"
    (line,) = said
    assert f"{kinds} classes with {kinds * each} images" in line
    assert "4 classes, and 4 images a class" in line


def test_who_asks_for_evidence_or_gives_a_log_ratio_gets_evidence(pictures):
    few, said = load_dataset(pictures(kinds=2, each=3)), []
    for settings, asked in ((resolved(), {"dictionary"}), (resolved(threshold=5.0), {"threshold"})):
        assert as_suits(settings, few, asked=asked, say=said.append) is settings
    assert said == []


@pytest.mark.parametrize("method", ["frozen", "ltc", "closed", "smile"])
@pytest.mark.parametrize("preset", ["paper", "default"])
def test_where_there_are_enough_images_or_no_evidence_settings_stay_as_they_are(method, preset, pictures):
    said: list[str] = []
    settings = resolved(method, preset)
    assert as_suits(settings, load_dataset(pictures(kinds=4, each=4)), say=said.append) is settings
    if preset == "paper":
        assert as_suits(settings, copies([2, 2]), say=said.append) is settings
    assert said == []


def test_copies_alone_can_be_learnt(fit_tiny):
    data = copies([3, 3])
    run = fit_tiny((list(data.items), list(data.labels)), method="frozen", preset="default")
    assert [s.name for s in run.discoverer(threshold=-1.0).observe(list(data.items))] == list(data.labels)


@pytest.mark.parametrize("kinds", [2, 3])
def test_a_few_classes_are_recognised_and_another_is_discovered(kinds, fit_tiny, pictures, picture):
    """A run of two or three classes must not take everything for known, nor its own images for strangers."""
    run = fit_tiny(pictures(kinds=kinds, each=5), method="frozen", preset="default")
    d = run.discoverer()
    seen = d.observe([picture(kind, number) for kind in range(kinds) for number in range(20, 23)])
    assert [s.name for s in seen] == [f"kind{kind}" for kind in range(kinds) for _ in range(3)]
    others = d.observe([picture(4, number) for number in range(3)])
    assert all(s.name not in run.classes for s in others)
    assert "not rehearsed" in run.config["threshold"]["rule"]


def test_little_is_kept_of_what_a_few_images_taught(fit_tiny, pictures):
    run = fit_tiny(pictures(kinds=3, each=3), method="ltc", preset="default")
    assert run.config["share"] == 0.25


def test_a_few_images_are_learnt_at_the_rate_that_is_for_cosines(fit_tiny, pictures):
    few, enough = (fit_tiny(pictures(kinds=k, each=4), method="ltc", preset="default") for k in (3, 4))
    assert (few.config["settings"]["lr"], enough.config["settings"]["lr"]) == (1e-4, 1e-3)
