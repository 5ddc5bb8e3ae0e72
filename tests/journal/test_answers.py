"""Promises of newfound.journal.answers: what is packed by column reads as if it were packed one by one."""

from __future__ import annotations

import json

import numpy as np
import pytest

from newfound.discovery.decisions import Decisions
from newfound.journal.answers import Image, packed_rows
from newfound.journal.book import Answered
from newfound.journal.rows import pack_sighting, unpack_sighting

SHARES = (0.0625, 1e-17)  # how probable what came next is
DECIDED = [  # the answer, what came next and its score, and what of it is kept
    (3, (4, 5), (0.25, 1e-17), [[4, 0.25], [5, 1e-17]]),
    (3, (3, 5), (0.25, 0.1), [[5, 0.1]]),
    (3, (5, 5), (0.25, 0.1), [[5, 0.25]]),
    (3, (5, 3), (0.25, 0.1), [[5, 0.25]]),
    (3, (5, -1), (0.25, -1.0), [[5, 0.25]]),
    (3, (-1, -1), (-1.0, -1.0), []),
    (-1, (4, 5), (0.25, 0.1), [[4, 0.25], [5, 0.1]]),
]


@pytest.mark.parametrize("weighed", [False, True], ids=["scores", "probabilities"])
@pytest.mark.parametrize("score", [0.5, np.inf], ids=["finite", "with infinity"])
def test_runners_up_are_told_once_and_without_the_answer(score, weighed):
    decided = [*DECIDED, (0, (1, 2), (score, 0.5), [[1, score], [2, 0.5]])]
    categories, others, scores, expected = zip(*decided, strict=True)
    n = len(decided)
    out = Decisions(
        np.array(categories), np.zeros(n), np.zeros(n, bool), 0.5, np.array(others), np.array(scores),
        runners_up_probability=np.array([SHARES] * n) if weighed else None,
    )  # fmt: skip
    half = np.zeros((n, 2), np.float16)
    flat = [category for pair in others for category in pair]
    rows = packed_rows([Image(None)] * n, half, Answered(out, list(categories), flat, []), 1, 0)
    told = list(map(unpack_sighting, rows))
    assert [row.runners_up for row in told] == [tuple(map(tuple, one)) for one in expected]
    assert list(map(pack_sighting, told)) == rows
    # Of a category that is there twice, the part that fits best says how probable it is.
    shares = [tuple(SHARES[pair.index(c)] for c, _ in one) for pair, one in zip(others, expected, strict=True)]
    assert [row.runners_up_probability for row in told] == (shares if weighed else [()] * n)
    if not weighed:
        assert [json.loads(row[10]) for row in rows] == list(expected)


def test_where_parts_of_one_category_are_among_the_runners_up_the_best_one_speaks_for_it():
    parts, scores, shares = np.array([[7, 8, 5, 6]]), np.array([[0.4, 0.3, 0.2, 0.1]]), np.array([[0.3, 0.2, 0.1, 0.0]])
    out = Decisions(
        np.array([3]), np.zeros(1), np.zeros(1, bool), 0.5, parts, scores, runners_up_probability=shares
    )  # fmt: skip
    answered = Answered(out, [3], [7, 7, 3, 6], [])  # 8 was merged into 7, and 5 into the answer
    row = unpack_sighting(packed_rows([Image(None)], np.zeros((1, 2), np.float16), answered, 1, 0)[0])
    assert (row.runners_up, row.runners_up_probability) == (((7, 0.4), (6, 0.1)), (0.3, 0.0))


def test_a_name_that_no_database_holds_changes_no_other():
    names = ["a.jpg", None, "b\0.jpg", "ü.jpg", "\udcff.jpg"]
    out = Decisions.blank(5, 0.5, 2)
    for field in (out.category, out.score, out.created, out.runners_up_category, out.runners_up_score):
        field[...] = 0
    answered = Answered(out, [0] * 5, [0] * 10, [])
    rows = packed_rows([Image(n) for n in names], np.zeros((5, 2), np.float16), answered, 1, 0)
    assert [row[1] for row in rows] == ["a.jpg", None, "b\\0.jpg", "ü.jpg", "\\udcff.jpg"]
