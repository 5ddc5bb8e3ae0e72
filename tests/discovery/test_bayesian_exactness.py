"""Any batching of a Bayesian dictionary gives exactly what a plain loop over single samples gives."""

from __future__ import annotations

import itertools
import math
import warnings
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_prototypes import halving_sum

from newfound.discovery import BayesianDictionary, Event, _compiled, _products, _weighing, second_thoughts

pytestmark = pytest.mark.usefixtures("both_ways")


class Group:
    def __init__(self, total, n, members):
        self.total, self.n, self.members = list(total), n, members


class PlainLoop:
    """The dictionary as one would write it down: Python numbers, one sample at a time, nothing clever."""

    def __init__(self, spread, sums, counts, threshold, *, cap=30, learn_known=False, alone=None, temperature=1.0,
                 even_at=None, new_slope=1.0, new_shift=0.0, concentration=None, discount=0.0, reconsider_every=None,
                 reconsider_at=0.0, memory=5000, merge_at=None):  # fmt: skip
        self.psi = [float(p) for p in spread]
        self.groups = {i: Group(map(float, s), n, n) for i, (s, n) in enumerate(zip(sums, counts, strict=True))}
        self.known = self.next_id = len(self.groups)
        self.counts = dict.fromkeys(self.groups, 0)
        self.waiting, self.past, self.aliases, self.events = {}, [], {}, []
        self.threshold, self.alone, self.cap, self.learn_known = threshold, alone, cap, learn_known
        self.temperature, self.even = temperature, threshold if even_at is None else even_at
        self.slope, self.shifted = new_slope, new_shift
        self.concentration, self.discount = concentration, discount
        self.every, self.at, self.memory, self.merge_at = reconsider_every, reconsider_at, memory, merge_at

    def score(self, x, total, n, members):
        e = min(n, self.cap)
        logs, terms = [math.log(1.0 + p / (0 * p + 1.0)) for p in self.psi], []
        for v, s, p in zip(x, total, self.psi, strict=True):
            pull = p / (e * p + 1.0)
            variance, start = 1.0 + pull, 1.0 + p / (0 * p + 1.0)
            b = s * (e / n) * (pull / variance)
            logs.append(-math.log(variance))
            terms.append((v - variance / 2.0 * b) * b + 0.5 * (1.0 / start - 1.0 / variance) * (v * v))
        ratio = 0.5 * math.fsum(logs) + halving_sum(terms)
        if self.concentration is None:
            return ratio
        common = math.log(self.concentration + self.discount * len(self.groups))
        return ratio + math.log(members - self.discount) - common

    def learns(self, category):
        return category >= self.known or self.learn_known

    def shift(self, category, x, by):
        group = self.groups[category]
        group.members += by
        if self.learns(category):
            group.n += by
            group.total = [s + by * v for s, v in zip(group.total, x, strict=True)]

    def observe_one(self, features, runners_up):
        x = [float(np.float32(v)) for v in features]
        i = len(self.past)
        ranking = sorted((-self.score(x, g.total, g.n, g.members), c) for c, g in self.groups.items())
        rivals = sorted((-self.score(x, self.past[w][0], 1, 1), w) for w in self.waiting)
        score = -ranking[0][0] if ranking else -1e30
        probabilities = self.probabilities(ranking, rivals)
        category, created = (ranking[0][1] if ranking else -1), False
        if ranking and rivals and -rivals[0][0] > score and -rivals[0][0] >= self.threshold:
            partner, category, created = rivals[0][1], self.next_id, True
            total = [a + b for a, b in zip(self.past[partner][0], x, strict=True)]
            self.groups[category], self.counts[category] = Group(total, 2, 2), 0
            del self.waiting[partner]
            self.move(partner, category, i + 1)
        elif ranking and score >= self.threshold:
            self.shift(category, x, 1)
        elif not ranking or self.alone is None or score < self.alone:
            category, created = self.next_id, True
            self.groups[category], self.counts[category] = Group(x, 1, 1), 0
        else:
            self.waiting[i] = True
        self.next_id += created
        self.counts[category] += 1
        self.past.append([x, category])
        others = ranking if created else ranking[1:]
        others = [(c, -s) for s, c in others] + [(-1, -1e30)] * runners_up
        if self.every and len(self.past) % self.every == 0:
            self.reconsider()
            if self.merge_at is not None:
                self.merge_twins()
        return category, score, created, others[:runners_up], probabilities

    def probabilities(self, ranking, rivals):
        fits = [(-s - self.even) / self.temperature for s, _ in ranking]
        new = [0.0, *((-s - self.even) / self.temperature for s, _ in rivals)]
        top = max(fits + new)
        shares = [math.exp(f - top) for f in fits if f >= top - 16], [math.exp(f - top) for f in new if f >= top - 16]
        if (self.slope, self.shifted) == (1.0, 0.0):
            return math.fsum(shares[1]) / math.fsum(shares[0] + shares[1])
        known, fresh = map(math.fsum, shares)
        odds = 16.0 if not known else -16.0 if not fresh else math.log(fresh) - math.log(known)
        odds = self.slope * max(-16.0, min(16.0, odds)) + self.shifted
        if not fits:
            return 1.0
        return 1.0 / (1.0 + math.exp(-odds)) if odds >= 0 else math.exp(odds) / (1.0 + math.exp(odds))

    def move(self, sighting, target, at):
        source = self.home(self.past[sighting][1])
        self.past[sighting][1] = target
        self.counts[source] -= 1
        self.counts[target] += 1
        if source != target:
            self.events.append(Event("moved", at, sighting, source, target))

    def home(self, category):
        while category in self.aliases:
            category = self.aliases[category]
        return category

    def reconsider(self):
        seen, moves = len(self.past), []
        for i in range(max(0, seen - self.memory), seen):
            x, own = self.past[i][0], self.home(self.past[i][1])
            to_beat = -math.inf
            if i not in self.waiting:
                g = self.groups[own]
                n, total = g.n, g.total
                if self.learns(own):
                    n, total = n - 1, [s - v for s, v in zip(total, x, strict=True)]
                to_beat = self.score(x, total, n, g.members - 1) if n else -math.inf
            ranking = sorted(
                (-self.score(x, g.total, g.n, g.members), c) for c, g in self.groups.items()
                if (c < self.known or g.n >= 2) and (c != own or i in self.waiting)
            )  # fmt: skip
            if ranking and -ranking[0][0] >= self.at and -ranking[0][0] > to_beat:
                moves.append((i, own, ranking[0][1]))
        last = {}
        for i, own, target in moves:
            if i in self.waiting:
                del self.waiting[i]
            else:
                self.shift(own, self.past[i][0], -1)
                last[own] = target
            self.shift(target, self.past[i][0], 1)
            self.move(i, target, seen)
        for own, target in sorted(last.items()):
            if self.groups[own].n == 0:
                self.events.append(Event("dissolved", seen, None, own, target))
                self.unite(target, own)
        self.waiting = {i: True for i in self.waiting if i >= seen - self.memory}

    def unite(self, target, gone):
        self.counts[target] += self.counts.pop(gone)
        self.aliases[gone] = target
        return self.groups.pop(gone)

    def explained(self, total, n):
        logs = math.fsum(math.log(n * p + 1.0) for p in self.psi)
        terms = [s * s * (p / (n * p + 1.0)) for s, p in zip(total, self.psi, strict=True)]
        return 0.5 * (halving_sum(terms) - logs)

    def merge_twins(self):
        while True:
            found = []
            new = [(c, min(g.n, self.cap), g) for c, g in self.groups.items() if c >= self.known]
            new = [(c, n, [s * (n / g.n) for s in g.total]) for c, n, g in new]
            for (i, n, a), (j, m, b) in itertools.combinations(sorted(new), 2):
                one = self.explained([s + t for s, t in zip(a, b, strict=True)], n + m)
                found.append((-(one - self.explained(a, n) - self.explained(b, m)), i, j))
            if not found or -min(found)[0] < self.merge_at:
                return
            _, low, high = min(found)
            self.events.append(Event("merged", len(self.past), None, high, low))
            gone, home = self.unite(low, high), self.groups[low]
            home.members += gone.members
            home.n += gone.n
            home.total = [s + t for s, t in zip(home.total, gone.total, strict=True)]


