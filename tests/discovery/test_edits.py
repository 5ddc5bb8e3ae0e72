"""What people say of sightings is done: they move with their evidence, stay where they were put, and leave no mess."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from newfound.discovery import (
    BayesianDictionary,
    CodeDictionary,
    GaussianExpansion,
    LeaderDictionary,
    OnlinePrototypes,
    PrototypeDictionary,
    RuleDictionary,
    SignCode,
    ThreeWay,
    events_of,
)
from newfound.discovery._model import Model
from newfound.discovery._unions import unions
from newfound.errors import FeatureError, SettingsError

AXES = np.eye(3)[:2]
TWO = [[2.0, 0.0, 0.0], [-4.0, 4.0, 4.0]]  # the first is like the known category 0, the second like none
SUMS = [[4.0, 0.0, 0.0], [0.0, 4.0, 0.0]], [2, 2]
WISE = {"reconsider_every": 3, "reconsider_at": -1.0, "merge_at": 0.5}
BOOKS = {
    "fixed": lambda: PrototypeDictionary(AXES, 0.8),
    "running": lambda: PrototypeDictionary(AXES, 0.8, update="running"),
    "bayesian": lambda: BayesianDictionary([4.0] * 3, *SUMS, 0.5, reconsider_every=1000),
    "online": lambda: RuleDictionary(AXES, OnlinePrototypes(), 0.8),
    "three way": lambda: RuleDictionary(AXES, ThreeWay(mature=2), 0.8),
    "gaussian": lambda: RuleDictionary(AXES, GaussianExpansion(0.3), 0.8),
    "leaders": lambda: LeaderDictionary(AXES, [0, 1], 2, 0.8),
    "codes": lambda: CodeDictionary([[1, 0, 0]], [0], 2, SignCode(3), 1.0),
    "near codes": lambda: CodeDictionary([[1, 0, 0]], [0], 2, SignCode(3), 0.6),
}
MINDS = BOOKS | {  # those that also change by themselves
    "merging": lambda: PrototypeDictionary(AXES, 0.9, update="running", merge_every=4, merge_at=0.7),
    "wise": lambda: BayesianDictionary([4.0] * 3, *SUMS, 1.0, alone=-3.0, memory=7, **WISE),
    "learning": lambda: BayesianDictionary([9.0] * 3, *SUMS, 2.0, alone=-4.0, learn_known=True, concentration=1.0,
                                           discount=0.3, **WISE),
}  # fmt: skip
rows = st.lists(st.integers(-3, 3), min_size=3, max_size=3).filter(any)
admitted = st.tuples(rows, st.integers(0, 9), st.booleans())  # a feature, which category, whether a person said so


def bits(dictionary) -> dict[str, str | bytes]:
    state = dictionary.state()
    return {k: v.tobytes() if isinstance(v, np.ndarray) else json.dumps(v) for k, v in state.items()}


def line(*places: float) -> np.ndarray:
    return np.array(places, np.float32)[:, None]


class Told:
    """A dictionary, and a plain list of where each sighting belongs."""

    def __init__(self, dictionary, one_by_one: bool) -> None:
        self.d, self.one_by_one = dictionary, one_by_one
        self.features, self.homes, self.pinned = np.empty((0, 3)), np.empty(0, np.int64), set()

    def see(self, features) -> None:
        for part in np.array_split(features, len(features)) if self.one_by_one else [features]:
            self.homes = np.append(self.homes, self.d.observe(part).category)
            for event in events_of(self.d):
                if event.sighting is not None:
                    assert event.sighting not in self.pinned
                    self.homes[event.sighting] = event.target
        self.features = np.concatenate([self.features, features])

    def tell(self, picks, to: int) -> None:
        numbers = list(dict.fromkeys(pick % self.d.seen for pick in picks))
        target = None if to < 0 else int(self.d.ids[to % len(self.d)])
        following = self.d.state()["next_id"]
        home = self.d.reassign(numbers, self.features[numbers], self.homes[numbers], target)
        assert home == (following if target is None else target)
        self.homes[numbers] = home
        self.pinned |= set(numbers)
        assert events_of(self.d) == []

    def merge(self, picks) -> None:
        ids = np.unique(self.d.ids[np.array(picks) % len(self.d)])
        self.d.merge(ids[-1:] if np.count_nonzero(ids < self.d.known) > 1 else ids)

    def do(self, step) -> None:
        kind, *what = step
        if kind == "see" or self.d.seen:
            getattr(self, kind)(*what)

    def check(self) -> None:
        d, homes = self.d, self.d.resolve(self.homes)
        assert d.counts.tolist() == [np.count_nonzero(homes == name) for name in d.ids]
        assert d.counts.sum() == d.seen == len(homes)
        assert np.isin(d.resolve(np.arange(d.state()["next_id"])), d.ids).all()
        assert bits(d.copy()) == bits(d)
        if isinstance(d, BayesianDictionary):
            self.check_evidence(homes)

    def check_evidence(self, homes) -> None:
        """The evidence of a discovered category is all its members but those that wait, or did in vain."""
        state = self.d.state()
        sure = np.setdiff1d(np.arange(len(homes)), np.append(state["waiting_sightings"], state["lapsed"]))
        for row in range(self.d.known, len(self.d)):
            mine = sure[homes[sure] == self.d.ids[row]]
            assert state["evidence"][row] == state["members"][row] == len(mine) > 0
            np.testing.assert_allclose(state["sums"][row], self.features[mine].sum(axis=0), atol=1e-9)


steps = st.one_of(
    st.tuples(st.just("see"), st.lists(rows, min_size=1, max_size=6).map(lambda r: np.array(r, float))),
    st.tuples(st.just("tell"), st.lists(st.integers(0, 40), min_size=1, max_size=4), st.integers(-2, 6)),
    st.tuples(st.just("merge"), st.lists(st.integers(0, 9), min_size=1, max_size=3)),
)


@pytest.mark.parametrize("kind", MINDS)
@settings(max_examples=25, deadline=None)
@given(story=st.lists(steps, min_size=2, max_size=9))
def test_whatever_people_do_the_books_stay_right_and_batching_changes_nothing(kind, story):
    together, single = Told(MINDS[kind](), False), Told(MINDS[kind](), True)
    for step in story:
        together.do(step)
        single.do(step)
        together.check()
    assert bits(together.d) == bits(single.d)


@pytest.mark.parametrize("kind", BOOKS)
@settings(max_examples=20, deadline=None)
@given(features=st.lists(rows, min_size=1, max_size=25))
def test_admitting_what_was_answered_gives_the_dictionary_that_answered_it(kind, features):
    seen, told = BOOKS[kind](), BOOKS[kind]()
    told.admit(features, seen.observe(features).category)
    assert bits(told) == bits(seen)


@pytest.mark.parametrize("kind", MINDS)
@settings(max_examples=20, deadline=None)
@given(samples=st.lists(admitted, min_size=1, max_size=25), cuts=st.lists(st.integers(0, 24)))
def test_admitting_in_many_calls_is_admitting_in_one(kind, samples, cuts):
    features = np.array([row for row, _, _ in samples], float)
    names, pinned, following = [], np.array([flag for *_, flag in samples]), 2
    for _, pick, _ in samples:
        names.append(pick % (following + 1))
        following = max(following, names[-1] + 1)
    whole, parts = MINDS[kind](), MINDS[kind]()
    whole.admit(features, names, pinned)
    edges = sorted({0, len(samples), *(cut for cut in cuts if cut < len(samples))})
    for a, b in itertools.pairwise(edges):
        parts.admit(features[a:b], names[a:b], pinned[a:b])
    assert bits(whole) == bits(parts) == bits(whole.copy())
    assert whole.counts.tolist() == np.bincount(names, minlength=following).tolist()
    assert whole.seen == len(samples)


def test_a_running_sum_that_cancels_out_leaves_the_last_direction_however_it_is_admitted():
    # (1, 0) (0, 1) (-1, 0) (0, -1): the sums are (1, 0) (1, 1) (0, 1) (0, 0), and the last with a direction is (0, 1).
    loop = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    for size in (1, 3, 4):
        d = PrototypeDictionary(np.empty((0, 2)), update="running")
        for start in range(0, 4, size):
            d.admit(loop[start : start + size], [0] * len(loop[start : start + size]))
        assert d.prototypes.tolist() == [[0.0, 1.0]]


def test_a_moved_sighting_takes_its_part_of_a_running_prototype_along():
    d = PrototypeDictionary(np.empty((0, 2)), 0.5, update="running")
    assert d.observe([[1.0, 0.0], [0.6, 0.8], [-1.0, 0.0]]).category.tolist() == [0, 0, 1]
    assert d.reassign([1], [[0.6, 0.8]], [0], 1) == 1
    # (1, 0) is left of the one; the other is (-1, 0) + (0.6, 0.8) = (-0.4, 0.8), of length 0.4 * sqrt(5).
    np.testing.assert_allclose(d.prototypes, [[1.0, 0.0], [-1 / 5**0.5, 2 / 5**0.5]], atol=1e-6)
    assert d.counts.tolist() == [1, 2]


@pytest.mark.parametrize("update", ["fixed", "running"])
def test_a_category_that_several_found_has_the_direction_of_their_sum(update):
    d = PrototypeDictionary([[1.0, 0.0]], 0.0, update=update)
    d.observe([[1.0, 0.0], [0.6, 0.8], [0.8, 0.6]])
    assert d.reassign([2, 1], [[0.8, 0.6], [0.6, 0.8]], [0, 0]) == 1
    # (0.6, 0.8) + (0.8, 0.6) = (1.4, 1.4); what is known does not learn from the stream.
    np.testing.assert_allclose(d.prototypes, [[1.0, 0.0], [0.5**0.5, 0.5**0.5]], atol=1e-6)
    assert (d.ids.tolist(), d.counts.tolist()) == ([0, 1], [1, 2])


@pytest.mark.parametrize("kind", BOOKS)
def test_a_discovered_category_left_without_members_dissolves_and_a_known_one_stays(kind):
    d = BOOKS[kind]()
    out = d.observe(TWO)
    assert out.category.tolist() == [0, 2]
    assert d.reassign([1], TWO[1:], [2], 1) == 1
    assert (d.ids.tolist(), d.counts.tolist(), d.aliases) == ([0, 1], [1, 1], {2: 1})
    assert d.reassign([0, 1], TWO, [0, 2]) == 3  # the id 2 is not used again
    assert (d.ids.tolist(), d.counts.tolist()) == ([0, 1, 3], [0, 0, 2])
    assert bits(d.copy()) == bits(d)


@pytest.mark.parametrize("kind", sorted(set(BOOKS) - {"bayesian"}))
def test_moving_a_sighting_to_where_it_belongs_changes_nothing(kind):
    d = BOOKS[kind]()
    d.observe(TWO)
    before = bits(d)
    assert d.reassign([1], TWO[1:], [2], 2) == 2
    assert d.reassign([], np.empty((0, 3)), [], 0) == 0
    assert bits(d) == before


BAD = {
    "an unknown source": ([0], [7], 0, "no category 7"),
    "a source that is none": ([0], [-1], 0, "no category -1"),
    "an unknown target": ([0], [0], 5, "no category 5"),
    "a target that is none": ([0], [0], -1, "no category -1"),
    "several targets": ([0], [0], [1, 2], "one category"),
    "an unseen number": ([2], [0], 1, "no sighting 2"),
    "a negative number": ([-1], [0], 1, "no sighting -1"),
    "a number twice": ([0, 0], [0, 0], 1, "named twice"),
    "too few sources": ([0, 1], [0], 1, "one source for each"),
    "numbers that are none": ([0.5], [0], 1, "integers"),
    "more than a source has": ([0, 1], [2, 2], 1, "2 sightings are said to be of category 2, which has 1"),
    "nobody to found a category": ([], [], None, "founded by one"),
}


@pytest.mark.parametrize("kind", BOOKS)
@pytest.mark.parametrize("case", BAD)
def test_moves_that_cannot_be_are_refused_and_change_nothing(kind, case):
    d = BOOKS[kind]()
    d.observe(TWO)
    before = bits(d)
    numbers, sources, target, message = BAD[case]
    with pytest.raises(SettingsError, match=message):
        d.reassign(numbers, np.ones((len(numbers), 3)), sources, target)
    with pytest.raises(SettingsError, match="one number for each"):
        d.reassign([0], np.ones((2, 3)), [0], 1)
    with pytest.raises(FeatureError):
        d.reassign([0], [[np.nan, 0.0, 1.0]], [0], 1)
    assert bits(d) == before


@pytest.mark.parametrize(("names", "pinned", "message"), [
    ([0, 3], None, "neither living nor the next, 2"),
    ([2, 4], None, "neither living nor the next, 3"),
    ([0, -1], None, "sample 1"),
    ([0], None, "one category for each"),
    ([0, 1], [True], "pinned"),
    ([0, 1], [0.5, 1], "pinned"),
])  # fmt: skip
@pytest.mark.parametrize("kind", BOOKS)
def test_answers_that_cannot_be_are_not_admitted(kind, names, pinned, message):
    d = BOOKS[kind]()
    before = bits(d)
    with pytest.raises(SettingsError, match=message):
        d.admit(np.ones((2, 3)), names, pinned)
    assert bits(d) == before


def test_an_id_that_lives_on_under_another_is_not_admitted():
    d = BOOKS["fixed"]()
    d.observe([[-1.0, 0.0, 0.0]])
    d.merge([1, 2])
    with pytest.raises(SettingsError, match="category 2, which is neither living"):
        d.admit(np.ones((1, 3)), [2])


def test_a_split_divides_the_evidence_of_a_category():
    d = BayesianDictionary([4.0], np.empty((0, 1)), [], threshold=-50.0)
    d.observe(line(1.0, 2.5, 4.0, 0.5))
    assert d.reassign([2, 1], line(4.0, 2.5), [0, 0]) == 1
    # 1 + 2.5 + 4 + 0.5 = 8 of four readings: 1.5 of two stays, 6.5 of two goes.
    state = d.state()
    assert (state["sums"].tolist(), state["evidence"].tolist()) == ([[1.5], [6.5]], [2, 2])
    told = BayesianDictionary([4.0], [[1.5], [6.5]], [2, 2], threshold=-50.0)
    assert d.predict(line(3.0), 1).score == told.predict(line(3.0), 1).score


@pytest.mark.parametrize(("learn_known", "evidence", "total"), [(False, 9, 45.0), (True, 10, 46.0)])
def test_a_known_category_takes_evidence_in_only_if_it_learns(learn_known, evidence, total):
    d = BayesianDictionary([25.0], [[0.0], [45.0]], [9, 9], threshold=-50.0, learn_known=learn_known)
    d.observe(line(1.0))
    d.reassign([0], line(1.0), [0], 1)
    state = d.state()
    assert (state["counts"].tolist(), state["members"].tolist()) == ([0, 1], [9, 10])
    assert (state["evidence"].tolist(), state["sums"].tolist()) == ([9, evidence], [[0.0], [total]])


def test_a_candidate_that_a_person_moves_stops_waiting_and_is_evidence_where_it_goes():
    d = BayesianDictionary([25.0], [[0.0], [90.0]], [9, 9], threshold=0.5, alone=-50.0, learn_known=True)
    assert d.observe(line(3.0, 7.0)).doubtful.tolist() == [True, True]
    d.reassign([0], line(3.0), [0], 1)
    assert (d.candidates, d.counts.tolist(), d.state()["evidence"].tolist()) == (1, [0, 2], [9, 10])
    d.reassign([1], line(7.0), [1], 1)  # confirmed: it cannot found anything elsewhere any more
    assert (d.candidates, d.state()["evidence"].tolist()) == (0, [9, 11])


def test_what_a_person_has_put_somewhere_second_thoughts_leave_there():
    def told(*numbers):
        d = BayesianDictionary([25.0], np.empty((0, 1)), [], threshold=0.0, reconsider_every=10)
        d.observe(line(0.0, 2.3, 4.2))
        for number in numbers:
            d.reassign([number], line(2.3), [0], 0)
        d.observe(line(4.2, 4.1, 4.2, 4.3, 0.0, -0.1, 0.1))
        return [event.sighting for event in d.copy().drain_events()]

    assert (told(), told(1)) == ([1], [])


def test_what_is_no_longer_a_persons_word_second_thoughts_may_move_again():
    d = BayesianDictionary([25.0], np.empty((0, 1)), [], threshold=0.0, reconsider_every=10)
    d.observe(line(0.0, 2.3, 4.2))
    d.reassign([1, 0], line(2.3, 0.0), [0, 0], 0)
    assert d.state()["pinned"].tolist() == [True, True, False]
    d.reassign([1, 0], line(2.3, 0.0), [0, 0], 0, pinned=[False, True])
    assert d.state()["pinned"].tolist() == [True, False, False]
    d.observe(line(4.2, 4.1, 4.2, 4.3, 0.0, -0.1, 0.1))
    assert [event.sighting for event in d.drain_events()] == [1]


def test_pins_that_are_not_one_for_each_sighting_are_refused():
    d = BayesianDictionary([25.0], np.empty((0, 1)), [], threshold=0.0)
    d.observe(line(0.0, 2.3))
    before = bits(d)
    with pytest.raises(SettingsError, match="pinned is True or False for each of 2"):
        d.reassign([0, 1], line(0.0, 2.3), [0, 0], 0, pinned=[True])
    assert bits(d) == before


@pytest.mark.parametrize(("pinned", "merged"), [([], 1), ([0], 1), ([0, 1], 0)])
def test_twins_that_a_person_keeps_apart_do_not_merge(pinned, merged):
    d = BayesianDictionary([25.0], np.empty((0, 1)), [], threshold=2.0, reconsider_every=3, merge_at=1.0)
    assert d.observe(line(0.0, 1.0)).category.tolist() == [0, 1]
    for number in pinned:
        d.reassign([number], line(float(number)), [number], number)
    d.observe(line(60.0))
    assert sum(event.kind == "merged" for event in d.drain_events()) == merged


def test_rows_that_stay_apart_do_not_become_one_by_way_of_a_third():
    model, sums, counts = Model(np.array([100.0]), 30), np.array([[0.0], [0.1], [0.2]]), np.array([1, 1, 1])
    assert len(unions(model, sums, counts, np.array([False, False, False]), 0.0)) == 2
    assert len(unions(model, sums, counts, np.array([True, False, True]), 0.0)) == 1


def test_a_source_that_the_memory_contradicts_is_refused():
    d = BayesianDictionary([25.0], [[0.0], [90.0]], [9, 9], reconsider_every=100)
    d.observe(line(0.0, 10.0))
    before = bits(d)
    with pytest.raises(SettingsError, match="sighting 0 belongs to category 0, not to 1"):
        d.reassign([0], line(0.0), [1], 0)
    assert bits(d) == before


def test_a_candidate_older_than_the_memory_stops_waiting_and_can_still_be_moved():
    d = BayesianDictionary([25.0], [[0.0]], [9], threshold=0.5, alone=-50.0, reconsider_every=2, memory=3,
                           reconsider_at=90.0)  # fmt: skip
    d.observe(line(3.0, 0.0, 0.0))
    assert d.candidates == 1
    d.observe(line(0.0))  # four were seen, and the last three are remembered
    assert (d.candidates, d.counts.tolist(), d.state()["lapsed"].tolist()) == (0, [4], [0])
    assert d.observe(line(3.0)).doubtful.tolist() == [True]  # the first of its kind again
    assert d.state()["members"].tolist() == [12]
    assert d.reassign([0], line(3.0), [0]) == 1
    assert (d.state()["members"].tolist(), d.state()["lapsed"].tolist()) == ([12, 1], [])  # it was no member


def test_states_written_before_people_could_move_sightings_still_load():
    d = BOOKS["bayesian"]()
    d.observe(TWO)
    old = {name: value for name, value in d.state().items() if name not in ("pinned", "lapsed")}
    assert bits(BayesianDictionary.from_state(old)) == bits(d)


@pytest.mark.parametrize("rule", [ThreeWay(), GaussianExpansion(0.3)])
def test_a_rule_that_goes_by_sums_forgets_who_left(rule):
    d = RuleDictionary([[0.0, -1.0]], rule, 0.5)
    assert d.observe([[1.0, 0.0], [0.8, 0.6], [0.8, -0.6]]).category.tolist() == [1, 1, 0]
    d.reassign([1], [[0.8, 0.6]], [1], 0)
    np.testing.assert_allclose(d.prototypes, [[0.0, -1.0], [1.0, 0.0]], atol=1e-6)
    np.testing.assert_allclose(d.state()["membership"], [[0.0, 0.0, 0.0, 0.0]], atol=1e-6)  # as when it was founded


def test_a_step_of_a_prototype_cannot_be_taken_back():
    d = RuleDictionary([[0.0, -1.0]], OnlinePrototypes(momentum=0.5), 0.5)
    d.observe([[1.0, 0.0], [0.8, 0.6]])
    before = d.prototypes.copy()
    d.reassign([1], [[0.8, 0.6]], [1], 0)
    assert d.prototypes.tolist() == before.tolist()


def test_images_like_a_moved_one_go_where_it_went():
    d = LeaderDictionary([[0.0, 1.0]], [0], 1, 0.7)
    assert d.observe([[1.0, 0.0], [0.8, -0.6]]).category.tolist() == [1, 1]
    d.reassign([1], [[0.8, -0.6]], [1], 0)
    assert d.predict([[0.8, -0.6], [1.0, 0.0]]).category.tolist() == [0, 1]
    d.observe([[0.96, 0.28]])
    d.reassign([0], [[1.0, 0.0]], [1], 0)  # its own leader goes too, though another member stays behind
    assert d.predict([[1.0, 0.0]]).category.tolist() == [0]
    assert (d.ids.tolist(), d.counts.tolist()) == ([0, 1], [2, 1])
    d.reassign([0], [[1.0, 0.0]], [0], 1)
    assert d.predict([[1.0, 0.0]]).category.tolist() == [1]


def test_pinned_leaders_are_admitted_as_leaders():
    d = LeaderDictionary([[0.0, 1.0]], [0], 1, 0.9)
    d.admit([[1.0, 0.0], [0.8, -0.6], [0.6, 0.8]], [1, 0, 0], [False, True, False])
    assert d.predict([[1.0, 0.0], [0.8, -0.6]]).category.tolist() == [1, 0]
    assert len(d.leaders) == 3


def test_a_code_goes_with_a_moved_sighting_only_if_nobody_else_can_have_it():
    d = CodeDictionary([[1, 1, 1, 1]], [0], 1, SignCode(4), 0.75)
    a, near = [-1.0, -1.0, -1.0, -1.0], [1.0, -1.0, -1.0, -1.0]
    assert d.observe([a, a, near]).category.tolist() == [1, 1, 1]
    d.reassign([2], [near], [1], 0)  # its code was nobody's
    assert d.predict([near, a]).category.tolist() == [0, 1]
    assert d.reassign([0], [a], [1]) == 2
    assert d.predict([a]).category.tolist() == [1]  # the other member keeps it
    d.reassign([1], [a], [1], 2)
    assert (d.predict([a]).category.tolist(), d.aliases) == ([2], {1: 2})
