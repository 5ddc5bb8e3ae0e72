"""What is known of a whole journal: the same whether it is looked at in one go, bit by bit, or part by part."""

from __future__ import annotations

import math
import threading
from dataclasses import asdict

from hypothesis import given, settings
from hypothesis import strategies as st

from newfound.journal import Journal
from newfound.journal.rows import SightingRow
from newfound.service.courtesy import Courtesy
from newfound.service.doubting import is_borderline, is_doubtful
from newfound.service.overview import EXEMPLARS, RECENT, Overview
from newfound.service.scanning import scan

MARGIN = 2.0
scores = st.one_of(st.integers(-8, 8).map(float), st.sampled_from([math.inf, -math.inf]))
rivals = st.lists(st.tuples(st.integers(0, 9), scores), max_size=3).map(tuple)
told = st.tuples(st.integers(0, 4), st.booleans(), st.none() | scores, scores, rivals)


def _journal(answers) -> Journal:
    journal = Journal.open(None)
    journal.begin("a model", {}, b"")
    with journal.writing() as writer:
        writer.append([_row(number, *answer) for number, answer in enumerate(answers)])
    return journal


def _row(number, part, created, score, cut, others) -> SightingRow:
    if score is None:  # it was forgotten
        cut, others = None, ()
    shares = (0.5,) * len(others) if number % 2 else ()  # with probabilities, and as older newfounds wrote it
    return SightingRow(
        number, None, None, part, part, created, score, cut, None, None, others, None, 1, 100.0 + number, shares
    )


def _overview(journal: Journal) -> Overview:
    overview = Overview(journal, MARGIN, Courtesy())
    overview.catch_up()
    return overview


def _told(overview: Overview) -> tuple:
    parts = {part: asdict(facts) for part, facts in overview.parts.items()}
    return parts, overview.created, overview.doubtful, overview.borderline


@settings(max_examples=40, deadline=None)
@given(st.lists(told, max_size=30))
def test_columns_say_what_the_rules_say_of_every_row(answers):
    with _journal(answers) as journal:
        there = [row for some in journal.stream() for row in some if row.score is not None]
        looked = [facts for facts, _ in scan(journal, 0, len(answers), MARGIN)]
    assert [n for facts in looked for n in facts.number.tolist()] == [row.number for row in there]
    assert [d for facts in looked for d in facts.doubtful.tolist()] == [is_doubtful(row) for row in there]
    assert [b for facts in looked for b in facts.borderline.tolist()] == [is_borderline(row, MARGIN) for row in there]


@settings(max_examples=20, deadline=None)
@given(st.lists(told, max_size=20), st.lists(told, max_size=20))
def test_a_journal_that_grew_is_known_as_well_as_one_that_is_looked_at_once(before, after):
    with _journal(before) as journal:
        grown = _overview(journal)
        with journal.writing() as writer:
            writer.append([_row(number, *answer) for number, answer in enumerate(after, len(before))])
        grown.catch_up()
        assert _told(grown) == _told(_overview(journal))


def test_of_a_large_part_the_oldest_are_shown_and_the_newest_judged():
    sure, unsure = (0, False, 9.0, 0.0, ()), (0, False, 1.0, 0.0, ())
    with _journal([unsure] * 30 + [sure] * 70 + [unsure] * 10) as journal:
        facts = _overview(journal).parts[0]
    assert facts.exemplars == list(range(EXEMPLARS))
    assert (facts.first, facts.first_time, facts.last_time) == (0, 100.0, 209.0)
    assert list(facts.recent) == [False] * (RECENT - 10) + [True] * 10


@settings(max_examples=20, deadline=None)
@given(st.lists(told.filter(lambda answer: answer[2] is not None), max_size=20))
def test_a_part_that_is_asked_for_early_is_told_as_it_will_be(answers):
    with _journal(answers) as journal:
        known = _overview(journal)
        early = Overview(journal, MARGIN, Courtesy())
        assert early.of_parts(range(5)) == known.of_parts(range(5))
        assert not early.parts


def test_a_gallery_is_shown_whole_while_the_journal_is_looked_at_for_the_first_time(filled):
    whole = [filled.get("/v1/categories"), filled.get("/v1/categories/3")]
    overview = filled.service.overview
    with overview._turn:  # as if another thread were at it
        overview._begin()
        filled.service.shelves._shelf = None
        assert [filled.get("/v1/categories"), filled.get("/v1/categories/3")] == whole
        assert not overview.complete
    filled.service.follower.wake()


def test_work_in_the_background_stands_back_until_requests_are_answered_but_not_for_ever():
    courtesy, went_on = Courtesy(), threading.Event()
    courtesy.stand_back(300)  # nobody asks
    with courtesy.answering():
        courtesy.stand_back(0.01)
        waiting = threading.Thread(target=lambda: (courtesy.stand_back(300), went_on.set()))
        waiting.start()
        assert not went_on.wait(0.05)
    assert went_on.wait(30)
    waiting.join()
