"""Any batching, block size, layout and filter gives exactly what a plain loop over single samples gives."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_prototypes import (
    assert_same_state,
    check_against_the_plain_loop,
    join,
    similarity,
    small_blocks,
    streams,
    unit,
    variants,
    with_wrong_products,
)
from threadpoolctl import threadpool_limits

from newfound.discovery import PrototypeDictionary, _filter

pytestmark = pytest.mark.usefixtures("both_ways")


@settings(max_examples=200, deadline=None)
@given(streams(), variants, st.sets(st.integers(1, 23)), st.integers(1, 9), st.integers(0, 3))
def test_any_batching_equals_the_plain_loop_bit_for_bit(stream, variant, cuts, rows, runners_up):
    check_against_the_plain_loop(stream, variant, cuts, rows, runners_up)


@settings(max_examples=200, deadline=None)
@given(streams(), variants, st.integers(1, 9), st.integers(0, 2), st.integers(0, 2**32 - 1))
def test_any_filter_within_its_bound_gives_the_same_answers(stream, variant, rows, runners_up, seed):
    with_wrong_products(seed, check_against_the_plain_loop, stream, variant, (), rows, runners_up)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.1, 0.5]), st.integers(2, 12))
def test_prototypes_that_move_in_the_middle_of_a_block_are_met_where_they_are(seed, spread, rows):
    rng = np.random.default_rng(seed)
    directions = rng.integers(-1, 2, (40, 3)) + spread * rng.standard_normal((40, 3))
    features = directions[np.abs(directions).sum(axis=1) > 0.01]
    stream = features[:1], features, float(rng.choice([0.5, 0.7, 0.9]))
    with_wrong_products(seed, check_against_the_plain_loop, stream, {"update": "running"}, (), rows, 0)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["fixed", "running"]), st.integers(2, 12))
def test_pairs_whose_similarity_is_exactly_that_of_merging_are_merged(seed, update, rows):
    rng = np.random.default_rng(seed)
    features = np.array([unit(f) for f in rng.integers(-2, 3, (12, 3)) if any(f)])
    i, j = rng.choice(len(features), 2, replace=False)
    merging = {"update": update, "merge_every": 6, "merge_at": similarity(features[i], features[j])}
    stream = features[:1], features, 0.999
    with_wrong_products(seed, check_against_the_plain_loop, stream, merging, (), rows, 0)


@settings(max_examples=60, deadline=None)
@given(streams(), variants, st.integers(1, 9), st.integers(0, 2))
def test_predict_equals_observing_each_sample_alone_and_changes_nothing(stream, variant, rows, runners_up):
    known, features, threshold = stream
    dictionary = small_blocks(PrototypeDictionary(known, threshold, **variant), rows)
    dictionary.observe(features[::2])
    before = dictionary.state()

    got = dictionary.predict(features, runners_up)

    for i, feature in enumerate(features):
        alone = dictionary.copy().observe(feature, runners_up)
        assert got.created[i] == alone.created[0]
        assert got.category[i] == (-1 if alone.created[0] else alone.category[0])
        assert got.score[i] == alone.score[0]
        assert got.runners_up_category[i].tolist() == alone.runners_up_category[0].tolist()
        assert got.runners_up_score[i].tolist() == alone.runners_up_score[0].tolist()
    assert_same_state(dictionary.state(), before)


@settings(max_examples=60, deadline=None)
@given(streams(), variants, st.integers(0, 23))
def test_a_stream_stopped_and_restored_goes_on_as_if_it_had_not_been(stream, variant, stop):
    known, features, threshold = stream
    whole = PrototypeDictionary(known, threshold, **variant)
    expected = join([whole.observe(features, 1)])

    first = PrototypeDictionary(known, threshold, **variant)
    before = first.observe(features[:stop], 1)
    second = PrototypeDictionary.from_state(first.state())

    assert join([before, second.observe(features[stop:], 1)]) == expected
    assert_same_state(second.state(), whole.state())


def crowded(seed: int, dimension: int = 96, samples: int = 400) -> np.ndarray:
    """Features in tight bunches, whose similarities differ by less than a float32 product can tell."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((20, dimension))
    features = centres[rng.integers(0, 20, samples)] + 1e-6 * rng.standard_normal((samples, dimension))
    features[::5] += 0.7 * rng.standard_normal((len(features[::5]), dimension))
    return (features / np.linalg.norm(features, axis=1, keepdims=True)).astype(np.float32)


