"""Promises of the presets: the paper's account, the released code's, and the one that works."""

from __future__ import annotations

import dataclasses

import pytest

from newfound import presets
from newfound.errors import SettingsError
from newfound.method import get_method, methods


def resolved(preset: str, *, method: str = "ltc", short: bool = False, **overrides):
    return presets.resolve(method, preset, short=short, overrides=overrides)


# Sec. 4.1 and supplement B; where the paper is silent, the released code's value.
PAPER = {
    "epochs": 100, "batch_size": 128, "lr": 1e-2, "weight_decay": 0.05, "alpha": 0.3, "gamma_mm": 0.05,
    "m_pos": 0.05, "m_neg": 0.05, "beta": 0.001, "tau_init": 0.7, "q_pos": 0.8, "q_neg": 0.2, "p_gen": 0.3,
    "eps": 0.05, "relative_step": False, "sigma_0": 1.0, "lambda_rho": 0.1, "creator": "mkee", "space": "pixels",
    "creation_from_epoch": 1, "head": "linear", "across_classes": True, "per_sample": True, "min_lambda": 0.0,
    "first_view_only": False, "margins_in_target": False, "hinge_from_epoch": 0, "prototypes_start": "means",
    "threshold": "adaptive", "update": "fixed", "merge_every": None, "cached": False, "centre": False,
    "eta": 0.4, "temperature": 0.07, "warmup_epochs": 5, "warmup_lr": 1e-4, "final_lr": 1e-5,
    "min_scale": 0.6, "flip": True, "jitter": 0.2, "ce": 1.0, "share": 1.0,
    "optimizer": "adamw", "head_lr": None, "head_weight_decay": None,  # one rate for the backbone and the head
    "dictionary": "prototypes", "margin": "cosine",
}  # fmt: skip
# What neither account has a say in: SGD, diffusion and weighing evidence are not theirs, views are the short form's.
EVIDENCE = {
    "dimensions", "within", "between", "inflate", "alone", "reconsider_every", "reconsider_at", "memory", "merge_at",
    "learn_known", "evidence_temperature", "even_at", "new_slope", "new_shift", "concentration", "discount", "power",
}  # fmt: skip
UNUSED = EVIDENCE | {"views", "momentum", "pipeline", "prompt", "strength", "steps", "guidance"}
# Every point of notes/peers.md at which the released code differs.
RELEASED = PAPER | {
    "q_pos": 0.2, "q_neg": 0.8, "margins_in_target": True, "beta": 0.01, "weight_decay": 1e-3, "head": "cosine",
    "prototypes_start": "head", "first_view_only": True, "hinge_from_epoch": 1, "across_classes": False,
    "per_sample": False, "merge_every": 1000,
}  # fmt: skip


@pytest.mark.parametrize(("preset", "expected"), [("paper", PAPER), ("released", RELEASED)])
def test_a_preset_has_the_values_of_its_source(preset, expected):
    values = dataclasses.asdict(resolved(preset))
    assert {key: values[key] for key in expected} == expected
    assert set(values) - set(expected) <= UNUSED, "a new setting needs its value in both accounts"


@pytest.mark.parametrize("preset", presets.PRESETS)
@pytest.mark.parametrize("method", methods())
@pytest.mark.parametrize("short", [False, True])
def test_every_preset_fits_every_method(preset, method, short):
    settings = resolved(preset, method=method, short=short)
    assert isinstance(settings, get_method(method).settings_class)
    if method == "frozen":
        assert settings.epochs == 0
    if method == "known-hinge":
        assert settings.creator is None


@pytest.mark.parametrize("preset", presets.PRESETS)
def test_the_short_form_has_fewer_epochs_cached_views_and_token_space_and_changes_nothing_of_the_accounts(preset):
    full, short = (dataclasses.asdict(resolved(preset, short=s)) for s in (False, True))
    assert short["epochs"] == 15
    assert short["cached"]
    assert short["space"] == "tokens"
    changed = {key for key in full if full[key] != short[key]}
    faster = {"lr"} if preset == "default" else set()  # a rate that is for fewer steps
    assert changed <= {"epochs", "warmup_epochs", "cached", "space", "views"} | faster


def test_a_short_result_is_labelled_so():
    assert presets.label("paper", short=True) == "paper (short)"
    assert presets.label("paper", short=False) == "paper"


def test_the_default_keeps_away_from_the_rate_that_collapses_other_backbones():
    default = resolved("default")
    assert default.lr <= 1e-3
    assert default.threshold == "rehearsed"


def test_the_default_weighs_evidence_and_lets_a_rehearsal_choose_how():
    default = resolved("default")
    assert default.dictionary == "bayesian"
    assert (default.threshold, default.share, default.reconsider_at) == ("rehearsed", "rehearsed", 0.0)
    assert default.between is None, "it goes by the number of classes, of which a rehearsal has half"
    assert resolved("default", method="slc").dictionary == "prototypes", "leaders are no Gaussians"
    assert resolved("default", method="closed").dictionary == "prototypes", "a closed set weighs nothing"


def test_settings_of_the_evidence_are_the_presets_own_only_where_evidence_is_weighed():
    weighed, plain = resolved("default"), get_method("ltc").settings_class()
    assert (weighed.between, weighed.alone) != (plain.between, plain.alone)
    for cosines in (resolved("default", dictionary="prototypes"), resolved("default", threshold="adaptive")):
        assert (cosines.between, cosines.alone) == (plain.between, plain.alone), "results would seem to be others"
    asked = resolved("default", between=0.3, alone=-20.0)
    assert (asked.between, asked.alone) == (0.3, -20.0)
    paper = resolved("paper", dictionary="bayesian", threshold="rehearsed")
    assert (paper.between, paper.alone) == (plain.between, plain.alone)


