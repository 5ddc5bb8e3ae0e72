"""Any batching of a stream of codes gives exactly what a plain list gives, one code at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_dictionary import PlainBook, answers, snapshot

from newfound.discovery import CodeDictionary, GroupArgmax, SignCode, TopK, _hamming


class PlainList(PlainBook):
    """The dictionary as one would write it down: lists of bits, one code at a time."""

    def __init__(self, known_codes, owners, known, span, radius):
        super().__init__(map(list, known_codes), owners, known)
        self.span, self.radius = span, radius

    def observe_one(self, code, runners_up, grow=True):
        away = [sum(a != b for a, b in zip(code, other, strict=True)) for other in self.rows]
        score = 1 - min(away) / self.span if away else -1.0
        created = not away or min(away) > self.radius
        category = -1 if created else self.owners[away.index(min(away))]
        nearest = {}
        for owner, distance in zip(self.owners, away, strict=True):
            nearest[owner] = min(distance, nearest.get(owner, distance))
        ranking = sorted((distance, owner) for owner, distance in nearest.items() if owner != category)
        others = [(owner, 1 - distance / self.span) for distance, owner in ranking]
        others = (others + [(-1, -1.0)] * runners_up)[:runners_up]
        if grow:
            category = self.enter(category, created, list(code))
        return category, score, created, others


@st.composite
def codings(draw):
    kind = draw(st.sampled_from(["sign", "top", "group"]))
    if kind == "sign":
        return SignCode(draw(st.integers(1, 130)))
    if kind == "top":
        dimension = draw(st.integers(2, 70))
        return TopK(dimension, draw(st.integers(1, min(4, dimension - 1))))
    groups = draw(st.integers(1, 4))
    return GroupArgmax(groups * draw(st.integers(2, 17)), groups)


@st.composite
def stories(draw):
    """A coding, known codes and owners, a radius, and a stream with repeats and near repeats."""
    coding = draw(codings())
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    centres = rng.standard_normal((draw(st.integers(1, 12)), coding.dimension))
    noise = draw(st.sampled_from([0.0, 0.2, 0.6, 5.0]))

    def drawn(n):
        picked = centres[rng.integers(len(centres), size=n)]
        return picked + noise * rng.standard_normal(picked.shape)

    known = draw(st.integers(0, 5))
    rows = draw(st.integers(0, 8)) if known else 0
    taught, owners = coding.bits(drawn(rows)), rng.integers(known, size=rows) if known else []
    radius = draw(st.one_of(st.integers(0, min(3, coding.span)), st.integers(0, coding.span)))
    return coding, taught, np.array(owners, int), known, radius, drawn(draw(st.integers(0, 40)))


def dictionary_of(story):
    coding, taught, owners, known, radius, stream = story
    return CodeDictionary(taught, owners, known, coding, 1 - radius / coding.span), stream


def plain_of(story):
    coding, taught, owners, known, radius, stream = story
    bits = coding.bits(stream).astype(int).tolist()
    return PlainList(taught.astype(int).tolist(), owners.tolist(), known, coding.span, radius), bits


def cut_up(stream, cuts):
    return np.split(stream, sorted(c % (len(stream) + 1) for c in cuts))


@settings(max_examples=150)
@given(
    story=stories(),
    cuts=st.lists(st.integers(0, 40), max_size=4),
    runners_up=st.integers(0, 4),
    held=st.sampled_from([1, 10, 60, _hamming._DISTANCES]),
)
def test_any_batching_gives_what_a_plain_list_gives_one_by_one(story, cuts, runners_up, held):
    d, stream = dictionary_of(story)
    plain, bits = plain_of(story)
    expected = [plain.observe_one(code, runners_up) for code in bits]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_hamming, "_DISTANCES", held)
        given_answers = [a for part in cut_up(stream, cuts) for a in answers(d.observe(part, runners_up))]
    assert given_answers == expected
    assert dict(zip(d.ids.tolist(), d.counts.tolist(), strict=True)) == plain.counts
    assert d.seen == len(stream)
    assert d.codes.astype(int).tolist() == plain.rows
    assert d.owners.tolist() == plain.owners


@settings(max_examples=60)
@given(story=stories(), runners_up=st.integers(0, 3))
def test_predict_tells_each_reading_what_it_would_be_told_alone_and_changes_nothing(story, runners_up):
    d, stream = dictionary_of(story)
    plain, bits = plain_of(story)
    half = len(stream) // 2
    d.observe(stream[:half])
    for code in bits[:half]:
        plain.observe_one(code, 0)
    before = snapshot(d)
    out = answers(d.predict(stream, runners_up))
    assert out == [plain.observe_one(code, runners_up, grow=False) for code in bits]
    assert snapshot(d) == before


@settings(max_examples=60)
@given(story=stories(), data=st.data())
def test_after_a_merge_all_codes_of_the_merged_belong_to_the_survivor(story, data):
    d, stream = dictionary_of(story)
    plain, bits = plain_of(story)
    half = len(stream) // 2
    d.observe(stream[:half])
    for code in bits[:half]:
        plain.observe_one(code, 0)
    discovered = d.ids[d.known :].tolist()
    if discovered:
        known = data.draw(st.lists(st.sampled_from(range(d.known)), max_size=1)) if d.known else []
        some = known + data.draw(st.lists(st.sampled_from(discovered), min_size=1, unique=True))
        assert d.merge(some) == min(some)
        plain.merge(some)
        assert d.resolve(some).tolist() == [min(some)] * len(some)
        assert set(d.aliases) == set(some) - {min(some)}
    assert answers(d.observe(stream[half:], 3)) == [plain.observe_one(code, 3) for code in bits[half:]]
    assert dict(zip(d.ids.tolist(), d.counts.tolist(), strict=True)) == plain.counts


@settings(max_examples=60)
@given(story=stories())
def test_a_dictionary_that_was_written_down_goes_on_as_if_never_stopped(story):
    d, stream = dictionary_of(story)
    half = len(stream) // 2
    d.observe(stream[:half])
    if len(d) > d.known + 1:
        d.merge(d.ids[-2:])
    e = CodeDictionary.from_state(d.state())
    assert snapshot(e) == snapshot(d)
    assert answers(e.observe(stream[half:], 2)) == answers(d.observe(stream[half:], 2))
    assert snapshot(e) == snapshot(d)


@given(story=stories())
def test_a_sample_is_new_if_and_only_if_its_score_is_below_the_cut(story):
    d, stream = dictionary_of(story)
    for spelling in (d.threshold, (d.coding.span - d.radius) / d.coding.span):
        d.threshold = spelling
        out = d.predict(stream)
        assert out.created.tolist() == (out.score < out.cut).tolist()
        assert out.cut == pytest.approx(spelling)
        assert d.threshold == spelling