@st.composite
def streams(draw):
    """Readings full of ties: lattice points, repeats, last-bit neighbours; thresholds that scores hit."""
    dimension = draw(st.sampled_from([1, 2, 3, 5]))
    spread = draw(st.lists(st.sampled_from([0.5, 1.0, 4.0, 9.3]), min_size=dimension, max_size=dimension))
    row = st.lists(st.integers(-6, 6), min_size=dimension, max_size=dimension)
    base = np.array(draw(st.lists(row, min_size=1, max_size=6)), np.float32)
    picks = draw(st.lists(st.integers(0, len(base) - 1), min_size=1, max_size=22))
    readings = base[picks]
    for i in draw(st.lists(st.integers(0, len(picks) - 1), max_size=8)):
        j = draw(st.integers(0, dimension - 1))
        readings[i, j] = np.nextafter(readings[i, j], np.float32(draw(st.sampled_from([-9, 9]))))
    known = draw(st.integers(0, min(3, len(base))))
    counts = draw(st.lists(st.integers(1, 5), min_size=known, max_size=known))
    sums = base[:known] * np.array(counts, np.float32).reshape(-1, 1)
    loop = PlainLoop(spread, sums, counts, 0.0)
    scores = [loop.score([float(v) for v in a], [float(v) for v in b], 1, 1) for a in readings[:3] for b in base]
    threshold = draw(st.one_of(st.sampled_from(scores), st.sampled_from([-3.0, 0.0, 1.0])))
    return spread, sums, counts, math.nextafter(threshold, draw(st.sampled_from([-1e9, 1e9, threshold]))), readings


