"""The protocols on streams small enough to score by hand, and what `score` refuses."""

from __future__ import annotations

import json
import math
import tracemalloc

import numpy as np
import pytest

from newfound.errors import DataError, SettingsError
from newfound.evaluation import Accuracy, score


def test_strict_uses_a_cluster_once_and_greedy_once_for_each_kind():
    labels = ["cat"] * 3 + ["owl"] * 2
    r = score(labels, ["cat"] * 5, known=["cat"])
    assert r.strict == Accuracy(all=3 / 5, old=1.0, new=0.0)
    assert r.greedy == Accuracy(all=1.0, old=1.0, new=1.0)
    assert r.named == Accuracy(all=3 / 5, old=1.0, new=0.0)
    assert (r.samples, r.categories, r.discovered) == (5, 1, 0)


def test_all_three_protocols_on_a_stream_scored_by_hand():
    # cluster:   A           B           7           8
    # old  A     3           .           1           .
    # old  B     1           1           .           .
    # new  x     .           3           2           1
    # new  y     .           .           3           .
    labels = [*"AAAA", *"BB", *"xxxxxx", *"yyy"]
    predictions = ["A", "A", "A", 7, "A", "B", "B", "B", "B", 7, 7, 8, 7, 7, 7]
    r = score(labels, predictions, known=["A", "B"])
    # Strict: A-A 3, B-x 3, 7-y 3; nothing is left for class B.
    assert r.strict == Accuracy(all=9 / 15, old=3 / 6, new=6 / 9)
    # Greedy: old A-A 3, B-B 1; new B-x 3 and 7-y 3.
    assert r.greedy == Accuracy(all=10 / 15, old=4 / 6, new=6 / 9)
    # Named: old A 3, B 1; new 7-y 3 and 8-x 1, as category B is not a discovered one.
    assert r.named == Accuracy(all=8 / 15, old=4 / 6, new=4 / 9)
    assert (r.categories, r.discovered) == (4, 2)


def test_of_equal_strict_matchings_the_one_with_most_old_samples_counts():
    labels = ["new", "new", "old", "old"]
    for predictions in ([1, 1, 1, 1], [9, 9, 9, 9], [0, 0, 0, 0]):
        assert score(labels, predictions, known=["old"]).strict == Accuracy(all=0.5, old=1.0, new=0.0)


def test_a_closed_set_discovers_nothing_under_named_though_strict_and_greedy_do_not_see_it():
    labels = np.repeat([0, 1, 2, 3], 10)
    r = score(labels, labels % 2, known=[0, 1])
    assert r.greedy.new == 1.0
    assert r.named == Accuracy(all=0.5, old=1.0, new=0.0)


def test_an_old_sample_with_another_known_label_is_wrong_under_named_whatever_a_matching_says():
    r = score(["a", "b"], ["b", "a"], known=["a", "b"])
    assert r.strict.old == 1.0
    assert r.named.old == 0.0


def test_old_samples_do_not_decide_which_unknown_class_a_discovered_category_stands_for():
    labels = ["old"] * 5 + ["x"]
    r = score(labels, [7] * 6, known=["old"], discovered=[True] * 6)
    assert r.named == Accuracy(all=1 / 6, old=0.0, new=1.0)


class TestDiscovered:
    labels = np.array([0, 0, 1, 1])

    def test_an_id_that_equals_a_label_does_not_collide_with_it(self):
        marks = np.array([False, False, True, True])
        r = score(self.labels, [0, 0, 0, 0], known=[0], discovered=marks)
        assert r.categories == 2
        assert r.strict == r.greedy == r.named == Accuracy(1.0, 1.0, 1.0)

    def test_without_marks_equal_values_are_one_cluster(self):
        r = score(self.labels, [0, 0, 0, 0], known=[0])
        assert r.categories == 1
        assert r.named == Accuracy(0.5, 1.0, 0.0)

    def test_a_marked_prediction_never_names_a_known_class(self):
        r = score(self.labels, [0, 0, 5, 5], known=[0], discovered=[True] * 4)
        assert r.named == Accuracy(0.5, 0.0, 1.0)

    def test_an_unmarked_prediction_never_counts_as_a_discovery(self):
        r = score(self.labels, [0, 0, 1, 1], known=[0], discovered=[False] * 4)
        assert r.named == Accuracy(0.5, 1.0, 0.0)
        assert r.discovered == 0


