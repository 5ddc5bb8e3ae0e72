"""NMI, ARI and AUROC are those of scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score, roc_auc_score

from newfound.evaluation import score

pairs = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6)), min_size=1, max_size=40)


def assert_as_in_scikit_learn(labels, predictions):
    r = score(labels, predictions, known=[0, 1])
    assert r.nmi == pytest.approx(normalized_mutual_info_score(labels, predictions), abs=1e-9)
    assert r.ari == pytest.approx(adjusted_rand_score(labels, predictions), abs=1e-12)


@given(pairs)
@settings(max_examples=100, deadline=None)
def test_nmi_and_ari_are_those_of_scikit_learn(stream):
    assert_as_in_scikit_learn([label for label, _ in stream], [cluster for _, cluster in stream])


@pytest.mark.parametrize(
    ("labels", "predictions"),
    [
        ([0], [0]),
        ([0, 0, 0], [5, 5, 5]),
        ([0, 1, 2], [5, 6, 7]),
        ([0, 0, 0], [5, 6, 7]),
        ([0, 1, 2], [5, 5, 5]),
        ([0, 0, 1, 1], [5, 6, 5, 6]),
    ],
)
def test_so_are_partitions_with_single_groups_or_single_members(labels, predictions):
    assert_as_in_scikit_learn(labels, predictions)


def test_pairs_of_a_long_stream_do_not_overflow():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 300_000)
    assert_as_in_scikit_learn(labels, np.where(rng.random(300_000) < 0.5, labels, rng.integers(0, 3, 300_000)))


@given(st.lists(st.tuples(st.booleans(), st.integers(-3, 3)), min_size=2, max_size=40))
@settings(max_examples=100, deadline=None)
def test_the_auroc_is_that_of_scikit_learn_ties_included(stream):
    is_new = [new for new, _ in stream]
    novelty = np.array([value for _, value in stream]) / 7
    auroc = score(["x" if new else "a" for new in is_new], [0] * len(stream), known=["a"], novelty=novelty).auroc
    if len(set(is_new)) == 1:
        assert auroc is None
    else:
        assert auroc == pytest.approx(roc_auc_score(is_new, novelty), abs=1e-12)