@st.composite
def cases(draw):
    *start, readings = draw(streams())
    threshold = start[-1]
    every = draw(st.sampled_from([None, 1, 3, 7]))
    options = {
        "cap": draw(st.sampled_from([1, 2, 30])),
        "learn_known": draw(st.booleans()),
        "alone": draw(st.sampled_from([None, threshold, threshold - 2.0, threshold - 1e6])),
        "temperature": draw(st.sampled_from([0.1, 1.0, 7.0])),
        "even_at": draw(st.sampled_from([None, 0.0, threshold - 5.0, threshold + 5.0])),
        "new_slope": draw(st.sampled_from([1.0, 0.3])),
        "new_shift": draw(st.sampled_from([0.0, -1.5])),
        "concentration": draw(st.sampled_from([None, 1.0, 0.2])),
        "discount": draw(st.sampled_from([0.0, 0.4])),
        "reconsider_every": every,
        "reconsider_at": draw(st.sampled_from([0.0, -5.0, threshold])),
        "memory": draw(st.sampled_from([5000, 4])),
        "merge_at": draw(st.sampled_from([None, 0.0, -2.0])) if every else None,
    }
    return start, options, readings


@pytest.mark.parametrize("length", [15, 18, 24, 39])
def test_candidates_that_met_their_like_leave_no_warning_of_the_arithmetic(length, monkeypatch):
    """Where products are padded with zeros, which depends on the processor, one of ten streams had one."""
    monkeypatch.setattr(_compiled, "kernels", lambda work: None)  # NumPy's products
    for seed in range(10):
        rng = np.random.default_rng(seed)
        centres = rng.standard_normal((30, length)) * 3
        start = np.full(length, 4.0), centres[:5] * 10, [10] * 5
        d = BayesianDictionary(*start, 5.0, alone=-100.0, reconsider_every=50)
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            d.observe(centres[rng.integers(0, 30, 600)] + rng.standard_normal((600, length)))
        assert len(d) > 5


def cut_up(readings, cuts):
    edges = sorted({0, len(readings), *(c for c in cuts if c < len(readings))})
    return [readings[a:b] for a, b in itertools.pairwise(edges)]


