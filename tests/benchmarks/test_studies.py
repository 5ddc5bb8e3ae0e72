"""Promises of the studies: each table and figure of the paper compares what the paper compares."""

from __future__ import annotations

import itertools

import pytest

import newfound as nf
from newfound import presets
from newfound.benchmarks.studies import STUDIES, Choice
from newfound.errors import SettingsError


def resolved(line, short: bool = True):
    v = line.variant
    return presets.resolve(v.method, v.preset, short=short, overrides=v.settings)


@pytest.mark.parametrize("study", STUDIES.values(), ids=list(STUDIES))
@pytest.mark.parametrize("grid", ["full", "small"])
@pytest.mark.parametrize("short", [True, False], ids=["short", "whole"])
def test_every_line_can_be_trained_and_has_a_name_of_its_own(study, grid, short):
    lines = study.lines(Choice(grid=grid))
    assert len({line.name for line in lines}) == len(lines) > 0
    for line in lines:
        resolved(line, short)


def test_every_system_that_the_paper_compares_with_is_in_table_1():
    wanted = {"slc", "mldg", "rankstat", "wta", "smile", "phe", "diffgre-smile", "diffgre-phe"}
    wanted |= {"baseline", "closed", "frozen", "ltc"}
    lines = STUDIES["table1"].lines(Choice())
    assert {line.variant.method for line in lines} == wanted <= set(nf.methods())
    assert {line.variant.preset for line in lines if line.variant.method == "ltc"} == {"paper", "released", "default"}


def test_table_2_has_codes_of_12_16_32_and_64_bits():
    lines = STUDIES["table2"].lines(Choice())
    found = {(line.variant.method, resolved(line).bits) for line in lines if line.variant.method != "ltc"}
    assert found == set(itertools.product(("smile", "phe"), (12, 16, 32, 64)))


def test_each_line_of_table_3_takes_one_part_away():
    *without, whole = STUDIES["table3"].lines(Choice())
    assert whole.name == "LTC"
    full = vars(resolved(whole))
    taken = [{n: v for n, v in vars(resolved(line)).items() if full[n] != v} for line in without]
    assert taken == [{"ce": 0.0}, {"alpha": 0.0}, {"gamma_mm": 0.0}, {"creator": None}]


def test_table_4_has_every_creator():
    lines = list(map(resolved, STUDIES["table4"].lines(Choice())))
    creators = {line.creator for line in lines}
    assert {line.relative_step for line in lines if line.creator == "mkee"} == {True, False}
    assert creators == {None, "mixup", "cutmix", "diffusion", "mkee-no-entropy", "mkee-no-density", "mkee"}


def test_creation_under_evidence_varies_the_default_by_creator_and_margin_alone():
    lines = STUDIES["creation"].lines(Choice())
    assert {line.variant.preset for line in lines} == {"default"}
    usual = vars(presets.resolve("ltc", "default", short=True, overrides={}))
    assert usual["dictionary"] == "bayesian"
    changed = [{n: v for n, v in vars(resolved(line)).items() if usual[n] != v} for line in lines]
    assert [set(change) - {"creator", "margin", "gamma_mm"} for change in changed] == [set()] * len(lines)
    assert {(s.creator, s.margin if s.gamma_mm else None) for s in map(resolved, lines)} == {
        (None, None), (None, "cosine"), ("mixup", "cosine"), ("mkee", "cosine"), ("between", "cosine"),
        ("mkee", "evidence"), ("between", "evidence"),
    }  # fmt: skip


def test_the_figures_of_the_threshold_use_it_whatever_the_preset():
    assert {resolved(line).threshold for line in STUDIES["threshold"].lines(Choice(preset="default"))} == {"adaptive"}


def test_the_full_figures_have_the_papers_axes():
    points = {(s.tau_init, s.beta) for s in map(resolved, STUDIES["threshold"].lines(Choice()))}
    assert points == {(round(0.05 * i, 2), beta) for i in range(21) for beta in (0.0, 0.001, 0.01)}
    curves = {(s.alpha, s.gamma_mm) for s in map(resolved, STUDIES["sensitivity"].lines(Choice()))}
    for gamma in (0.05, 0.5):
        assert {alpha for alpha, g in curves if g == gamma} >= {round(0.1 * i, 1) for i in range(11)}
    for alpha in (0.3, 0.7):
        assert len({gamma for a, gamma in curves if a == alpha}) >= 8


@pytest.mark.parametrize("name", ["table2", "sensitivity", "threshold"])
def test_a_small_grid_is_part_of_the_full_one(name):
    full, small = ({line.name for line in STUDIES[name].lines(Choice(grid=grid))} for grid in ("full", "small"))
    assert small < full


@pytest.mark.parametrize("name", [study.name for study in STUDIES.values() if study.varies])
def test_a_study_that_varies_ltc_starts_from_what_was_chosen(name):
    lines = STUDIES[name].lines(Choice(preset="released", settings={"lr": 5e-4}))
    assert {line.variant.preset for line in lines} == {"released"}
    assert {resolved(line).lr for line in lines} == {5e-4}


def test_the_study_of_backbones_puts_every_method_on_every_backbone():
    lines = STUDIES["backbones"].lines(Choice(backbones=("a", "b")))
    methods = {(line.variant.method, line.variant.preset) for line in lines}
    assert {method for method, _ in methods} == {"smile", "phe", "ltc"}
    assert len(lines) == 2 * len(methods)
    assert {line.backbone for line in STUDIES["backbones"].lines(Choice())} >= {
        "vit_base_patch16_224.dino", "vit_base_patch16_clip_quickgelu_224.openai", "tf_efficientnet_lite0",
    }  # fmt: skip


def test_lines_can_be_chosen_by_method_and_a_method_without_a_line_is_refused():
    lines = STUDIES["table1"].lines(Choice(methods=("smile", "ltc")))
    assert [line.variant.method for line in lines] == ["smile", "ltc", "ltc", "ltc", "ltc"]
    with pytest.raises(SettingsError, match=r"table1 has no line with the method telepathy; it has closed, frozen"):
        STUDIES["table1"].lines(Choice(methods=("telepathy",)))
