"""A stream in several orders: which ones, what is averaged, what is printed."""

from __future__ import annotations

import importlib
import json
import statistics

import numpy as np
import pytest
from doc_examples import check_examples

from newfound.errors import DataError, SettingsError
from newfound.evaluation import Accuracy, evaluate_stream, score, stream_order

LABELS = np.array(["cat", "dog", "owl", "cat", "emu", "owl", "dog", "emu", "owl", "cat"])
KNOWN = ["cat", "dog"]


def settle_on_the_third_new_sample(order):
    """Decisions that depend on the order: every new class shares an id until the third new sample."""
    predictions, marks, seen = [], [], 0
    for position in order:
        is_new = LABELS[position] not in KNOWN
        seen += is_new
        predictions.append(LABELS[position] if not is_new else 0 if seen < 3 else str(LABELS[position]))
        marks.append(is_new)
    return predictions, np.array(marks), np.arange(len(order)) * 0.5


def test_each_order_is_scored_with_the_labels_in_that_order():
    given = []

    def decide(order):
        given.append(order)
        return settle_on_the_third_new_sample(order)

    result = evaluate_stream(decide, LABELS, KNOWN, orders=4, seed=5)
    assert result.orders == len(given) == 4
    for k, (order, scores) in enumerate(zip(given, result.scores, strict=True)):
        assert order.tolist() == np.random.default_rng([5, k]).permutation(10).tolist()
        predictions, marks, novelty = settle_on_the_third_new_sample(order)
        assert scores == score(LABELS[order], predictions, KNOWN, marks, novelty=novelty)


def test_mean_and_spread_are_taken_over_the_orders():
    result = evaluate_stream(settle_on_the_third_new_sample, LABELS, KNOWN, orders=5)
    new = [s.strict.new for s in result.scores]
    assert len(set(new)) > 1
    assert result.mean["strict"]["new"] == pytest.approx(statistics.mean(new))
    assert result.std["strict"]["new"] == pytest.approx(np.std(new, ddof=1))
    assert result.mean["auroc"] == pytest.approx(np.mean([s.auroc for s in result.scores]))
    assert result.mean["categories"] == pytest.approx(np.mean([s.categories for s in result.scores]))


def test_a_seed_gives_the_same_orders_again_and_more_orders_keep_the_first_ones():
    few = evaluate_stream(settle_on_the_third_new_sample, LABELS, KNOWN, orders=2, seed=1)
    more = evaluate_stream(settle_on_the_third_new_sample, LABELS, KNOWN, orders=6, seed=1)
    assert more.scores[:2] == few.scores
    assert not np.array_equal(stream_order(50, 1, 0), stream_order(50, 2, 0))
    assert not np.array_equal(stream_order(50, 1, 0), stream_order(50, 1, 1))


def test_a_single_order_has_no_spread():
    result = evaluate_stream(settle_on_the_third_new_sample, LABELS, KNOWN, orders=1)
    assert result.std["greedy"] == {"all": 0.0, "old": 0.0, "new": 0.0}
    assert result.mean["greedy"]["all"] == result.scores[0].greedy.all
    assert "±" not in result.table()[1][1]


def test_class_order_is_one_order_by_label_and_stable():
    given = []

    def decide(order):
        given.append(order.tolist())
        return LABELS[order], None, None

    result = evaluate_stream(decide, LABELS.tolist(), KNOWN, orders=3, class_order=True)
    assert given == [[0, 3, 9, 1, 6, 4, 7, 2, 5, 8]]
    assert (result.orders, result.class_order) == (1, True)


def test_labels_may_be_tuples_and_known_an_iterator():
    labels = [("bird", 1), ("bird", 2), ("fish", 1)]
    result = evaluate_stream(
        lambda order: ([labels[i] for i in order], None, None), labels, iter([("bird", 1)]), orders=3
    )
    assert all(s.named == Accuracy(1.0, 1.0, 1.0) for s in result.scores)


def test_max_clusters_reaches_the_score():
    result = evaluate_stream(lambda order: (LABELS[order], None, None), LABELS, KNOWN, max_clusters=1)
    assert result.mean["strict"]["all"] == pytest.approx(0.3)


def test_the_result_is_ready_for_json():
    result = evaluate_stream(lambda order: (np.zeros(len(order)), None, None), LABELS, list(LABELS), seed=3)
    record = result.as_dict()
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert (record["orders"], record["seed"], len(record["scores"])) == (3, 3, 3)
    assert record["mean"]["named"] is None
    assert record["mean"]["strict"]["new"] is None