@settings(max_examples=200, deadline=None)
@given(
    cases(), st.lists(st.integers(0, 24), max_size=5), st.integers(1, 24), st.sampled_from([1, 2, 5, 64]),
    st.sampled_from([0, 2]),
)  # fmt: skip
def test_any_batching_gives_the_ids_scores_probabilities_and_events_of_a_plain_loop(case, cuts, rows, run, runners_up):
    start, options, readings = case
    loop = PlainLoop(*start, **options)
    expected = [loop.observe_one(x, runners_up) for x in readings]

    dictionary = BayesianDictionary(*start, **options)
    dictionary._block_rows = rows
    with mock.patch.object(_weighing, "_RUN", run), mock.patch.object(_weighing, "_WORTH", min(run, 2)):
        parts = [dictionary.observe(part, runners_up) for part in cut_up(readings, cuts)]

    names = [name for name in vars(parts[0]) if name != "cut"]
    together = {name: np.concatenate([getattr(part, name) for part in parts]).tolist() for name in names}
    assert together["category"] == [e[0] for e in expected]
    assert together["score"] == [e[1] for e in expected]
    assert together["created"] == [e[2] for e in expected]
    pairs = zip(together["runners_up_category"], together["runners_up_score"], strict=True)
    assert [list(zip(*pair, strict=True)) for pair in pairs] == [e[3] for e in expected]
    assert together["new_probability"] == [e[4] for e in expected]
    assert dictionary.drain_events() == loop.events
    assert dictionary.aliases == loop.aliases
    assert dict(zip(dictionary.ids.tolist(), dictionary.counts.tolist(), strict=True)) == loop.counts
    assert dictionary.counts.sum() == dictionary.seen == len(readings)
    assert dictionary.candidates == len(loop.waiting)


