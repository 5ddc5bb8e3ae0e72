"""The rows about evidence compare like with like; how fast a machine is, is not tested."""

from __future__ import annotations

import numpy as np
import pytest

from newfound.benchmarks import evidence_speed

# In 64 dimensions readings at random come much closer to categories than in 512.
SMALL = {
    "evidence": lambda: evidence_speed.evidence(samples=700, dimension=64, repeats=1, threshold=-150.0),
    "evidence-clustered": lambda: evidence_speed.evidence_clustered(samples=700, dimension=64, clusters=60, repeats=1),
}


@pytest.mark.parametrize("stage", SMALL)
def test_a_row_is_timed_only_beside_a_loop_that_gives_the_same_ids(stage):
    row = SMALL[stage]()
    assert row.stage == stage
    assert "ids equal to the plain loop: True" in row.detail
    assert "second thoughts" in row.detail
    assert "of the smaller products that newfound itself multiplies" in row.detail
    assert row.low <= row.ratio <= row.high
    assert min(row.ours, row.baseline) > 0


def test_readings_at_random_both_join_and_found_and_clusters_mostly_join():
    case = evidence_speed.at_random(700, 64, -150.0)
    assert 0.1 < case.dictionary().observe(case.readings).created.mean() < 0.9
    case = evidence_speed.clustered(700, 64, 60)
    assert case.dictionary().observe(case.readings).created.sum() == 30  # the other half of the classes


@pytest.mark.parametrize(
    ("products", "precisions"),
    [(evidence_speed.full_products, [10, 12, 13]), (evidence_speed.own_products, [31, 31, 31])],
    ids=["full", "own"],
)
def test_the_products_have_the_sizes_of_the_categories_that_there_were(products, precisions):
    case = evidence_speed.clustered(600, 16, 20)
    created = np.zeros(600, bool)
    created[[0, 255, 256, 599]] = True
    sizes = []

    class Watched(np.ndarray):
        def __matmul__(self, other):
            sizes.append((len(self), other.shape[1]))
            return np.asarray(self) @ np.asarray(other)

    watched = evidence_speed.Case(case.sums, case.readings.view(Watched), case.threshold, case.settings)
    products(watched, created)()
    rows = [256, 256, 88]
    assert sizes[::2] == list(zip(rows, [10, 12, 13], strict=True))
    assert sizes[1::2] == list(zip(rows, precisions, strict=True))
