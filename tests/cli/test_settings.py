"""`--set NAME=VALUE`."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newfound.cli._settings import parse_settings
from newfound.errors import SettingsError


@pytest.mark.parametrize(
    ("pair", "expected"),
    [
        ("lr=3e-4", {"lr": 3e-4}),
        ("lr=1", {"lr": 1}),
        ("batch-size=8", {"batch_size": 8}),
        ("flip=false", {"flip": False}),
        ("threshold=0.6", {"threshold": 0.6}),
        ("threshold=adaptive", {"threshold": "adaptive"}),
        ("creator=null", {"creator": None}),
        ("creator=mixup", {"creator": "mixup"}),
        ("merge_every=1000", {"merge_every": 1000}),
        ("nosuch=1", {"nosuch": 1}),
    ],
)
def test_a_value_is_json_where_it_can_be_and_text_elsewhere(pair, expected):
    assert parse_settings([pair], "ltc", ()) == expected


@pytest.mark.parametrize(
    ("pair", "says"),
    [
        ("lr", "write it as NAME=VALUE"),
        ("=3", "write it as NAME=VALUE"),
        ("lr=abc", "lr must be a number"),
        ("lr=NaN", "lr must be a number"),
        ("lr=Infinity", "lr must be a number"),
        ("lr=null", "lr must be a number"),
        ("batch_size=2.5", "batch_size must be a whole number"),
        ("batch_size=true", "batch_size must be a whole number"),
        ("flip=1", "flip must be true or false"),
        ("creator=3", "creator must be text or null"),
        ("threshold=high", "threshold must be a number or adaptive or rehearsed"),
        ("update=[1]", "update must be fixed or running"),
        ("epochs=3", "epochs is not a setting of a method but an option"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused_in_words(pair, says):
    with pytest.raises(SettingsError, match=says):
        parse_settings([pair], "ltc", {"epochs", "seed"})


@given(st.floats(min_value=1e-9, max_value=1e3))
def test_any_number_survives(number):
    assert parse_settings([f"lr={json.dumps(number)}"], "ltc", ()) == {"lr": number}


@pytest.mark.parametrize(
    ("text", "value"), [("False", False), ("TRUE", True), ("None", None), ("null", None), ("false", False)]
)
def test_words_are_read_as_python_and_json_spell_them(text, value):
    name = "first_view_only" if value is not None else "creator"
    assert parse_settings([f"{name}={text}"], "ltc", ()) == {name: value}