class TestNamedIsNone:
    def test_when_no_prediction_of_a_stream_with_old_samples_is_a_label(self):
        assert score(["a", "b"], [0, 1], known=["a"]).named is None

    def test_but_not_when_discovered_says_which_predictions_are_ids(self):
        r = score(["a", "b"], [0, 1], known=["a"], discovered=[True, True])
        assert r.named == Accuracy(0.5, 0.0, 1.0)

    def test_nor_when_there_is_no_old_sample_to_name(self):
        r = score(["x", "y"], [0, 1], known=["a"])
        assert r.named.new == r.named.all == 1.0
        assert math.isnan(r.named.old)


class TestMaxClusters:
    def test_a_perfect_clustering_stays_perfect(self):
        # A topK that cuts the classes by the clusters' ids keeps classes 3 to 6 of these: 4 / 7 = 0.57.
        labels = np.repeat(np.arange(7), 5)
        r = score(labels, labels + 3, known=[0, 1, 2], max_clusters=7)
        assert r.strict == r.greedy == Accuracy(1.0, 1.0, 1.0)

    def test_samples_of_smaller_clusters_are_wrong(self):
        labels = ["a"] * 3 + ["x"] * 2 + ["y"]
        r = score(labels, ["a"] * 3 + [7] * 2 + [8], known=["a"], max_clusters=2)
        assert r.strict == r.greedy == Accuracy(all=5 / 6, old=1.0, new=2 / 3)

    @pytest.mark.parametrize("ids", [(4, 9), (9, 4), ("z", "b"), ("b", "z")])
    def test_of_equal_clusters_the_first_seen_is_kept(self, ids):
        first, second = ids
        r = score(["x", "y", "y", "x"], [first, second, second, first], known=["y"], max_clusters=1)
        assert r.strict == Accuracy(all=0.5, old=0.0, new=1.0)

    def test_strict_and_greedy_keep_the_same_clusters_of_the_whole_stream(self):
        # Cluster 1 has 4 samples, cluster 2 has 3; cluster 2 is the largest one for both classes apart.
        labels = ["a"] * 2 + ["x"] * 5
        predictions = [2, 1, 2, 2, 1, 1, 1]
        r = score(labels, predictions, known=["a"], max_clusters=1)
        assert r.greedy == Accuracy(all=4 / 7, old=1 / 2, new=3 / 5)
        assert r.strict == Accuracy(all=3 / 7, old=0.0, new=3 / 5)

    def test_the_other_figures_do_not_use_it(self):
        labels, predictions = ["a", "a", "x", "x", "y"], ["a", "a", 7, 8, 9]
        cut = score(labels, predictions, known=["a"], max_clusters=1)
        whole = score(labels, predictions, known=["a"])
        assert cut.strict != whole.strict
        for figure in ("categories", "discovered", "named", "nmi", "ari"):
            assert getattr(cut, figure) == getattr(whole, figure)

    def test_more_clusters_than_there_are_changes_nothing(self):
        labels, predictions = ["a", "x", "x"], ["a", 7, 8]
        assert score(labels, predictions, known=["a"], max_clusters=99) == score(labels, predictions, ["a"])

    @pytest.mark.parametrize("value", [0, -1, 2.0, "3", True])
    def test_it_must_be_a_positive_integer(self, value):
        with pytest.raises(SettingsError, match="max_clusters"):
            score([1], [1], known=[1], max_clusters=value)


def test_categories_count_all_distinct_ids_single_samples_included():
    r = score(["a"] * 6, ["a", "a", 1, 2, 3, -4], known=["a", "never predicted"])
    assert (r.categories, r.discovered) == (5, 4)


@pytest.mark.parametrize("far", [10**15, 10**18, -(10**18), 2**63, 10**30])
def test_ids_may_be_huge(far):
    labels = ["a"] * 4 + ["x"] * 4
    r = score(labels, [0] * 4 + [far] * 4, known=["a"], discovered=[True] * 8)
    assert r.strict.all == r.named.new == 1.0