@settings(max_examples=100, deadline=None)
@given(cases(), st.lists(st.integers(0, 24), max_size=5), st.lists(st.integers(0, 24), max_size=2), st.integers(1, 5))
def test_batching_saving_and_looking_leave_no_trace_in_the_state(case, cuts, saves, rows):
    start, options, readings = case
    whole = BayesianDictionary(*start, **options)
    answers = whole.observe(readings, 1)

    other = BayesianDictionary(*start, **options)
    second_thoughts._BLOCK, before = rows, second_thoughts._BLOCK
    parts = []
    for at, part in enumerate(cut_up(readings, cuts)):
        if at in saves:
            other = BayesianDictionary.from_state(other.state())
        parts.append(other.observe(part, 1))
        other.predict(readings)
    second_thoughts._BLOCK = before

    for name in ("category", "score", "probability", "runners_up_probability"):
        assert np.concatenate([getattr(p, name) for p in parts]).tobytes() == getattr(answers, name).tobytes()
    mine, theirs = whole.state(), other.state()
    assert mine.keys() == theirs.keys()
    for name, value in mine.items():
        assert np.asarray(value).tobytes() == np.asarray(theirs[name]).tobytes(), name


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.booleans())
def test_in_many_dimensions_a_whole_batch_and_single_samples_agree_to_the_last_bit(seed, learn_known):
    rng = np.random.default_rng(seed)
    means = rng.standard_normal((7, 70)) * 2
    readings = (means[rng.integers(0, 7, 60)] + rng.standard_normal((60, 70))).astype(np.float32)
    readings[30:] = np.where(rng.random((30, 1)) < 0.3, readings[:30], readings[30:])  # repeats: exact ties
    options = {"learn_known": learn_known, "alone": -40.0, "temperature": 5.0, "concentration": 1.0}
    options |= {"reconsider_every": 20, "merge_at": 0.0}
    start = np.full(70, 4.0), means[:3] * 6, [6, 6, 6], 15.0
    whole, single = BayesianDictionary(*start, **options), BayesianDictionary(*start, **options)
    answers = whole.observe(readings, 2)
    parts = [single.observe(x, 2) for x in readings]
    for name in ("category", "score", "created", "probability", "new_probability", "runners_up_score"):
        assert np.concatenate([getattr(p, name) for p in parts]).tobytes() == getattr(answers, name).tobytes()
    assert whole.drain_events() == single.drain_events()


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([0.5, 6.0]), st.sampled_from([1, 8]), st.sampled_from([-1e6, -60.0]))
def test_doubtful_samples_in_company_get_what_they_get_alone_and_so_do_those_that_meet_them(seed, heat, worth, alone):
    rng = np.random.default_rng(seed)
    means = rng.standard_normal((200, 24)) * 3
    readings = (means[rng.integers(0, 200, 90)] + rng.standard_normal((90, 24))).astype(np.float32)
    readings[80:] = readings[:10]
    start = np.full(24, 9.0), means[:9] * 6, np.full(9, 6), 8.0
    whole, single = (BayesianDictionary(*start, alone=alone, temperature=heat) for _ in range(2))
    with mock.patch.object(_weighing, "_WORTH", worth):
        answers = whole.observe(readings, 1)
    assert answers.doubtful.any()
    parts = [single.observe(x, 1) for x in readings]
    names = ("category", "score", "created", "probability", "new_probability", "runners_up_probability")
    for name in names:
        assert np.concatenate([getattr(p, name) for p in parts]).tobytes() == getattr(answers, name).tobytes()
    assert whole.drain_events() == single.drain_events()
    looked, parts = whole.predict(readings, 1), [single.predict(x, 1) for x in readings]
    for name in names:
        assert np.concatenate([getattr(p, name) for p in parts]).tobytes() == getattr(looked, name).tobytes()


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([None, -40.0]))
def test_what_second_thoughts_have_noted_changes_nothing(seed, alone):
    rng = np.random.default_rng(seed)
    means = rng.standard_normal((9, 12)) * 1.5
    readings = (means[rng.integers(0, 9, 120)] + rng.standard_normal((120, 12))).astype(np.float32)
    options = {"alone": alone, "reconsider_every": 10, "reconsider_at": -10.0, "memory": 40, "merge_at": 0.0}
    noting = BayesianDictionary(np.full(12, 2.0), means[:2] * 6, [6, 6], 6.0, **options)
    forgetful = noting.copy()
    for part in np.split(readings, 12):
        noting.observe(part)
        forgetful.observe(part)
        if noting.seen == 60:  # people move things, too
            for one in (noting, forgetful):
                one.merge([0, int(one.ids[-1])])
        forgetful = forgetful.copy()  # notes are in no state
    mine, theirs = noting.state(), forgetful.state()
    for name, value in mine.items():
        assert np.asarray(value).tobytes() == np.asarray(theirs[name]).tobytes(), name
    assert any(event.kind == "moved" for event in noting.drain_events())


class Noisy(_products.Products):
    """Products that are off by as much as their bound allows beside their own rounding.

    Of the eight units that the bound has for each term, three are the products' own, and one is for adding the noise.
    """

    def __init__(self, block, evidence, *sizes, **rows):
        super().__init__(block, evidence, *sizes, **rows)
        error, size = block.errors(self.longest, self.highest), self._end
        signs = np.random.default_rng(len(block)).choice([-0.5, 0.5], (len(block), size))
        self.values[:, :size] += (signs * error[:, None]).astype(np.float32)


@settings(max_examples=100, deadline=None)
@given(cases())
def test_no_answer_depends_on_how_a_product_was_rounded(case):
    start, options, readings = case
    exact, noisy = BayesianDictionary(*start, **options), BayesianDictionary(*start, **options)
    exact._block_rows = noisy._block_rows = 3
    a = exact.observe(readings, 1)
    with mock.patch.object(_weighing, "Products", Noisy), mock.patch.object(second_thoughts, "Products", Noisy):
        b = noisy.observe(readings, 1)
    for name in ("category", "score", "created", "probability", "runners_up_category", "runners_up_score"):
        assert getattr(a, name).tobytes() == getattr(b, name).tobytes()
    assert exact.drain_events() == noisy.drain_events()
