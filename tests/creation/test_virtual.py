"""Promises about created images: which are kept, which class each gets, and how a folder keeps them."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from newfound.creation.virtual import VirtualImages, known_similarity, label, refine
from newfound.errors import RunError

seeds = st.integers(0, 2**32)


def directions(degrees) -> np.ndarray:
    """Unit vectors in the plane."""
    return np.stack([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))], axis=1)


def random_units(rng: np.random.Generator, n: int, dim: int = 5) -> np.ndarray:
    rows = rng.normal(size=(n, dim))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_what_looks_like_a_known_class_and_what_looks_like_nothing_is_dropped():
    prototypes = directions([0, 90])
    features = directions([2, 30, 180, 120, 88, 45])  # 2, 30, 90, 30, 2 and 45 degrees from the nearest prototype
    # In order of similarity: 90, 45, 30, 30, 2, 2 degrees. A sixth falls at the far end, two sixths at the near one.
    assert refine(features, prototypes, 0.2, 0.6).tolist() == [1, 3, 5]
    assert refine(features, prototypes, 0.0, 1.0).tolist() == [0, 1, 2, 3, 4, 5]


@given(seeds, st.integers(1, 40), st.floats(0, 1), st.floats(0, 1))
def test_the_share_that_is_kept_is_that_between_the_quantiles(seed, n, a, b):
    rng = np.random.default_rng(seed)
    features, prototypes, low, high = random_units(rng, n), random_units(rng, 3), min(a, b), max(a, b)
    kept = refine(features, prototypes, low, high)
    similarity = known_similarity(features, prototypes)
    assert abs(len(kept) - (high - low) * n) < 2  # both ends are kept
    dropped = np.setdiff1d(np.arange(n), kept)
    inside = (similarity[dropped] > similarity[kept].min()) & (similarity[dropped] < similarity[kept].max())
    assert not inside.any()


@given(seeds)
def test_quantiles_hold_whatever_the_scale_of_a_backbones_cosines(seed):
    rng = np.random.default_rng(seed)
    features, prototypes = random_units(rng, 30), random_units(rng, 4)
    # The same directions seen through features that all share a large component: cosines from 0.8 up, same order.
    narrow = [np.pad(rows, ((0, 0), (0, 1)), constant_values=3.0) / np.sqrt(10) for rows in (features, prototypes)]
    assert known_similarity(*narrow).min() >= 0.8
    assert np.array_equal(refine(*narrow, 0.1, 0.7), refine(features, prototypes, 0.1, 0.7))


def test_nothing_created_is_nothing_kept():
    assert refine(np.zeros((0, 5)), np.eye(5), 0.1, 0.9).tolist() == []
    assert label(np.zeros((0, 5)), np.eye(5), 3, np.random.default_rng(0)).tolist() == []


@pytest.mark.parametrize("seed", range(5))
def test_groups_away_from_known_classes_become_virtual_classes(seed):
    prototypes = np.eye(6)[:2]
    rng = np.random.default_rng(seed)
    group = np.arange(40) % 4  # two groups at known classes, two elsewhere
    features = np.eye(6)[[0, 1, 3, 4]][group] + 0.05 * rng.normal(size=(40, 6))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    classes = label(features, prototypes, 2, rng)
    assert classes[group == 0].tolist() == [0] * 10
    assert classes[group == 1].tolist() == [1] * 10
    assert {tuple(set(classes[group == g].tolist())) for g in (2, 3)} == {(2,), (3,)}


def test_known_centres_stay_and_free_ones_move_to_the_mean_of_their_samples():
    # From any start, the free centre ends at the mean of 58 and three times 100 degrees, which is 90: halfway to the
    # prototype is 45, so that 58 is virtual. Had the known centre moved to its samples at 30, halfway would be 60.
    features = directions([30, 30, 58, 100, 100, 100])
    for seed in range(40):
        assert label(features, directions([0]), 1, np.random.default_rng(seed)).tolist() == [0, 0, 1, 1, 1, 1]


def test_a_group_of_one_is_no_class_and_the_others_are_numbered_without_gaps():
    prototypes = directions([0])
    features = directions([180, 90, 91, -90, -91])
    for seed in range(20):
        classes = label(features, prototypes, 3, np.random.default_rng(seed))
        assert classes[1] == classes[2]
        assert classes[3] == classes[4]
        assert set(classes.tolist()) == {-1, 1, 2}
        assert classes[0] == -1


@given(seeds, st.integers(1, 30), st.integers(1, 4), st.integers(1, 40))
@settings(max_examples=60)
def test_classes_are_known_or_numbered_without_gaps_and_virtual_ones_have_two_members(seed, n, known, clusters):
    rng = np.random.default_rng(seed)
    features, prototypes = random_units(rng, n), random_units(rng, known)
    classes = label(features, prototypes, clusters, np.random.default_rng(seed))
    assert classes.shape == (n,)
    virtual, counts = np.unique(classes[classes >= known], return_counts=True)
    assert virtual.tolist() == list(range(known, known + len(virtual)))
    assert len(virtual) <= clusters
    assert (counts >= 2).all()
    assert (classes >= -1).all()
    assert np.array_equal(classes, label(features, prototypes, clusters, np.random.default_rng(seed)))


def test_samples_that_lie_on_known_prototypes_need_no_virtual_class():
    classes = label(np.eye(4)[[0, 1, 2, 0]], np.eye(4)[:3], 5, np.random.default_rng(0))
    assert classes.tolist() == [0, 1, 2, 0]


@pytest.fixture
def made() -> VirtualImages:
    images = [np.random.default_rng(i).integers(0, 256, (8, 8, 3), dtype=np.uint8) for i in range(3)]
    return VirtualImages(images, np.array([0, 5, 4]), np.array([0.9, 0.1, 1 / 3]))


ABOUT = {"creator": "mixup", "similarity": (0.1, 0.9), "seed": 3}


def test_a_folder_keeps_images_bit_by_bit_with_their_classes(made, tmp_path):
    made.save(tmp_path / "virtual", ABOUT)
    found = VirtualImages.load(tmp_path / "virtual", ABOUT)
    assert all(np.array_equal(a, b) for a, b in zip(found.images, made.images, strict=True))
    assert found.classes.tolist() == [0, 5, 4]
    assert found.similarity.tolist() == [0.9, 0.1, 1 / 3]
    with (tmp_path / "virtual" / "virtual.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["file"], row["class"]) for row in rows] == [("00000.png", "0"), ("00001.png", "5"), ("00002.png", "4")]


def test_images_made_from_something_else_are_not_taken(made, tmp_path):
    assert VirtualImages.load(tmp_path / "virtual", ABOUT) is None
    made.save(tmp_path / "virtual", ABOUT)
    assert VirtualImages.load(tmp_path / "virtual", ABOUT | {"seed": 4}) is None


@pytest.mark.parametrize("name", ["00001.png", "virtual.csv", "virtual.json"])
@pytest.mark.parametrize("harm", ["gone", "empty", "cut", "other"])
def test_a_damaged_folder_is_taken_for_none(made, tmp_path, name, harm):
    folder = tmp_path / "virtual"
    made.save(folder, ABOUT)
    file = folder / name
    content = file.read_bytes()
    if harm == "gone":
        file.unlink()
    else:
        other = (folder / "00000.png").read_bytes()
        file.write_bytes({"empty": b"", "cut": content[: len(content) // 2], "other": other}[harm])
    assert VirtualImages.load(folder, ABOUT) is None


def test_saving_again_leaves_nothing_of_what_was_there(made, tmp_path):
    made.save(tmp_path, ABOUT)
    VirtualImages(made.images[:1], made.classes[:1], made.similarity[:1]).save(tmp_path, ABOUT)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["00000.png", "virtual.csv", "virtual.json"]


def test_no_images_can_be_kept_too(tmp_path):
    VirtualImages([], np.zeros(0, np.int64), np.zeros(0)).save(tmp_path, ABOUT)
    found = VirtualImages.load(tmp_path, ABOUT)
    assert found.images == []
    assert found.classes.dtype == np.int64


def test_a_folder_that_cannot_be_written_is_named(made, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(RunError, match=r"cannot be written to .*file"):
        made.save(tmp_path / "file" / "virtual", ABOUT)