def test_a_cluster_for_every_sample_needs_no_dense_table(nothing_compiled_aside):
    samples, classes = 20_000, 2_000
    labels, predictions = np.arange(samples) % classes, np.arange(samples) * 10**12
    tracemalloc.start()
    try:
        r = score(labels, predictions, known=range(classes // 2), discovered=np.ones(samples, dtype=bool))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert r.strict.all == r.greedy.all == classes / samples
    assert peak < 40e6  # the dense table alone would have 160e6 bytes at four bytes a cell


class TestLabelsOfAnyHashableKind:
    def test_labels_and_ids_of_mixed_kinds(self):
        labels = ["cat", ("genus", 3), 5, b"owl", frozenset({1})]
        r = score(labels, ["cat", ("genus", 3), "5", ("new", 1), 2.5], known=["cat", ("genus", 3), 5])
        assert r.named == Accuracy(all=4 / 5, old=2 / 3, new=1.0)

    def test_a_number_is_not_the_text_that_shows_it(self):
        r = score([1, "1", 1, "1"], ["1", "1", 1, 1], known=[1])
        assert r.named.old == 0.5
        assert r.categories == 2

    def test_equal_numbers_of_different_types_are_one_label(self):
        r = score([1, np.int64(1), 1.0, np.float32(1)], np.array([1, 1, 1, 1], dtype=np.uint8), known={1.0})
        assert r.named.old == 1.0
        assert r.nmi == 1.0

    @pytest.mark.parametrize("kind", ["int8", "uint8", "int64", "uint64", "float32", "object", "str", "bytes"])
    def test_arrays_of_every_type_score_as_lists_do(self, kind):
        labels = np.array([100, 100, 3, 3, 3, 50, 50]).astype(kind)
        predictions = np.array([100, 3, 3, 3, 7, 7, 9]).astype(kind)
        as_lists = score([100, 100, 3, 3, 3, 50, 50], [100, 3, 3, 3, 7, 7, 9], known=[3, 100])
        assert score(labels, predictions, known=labels[:3]) == as_lists

    def test_scores_that_a_model_has_just_given_are_read_as_they_are(self):
        torch = pytest.importorskip("torch")
        novelty = torch.tensor([0.1, 0.9], requires_grad=True)
        marks = torch.tensor([False, True])
        assert score([0, 1], [0, 1], known=[0], discovered=marks, novelty=novelty).auroc == 1.0

    def test_tensors_are_read_as_arrays(self):
        torch = pytest.importorskip("torch")
        r = score(torch.tensor([0, 0, 1]), torch.tensor([0, 0, 7]), known=torch.tensor([0]))
        assert r.named == Accuracy(1.0, 1.0, 1.0)

    @pytest.mark.parametrize("known", [["a"], {"a"}, ("a",), np.array(["a"]), {"a": 0}.keys(), iter(["a"])])
    def test_known_labels_may_come_in_any_collection(self, known):
        assert score(["a", "b"], ["a", 0], known=known).named == Accuracy(1.0, 1.0, 1.0)


class TestOnlyOneKindOfSample:
    @pytest.mark.parametrize(
        ("labels", "known"),
        [(["x", "y"], ["a"]), (np.array(["x", "y"]), ["a"]), (list(np.array(["x", "y"])), ["a"]), ([3, 4], [0.5]),
         ([np.float32(3), 4], np.array([7])), (["x", 4], [7])],
    )  # fmt: skip
    def test_a_stream_without_a_known_class_is_scored_if_its_labels_could_be_known(self, labels, known):
        assert score(labels, [0, 1], known).greedy.new == 1.0

    def test_without_known_classes_old_is_nan(self):
        r = score(["a", "b"], [0, 1], known=[])
        for accuracy in (r.strict, r.greedy, r.named):
            assert math.isnan(accuracy.old)
            assert accuracy.all == accuracy.new == 1.0

    def test_without_unknown_classes_new_is_nan(self):
        r = score(["a", "b"], ["a", "a"], known=["a", "b"])
        for accuracy in (r.strict, r.greedy, r.named):
            assert math.isnan(accuracy.new)
            assert accuracy.all == accuracy.old == 0.5

    def test_the_auroc_is_none(self):
        assert score(["a", "b"], [0, 1], known=[], novelty=[0.1, 0.2]).auroc is None


def test_the_auroc_is_that_of_higher_for_more_novel():
    labels, predictions = ["a", "a", "x", "x"], ["a", "a", 7, 7]
    assert score(labels, predictions, known=["a"]).auroc is None
    assert score(labels, predictions, known=["a"], novelty=[0.1, 0.3, 0.4, np.inf]).auroc == 1.0
    assert score(labels, predictions, known=["a"], novelty=[4, 3, 2, 1]).auroc == 0.0
    assert score(labels, predictions, known=["a"], novelty=[0.1, 0.3, 0.3, 0.2]).auroc == 2.5 / 4


def test_the_scores_are_ready_for_json():
    figures = score(["a", "b"], [0, 1], known=["a", "b"]).as_dict()
    assert json.loads(json.dumps(figures, allow_nan=False)) == figures
    assert figures["strict"] == {"all": 1.0, "old": 1.0, "new": None}
    assert figures["named"] is None
    assert figures["categories"] == 2


class TestRefused:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"predictions": [0, 1]}, "predictions has 2 values for 3 labels"),
            ({"labels": [], "predictions": []}, "nothing to score"),
            ({"labels": [[0], [1], [2]]}, "labels holds a value that cannot be a label: unhashable"),
            ({"labels": np.array([{}, {}, {}], dtype=object)}, "labels holds a value that cannot be a label"),
            ({"labels": np.zeros((3, 2))}, r"labels has shape \(3, 2\)"),
            ({"labels": {0, 1, 2}}, "labels is a set, which has no order"),
            ({"labels": 3}, "labels is 3"),
            ({"labels": [0, math.nan, 2]}, "labels holds nan"),
            ({"labels": [0, None, 2]}, "labels holds None, which is no label; name it or drop the sample"),
            ({"predictions": ["a", "b", None]}, "predictions holds None"),
            ({"predictions": np.array([0, None, 2])}, "predictions holds None"),
            ({"known": {0, None}}, "known holds None"),
            ({"predictions": np.array([0, np.nan, 2])}, r"predictions\[1\] is NaN"),
            ({"predictions": np.array(["2020", "NaT", "2021"], "datetime64[s]")}, "predictions holds .*NaT"),
            ({"known": [np.float32("nan")]}, "known holds .*nan"),
            ({"known": ["0"]}, "labels are of another type than known: int, such as 0, and str, such as '0'"),
            ({"labels": ["0", "1", "1"]}, "of another type than known: str, such as '0', and int, such as 0"),
            ({"known": [b"0"]}, "int, such as 0, and bytes, such as b'0'"),
            ({"known": "heron"}, r"known is the single text 'heron'; pass a list"),
            ({"discovered": [True, False]}, "discovered has 2 values"),
            ({"discovered": [1, 0, 1]}, "discovered has .* int64; it needs one True or False"),
            ({"discovered": [[True], [False], [True]]}, r"discovered has shape \(3, 1\)"),
            ({"novelty": [0.1, math.nan, 0.2]}, r"novelty\[1\] is NaN"),
            ({"novelty": [0.1, 0.2]}, "novelty has 2 values"),
            ({"novelty": ["a", "b", "c"]}, "novelty has .* it needs one number"),
        ],
    )
    def test_with_an_error_that_names_the_argument(self, arguments, message):
        sound = {"labels": [0, 1, 2], "predictions": [0, 1, 2], "known": [0]}
        with pytest.raises(DataError, match=message):
            score(**{**sound, **arguments})

    def test_a_list_of_tensors_each_of_which_would_be_a_class_of_its_own(self):
        torch = pytest.importorskip("torch")
        with pytest.raises(DataError, match="labels holds Tensor objects"):
            score([torch.tensor(0), torch.tensor(0)], [0, 0], known=[0])
