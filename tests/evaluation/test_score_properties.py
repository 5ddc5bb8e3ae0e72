"""The rules that hold for every stream, against oracles that try all matchings."""

from __future__ import annotations

from collections import Counter
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from newfound.evaluation import score

KNOWN = {"A", "B"}
CLASSES = ["A", "B", "x", "y", "z"]
PREDICTIONS = ["A", "B", "x", 7, 8]

sightings = st.tuples(st.sampled_from(CLASSES), st.sampled_from(PREDICTIONS), st.booleans())
streams = st.lists(sightings, min_size=1, max_size=16)


def best_matching(samples: list[tuple]) -> tuple[int, int]:
    """(right old, right new) of the best of all matchings of clusters and classes; ties to the most old."""
    clusters = sorted({cluster for cluster, _ in samples}, key=repr)
    count = Counter(samples)

    @cache
    def best_from(position: int, free: frozenset) -> tuple[int, int, int]:
        if position == len(clusters):
            return (0, 0, 0)
        choices = [best_from(position + 1, free)]  # this cluster stays without a class
        for label in free:
            right = count[clusters[position], label]
            total, old, new = best_from(position + 1, free - {label})
            is_old = label in KNOWN
            choices.append((total + right, old + right * is_old, new + right * (not is_old)))
        return max(choices)

    return best_from(0, frozenset(label for _, label in samples))[1:]


def fractions(right_old: int, right_new: int, labels: list[str]) -> list[float | None]:
    old = sum(label in KNOWN for label in labels)
    new = len(labels) - old
    return [
        (right_old + right_new) / len(labels),
        right_old / old if old else None,
        right_new / new if new else None,
    ]


def figures(accuracy: dict) -> list[float | None]:
    return [accuracy["all"], accuracy["old"], accuracy["new"]]


def split(samples: list[tuple]) -> tuple[list[tuple], list[tuple]]:
    return [s for s in samples if s[1] in KNOWN], [s for s in samples if s[1] not in KNOWN]


@given(streams, st.booleans())
@settings(max_examples=100, deadline=None)
def test_every_protocol_finds_the_best_of_all_matchings(stream, mark):
    labels = [label for label, _, _ in stream]
    marks = [marked for _, _, marked in stream] if mark else [value not in KNOWN for _, value, _ in stream]
    samples = [((value, marked), label) for (label, value, _), marked in zip(stream, marks, strict=True)]
    old, new = split(samples)

    r = score(labels, [value for _, value, _ in stream], KNOWN, discovered=marks if mark else None).as_dict()

    assert r["categories"] == len({cluster for cluster, _ in samples})
    assert figures(r["strict"]) == fractions(*best_matching(samples), labels)
    assert figures(r["greedy"]) == fractions(best_matching(old)[0], best_matching(new)[1], labels)
    if mark or not old or not all(marks):
        named_old = sum(cluster == (label, False) for cluster, label in old)
        named_new = best_matching([s for s in new if s[0][1]])[1]
        assert figures(r["named"]) == fractions(named_old, named_new, labels)
    else:
        assert r["named"] is None


@given(streams, st.integers(1, 6))
@settings(max_examples=100, deadline=None)
def test_max_clusters_scores_the_largest_clusters_and_counts_the_rest_as_wrong(stream, max_clusters):
    samples = [(value, label) for label, value, _ in stream]
    labels = [label for _, label in samples]
    size = Counter(cluster for cluster, _ in samples)  # keeps the order of first sight, and sorting is stable
    kept = set(sorted(size, key=lambda cluster: -size[cluster])[:max_clusters])
    samples = [s for s in samples if s[0] in kept]
    old, new = split(samples)

    r = score(labels, [value for _, value, _ in stream], KNOWN, max_clusters=max_clusters).as_dict()

    assert figures(r["strict"]) == fractions(*best_matching(samples), labels)
    assert figures(r["greedy"]) == fractions(best_matching(old)[0], best_matching(new)[1], labels)


@given(streams, st.randoms(use_true_random=False), st.booleans())
@settings(max_examples=100, deadline=None)
def test_neither_the_order_of_the_stream_nor_the_values_of_ids_change_a_figure(stream, random, as_text):
    marks = [value not in KNOWN for _, value, _ in stream]
    novelty = [random.randrange(4) for _ in stream]
    before = score([s[0] for s in stream], [s[1] for s in stream], KNOWN, marks, novelty=novelty).as_dict()

    fresh = random.sample(range(-(10**18), 10**18), len(PREDICTIONS))
    rename = {value: f"id {number}" if as_text else number for value, number in zip(PREDICTIONS, fresh, strict=True)}
    rename |= {value: value for value in KNOWN}
    positions = random.sample(range(len(stream)), len(stream))
    after = score(
        [stream[i][0] for i in positions],
        [rename[stream[i][1]] for i in positions],
        KNOWN,
        [marks[i] for i in positions],
        novelty=[novelty[i] for i in positions],
    ).as_dict()

    assert after.pop("nmi") == pytest.approx(before.pop("nmi"))
    assert after == before


@given(streams)
@settings(max_examples=60, deadline=None)
def test_greedy_is_never_below_strict(stream):
    r = score([s[0] for s in stream], [s[1] for s in stream], KNOWN)
    assert r.greedy.all >= r.strict.all


@given(streams, st.integers(1, 5))
@settings(max_examples=60, deadline=None)
def test_whatever_discovers_nothing_has_no_new_sample_right_under_named(stream, known_classes):
    labels = [label for label, _, _ in stream]
    closed = [CLASSES[PREDICTIONS.index(value) % known_classes] for _, value, _ in stream]
    r = score(labels, closed, known=CLASSES[:known_classes])
    assert r.discovered == 0
    assert r.as_dict()["named"]["new"] in (0.0, None)


@pytest.mark.parametrize(("classes", "clusters"), [(30, 200), (60, 60), (200, 12)])
def test_large_tables_are_matched_as_the_dense_solver_matches_them(classes, clusters):
    rng = np.random.default_rng(classes)
    labels = rng.integers(0, classes, 5000)
    predictions = (labels * 5 + rng.geometric(0.3, 5000)) % clusters
    table = np.zeros((clusters, classes), dtype=int)
    np.add.at(table, (predictions, labels), 1)
    old = classes // 2

    def right(counts):
        return counts[linear_sum_assignment(counts, maximize=True)].sum()

    r = score(labels, predictions, known=range(old))
    assert r.strict.all == right(table) / 5000
    assert r.greedy.all == (right(table[:, :old]) + right(table[:, old:])) / 5000
