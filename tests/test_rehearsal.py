"""Promises of the rehearsal: a threshold from the labelled set alone, found by hiding some of its classes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from lightning_fabric import Fabric

import newfound as nf
from newfound._scenes import Cast, Scene, _deal, _score
from newfound.cache import TokenCache
from newfound.discovery import PrototypeDictionary, TwoCovariance
from newfound.features import Encoder, unit
from newfound.method import get_method
from newfound.rehearsal import Rehearsal, play, rehearse, rehearse_once
from newfound.teaching import lessons
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


def test_the_model_that_is_rehearsed_is_that_of_the_whole_labelled_set():
    rng = np.random.default_rng(0)
    targets = np.repeat(np.arange(6), 20)
    features = unit(torch.from_numpy(rng.standard_normal((6, 40))[targets] + rng.standard_normal((120, 40))).float())
    cast = Cast.of(list(features), targets, rng)
    taught, stream = torch.stack(cast.taught), torch.stack(cast.stream)
    frozen = get_method("frozen")
    method = frozen(40, 3, frozen.settings_class(dictionary="bayesian", dimensions=40, within=None, between=None))
    _, known, _ = Scene(method, cast, taught, stream).reading({})
    assert len(taught) - 3 < 40 < 120 - 6 == cast.freedom, "classes are likened to samples otherwise"
    alone = TwoCovariance.fit(taught.numpy(), cast.classes, dimensions=40)
    whole = TwoCovariance.fit(taught.numpy(), cast.classes, dimensions=40, freedom=120 - 6)
    assert np.array_equal(known["spread"], whole.spread)
    assert not np.allclose(known["spread"], alone.spread)
    assert method.freedom is None, "what is taught with all of it goes by what it is taught"


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
    if max(sizes) >= 3:
        assert np.bincount(targets[taught]).max() >= 2, "how images of a class differ is seen in one of them at least"


@pytest.mark.parametrize("dictionary", ["prototypes", "bayesian"])
def test_the_chosen_threshold_is_the_middle_of_where_the_curve_is_highest(encoder, pictures, dictionary):
    found = rehearsed(encoder, pictures, dictionary=dictionary)
    assert found.fallback is None
    peak = found.grid[int(np.argmax(found.scores))]
    assert found.flat[0] <= peak <= found.flat[1]
    assert found.threshold == pytest.approx(sum(found.flat) / 2)
    inside = [s for t, s in zip(found.grid, found.scores, strict=True) if found.flat[0] <= t <= found.flat[1]]
    assert min(inside) >= max(found.scores) - 0.01
    assert len(found.grid) == len(found.scores)
    assert all(0 <= score <= 1 for score in found.scores)
    low, high = found.flat
    assert low <= found.threshold <= high
    told, best = found.describe(), 100 * max(found.scores)
    assert f"threshold {found.threshold:.2f}" in told
    assert "on 2 draws of hidden classes" in told
    assert told.endswith(f"(score {best:.1f}; within a point of it from {low:.2f} to {high:.2f})")


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


WEIGHING = {"dictionary": "bayesian", "kinds": 4, "each": 6}


def test_settings_of_the_evidence_are_chosen_one_after_the_other(encoder, pictures):
    found = rehearsed(encoder, pictures, method="frozen", epochs=0, **WEIGHING)
    pairs = [(trial["between"], trial["reconsider_at"]) for trial in found.trials]
    assert len(set(pairs)) == len(pairs) == 6  # where it starts, two more of the first, three more of the second
    assert [pair[0] for pair in pairs[:3]] == [0.15, 0.1, 0.25]
    assert {pair[1] for pair in pairs[:3]} == {0.0}
    assert {pair[0] for pair in pairs[3:]} == {found.settings["between"]}, "the second is tried with the first's choice"
    best = max(trial["score"] for trial in found.trials)
    chosen = {name: found.settings[name] for name in ("between", "reconsider_at")}
    (taken,) = [trial["score"] for trial in found.trials if {**chosen, "score": trial["score"]} == trial]
    assert taken >= best - 0.03, "a setting stays where it starts unless another is clearly better"
    assert max(found.scores) >= taken, "the curve is that of what was chosen, over all thresholds"
    assert found.flat[0] <= found.threshold <= found.flat[1]
    assert "6 settings" in found.describe()
    assert f"between {chosen['between']:g}" in found.describe()


def test_the_trial_that_scores_best_is_taken_and_of_equal_ones_the_first(encoder, pictures, monkeypatch):
    def prefer(liked):
        def judge(dictionary, *args):
            return 0.9 if dictionary.state()["reconsider_at"] == liked else 0.5

        monkeypatch.setattr("newfound._scenes._score", judge)
        return rehearsed(encoder, pictures, method="frozen", epochs=0, **WEIGHING).settings

    for liked, expected in ((-30.0, (0.15, -30.0)), (None, (0.15, 0.0))):
        chosen = prefer(liked)
        assert (chosen["between"], chosen["reconsider_at"]) == expected


def test_settings_that_were_given_are_not_tried(encoder, pictures):
    given_between = rehearsed(encoder, pictures, method="frozen", epochs=0, between=0.3, **WEIGHING)
    assert "between" not in given_between.settings
    assert [set(trial) for trial in given_between.trials] == [{"reconsider_at", "score"}] * 4
    never = rehearsed(encoder, pictures, method="frozen", epochs=0, reconsider_every=None, **WEIGHING)
    assert [trial["between"] for trial in never.trials] == [0.15, 0.1, 0.25]
    assert "reconsider_at" not in never.settings
    neither = rehearsed(encoder, pictures, method="frozen", epochs=0, between=0.3, reconsider_at=1.0, **WEIGHING)
    assert set(neither.settings) == {"evidence_temperature", "new_slope", "new_shift"}
    assert len(neither.trials) == 1


def test_only_what_was_learnt_can_lie_closer_together_than_what_is_new(encoder, pictures):
    assert rehearsed(encoder, pictures, **WEIGHING).settings["inflate"] >= 1.0
    assert "inflate" not in rehearsed(encoder, pictures, method="frozen", epochs=0, **WEIGHING).settings
    assert rehearsed(encoder, pictures).settings == {}, "cosines have nothing to choose but the threshold"


@pytest.mark.parametrize(("wider", "expected"), [(1.0, 1.0), (2.0, 4.0), (0.5, 1.0)])
def test_inflate_is_how_much_wider_held_out_images_of_a_class_lie(wider, expected):
    rng = np.random.default_rng(0)
    means, targets = rng.standard_normal((8, 12)), np.repeat(np.arange(8), 40)
    taught, others = (
        torch.from_numpy(means[targets] + by * 0.05 * rng.standard_normal((320, 12))).float() for by in (1.0, wider)
    )
    cls = get_method("baseline")
    method = cls(12, 8, cls.settings_class(dictionary="bayesian"))
    found = method.measured(unit(taught), torch.from_numpy(targets), unit(others), targets)
    assert found["inflate"] == pytest.approx(expected, rel=0.15)
    assert found["inflate"] >= 1.0
    untaught = cls(12, 8, cls.settings_class(dictionary="bayesian", epochs=0))
    assert untaught.measured(unit(taught), torch.from_numpy(targets), unit(others), targets) == {}


@pytest.mark.parametrize(("kinds", "each"), [(3, 5), (4, 3)])
def test_evidence_that_cannot_be_rehearsed_has_a_cut_of_its_own_and_says_why(encoder, pictures, kinds, each):
    found = rehearsed(encoder, pictures, dictionary="bayesian", kinds=kinds, each=each)
    assert (found.threshold, found.settings, found.trials) == (10.0, {}, [])
    assert f"{kinds} classes with {kinds * each} images in all are too few" in found.describe()


def _weighed(encoder, images, targets, seed):
    cls, fabric = get_method("frozen"), Fabric(accelerator="cpu", devices=1)
    return rehearse(
        encoder, images, targets, cls, cls.settings_class(dictionary="bayesian"), seed=seed, fabric=fabric
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_one_large_class_among_classes_of_two_can_be_rehearsed(encoder, picture, seed):
    sizes = [2, 2, 2, 2, 2, 2, 2, 18]  # of those with two only one is taught, which shows no spread
    images = [picture(kind % 5, 10 * kind + number) for kind, size in enumerate(sizes) for number in range(size)]
    assert _weighed(encoder, images, np.repeat(np.arange(8), sizes), seed).fallback is None


def test_classes_of_copies_fall_back_and_say_so(encoder, picture):
    images = [picture(kind, number if kind == 4 else 0) for kind in range(5) for number in range(6)]
    found = [_weighed(encoder, images, np.repeat(np.arange(5), 6), seed) for seed in range(3)]
    hidden = [f for f in found if f.fallback]
    assert hidden, "in one of these draws the class that is not made of copies is hidden"
    assert all("copies of one another" in f.describe() for f in hidden)
    assert {f.threshold for f in hidden} == {10.0}


def test_a_saved_run_weighs_as_the_one_in_memory(fit_tiny, pictures, picture, tmp_path, monkeypatch):
    def judge(dictionary, *args):
        state = dictionary.state()
        return 0.5 + 0.3 * (state["reconsider_at"] == -30.0) + 0.1 * (state["threshold"] == 5.0)

    monkeypatch.setattr("newfound._scenes._score", judge)
    run = fit_tiny(
        pictures(4, 6), method="baseline", preset="default", out=tmp_path / "run", reconsider_every=5,
        reconsider_at="rehearsed",
    )  # fmt: skip
    loaded = nf.load(tmp_path / "run")
    assert loaded.config["rehearsed"] == run.config["rehearsed"]
    assert loaded.config["rehearsed"]["reconsider_at"] == -30.0, "not what a dictionary has by itself"
    mine, theirs = run.dictionary().state(), loaded.dictionary().state()
    assert mine.keys() == theirs.keys()
    assert all(np.array_equal(mine[name], theirs[name]) for name in mine)
    assert (theirs["reconsider_at"], theirs["reconsider_every"], theirs["threshold"]) == (-30.0, 5, 5.0)
    readings = np.random.default_rng(0).standard_normal((30, run.dictionary().dimension))
    weighed, again = (which.dictionary().observe(readings) for which in (run, loaded))
    assert np.array_equal(weighed.score, again.score)
    assert np.array_equal(weighed.probability, again.probability)
    stream = [picture(kind, number) for number in range(30, 34) for kind in range(5)]
    one, other = run.discoverer().observe(stream), loaded.discoverer().observe(stream)
    assert [(s.category, s.is_new) for s in one] == [(s.category, s.is_new) for s in other]
    # Weights that were read lie elsewhere in memory, and the last bit of a feature may be another: a number in
    # its reading then differs by up to 2^-11 in half precision, and a log ratio of some hundred by a few thousandths.
    for name in ("score", "probability", "new_probability"):
        told = [getattr(s, name) for s in one]
        assert [getattr(s, name) for s in other] == pytest.approx(told, rel=2e-5, abs=1e-4)


def test_a_share_is_rehearsed_only_if_asked_for(encoder, pictures):
    assert rehearsed(encoder, pictures, share=0.5).share == 0.5
    found = rehearsed(encoder, pictures, share="rehearsed", lr=1e-2)
    assert found.share in (0.25, 0.5, 0.75, 1.0)
    assert (found.share == 1) == ("of what was learnt" not in found.describe())
    assert rehearsed(encoder, pictures, method="frozen", epochs=0, share="rehearsed").share == 1.0
    assert rehearsed(encoder, pictures, kinds=2, share="rehearsed").share == 0.25, "few images teach little"


def test_what_was_learnt_is_kept_unless_giving_it_up_is_better(encoder, pictures, monkeypatch):
    monkeypatch.setattr("newfound._scenes._score", lambda *args: 0.9)
    assert rehearsed(encoder, pictures, share="rehearsed").share == 1.0


def scenes_of(encoder, pictures, method, **settings):
    images, labels = pictures(4, 6)
    targets = np.array([int(label[-1]) for label in labels])
    cls, fabric = get_method(method), Fabric(accelerator="cpu", devices=1)
    values = cls.settings_class(**{"batch_size": 16, "views": 2, "cached": True} | settings)
    return play(encoder, images, targets, cls, values, [1.0], seed=0, fabric=fabric, draws=1)[1.0]


def test_a_draw_that_took_a_training_is_streamed_in_several_orders_and_their_mean_counts(
    encoder, pictures, monkeypatch
):
    (scene,) = scenes_of(encoder, pictures, "baseline", epochs=1, dictionary="bayesian")
    played = []

    def judge(dictionary, names, readings, labels, miscount):
        played.append((labels.tolist(), readings))
        return float(len(played))

    monkeypatch.setattr("newfound._scenes._score", judge)
    curve = scene.curve({}, np.array([0.0, 10.0]))
    orders = [labels for labels, _ in played]
    assert len(orders) == 6  # three orders at two thresholds
    assert orders[0::2] == orders[1::2], "thresholds are compared on the same streams"
    assert orders[0] == scene.cast.labels.tolist()
    assert len({tuple(order) for order in orders}) == 3
    assert curve.tolist() == [3.0, 4.0]  # the means of 1, 3, 5 and of 2, 4, 6
    _, _, readings = scene.reading({})
    for labels, rows in played:
        pairs = sorted((label, row.tobytes()) for label, row in zip(labels, rows, strict=True))
        assert pairs == sorted((label, row.tobytes()) for label, row in zip(orders[0], readings, strict=True))


def test_draws_that_cost_no_training_and_cosines_have_one_order(encoder, pictures):
    assert [s.orders for s in scenes_of(encoder, pictures, "frozen", epochs=0, dictionary="bayesian")] == [1]
    assert [s.orders for s in scenes_of(encoder, pictures, "baseline", epochs=1)] == [1]


def test_a_perfect_dictionary_scores_one_and_a_closed_one_less():
    features = np.eye(4, dtype=np.float32)[[0, 0, 1, 2, 2, 3]]
    labels, names = np.array([10, 10, 11, 12, 12, 13]), np.array([10, 11])
    prototypes = np.eye(4, dtype=np.float32)[:2]
    assert _score(PrototypeDictionary(prototypes, 0.5), names, features, labels, 0.0) == 1.0
    assert _score(PrototypeDictionary(prototypes, -1.0), names, features, labels, 0.0) < 0.7


def test_a_label_that_looks_like_a_discovered_id_is_not_taken_for_one():
    features = np.eye(3, dtype=np.float32)[[0, 1, 2, 2]]
    labels, names = np.array([2, 5, 7, 7]), np.array([2, 5])  # the discovered category gets the id 2, a known label
    assert _score(PrototypeDictionary(np.eye(3)[:2], 0.5), names, features, labels, 0.0) == 1.0


def test_prototypes_are_class_means_seen_from_the_labelled_mean_if_asked(encoder, pictures):
    images, labels = pictures(3, 4)
    targets = np.array([int(label[-1]) for label in labels])
    cls, features = get_method("frozen"), encoder.features(images)
    taught = lessons(encoder, images, targets)
    plain = cls(encoder.backbone.dim, 3, cls.settings_class(centre=False)).teach(*taught)
    for k in range(3):
        mean = features[targets == k].mean(axis=0)
        assert plain["prototypes"][k] == pytest.approx(mean / np.linalg.norm(mean), abs=1e-5)
    assert "centre" not in plain
    centred = cls(encoder.backbone.dim, 3, cls.settings_class(centre=True))
    known = centred.teach(*taught)
    assert known["centre"] == pytest.approx(features.mean(axis=0), abs=1e-6)
    seen = features - known["centre"]
    seen /= np.linalg.norm(seen, axis=1, keepdims=True)
    assert centred.read(torch.from_numpy(features), known).numpy() == pytest.approx(seen, abs=1e-5)
    for k in range(3):
        mean = seen[targets == k].mean(axis=0)
        assert known["prototypes"][k] == pytest.approx(mean / np.linalg.norm(mean), abs=1e-5)


_NUMBER = st.floats(allow_nan=False)
_CURVE, _CHOSEN = st.lists(_NUMBER, max_size=4), st.dictionaries(st.text(), st.none() | _NUMBER, max_size=3)
_REHEARSALS = st.builds(
    Rehearsal, _NUMBER, _NUMBER, _CURVE, _CURVE, st.integers(0), st.tuples(_NUMBER, _NUMBER), _CHOSEN,
    st.lists(_CHOSEN, max_size=2), st.none() | st.text(),
)  # fmt: skip
_ALONE = Fabric(accelerator="cpu", devices=1)


@given(_REHEARSALS)
@examples(max_examples=25)
def test_what_was_kept_is_what_was_chosen_to_the_last_bit(tmp_path_factory, chosen):
    folder = tmp_path_factory.mktemp("kept") / "rehearsal"
    assert rehearse_once(lambda: chosen, _ALONE, folder, {"seed": 1}) == chosen
    assert rehearse_once(lambda: pytest.fail("played again"), _ALONE, folder, {"seed": 1}) == chosen


@pytest.mark.parametrize("fault", ["of another training", "damaged", "not whole", "no object"])
def test_a_kept_choice_that_does_not_fit_is_made_again(tmp_path, fault):
    before, after = (Rehearsal(cut, 1.0, [], [], 0, (cut, cut)) for cut in (0.5, 0.75))
    rehearse_once(lambda: before, _ALONE, tmp_path, {"seed": 1})
    kept = tmp_path / "chosen.json"
    if fault == "damaged":
        kept.write_bytes(kept.read_bytes()[:-9])
    elif fault == "not whole":
        kept.write_text(kept.read_text().replace('"share"', '"part"'))
    elif fault == "no object":
        kept.write_text("[]")
    key = {"seed": 2 if fault == "of another training" else 1}
    assert rehearse_once(lambda: after, _ALONE, tmp_path, key) == after
    assert rehearse_once(lambda: pytest.fail("played again"), _ALONE, tmp_path, key) == after


def test_a_choice_that_cannot_be_kept_is_used_all_the_same(tmp_path):
    (tmp_path / "file").touch()
    chosen = Rehearsal(0.5, 1.0, [], [], 0, (0.5, 0.5))
    assert rehearse_once(lambda: chosen, _ALONE, tmp_path / "file" / "rehearsal", {}) == chosen
