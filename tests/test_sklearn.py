"""Promises of the scikit-learn estimator: it is one, it discovers, and its labels can be told apart."""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from newfound import presets
from newfound._category_labels import CategoryLabels
from newfound._few_images import suited
from newfound.datasets import load_dataset
from newfound.discovery import BayesianDictionary, PrototypeDictionary
from newfound.errors import DataError, FeatureError, SettingsError
from newfound.sklearn import OnTheFlyClassifier

pytestmark = pytest.mark.usefixtures("one_thread")

ZERO = {"check_estimators_dtypes": "its whole numbers have a row of zeros, which has no direction"}
NOVEL = "predict says new_label_ for training rows that lie below the threshold, which no class's score can say"


def rows(kinds, each: int = 8, seed: int = 0, dimension: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """Rows near one axis a kind, and the kinds, class after class."""
    rng = np.random.default_rng((seed, 5))
    labels = np.repeat(list(kinds), each)
    return np.eye(dimension)[labels] * 5 + rng.normal(0, 0.4, (len(labels), dimension)), labels


@pytest.fixture(params=["evidence", "prototypes"])
def fitted(request):
    """An estimator that knows the kinds 0 to 4."""
    return OnTheFlyClassifier(request.param, threshold=0.0 if request.param == "evidence" else 0.5).fit(*rows(range(5)))


@pytest.mark.parametrize(
    ("estimator", "expected"),
    [
        (OnTheFlyClassifier(), ZERO | {"check_classifiers_train": NOVEL}),
        (OnTheFlyClassifier("evidence"), ZERO),
        (OnTheFlyClassifier("prototypes"), ZERO | {"check_classifiers_train": NOVEL}),
        (OnTheFlyClassifier("prototypes", threshold=-1.0), ZERO),
    ],
    ids=["auto", "evidence", "prototypes", "prototypes, nothing is new"],
)
def test_it_keeps_the_contract_of_scikit_learn(estimator, expected):
    results = check_estimator(estimator, expected_failed_checks=expected, on_skip=None, on_fail=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert not failed
    assert {r["check_name"] for r in results if r["status"] == "xfail"} == set(expected)
    assert sum(r["status"] == "passed" for r in results) > 40


def test_known_rows_keep_their_class_and_a_stream_of_others_becomes_categories(fitted):
    stream, kinds = rows([1, 6, 8], seed=1)
    answers = fitted.observe(stream)
    assert (answers[kinds == 1] == 1).all()
    for kind in (6, 8):
        assert len(set(answers[kinds == kind])) == 1
    assert set(answers[kinds != 1]) == {5, 6}, "the numbers after the highest class"
    assert fitted.classes_.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert (fitted.predict(rows([6], seed=2)[0]) == answers[kinds == 6][0]).all()


def test_predict_changes_nothing_and_says_what_would_be_new(fitted):
    before = pickle.dumps(fitted.dictionary_.state())
    stream, kinds = rows([2, 7], seed=3)
    first = fitted.predict(stream)
    assert (first[kinds == 2] == 2).all()
    assert (first[kinds == 7] == fitted.new_label_).all()
    assert fitted.new_label_ == -1
    assert np.array_equal(fitted.predict(stream[::-1])[::-1], first)
    assert pickle.dumps(fitted.dictionary_.state()) == before


def test_any_batching_of_the_stream_gives_the_same_answers(fitted):
    stream, _ = rows([1, 6, 8, 9], seed=4)
    stream = np.random.default_rng(0).permutation(stream)
    other = pickle.loads(pickle.dumps(fitted))
    whole = fitted.observe(stream)
    assert np.concatenate([other.observe(part) for part in np.array_split(stream, 7)]).tolist() == whole.tolist()
    assert other.predict(stream).tolist() == fitted.predict(stream).tolist()


@pytest.mark.parametrize(
    ("names", "discovered", "new"),
    [
        (["ant", "bee", "cow", "dog", "elk"], "new-1", "new"),
        (["ant", "new-1", "new", "dog", "elk"], "new-2", "new*"),
        ([-1, 1, 3, 5, 7], 8, -2),
        ([0.0, 1.0, 2.0, 3.0, 10.0], 11.0, -1.0),
    ],
)
def test_labels_of_what_is_discovered_are_of_the_same_kind_and_no_class_has_them(names, discovered, new):
    X, kinds = rows(range(5))
    model = OnTheFlyClassifier("prototypes", threshold=0.5).fit(X, np.array(names)[kinds])
    assert model.new_label_ == new
    assert set(model.observe(rows([9])[0]).tolist()) == {discovered}
    assert set(model.predict(X).tolist()) == set(names)


@given(
    classes=st.one_of(
        st.sets(st.integers(-(10**6), 10**6), min_size=1, max_size=6),
        st.sets(st.sampled_from(["a", "new", "new*", "new-1", "new-2", "new-3"]), min_size=1),
    ),
    founded=st.integers(0, 6),
    taught=st.one_of(st.integers(-3, 20), st.sampled_from(["new-2", "b"])),
)
def test_no_two_categories_ever_have_the_same_label(classes, founded, taught):
    labels = CategoryLabels(np.unique(list(classes)))
    labels.found(len(classes) + founded - 1)
    last = len(classes) + founded - 1
    try:
        labels.check([taught])
    except DataError:
        pass
    else:
        last = max(last, int(labels.ids([taught])[0]))
    labels.found(last + 3)
    given_out = labels.of(np.arange(-1, last + 4)).tolist()
    assert len(set(given_out)) == len(given_out)
    assert set(classes) <= set(given_out)
    assert labels.ids(given_out[1:]).tolist() == list(range(last + 4))


def test_a_labelled_row_teaches_a_class_a_discovered_category_or_a_new_class(fitted):
    far = rows([6], seed=6)[0]
    fitted.partial_fit(far)
    found = fitted.predict(far)[0]
    beside = rows([7], each=2, seed=6)[0]
    before = fitted.decision_function(beside)[:, -1]
    fitted.partial_fit(beside, [found, found])
    assert (fitted.decision_function(beside)[:, -1] > before).all(), "the category reaches where a person says it does"
    assert fitted.dictionary_.counts[-1] == 10
    fitted.partial_fit(rows([9], each=3, seed=6)[0], [40, 40, 40])
    assert (fitted.predict(rows([9], seed=7)[0]) == 40).all()
    assert fitted.classes_[-1] == 40
    assert fitted.observe(-np.eye(12)[:1] * 5).tolist() == [41]
    members = fitted.dictionary_.counts[0]
    between = np.eye(12)[[0, 10]].sum(axis=0)[None] * 5 + rows([0], each=6, seed=8)[0] * 0.1
    before = fitted.decision_function(between)[:, 0].mean()
    fitted.partial_fit(between, [0] * 6)
    assert fitted.decision_function(between)[:, 0].mean() > before, "the class learnt where its labelled rows lie"
    assert fitted.dictionary_.counts[0] == members + 6


def test_rows_without_a_label_are_decided_in_their_place_of_the_stream(fitted):
    other = pickle.loads(pickle.dumps(fitted))
    stream, _ = rows([6], each=4, seed=9)
    fitted.partial_fit(stream, [None, 50, None, np.nan])
    other.partial_fit(stream[:1]).partial_fit(stream[1:2], [50]).partial_fit(stream[2:])
    assert fitted.classes_.tolist() == other.classes_.tolist() == [0, 1, 2, 3, 4, 5, 50]
    assert fitted.decision_function(stream).tolist() == other.decision_function(stream).tolist()


def test_fit_predict_learns_what_is_labelled_and_names_the_rest():
    X, kinds = rows(range(8))
    y = [f"kind{kind}" if kind < 5 and i % 2 else None for i, kind in enumerate(kinds.tolist())]
    answers = OnTheFlyClassifier("evidence", threshold=0.0).fit_predict(X, y)
    assert [a for a, label in zip(answers, y, strict=True) if label] == [label for label in y if label]
    assert (answers[kinds < 5] == [f"kind{kind}" for kind in kinds[kinds < 5]]).all()
    new = [set(answers[kinds == kind]) for kind in (5, 6, 7)]
    assert set.union(*new) == {"new-1", "new-2", "new-3"}
    assert all(len(labels) == 1 for labels in new)
    started = OnTheFlyClassifier("evidence", threshold=0.0).partial_fit(X, y)
    assert started.predict(X).tolist() == answers.tolist()


def test_scores_belong_to_the_columns_of_classes_and_probabilities_follow_them(fitted):
    fitted.partial_fit(rows([6, 7], seed=1)[0])
    X, _ = rows([0, 3, 6, 7, 9], seed=2)
    scores, answers = fitted.decision_function(X), fitted.predict(X)
    assert scores.shape == (len(X), 7)
    sure = answers != fitted.new_label_
    assert (fitted.classes_[scores.argmax(axis=1)][sure] == answers[sure]).all()
    assert np.array_equal(fitted.score_samples(X), scores.max(axis=1))
    assert fitted.score_samples(X)[-8:].max() < fitted.score_samples(X)[:-8].min(), "kind 9 was never seen"
    if fitted.dictionary == "prototypes":
        assert not hasattr(fitted, "predict_proba")
        return
    assert fitted.predict_proba(X).sum(axis=1) == pytest.approx(1)
    assert (fitted.predict_proba(X).argmax(axis=1) == scores.argmax(axis=1)).all()
    new = fitted.predict_new_proba(X)
    assert new[-8:].min() > 0.9 > 0.1 > new[:-8].max()
    decided = fitted.dictionary_.predict(fitted._read(X))
    best = fitted.predict_proba(X).max(axis=1) * (1 - new)
    assert best[sure] == pytest.approx(decided.probability[sure], abs=1e-6), "those of the dictionary, taken apart"


def test_the_threshold_is_rehearsed_where_classes_can_be_hidden():
    X, y = rows(range(8), each=6)
    model = OnTheFlyClassifier(draws=1).fit(X, y)
    assert "rehearsed on 1 draws" in model.threshold_rule_
    assert model.dictionary_.threshold == model.threshold_
    again = OnTheFlyClassifier(draws=1).fit(X, y)
    assert again.threshold_ == model.threshold_
    few = OnTheFlyClassifier("evidence").fit(*rows(range(3)))
    assert few.threshold_ == 10.0
    assert few.threshold_rule_ == "fixed: what rehearsals come to; too few classes or rows to rehearse"
    assert OnTheFlyClassifier("evidence", threshold=3.5).fit(X, y).threshold_ == 3.5
    plain = OnTheFlyClassifier().fit(*rows(range(3)))
    assert isinstance(plain.dictionary_, PrototypeDictionary), "a fixed cosine holds in any number of dimensions"
    assert not hasattr(plain, "predict_proba")


@pytest.mark.parametrize("dictionary", ["auto", "prototypes"])
@pytest.mark.parametrize("kinds", [2, 3, 5])
def test_of_one_row_a_class_known_kinds_are_recognised_and_others_discovered(dictionary, kinds):
    model = OnTheFlyClassifier(dictionary).fit(*rows(range(kinds), each=1))
    assert model.threshold_ == 0.3
    assert model.threshold_rule_.startswith("fixed: what is usually good on centred features; too few")
    known, labels = rows(range(kinds), seed=1)
    assert (model.observe(known) == labels).all()
    others = model.observe(rows([7, 8, 9], seed=1)[0])
    assert not set(others) & set(range(kinds))
    assert len(set(others)) == 3


@pytest.mark.parametrize("centre", [True, False])
def test_where_nothing_can_be_rehearsed_rows_are_compared_as_a_run_compares_images(centre, pictures):
    X, y = rows(range(3), each=3)
    model = OnTheFlyClassifier(centre=centre).fit(X, y)
    of_preset = partial(presets.resolve, "frozen", "default", short=True)
    cosines = partial(of_preset, overrides={"dictionary": "prototypes"})
    few = load_dataset(pictures(kinds=3, each=3))
    run = suited(of_preset(overrides={}), few, asked=(), cosines=cosines, say=lambda line: None)
    ours = model._deciding.settings
    assert (ours.dictionary, ours.update, ours.threshold) == (run.dictionary, run.update, run.threshold)
    assert ours.centre == (run.centre if centre else False)
    assert OnTheFlyClassifier("prototypes", threshold=0.5).fit(X, y)._deciding.settings.update == "running"


@pytest.mark.parametrize("dictionary", ["auto", "evidence", "prototypes"])
def test_one_large_class_among_small_ones_can_be_learnt_and_rehearsed(dictionary):
    many, few = rows([0], each=30), rows(range(1, 5), each=2)
    X, y = np.concatenate([many[0], few[0]]), np.concatenate([many[1], few[1]])
    model = OnTheFlyClassifier(dictionary, draws=4).fit(X, y)
    assert "rehearsed on 4 draws" in model.threshold_rule_
    known, labels = rows(range(5), seed=1)
    assert (model.predict(known) == labels).mean() > 0.9


def test_classes_of_copies_are_told_apart_by_prototypes():
    X, y = np.repeat(np.eye(5), 8, axis=0), np.repeat(np.arange(5), 8)
    model = OnTheFlyClassifier(draws=1).fit(X, y)
    assert isinstance(model.dictionary_, PrototypeDictionary)
    assert (model.predict(X) == y).all()
    with pytest.raises(SettingsError, match="copies of one another"):
        OnTheFlyClassifier("evidence", draws=1).fit(X, y)


def test_the_dictionary_that_rehearses_better_is_taken(monkeypatch):
    from newfound import _feature_rehearsal

    X, y = rows(range(6), each=6)
    real, tried, best = _feature_rehearsal.choose, [], 0.0

    def choose(scenes, settings):
        found = real(scenes, settings)
        method = scenes[1.0][0].method.settings
        tried.append((method.dictionary, method.between))
        worth = {("prototypes", None): 0.5, ("bayesian", None): 0.505, ("bayesian", 1.0): best}[tried[-1]]
        return replace(found, scores=[worth])

    monkeypatch.setattr(_feature_rehearsal, "choose", choose)
    for kind in (PrototypeDictionary, BayesianDictionary):
        best = 0.505 if kind is PrototypeDictionary else 0.6
        model = OnTheFlyClassifier(draws=1).fit(X, y)
        assert type(model.dictionary_) is kind, "a hair better is no reason"
        assert hasattr(model, "predict_proba") == (kind is BayesianDictionary)
    assert set(tried) == {("prototypes", None), ("bayesian", None), ("bayesian", 1.0)}


def test_on_raw_pixels_known_classes_stay_known_while_the_stream_discovers():
    digits, labels = load_digits(return_X_y=True)
    known = np.flatnonzero(labels < 6)
    taught, stream = known[:300], np.setdiff1d(np.arange(900), known[:300])
    model = OnTheFlyClassifier(draws=2).fit(digits[taught], labels[taught])
    model.partial_fit(digits[stream])
    old = stream[labels[stream] < 6]
    assert (model.predict(digits[old]) == labels[old]).mean() > 0.6, "0.48 with the rehearsal of images"
    assert 7 <= len(model.classes_) <= 16, "20 with the rehearsal of images"


def test_it_works_in_pipelines_and_searches_and_with_named_columns():
    import pandas as pd

    X, y = rows(range(4), each=9)
    table = pd.DataFrame(X, columns=[f"c{i}" for i in range(X.shape[1])])
    search = GridSearchCV(
        make_pipeline(StandardScaler(), OnTheFlyClassifier("prototypes")), {"onTheFly__threshold": [0.3, 0.999]}, cv=3
    )
    search.estimator.steps[1] = ("onTheFly", search.estimator.steps[1][1])
    search.fit(table, y)
    assert search.best_params_ == {"onTheFly__threshold": 0.3}
    assert search.best_score_ > 0.8
    model = OnTheFlyClassifier("evidence", threshold=0.0).fit(table, y)
    assert model.feature_names_in_.tolist() == list(table.columns)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(table[table.columns[::-1]])


def test_a_clone_has_the_settings_and_nothing_that_was_learnt(fitted):
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    with pytest.raises(NotFittedError):
        copy.predict(np.eye(12))
    with pytest.raises(NotFittedError, match="fit labelled rows first"):
        copy.partial_fit(np.eye(12))


@pytest.mark.parametrize(
    ("act", "error", "says"),
    [
        (lambda m: m.predict(np.zeros((1, 12))), FeatureError, "row 0 of 1 is zero"),
        (lambda m: m.partial_fit(np.eye(12)[:2], [1]), DataError, "2 rows but 1 labels"),
        (lambda m: m.partial_fit(np.eye(12)[:1], ["heron"]), DataError, "'heron' is of another kind"),
        (lambda m: m.partial_fit(np.eye(12)[:1], [-1]), DataError, "fit no category"),
        (lambda m: m.set_params(dictionary="bayes").fit(*rows(range(3))), SettingsError, "auto, prototypes, evidence"),
        (lambda m: m.set_params(dictionary="auto", threshold=0.5).fit(*rows(range(3))), SettingsError, "say which"),
        (lambda m: m.fit(rows([1])[0], rows([1])[1]), DataError, "one class"),
        (lambda m: m.fit_predict(np.eye(12), [None] * 12), DataError, "no row has a label"),
        (lambda m: m.fit_predict(np.eye(12), [1, "1"] * 6), DataError, "all texts or all numbers, but here.* int, str"),
        (lambda m: m.fit_predict(np.eye(12), [(1, 2), (3,)] * 6), DataError, "but here they are tuple"),
        (lambda m: m.set_params(draws=0).fit(*rows(range(4))), SettingsError, "draws=0: .*1 or more"),
    ],
)
def test_errors_say_what_is_wrong(fitted, act, error, says):
    classes = fitted.classes_.tolist()
    with pytest.raises(error, match=says):
        act(fitted)
    assert fitted.classes_.tolist() == classes


@pytest.mark.parametrize("act", ["partial_fit", "fit_predict"])
def test_a_stream_with_a_row_that_cannot_be_is_taken_in_as_a_whole_or_not_at_all(fitted, act):
    stream, _ = rows([6, 7], each=3)
    stream[4] = 0
    before = fitted.dictionary_
    with pytest.raises(FeatureError, match="row 4 of 6 is zero"):
        getattr(fitted, act)(stream, [None, None, 50, 60, None, None])
    assert fitted.classes_.tolist() == [0, 1, 2, 3, 4]
    assert fitted.dictionary_ is before


DICTIONARIES = {
    "evidence": lambda: BayesianDictionary(np.full(3, 9.0), np.eye(3)[:2] * 40, [8, 8]),
    "prototypes": lambda: PrototypeDictionary(np.eye(3)[:2], threshold=0.6),
    "running": lambda: PrototypeDictionary(np.eye(3)[:2], threshold=0.6, update="running"),
}


@pytest.mark.parametrize("make", DICTIONARIES.values(), ids=DICTIONARIES)
def test_one_sample_at_a_time_is_the_stream_in_batches(make):
    stream = rows([0, 1, 2], each=5, dimension=3)[0]
    batch, single, named = make(), make(), make()
    expected = batch.observe(stream).category.tolist()
    assert [single.learn_one(row) for row in stream] == expected
    assert [named.learn_one(dict(zip("abc", row.tolist(), strict=True))) for row in stream] == expected
    assert [single.predict_one(row) for row in stream] == batch.predict(stream).category.tolist()
    assert single.seen == len(stream)


@pytest.mark.parametrize("make", DICTIONARIES.values(), ids=DICTIONARIES)
def test_one_sample_goes_where_a_person_says(make):
    dictionary = make()
    assert dictionary.predict_one([0, 0, -5]) == -1
    assert dictionary.learn_one([0, 0, -5], y=2) == 2, "the next id founds a category"
    assert dictionary.predict_one([0, 0, -5]) == 2
    assert dictionary.learn_one([0, -5, -5], y=2) == 2
    dictionary.merge([1, 2])
    assert dictionary.learn_one([0, 0, -5], y=2) == 1, "where it lives now"
    for wrong in ([[0, 0, 5]], [], {}, "heron", [1, 2]):
        with pytest.raises(FeatureError):
            dictionary.learn_one(wrong)
    with pytest.raises(SettingsError, match="no category 9"):
        dictionary.learn_one([0, 0, 5], y=9)
    assert dictionary.seen == 3


@pytest.mark.parametrize("kind", [np.float32, np.int64, np.int32])
def test_rows_may_be_of_any_real_type(fitted, kind):
    X = np.eye(12, dtype=kind)[[1, 4]]
    assert fitted.predict(X).tolist() == [1, 4]


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), scale=st.floats(1e-3, 1e3))
def test_only_the_direction_of_a_row_counts(seed, scale):
    X, y = rows(range(3), each=4, seed=seed)
    model = OnTheFlyClassifier("prototypes", threshold=0.5).fit(X, y)
    other = OnTheFlyClassifier("prototypes", threshold=0.5).fit(X * scale, y)
    stream = rows(range(6), each=2, seed=seed + 1)[0]
    assert model.observe(stream).tolist() == other.observe(stream / scale).tolist()


@pytest.mark.parametrize("label", [2**63 - 1, -(2**63), 2**62, 2**63 + 1, 2.0**60])
def test_numbers_that_leave_no_room_for_those_of_discoveries_are_refused(label):
    kind = np.float64 if isinstance(label, float) else np.uint64 if label > 2**63 else np.int64
    with pytest.raises(DataError, match=r"leaves no room for those of discovered categories"):
        OnTheFlyClassifier("prototypes", threshold=0.5).fit(np.eye(3)[:2], np.array([label, 5], kind))


def test_a_number_that_leaves_no_room_is_refused_in_the_stream_too_and_large_ones_are_not():
    rows = np.eye(4)
    model = OnTheFlyClassifier("prototypes", threshold=0.5, centre=False).fit(rows[:2], [2**60, 2**60 + 1])
    with pytest.raises(DataError, match="leaves no room"):
        model.partial_fit(rows[2:3], [2**63 - 1])
    assert model.observe(rows[2:]).tolist() == [2**60 + 2, 2**60 + 3]
