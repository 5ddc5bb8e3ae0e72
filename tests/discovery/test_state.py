"""A dictionary survives being written down."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest

from newfound.discovery import (
    BayesianDictionary,
    CodeDictionary,
    LeaderDictionary,
    OnlinePrototypes,
    PrototypeDictionary,
    RuleDictionary,
    SignCode,
)
from newfound.errors import FeatureError, SettingsError


def lived_in(update: str = "running") -> PrototypeDictionary:
    rng = np.random.default_rng(3)
    p = PrototypeDictionary(rng.standard_normal((5, 12)), 0.6, update=update, merge_every=20, merge_at=0.5)
    p.observe(rng.standard_normal((90, 12)))
    p.merge(p.ids[[-1, -3]])
    assert len(p.aliases) > 1
    return p


@pytest.mark.parametrize("update", ["fixed", "running"])
def test_state_goes_through_safetensors_and_json_and_back(update, tmp_path):
    numpy = pytest.importorskip("safetensors.numpy")
    p = lived_in(update)
    state = p.state()
    arrays = {name: value for name, value in state.items() if isinstance(value, np.ndarray)}
    numpy.save_file(arrays, tmp_path / "state.safetensors")
    rest = json.loads(json.dumps({name: value for name, value in state.items() if name not in arrays}))

    q = PrototypeDictionary.from_state({**numpy.load_file(tmp_path / "state.safetensors"), **rest})

    assert q.prototypes.tobytes() == p.prototypes.tobytes()
    assert q.aliases == p.aliases
    more = np.random.default_rng(4).standard_normal((60, 12))
    a, b = p.observe(more), q.observe(more)
    assert a.category.tolist() == b.category.tolist()
    assert a.score.tobytes() == b.score.tobytes()
    assert q.prototypes.tobytes() == p.prototypes.tobytes()


def test_a_state_does_not_change_with_the_dictionary_it_was_taken_from():
    p = lived_in()
    state = p.state()
    before = {name: np.copy(value) for name, value in state.items() if isinstance(value, np.ndarray)}
    p.observe(np.random.default_rng(5).standard_normal((50, 12)))
    for name, value in before.items():
        assert state[name].tobytes() == value.tobytes()


def test_a_copy_goes_its_own_way():
    p = lived_in()
    q = p.copy()
    size = len(p)
    q.threshold = 1.0
    q.observe(np.random.default_rng(6).standard_normal((10, 12)))
    assert (len(p), p.threshold, p.seen) == (size, 0.6, 90)
    assert len(q) > size


KINDS = {
    "evidence": lambda: BayesianDictionary(np.full(3, 9.0), np.eye(3)[:2] * 40, [8, 8]),
    "prototypes": lambda: PrototypeDictionary(np.eye(3)[:2], threshold=0.6, update="running"),
    "rules": lambda: RuleDictionary(np.eye(3)[:2], rule=OnlinePrototypes(), threshold=0.6),
    "codes": lambda: CodeDictionary([[1, 0, 0], [0, 1, 0]], [0, 1], known=2, coding=SignCode(3), threshold=1.0),
    "leaders": lambda: LeaderDictionary(np.eye(3)[:2], [0, 1], known=2, threshold=0.6),
}


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda d: d.copy()], ids=["copy", "deepcopy", "own"])
def test_what_a_copy_of_any_kind_sees_leaves_the_dictionary_as_it_was(make, copied):
    stream = 9 * np.random.default_rng(6).standard_normal((20, 3))
    first, expected = make(), make()
    assert copied(first).observe(stream).created.any()
    assert (len(first), first.seen) == (2, 0)
    assert first.observe(stream).category.tolist() == expected.observe(stream).category.tolist()


def test_a_state_with_something_missing_is_refused_by_name():
    state = lived_in().state()
    for missing in state:
        with pytest.raises(SettingsError, match=missing):
            PrototypeDictionary.from_state({name: value for name, value in state.items() if name != missing})


DAMAGE = {
    "a row too few": lambda s: s.update(prototypes=s["prototypes"][:-1]),
    "a count too few": lambda s: s.update(counts=s["counts"][:-1]),
    "a sum too few": lambda s: s.update(sums=s["sums"][:-1]),
    "sums of another dimension": lambda s: s.update(sums=s["sums"][:, :-1]),
    "an id twice": lambda s: s["ids"].__setitem__(-1, s["ids"][-2]),
    "an id used again": lambda s: s.update(next_id=s["next_id"] - 1),
    "an alias of itself": lambda s: s["aliases"].__setitem__((0, 1), s["aliases"][0, 0]),
    "an alias lost": lambda s: s.update(aliases=s["aliases"][1:]),
    "a threshold of 3": lambda s: s.update(threshold=3.0),
    "another update": lambda s: s.update(update="fixed"),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_state_is_refused(damage):
    state = lived_in().state()
    PrototypeDictionary.from_state(state)
    damage(state)
    with pytest.raises(SettingsError):
        PrototypeDictionary.from_state(state)


def test_a_state_with_prototypes_that_are_not_numbers_is_refused():
    state = lived_in().state()
    state["prototypes"][2, 3] = np.nan
    with pytest.raises(FeatureError, match="prototype row 2"):
        PrototypeDictionary.from_state(state)
