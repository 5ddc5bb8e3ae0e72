"""The obviously right dictionary of prototypes, streams that are hard to get right, and the comparison of both."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import strategies as st

from newfound.discovery import Decisions, PrototypeDictionary, _filter


class PlainLoop:
    """The dictionary as one would write it down: Python numbers, one sample at a time, nothing clever."""

    def __init__(self, prototypes, threshold, update="fixed", merge_every=None, merge_at=0.995):
        self.vectors = {i: unit(row) for i, row in enumerate(prototypes)}
        self.known, self.next_id, self.seen = len(prototypes), len(prototypes), 0
        self.counts = dict.fromkeys(self.vectors, 0)
        self.sums, self.aliases = {}, {}
        self.threshold, self.update, self.merge_every, self.merge_at = threshold, update, merge_every, merge_at

    def observe_one(self, feature, runners_up=0):
        x = unit(feature)
        ranking = sorted((-similarity(x, v), i) for i, v in self.vectors.items())
        score = -ranking[0][0] if ranking else -1.0
        if not ranking or score < self.threshold:
            category, created, others = self.next_id, True, ranking
            self.next_id += 1
            self.vectors[category], self.sums[category], self.counts[category] = x, [float(v) for v in x], 1
        else:
            category, created, others = ranking[0][1], False, ranking[1:]
            self.counts[category] += 1
            if self.update == "running" and category >= self.known:
                self.sums[category] = [s + float(v) for s, v in zip(self.sums[category], x, strict=True)]
                self.move(category, self.sums[category])
        self.seen += 1
        if self.merge_every and self.seen % self.merge_every == 0:
            self.merge_twins()
        others = [(i, -s) for s, i in others] + [(-1, -1.0)] * runners_up
        return category, score, created, others[:runners_up]

    def move(self, category, total):
        if any(total):
            self.vectors[category] = unit(total)

    def merge_twins(self):
        new = [i for i in self.vectors if i >= self.known]
        mates = {}
        for i in new:
            ranking = sorted((-similarity(self.vectors[i], self.vectors[j]), j) for j in new if j != i)
            if ranking and -ranking[0][0] >= self.merge_at:
                mates[i] = ranking[0][1]
        for low, high in [(i, j) for i, j in mates.items() if i < j and mates.get(j) == i]:
            if self.update == "running":
                total = [a + b for a, b in zip(self.sums[low], self.sums[high], strict=True)]
                self.sums[low] = total
            else:
                a, b = self.counts[low], self.counts[high]
                pairs = zip(self.vectors[low], self.vectors[high], strict=True)
                total = [a * float(x) + b * float(y) for x, y in pairs]
            self.move(low, total)
            self.counts[low] += self.counts.pop(high)
            self.aliases[high] = low
            del self.vectors[high]


def halving_sum(terms):
    terms = list(terms)
    terms += [0.0] * (2 ** math.ceil(math.log2(len(terms))) - len(terms))
    while len(terms) > 1:
        half = len(terms) // 2
        terms = [a + b for a, b in zip(terms[:half], terms[half:], strict=True)]
    return terms[0]


def similarity(a, b):
    return max(-1.0, min(1.0, halving_sum(float(x) * float(y) for x, y in zip(a, b, strict=True))))


def unit(row):
    rounded = [np.float32(v) for v in row]
    if abs(math.sqrt(halving_sum(float(v) ** 2 for v in rounded)) - 1.0) <= 1e-5:
        return rounded
    largest = max(abs(float(v)) for v in row)
    scaled = [float(v) / largest for v in row]
    norm = math.sqrt(halving_sum(v * v for v in scaled))
    return [np.float32(v / norm) for v in scaled]


def small_blocks(dictionary: PrototypeDictionary, rows: int) -> PrototypeDictionary:
    dictionary._block_rows, dictionary._lane_columns = rows, max(1, rows - 1)
    return dictionary


def join(parts: list[Decisions]) -> dict[str, list]:
    names = ("category", "score", "created", "runners_up_category", "runners_up_score")
    return {name: np.concatenate([getattr(part, name) for part in parts]).tolist() for name in names}


@st.composite
def streams(draw):
    """Features full of ties: lattice directions, repeats, last-bit neighbours, norms at both ends of what counts
    as 1; thresholds that scores hit."""
    dimension = draw(st.sampled_from([1, 2, 3, 5, 8]))
    entry = st.integers(-2, 2)
    row = st.lists(entry, min_size=dimension, max_size=dimension).filter(any)
    base = draw(st.lists(row, min_size=1, max_size=6))
    lengths = draw(st.lists(st.sampled_from([1.0, 1 - 9e-6, 1 + 9e-6]), min_size=len(base), max_size=len(base)))
    rows = (np.array([unit(r) for r in base]) * np.array(lengths)[:, None]).astype(np.float32)
    picks = draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=24))
    features = rows[picks]
    for i in draw(st.lists(st.integers(0, len(picks) - 1), max_size=12)):
        j = draw(st.integers(0, dimension - 1))
        features[i, j] = np.nextafter(features[i, j], np.float32(draw(st.sampled_from([-2, 2]))))
    known = rows[: draw(st.integers(0, len(rows)))]
    scores = [similarity(a, b) for a in features for b in rows]
    threshold = draw(st.one_of(st.sampled_from(scores), st.sampled_from([-1.0, 0.0, 0.5, 1.0])))
    nudged = math.nextafter(threshold, draw(st.sampled_from([-2.0, 2.0, threshold])))
    return known.reshape(-1, dimension), features, max(-1.0, min(1.0, nudged))


variants = st.fixed_dictionaries(
    {
        "update": st.sampled_from(["fixed", "running"]),
        "merge_every": st.sampled_from([None, None, 1, 3, 7]),
        "merge_at": st.sampled_from([0.995, 0.5, 1.0, -1.0]),
    }
)


def cut_up(features, cuts):
    edges = sorted({0, len(features), *(c for c in cuts if c < len(features))})
    return [features[a:b] for a, b in itertools.pairwise(edges)]


def check_against_the_plain_loop(stream, variant, cuts, rows, runners_up):
    known, features, threshold = stream
    plain = PlainLoop(known, threshold, **variant)
    expected = [plain.observe_one(f, runners_up) for f in features]

    dictionary = small_blocks(PrototypeDictionary(known, threshold, **variant), rows)
    got = join([dictionary.observe(part, runners_up) for part in cut_up(features, cuts)])

    assert got["category"] == [e[0] for e in expected]
    assert got["score"] == [e[1] for e in expected]
    assert got["created"] == [e[2] for e in expected]
    assert got["runners_up_category"] == [[i for i, _ in e[3]] for e in expected]
    assert got["runners_up_score"] == [[s for _, s in e[3]] for e in expected]
    assert dictionary.ids.tolist() == sorted(plain.vectors)
    assert dictionary.prototypes.tolist() == [[float(v) for v in plain.vectors[i]] for i in sorted(plain.vectors)]
    assert dictionary.counts.tolist() == [plain.counts[i] for i in sorted(plain.vectors)]
    assert dictionary.aliases == plain.aliases
    assert dictionary.seen == len(features)


def with_wrong_products(seed, check, *arguments):
    """Stands for every BLAS there is: products that are wrong by anything up to the bound."""
    rng = np.random.default_rng(seed)

    def wrong_products(a, b, out=None):
        room = _filter.bound(a.shape[1]) - 2.0**-24  # the rest is for rounding to float32
        exact = a.astype(np.float64) @ b.astype(np.float64).T
        wrong = (exact + room * rng.choice([-1.0, 1.0], exact.shape)).astype(np.float32)
        if out is None:
            return wrong
        out[:] = wrong
        return out

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_filter, "products", wrong_products)
        check(*arguments)


def assert_same_state(a, b):
    assert a.keys() == b.keys()
    for name in a:
        assert type(a[name]) is type(b[name])
        if isinstance(a[name], np.ndarray):
            assert a[name].dtype == b[name].dtype
            assert a[name].shape == b[name].shape
            assert a[name].tobytes() == b[name].tobytes()
        else:
            assert a[name] == b[name]


def kind_of(name: str, rng: np.random.Generator, rows: int, dimension: int) -> np.ndarray:
    """Unit rows: in clusters, anywhere, in copies, tied in many ways, or made to be nearly as near as the nearest."""
    anywhere = rng.standard_normal((rows, dimension))
    centres = rng.standard_normal((max(2, rows // 20), dimension))
    made = {
        "random": anywhere,
        "clustered": centres[rng.integers(0, len(centres), rows)] + 0.3 * anywhere,
        "duplicated": anywhere[rng.integers(0, rows // 4 + 1, rows)],
        "tied": rng.integers(-1, 2, (rows, dimension)) + np.eye(dimension)[rng.integers(0, dimension, rows)] * 0.5,
        "adversarial": centres[0] + 1e-6 * anywhere,
        "flat": anywhere * 0.3 ** np.arange(dimension),
    }[name]
    made[~made.any(axis=1)] = 1.0
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


KINDS = ["random", "clustered", "duplicated", "tied", "adversarial", "flat"]
