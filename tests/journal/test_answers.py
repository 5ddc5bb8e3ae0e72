"""Promises of newfound.journal.answers: what is packed by column reads as if it were packed one by one."""

from __future__ import annotations

import json

import numpy as np
import pytest

from newfound.discovery.decisions import Decisions
from newfound.journal.answers import Image, packed_rows
from newfound.journal.book import Answered
from newfound.journal.rows import unpack_sighting

DECIDED = [  # the answer, what came next and its score, and what of it is kept
    (3, (4, 5), (0.25, 1e-17), [[4, 0.25], [5, 1e-17]]),
    (3, (3, 5), (0.25, 0.1), [[5, 0.1]]),
    (3, (5, 5), (0.25, 0.1), [[5, 0.25]]),
    (3, (5, 3), (0.25, 0.1), [[5, 0.25]]),
    (3, (5, -1), (0.25, -1.0), [[5, 0.25]]),
    (3, (-1, -1), (-1.0, -1.0), []),
    (-1, (4, 5), (0.25, 0.1), [[4, 0.25], [5, 0.1]]),
]


@pytest.mark.parametrize("score", [0.5, np.inf], ids=["finite", "with infinity"])
def test_runners_up_are_told_once_and_without_the_answer(score):
    decided = [*DECIDED, (0, (1, 2), (score, 0.5), [[1, score], [2, 0.5]])]
    categories, others, scores, expected = zip(*decided, strict=True)
    n = len(decided)
    out = Decisions(
        np.array(categories), np.zeros(n), np.zeros(n, bool), 0.5, np.array(others), np.array(scores)
    )  # fmt: skip
    half = np.zeros((n, 2), np.float16)
    flat = [category for pair in others for category in pair]
    rows = packed_rows([Image(None)] * n, half, Answered(out, list(categories), flat, []), 1, 0)
    assert [unpack_sighting(row).runners_up for row in rows] == [tuple(map(tuple, one)) for one in expected]
    assert [json.loads(row[10]) for row in rows] == list(expected)


def test_a_name_that_no_database_holds_changes_no_other():
    names = ["a.jpg", None, "b\0.jpg", "ü.jpg", "\udcff.jpg"]
    out = Decisions.blank(5, 0.5, 2)
    for field in (out.category, out.score, out.created, out.runners_up_category, out.runners_up_score):
        field[...] = 0
    answered = Answered(out, [0] * 5, [0] * 10, [])
    rows = packed_rows([Image(n) for n in names], np.zeros((5, 2), np.float16), answered, 1, 0)
    assert [row[1] for row in rows] == ["a.jpg", None, "b\\0.jpg", "ü.jpg", "\\udcff.jpg"]