def test_the_table_has_a_header_and_rows_of_four_cells():
    result = evaluate_stream(lambda order: (np.zeros(len(order)), None, None), LABELS, KNOWN)
    rows = result.table()
    assert rows[0] == ("", "All", "Old", "New")
    assert rows[1] == ("Strict", "30.0 ± 0.0", "60.0 ± 0.0", "0.0 ± 0.0")
    assert ("Named", "-", "-", "-") in rows
    assert ("Categories", "1.0 ± 0.0", "", "") in rows
    assert {len(row) for row in rows} == {4}


def with_second_thoughts(order):
    """As `settle_on_the_third_new_sample`; in the end every new sample is in the category of its class."""
    predictions, marks, novelty = settle_on_the_third_new_sample(order)
    return predictions, marks, novelty, ([str(label) for label in LABELS[order]], marks)


def test_answers_as_given_are_the_protocol_and_those_that_stand_are_scored_apart():
    at_once = evaluate_stream(settle_on_the_third_new_sample, LABELS, KNOWN, orders=3)
    result = evaluate_stream(with_second_thoughts, LABELS, KNOWN, orders=3)
    assert result.scores == at_once.scores
    assert result.mean == at_once.mean
    assert all(s.strict == s.named == Accuracy(1.0, 1.0, 1.0) for s in result.standing)
    assert result.standing_mean["strict"]["all"] == 1.0
    assert result.standing_mean["categories"] == 4.0
    assert result.standing_mean["auroc"] is None, "novelty was asked of the moment"
    assert result.mean["strict"]["all"] < 1.0


def test_without_second_thoughts_nothing_is_said_of_the_end():
    for decide in (settle_on_the_third_new_sample, lambda order: (*settle_on_the_third_new_sample(order), None)):
        result = evaluate_stream(decide, LABELS, KNOWN)
        assert result.standing is None
        assert result.standing_mean is None
        assert "standing" not in result.as_dict()
        assert not any("in the end" in row[0] for row in result.table())


def test_an_order_whose_answers_stand_counts_as_it_was_given():
    orders = iter([with_second_thoughts, lambda order: (*settle_on_the_third_new_sample(order), None)])
    result = evaluate_stream(lambda order: next(orders)(order), LABELS, KNOWN, orders=2)
    assert result.standing[1] == result.scores[1]
    assert result.standing[0] != result.scores[0]


def test_the_end_is_in_the_table_and_in_json():
    result = evaluate_stream(with_second_thoughts, LABELS, KNOWN)
    rows = result.table()
    assert ("Strict, in the end", *["100.0 ± 0.0"] * 3) in rows
    assert ("Named, in the end", *["100.0 ± 0.0"] * 3) in rows
    assert ("Categories, in the end", "4.0 ± 0.0", "", "") in rows
    assert {len(row) for row in rows} == {4}
    record = result.as_dict()
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert [s["strict"]["all"] for s in record["standing"]] == [1.0] * 3


class TestRefused:
    @pytest.mark.parametrize(("setting", "value"), [("orders", 0), ("seed", -1)])
    def test_settings_out_of_range(self, setting, value):
        with pytest.raises(SettingsError, match=f"{setting} is {value}"):
            evaluate_stream(settle_on_the_third_new_sample, LABELS, KNOWN, **{setting: value})

    def test_an_answer_that_is_not_a_triple(self):
        with pytest.raises(DataError, match="predictions, discovered and novelty"):
            evaluate_stream(lambda order: LABELS[order], LABELS, KNOWN)

    def test_an_answer_of_the_wrong_length(self):
        with pytest.raises(DataError, match="predictions has 9 values for 10 labels"):
            evaluate_stream(lambda order: (LABELS[order][1:], None, None), LABELS, KNOWN)

    def test_class_order_of_labels_that_do_not_sort(self):
        with pytest.raises(DataError, match="cannot be sorted"):
            evaluate_stream(lambda order: (order, None, None), [1, "a"], [1], class_order=True)

    def test_labels_without_an_order(self):
        with pytest.raises(DataError, match="labels is a set"):
            evaluate_stream(lambda order: (order, None, None), {1, 2}, [1])


@pytest.mark.parametrize("name", ["newfound.evaluation", "newfound.evaluation.score"])
def test_the_examples_in_the_docstrings_run(name):
    check_examples(importlib.import_module(name))
