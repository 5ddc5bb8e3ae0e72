"""The model of labelled features: what a reading is, what changes it, and what cannot be modelled."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from newfound.discovery import BayesianDictionary, TwoCovariance, class_sums, scatter
from newfound.discovery.two_covariance import likeness, usual_between, usual_within
from newfound.errors import FeatureError, SettingsError
from newfound.evaluation import score
from newfound.features import unit
from newfound.method import get_method


def crowds(classes: int = 12, each: int = 10, dimension: int = 24, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Features of some classes whose means lie further apart in some directions than in others, and their classes."""
    rng = np.random.default_rng(seed)
    means = rng.standard_normal((classes, dimension)) * np.linspace(0.5, 3, dimension)
    targets = np.repeat(np.arange(classes), each)
    return means[targets] + rng.standard_normal((len(targets), dimension)), targets


def within_and_between(readings: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The two covariances of readings, as textbooks estimate them from classes of one size."""
    sums, counts = class_sums(readings, targets)
    means = sums / counts[:, None]
    rest = readings - means[targets]
    inner = rest.T @ rest / (len(targets) - len(means))
    return inner, np.cov(means.T) - inner / counts[0]


def decisions(model: TwoCovariance, labelled: np.ndarray, targets: np.ndarray, stream: np.ndarray):
    sums, counts = class_sums(model.read(labelled), targets)
    return BayesianDictionary(model.spread, sums, counts).observe(model.read(stream))


def test_in_readings_the_spread_within_is_one_and_that_between_is_diagonal():
    features, targets = crowds(classes=60, each=30, dimension=6)
    model = TwoCovariance.fit(features, targets, within=0.0, between=0.0)
    inner, outer = within_and_between(model.read(features).astype(np.float64), targets)
    assert inner == pytest.approx(np.eye(model.dimension), abs=1e-4)
    assert outer == pytest.approx(np.diag(model.spread), abs=1e-3 * model.spread.max())
    assert (model.spread > 1).sum() > 1, "these classes do lie apart"


def test_readings_are_seen_from_the_mean_of_the_classes():
    features, targets = crowds()
    model = TwoCovariance.fit(features, targets)
    sums, counts = class_sums(model.read(features), targets)
    assert (sums / counts[:, None]).mean(axis=0) == pytest.approx(np.zeros(model.dimension), abs=1e-4)


def test_features_without_negative_numbers_are_rooted_and_others_taken_as_they_are():
    features, targets = crowds()
    positive = np.abs(features)
    assert TwoCovariance.fit(positive, targets, power=None).power == 0.5
    assert TwoCovariance.fit(features, targets, power=None).power == 1.0
    assert TwoCovariance.fit(positive, targets).power == 1.0, "unless it is asked for, nothing is rooted"
    one, other = TwoCovariance.fit(positive, targets, power=None), TwoCovariance.fit(np.sqrt(positive), targets)
    assert one.read(positive) == pytest.approx(other.read(np.sqrt(positive)), abs=1e-3)


def test_a_negative_number_in_a_stream_of_rooted_features_keeps_its_sign():
    features, targets = crowds()
    model = TwoCovariance.fit(np.abs(features), targets, power=None)
    row = np.abs(features[:1])
    turned = row * np.where(np.arange(row.shape[1]) == 3, -1, 1)
    there, back = (model.read(x).astype(np.float64) @ np.linalg.inv(model.axes) + model.centre for x in (row, turned))
    root = np.sqrt(row / np.linalg.norm(row))
    root /= np.linalg.norm(root)
    flipped = root * np.sign(turned)
    for reading, expected in ((there, root), (back, flipped)):
        flat = (expected - model.mean) @ model.basis
        assert reading == pytest.approx(flat / np.linalg.norm(flat), abs=1e-4)


@pytest.mark.parametrize("power", [0.0, -1.0, np.inf, np.nan])
def test_a_power_that_is_none_is_refused(power: float):
    with pytest.raises(SettingsError, match="power="):
        TwoCovariance.fit(*crowds(), power=power)


def test_a_model_from_before_there_were_powers_reads_as_it_did():
    features, targets = crowds()
    model = TwoCovariance.fit(features, targets)
    old = {name: values for name, values in model.arrays().items() if name != "power"}
    assert (TwoCovariance.from_arrays(old).read(features) == model.read(features)).all()


def test_shrinking_all_the_way_leaves_one_spread_for_all_directions():
    features, targets = crowds()
    model = TwoCovariance.fit(features, targets, within=1.0, between=1.0)
    assert model.spread == pytest.approx(np.full(model.dimension, model.spread[0]), rel=1e-6)


def test_with_fewer_samples_than_directions_classes_are_assumed_to_differ_as_samples_of_one_do():
    features, targets = crowds(each=2, dimension=64)
    few = TwoCovariance.fit(features * np.linspace(0.2, 2, 64), targets, within=0.5, between=1.0)
    assert few.spread == pytest.approx(np.full(few.dimension, few.spread[0]), rel=1e-6)


def test_with_many_samples_classes_are_assumed_to_differ_in_all_directions_alike():
    features, targets = crowds(each=100, dimension=6)
    many = TwoCovariance.fit(features, targets, within=0.5, between=1.0)
    # W is the identity in readings, so what differs alike in all directions differs most where W was smallest.
    widths = np.linalg.norm(many.axes, axis=0) ** 2
    assert many.spread / widths == pytest.approx(np.full(6, (many.spread / widths).mean()), rel=1e-3)


@given(st.integers(1, 10_000), st.integers(1, 10_000), st.integers(1, 2048))
def test_the_more_samples_there_are_the_less_classes_are_likened_to_them(one, other, dimensions):
    few, many = sorted((one, other))
    assert 0 < likeness(many, dimensions) <= likeness(few, dimensions) <= 1
    assert likeness(dimensions, dimensions) == 1
    assert likeness(2 * dimensions, dimensions) == 1 / 16


def test_a_part_that_plays_the_whole_likens_classes_to_samples_as_the_whole_does():
    features, targets = crowds(classes=3, each=4, dimension=20)
    own = TwoCovariance.fit(features, targets, between=1.0)  # 9 samples less classes: B is a multiple of W
    assert own.spread == pytest.approx(np.full(20, own.spread[0]), rel=1e-6)
    same, whole = (TwoCovariance.fit(features, targets, between=1.0, freedom=n) for n in (9, 10**6))
    assert np.array_equal(same.spread, own.spread)
    wide = TwoCovariance.fit(features, targets, within=usual_within(9, 20), between=1.0, freedom=10**6)
    assert np.array_equal(whole.spread, wide.spread), "W is drawn by the samples that there are"
    assert whole.spread.max() > 1.5 * whole.spread.min(), "B is a multiple of the identity, W is not"


def test_the_spread_between_is_drawn_by_its_share_towards_the_mean():
    features, targets = crowds(classes=20, each=20, dimension=3)
    plain = TwoCovariance.fit(features, targets, within=1.0, between=0.0)
    drawn = TwoCovariance.fit(features, targets, within=1.0, between=0.5)
    # W is round, so drawing B by half moves every spread half of the way to their mean.
    expected = (plain.spread + plain.spread.mean()) / 2
    assert plain.spread.min() > 0.01, "none was lifted to the least that a spread can be"
    assert drawn.spread == pytest.approx(expected, rel=1e-6)


@given(st.integers(1, 10_000), st.integers(1, 10_000), st.integers(2, 10**6))
def test_the_more_classes_or_samples_show_how_classes_differ_the_less_is_assumed(one, other, samples):
    few, many = sorted((one, other))
    assert 0.05 <= usual_between(many, samples) <= usual_between(few, samples) <= 1
    assert usual_between(few, samples + 1) <= usual_between(few, samples)


@given(st.integers(1, 10_000), st.integers(1, 10_000), st.integers(1, 2048))
def test_the_fewer_samples_show_how_a_class_varies_the_more_is_assumed(one, other, dimensions):
    few, many = sorted((one, other))
    assert 0.5 <= usual_within(many, dimensions) <= usual_within(few, dimensions) < 1
    assert usual_within(dimensions, dimensions) == 0.5


def test_without_shares_the_numbers_of_classes_and_samples_decide():
    assert usual_between(100, 10_000) == pytest.approx(0.125)  # 1 / (4 + 100 / 25)
    assert usual_between(100, 150) == pytest.approx(0.5)
    assert usual_within(30, 10) == 0.5
    assert usual_within(10, 90) == pytest.approx(0.9)
    features, targets = crowds(classes=25, each=40, dimension=30)
    usual, same, other = (
        TwoCovariance.fit(features, targets, within=within, between=between)
        for within, between in ((None, None), (0.5, 0.2), (0.6, 0.15))
    )
    assert usual.spread == pytest.approx(same.spread, rel=1e-12)  # 1 / (4 + 25 / 25)
    assert other.spread != pytest.approx(usual.spread, rel=1e-3)


def test_few_samples_in_many_dimensions_still_tell_new_classes_apart():
    """Twelve samples vary in eleven directions; classes that are to be discovered differ in all of sixty."""
    rng = np.random.default_rng(0)
    centres = 1.2 * rng.standard_normal((12, 60))
    taught = np.repeat(np.arange(4), 3)
    labelled = centres[taught] + rng.standard_normal((12, 60))
    kinds = rng.permutation(np.repeat(np.arange(12), 10))
    stream = centres[kinds] + rng.standard_normal((120, 60))
    model = TwoCovariance.fit(labelled, taught)
    assert model.dimension == 60
    found = decisions(model, labelled, taught, stream)
    assert score(kinds.tolist(), found.category.tolist(), known=range(4)).strict.all > 0.9
    narrow = TwoCovariance.fit(labelled, taught, dimensions=11)
    assert (
        score(kinds.tolist(), decisions(narrow, labelled, taught, stream).category.tolist(), known=range(4)).strict.all
        < 0.8
    )


def test_what_fills_up_the_directions_stands_upright_and_is_always_the_same():
    features, targets = crowds(classes=3, each=4, dimension=40)
    one, other = (TwoCovariance.fit(features, targets, dimensions=30) for _ in range(2))
    assert one.basis.shape == (40, 30)
    assert one.basis.T @ one.basis == pytest.approx(np.eye(30), abs=1e-9)
    assert (one.basis == other.basis).all()


@settings(max_examples=15)
@given(st.integers(0, 99), st.floats(1e-3, 1e3))
def test_neither_the_scale_nor_a_rotation_of_features_changes_a_decision(seed, scale):
    labelled, targets = crowds(classes=5, each=6, dimension=8, seed=seed)
    stream, _ = crowds(classes=9, each=3, dimension=8, seed=seed + 1)
    turn = np.linalg.qr(np.random.default_rng(seed).standard_normal((8, 8)))[0] * scale
    plain = decisions(TwoCovariance.fit(labelled, targets), labelled, targets, stream)
    turned = decisions(TwoCovariance.fit(labelled @ turn, targets), labelled @ turn, targets, stream @ turn)
    assert turned.score == pytest.approx(plain.score, abs=1e-2)
    clear = np.abs(plain.score).min() > 1e-2  # a score on the cut may fall on either side of it
    assert not clear or np.array_equal(turned.category, plain.category)


def test_inflate_divides_the_squares_of_readings_and_the_spread_between():
    features, targets = crowds()
    plain, wide = (TwoCovariance.fit(features, targets, inflate=by) for by in (1.0, 4.0))
    assert wide.spread == pytest.approx(plain.spread / 4)
    assert np.square(wide.read(features)) == pytest.approx(np.square(plain.read(features)) / 4, abs=1e-4)


def test_only_so_many_directions_are_kept_as_asked_for_and_as_there_are():
    features, targets = crowds(classes=3, each=4, dimension=24)
    assert TwoCovariance.fit(features, targets).dimension == 24
    assert TwoCovariance.fit(features, targets, dimensions=5).dimension == 5
    assert TwoCovariance.fit(*crowds(dimension=8)).dimension == 8


def test_copies_of_a_sample_add_no_principal_direction():
    features, targets = crowds(classes=3, each=4, dimension=24)
    twice = np.concatenate([features, features[:3]])
    basis = TwoCovariance.fit(twice, np.append(targets, targets[:3])).basis
    seen = features / np.linalg.norm(features, axis=1, keepdims=True)
    seen = seen - seen.mean(axis=0)
    assert np.linalg.norm(seen @ basis[:, :11]) == pytest.approx(np.linalg.norm(seen), rel=1e-6)
    assert basis.T @ basis == pytest.approx(np.eye(24), abs=1e-8)


def test_the_same_directions_are_found_whether_there_are_more_samples_or_more_dimensions():
    features, targets = crowds(classes=3, each=8, dimension=20)
    wide = np.concatenate([features, np.zeros((24, 20))], axis=1)
    one, other = (TwoCovariance.fit(rows, targets, dimensions=10) for rows in (features, wide))
    assert one.spread == pytest.approx(other.spread, rel=1e-6)
    assert np.abs(one.read(features)) == pytest.approx(np.abs(other.read(wide)), abs=1e-3)


@pytest.mark.parametrize("targets", [["a", "b"], [0.0, 1.0], [0], [0, -1], [[0], [1]]])
def test_sums_of_what_is_no_class_are_refused_in_words(targets):
    with pytest.raises(SettingsError, match="one class number, 0 or more, for each of the 2 features"):
        class_sums(np.eye(2), targets)


def test_its_arrays_make_it_again():
    features, targets = crowds()
    model = TwoCovariance.fit(features, targets)
    again = TwoCovariance.from_arrays(model.arrays() | {"sums": np.zeros(3)})
    assert np.array_equal(again.read(features), model.read(features))
    assert np.array_equal(again.spread, model.spread)
    with pytest.raises(KeyError):
        TwoCovariance.from_arrays({"mean": model.mean})


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_method_reads_as_the_model_does(dtype):
    features, targets = crowds()
    rows = unit(torch.from_numpy(features).float())
    method = get_method("frozen")
    built = method(rows.shape[1], 12, method.settings_class(dictionary="bayesian", between=0.3, dimensions=9))
    known = built.teach(rows, torch.from_numpy(targets))
    model = TwoCovariance.fit(rows.numpy(), targets, dimensions=9, between=0.3)
    read = built.read(rows.to(dtype), known)
    assert read.dtype == torch.float32
    assert read.numpy() == pytest.approx(model.read(rows.numpy()), abs=1e-5)
    sums, counts = class_sums(model.read(rows.numpy()), targets)
    assert np.array_equal(known["counts"], counts)
    assert known["sums"] == pytest.approx(sums, abs=1e-4)


@pytest.mark.parametrize("held_out", [False, True])
def test_the_scatter_of_gaussians_is_their_variance_however_small_the_classes_are(held_out):
    rng = np.random.default_rng(0)
    targets = np.repeat(np.arange(3000), 1 + np.arange(3000) % 3)  # of one, two or three samples
    means = rng.standard_normal((3000, 4)) * 5
    readings, others = (means[targets] + 1.5 * rng.standard_normal((len(targets), 4)) for _ in range(2))
    sums, counts = class_sums(readings, targets)
    measured = scatter(others if held_out else readings, targets, sums, counts, held_out=held_out)
    assert measured == pytest.approx(1.5**2, rel=0.04)  # without the corrections it would be 33 % off and more


def test_scatter_by_hand():
    # Class 0 has 0 and 2, mean 1: squares 1 and 1, times 2 / (2 - 1); class 1 is alone and tells nothing: 4 / 2 = 2.
    sums, counts = class_sums(np.array([[0.0], [2.0], [7.0]]), np.array([0, 0, 1]))
    assert scatter([[0.0], [2.0], [7.0]], np.array([0, 0, 1]), sums, counts, held_out=False) == pytest.approx(2.0)
    # 4 is 3 from class 0: 9 times 2 / (2 + 1) = 6; 9 is 2 from class 1: 4 times 1 / (1 + 1) = 2; (6 + 2) / 2 = 4.
    assert scatter([[4.0], [9.0]], np.array([0, 1]), sums, counts, held_out=True) == pytest.approx(4.0)


class TestRefused:
    @pytest.mark.parametrize(
        ("targets", "words"),
        [([0, 0, 0, 0], "4 samples of 1 classes"), ([0, 1, 2, 3], "4 samples of 4 classes")],
        ids=["one class", "one sample a class"],
    )  # fmt: skip
    def test_too_little_to_tell_the_spreads_apart(self, targets, words):
        with pytest.raises(SettingsError, match=f"{words} are too few"):
            TwoCovariance.fit(np.random.default_rng(0).standard_normal((4, 5)), targets)

    @pytest.mark.parametrize(
        ("targets", "words"),
        [([1, 1, 2, 2], "here 0 to 1, but they go to 2 and none is 0"),
         ([0, 0, 2, 2], "here 0 to 1, but they go to 2 and none is 1"),
         ([0, 0, 1, 10**15], f"here 0 to 2, but they go to {10**15} and none is 2")],
        ids=["not from 0", "a gap", "a label that is no number of a class"],
    )  # fmt: skip
    def test_classes_that_are_not_counted_from_0_without_a_gap_are_said_to_be_so(self, targets, words):
        features = np.random.default_rng(0).standard_normal((4, 5))
        with pytest.raises(SettingsError, match=words) as refused:
            TwoCovariance.fit(features, targets)
        assert "numpy.unique(targets, return_inverse=True)[1]" in str(refused.value)
        TwoCovariance.fit(features, np.unique(targets, return_inverse=True)[1])

    def test_nothing_at_all(self):
        with pytest.raises(SettingsError, match="too few"):
            TwoCovariance.fit(np.empty((0, 5)), np.empty(0, np.int64))

    @pytest.mark.parametrize("each", [2, 20], ids=["fewer than dimensions", "more than dimensions"])
    @pytest.mark.parametrize("different", [1, 3], ids=["all alike", "alike within a class"])
    def test_classes_of_copies(self, each, different):
        targets = np.repeat(np.arange(3), each)
        features = np.random.default_rng(0).standard_normal((different, 8))[targets % different]
        with pytest.raises(SettingsError, match="copies of one another"):
            TwoCovariance.fit(features, targets)

    def test_no_shrinking_where_some_directions_have_no_spread(self):
        features, targets = crowds(classes=3, each=2)
        with pytest.raises(SettingsError, match=r"within=0.0.*larger within"):
            TwoCovariance.fit(features, targets, within=0.0)

    @pytest.mark.parametrize(
        "bad",
        [{"dimensions": 0}, {"within": -0.1}, {"within": 1.1}, {"between": -0.1}, {"between": 1.1},
         {"between": float("nan")}, {"inflate": 0.0}, {"inflate": float("inf")}],
        ids=str,
    )  # fmt: skip
    def test_a_setting_that_cannot_be(self, bad):
        with pytest.raises(SettingsError, match=f"{next(iter(bad))}={next(iter(bad.values()))}"):
            TwoCovariance.fit(*crowds(), **bad)

    @pytest.mark.parametrize("targets", [[0, 1], [0.0, 0.0, 1.0, 1.0], [[0, 0, 1, 1]], [0, 0, -1, 1]], ids=str)
    def test_targets_that_are_not_a_class_for_each_feature(self, targets):
        with pytest.raises(SettingsError, match="for each of the 4 features"):
            TwoCovariance.fit(np.random.default_rng(0).standard_normal((4, 5)), targets)

    def test_features_that_cannot_be(self):
        features, targets = crowds()
        model = TwoCovariance.fit(features, targets)
        for wrong in (features[:, :-1], np.zeros_like(features), np.full_like(features, np.nan)):
            with pytest.raises(FeatureError):
                model.read(wrong)
        features[3] = np.inf
        with pytest.raises(FeatureError):
            TwoCovariance.fit(features, targets)
