"""Promises of the list of methods: what each says of itself, and the controls beside LTC."""

from __future__ import annotations

import pytest

from newfound.errors import SettingsError
from newfound.method import Method, Settings, get_method, methods
from newfound.method._prototypes import PrototypeSettings


def test_every_listed_method_can_be_had_by_name():
    assert next(iter(methods())) == "ltc", "the product's own method comes first"
    assert set(methods()) == {
        "ltc", "baseline", "known-hinge", "closed", "frozen", "smile", "phe", "diffgre-smile", "diffgre-phe",
        "rankstat", "wta", "slc", "mldg",
    }  # fmt: skip
    for name, about in methods().items():
        method = get_method(name)
        assert method.name == name
        assert method.about == about
        assert issubclass(method, Method)
        assert issubclass(method.settings_class, Settings)


def test_an_unknown_method_gets_the_list():
    with pytest.raises(SettingsError, match=r"no method 'telepathy'.*ltc.*closed"):
        get_method("telepathy")


def test_only_the_closed_set_never_discovers_and_only_ltc_and_diffgre_create():
    assert [name for name in methods() if not get_method(name).discovers] == ["closed"]
    assert [name for name in methods() if get_method(name).creates] == ["ltc", "diffgre-phe", "diffgre-smile"]


def test_only_methods_with_margins_learn_a_threshold():
    learnt = [name for name in methods() if get_method(name)(4, 2, get_method(name).settings_class()).tau is not None]
    assert learnt == ["ltc", "known-hinge"]


def test_the_frozen_backbone_has_nothing_to_learn_and_says_so():
    frozen = get_method("frozen")
    assert frozen.settings_class().epochs == 0
    assert not list(frozen(4, 2, frozen.settings_class()).parameters())
    with pytest.raises(SettingsError, match="epochs=0"):
        frozen(4, 2, frozen.settings_class()).loss(None)


@pytest.mark.parametrize(
    "bad",
    [
        {"epochs": -1}, {"warmup_epochs": -1}, {"batch_size": 0}, {"lr": 0.0}, {"lr": -1.0}, {"views": 0},
        {"update": "sometimes"}, {"threshold": 1.5}, {"threshold": float("nan")}, {"threshold": "auto"},
        {"weight_decay": -1.0}, {"min_scale": 1.5}, {"jitter": -0.1}, {"jitter": 1.5}, {"merge_every": 0},
        {"share": 1.5}, {"share": -0.1}, {"share": "half"},
    ],
    ids=str,
)  # fmt: skip
def test_a_value_that_a_setting_cannot_have_is_refused_at_once(bad):
    with pytest.raises(SettingsError, match=next(iter(bad))):
        PrototypeSettings(**bad)


def test_one_cached_view_is_not_enough_to_learn_from():
    with pytest.raises(SettingsError, match="at least 2"):
        Settings(cached=True, views=1)
    Settings(cached=False, views=1)


def test_a_control_that_never_discovers_takes_no_threshold():
    with pytest.raises(SettingsError, match="take the method baseline"):
        get_method("closed").settings_class(threshold=0.5)


def test_a_threshold_that_nothing_moves_is_not_called_learnt():
    known_hinge, ltc = get_method("known-hinge"), get_method("ltc")
    assert "stays at tau_init" in known_hinge(4, 2, known_hinge.settings_class()).own_cut()[1]
    assert "learnt while training" in ltc(4, 2, ltc.settings_class()).own_cut()[1]


@pytest.mark.parametrize("name", ["smile", "phe"])
def test_too_few_bits_for_the_classes_are_refused(name):
    cls = get_method(name)
    with pytest.raises(SettingsError, match="bits=2: so short codes cannot tell 5 classes apart"):
        cls(4, 5, cls.settings_class(bits=2, hidden=8))
    cls(4, 4, cls.settings_class(bits=2, hidden=8))


def test_a_method_that_does_not_say_how_it_reads_a_category_cannot_be_made():
    class Half(Method):
        name = "half"

    with pytest.raises(TypeError, match="dictionary"):
        Half(4, 2, Settings())