def canonical(a, b):
    terms = a.astype(np.float64)[:, None] * b.astype(np.float64)
    terms = np.pad(terms, [(0, 0), (0, 0), (0, 2 ** math.ceil(math.log2(a.shape[1])) - a.shape[1])])
    while terms.shape[2] > 1:
        half = terms.shape[2] // 2
        terms = terms[:, :, :half] + terms[:, :, half:]
    return np.clip(terms[:, :, 0], -1, 1)


def plain_fixed(known, features, threshold):
    """The fixed rule over a table of canonical similarities: fast enough for a stream of real size."""
    vectors, founders = canonical(features, known), canonical(features, features)
    columns, ids, scores = [vectors[:, k] for k in range(len(known))], [], []
    for i in range(len(features)):
        row = [column[i] for column in columns]
        best = int(np.argmax(row))
        scores.append(row[best])
        if row[best] < threshold:
            best = len(columns)
            columns.append(founders[i])
        ids.append(best)
    return ids, scores


@pytest.mark.parametrize("seed", range(3))
def test_bunched_features_that_float32_cannot_tell_apart_are_decided_as_one_by_one(seed):
    features = crowded(seed)
    known, features = features[:40], features[40:]
    table = np.sort(canonical(features, known), axis=1)
    assert (table[:, -1] - table[:, -2] < 2 * _filter.bound(96)).sum() > 100  # the data is as hard as it should be
    threshold = float(np.median(table[:, -1]))  # and scores lie on the threshold itself

    dictionary = PrototypeDictionary(known, threshold)
    got = dictionary.observe(features)

    ids, scores = plain_fixed(known, features, threshold)
    assert got.category.tolist() == ids
    assert got.score.tolist() == scores


@pytest.mark.parametrize("update", ["fixed", "running"])
@pytest.mark.parametrize("size", [1, 7, 64, 256])
def test_real_sized_blocks_of_bunched_features_give_what_single_samples_give(update, size):
    features = crowded(7)
    settings_ = {"threshold": 0.97, "update": update, "merge_every": 90, "merge_at": 0.6}
    one = PrototypeDictionary(features[:20], **settings_)
    expected = join([one.observe(f, 2) for f in features])

    other = PrototypeDictionary(features[:20], **settings_)
    got = join([other.observe(features[i : i + size], 2) for i in range(0, len(features), size)])

    assert got == expected
    assert_same_state(other.state(), one.state())
    assert len(one.aliases) > 0


def test_the_number_of_threads_and_the_memory_layout_change_nothing():
    features = crowded(11)
    known = features[:30]
    expected = join([PrototypeDictionary(known, 0.98).observe(features, 1)])

    wide = np.zeros((len(features), 2 * features.shape[1] + 1), np.float32)
    wide[:, 1::2] = features
    layouts = {
        "fortran": np.asfortranarray(features),
        "strided": wide[:, 1::2],
        "reversed twice": features[::-1].copy()[::-1],
        "float64": features.astype(np.float64),
        "big-endian": features.astype(">f4"),
        "lists": features.tolist(),
    }
    for name, layout in layouts.items():
        assert join([PrototypeDictionary(known, 0.98).observe(layout, 1)]) == expected, name
    with threadpool_limits(1):
        assert join([PrototypeDictionary(known, 0.98).observe(features, 1)]) == expected


@pytest.mark.parametrize("dimension", [1, 3, 64, 513, 2048])
def test_no_product_is_further_from_the_canonical_value_than_the_bound(dimension):
    rng = np.random.default_rng(dimension)
    rows = np.abs(rng.standard_normal((64, dimension)))  # of one sign: nothing cancels, errors add up
    rows = PrototypeDictionary(rows).prototypes
    exact = canonical(rows[:16], rows)
    assert np.abs(_filter.products(rows[:16], rows) - exact).max() <= _filter.bound(dimension)
    worst = np.zeros((16, 64), np.float32)
    for k in range(dimension):  # one after the other, rounded at every step: the worst order there is
        worst += rows[:16, None, k] * rows[None, :, k]
    assert np.abs(worst - exact).max() <= _filter.bound(dimension)