def test_a_threshold_learnt_as_a_cosine_brings_cosines_with_it():
    settings = resolved("default", threshold="adaptive")
    assert (settings.dictionary, settings.centre) == ("prototypes", False)
    with pytest.raises(SettingsError, match='dictionary="bayesian" with threshold="adaptive"'):
        resolved("default", threshold="adaptive", dictionary="bayesian")


def test_a_threshold_is_a_cosine_or_a_log_ratio_as_the_dictionary_has_it():
    assert resolved("default", threshold=12.5).threshold == 12.5
    with pytest.raises(SettingsError, match="log ratio"):
        resolved("default", threshold=float("inf"))
    with pytest.raises(SettingsError, match=r"threshold=12.5: a similarity"):
        resolved("default", threshold=12.5, dictionary="prototypes")


@pytest.mark.parametrize(
    "bad",
    [
        {"dictionary": "magic"}, {"dimensions": 0}, {"within": 1.5}, {"between": -1.0}, {"between": "often"},
        {"inflate": 0.0}, {"alone": float("-inf")}, {"reconsider_every": 0}, {"reconsider_at": "often"}, {"memory": 0},
        {"merge_at": 1.0, "reconsider_every": None}, {"evidence_temperature": 0.0}, {"concentration": -1.0},
        {"discount": 1.0},
    ],
    ids=str,
)  # fmt: skip
def test_evidence_that_cannot_be_weighed_is_refused_before_anything_is_learnt(bad):
    with pytest.raises(SettingsError, match=next(iter(bad))):
        resolved("default", **bad)


def test_a_short_training_learns_faster_where_a_rehearsal_can_take_back_what_was_too_much():
    assert resolved("default", short=True).lr == 1e-3
    assert resolved("default", short=True, method="baseline").lr == 1e-3
    for otherwise in ({"dictionary": "prototypes"}, {"threshold": "adaptive"}, {"threshold": 10.0}, {"share": 1.0}):
        assert resolved("default", short=True, **otherwise).lr == 1e-4
    assert resolved("default").lr == 1e-4, "a long one takes ten times the steps"
    assert resolved("default", short=True, method="frozen").lr == 1e-4, "what learns nothing has results of before"
    assert resolved("default", short=True, lr=5e-5).lr == 5e-5
    assert (resolved("paper", short=True).lr, resolved("released", short=True).lr) == (1e-2, 1e-2)


def test_the_temperature_of_a_loss_is_not_that_of_probabilities():
    settings = resolved("default", temperature=0.2, evidence_temperature=8.0)
    assert (settings.temperature, settings.evidence_temperature) == (0.2, 8.0)
    assert resolved("default").evidence_temperature == "rehearsed"


def test_what_is_asked_for_wins_and_none_means_the_presets():
    settings = resolved("paper", short=True, epochs=3, lr=1e-5, gamma_mm=None)
    assert (settings.epochs, settings.lr, settings.gamma_mm) == (3, 1e-5, 0.05)
    assert resolved("paper", creator=None).creator is None, "for these two, None is a value"
    assert resolved("released", merge_every=None).merge_every is None


def test_an_unknown_preset_gets_the_list():
    with pytest.raises(SettingsError, match=r"no preset 'papre'.*paper, released, default"):
        resolved("papre")


@pytest.mark.parametrize(
    ("method", "wrong", "hint"),
    [("ltc", "gama_mm", "Did you mean 'gamma_mm'"), ("ltc", "epoch", "Did you mean 'epochs'"),
     ("baseline", "qqq", "It has: alone, alpha"), ("frozen", "gamma_mm", "frozen has no setting 'gamma_mm'")],
)  # fmt: skip
def test_an_unknown_setting_gets_a_suggestion_or_the_list(method, wrong, hint):
    with pytest.raises(SettingsError, match=hint):
        resolved("default", method=method, **{wrong: 1})


@pytest.mark.parametrize(
    "bad",
    [
        {"epochs": 1.5}, {"batch_size": 2.5}, {"lr": "fast"}, {"lr": float("nan")}, {"lr": True}, {"flip": "yes"},
        {"cached": 1}, {"head": "round"}, {"prototypes_start": "zero"}, {"space": "voxels"}, {"update": "often"},
        {"creator": 3}, {"threshold": "auto"}, {"threshold": True}, {"views": None, "tau_init": [0.7]},
    ],
    ids=str,
)  # fmt: skip
def test_a_value_of_the_wrong_kind_is_refused_with_the_right_one(bad):
    with pytest.raises(SettingsError, match=list(bad)[-1]):
        resolved("paper", **bad)


def test_numbers_of_numpy_and_whole_numbers_for_fractions_are_taken():
    import numpy as np

    settings = resolved("paper", epochs=np.int64(3), lr=np.float32(0.5), gamma_mm=1, threshold=1)
    assert (settings.epochs, settings.lr, settings.gamma_mm, settings.threshold) == (3, 0.5, 1, 1)


def test_an_unknown_method_gets_the_list():
    with pytest.raises(SettingsError, match="no method 'lct'"):
        resolved("default", method="lct")


def test_a_short_training_does_not_warm_up_where_the_whole_one_does_not():
    assert resolved("paper", method="smile", short=True).warmup_epochs == 0
    assert resolved("paper", method="ltc", short=True).warmup_epochs == 1
    assert resolved("default", method="smile", short=True).warmup_epochs == 1
