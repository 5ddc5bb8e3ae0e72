"""Promises of the model card: hubs can read it, its figures are those measured, and it shows names as they are."""

from __future__ import annotations

import copy

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from newfound.errors import DataError
from newfound.model_card import _plain, model_card

pytestmark = pytest.mark.usefixtures("one_thread")
MEAN = {"strict": {"all": 0.5, "old": 0.75, "new": 0.25}, "greedy": {"all": 0.6, "old": 0.8, "new": 0.4}, "named": None}
NAMES = st.text("aé漢 \t\n`*_[]<>|#~\\\"':-{},.!&%@", min_size=1, max_size=12)
SCORES = {"mean": MEAN, "orders": 1, "threshold": 3.0, "data": {"source": "/home/anna/secret/birds.csv"}}


def front(card: str) -> dict:
    _, head, _ = card.split("---\n", 2)
    return yaml.safe_load(head)


def renamed(run, classes):
    other = copy.copy(run)
    other.classes = classes
    return other


def test_the_hub_reads_what_it_is_and_what_was_measured(tiny_run):
    repocard = pytest.importorskip("huggingface_hub")
    text = model_card(tiny_run, "anna/birds", scores=SCORES, datasets=["anna/pictures"], license="apache-2.0")
    data = repocard.ModelCard(text).data
    assert (data.library_name, data.pipeline_tag, data.license) == ("newfound", "image-classification", "apache-2.0")
    assert data.datasets == ["anna/pictures"]
    assert tiny_run.config["method"] in data.tags
    measured = {result.metric_name: result.metric_value for result in data.eval_results}
    assert measured == {
        "Strict All": 50.0, "Strict Old": 75.0, "Strict New": 25.0,
        "Greedy All": 60.0, "Greedy Old": 80.0, "Greedy New": 40.0,
    }  # fmt: skip
    assert {(r.dataset_type, r.dataset_name) for r in data.eval_results} == {("anna/pictures", "birds.csv")}


def test_a_run_that_was_evaluated_shows_its_figures(tiny_run, pictures):
    result = tiny_run.evaluate(pictures(5, 4), orders=2)
    card = model_card(tiny_run, "anna/birds", scores=result)
    named, spread = result.mean["named"], result.std["named"]
    cells = [f"{100 * named[part]:.1f} ± {100 * spread[part]:.1f}" for part in ("all", "old", "new")]
    assert f"| Named | {' | '.join(cells)} |" in card
    assert "over 2 orders of the stream" in card
    assert model_card(tiny_run, "anna/birds", scores=result.as_dict()) == card


def test_a_run_that_was_not_evaluated_claims_nothing(tiny_run):
    card = model_card(tiny_run, "anna/birds")
    assert "Not evaluated" in card
    assert not {"model-index", "metrics"} & set(front(card))


def test_it_says_what_is_known_how_it_is_decided_and_how_to_use_it(tiny_run):
    card = model_card(tiny_run, "anna/birds")
    assert all(name in card for name in tiny_run.classes)
    assert f"threshold of {tiny_run.threshold:.2f}" in card
    assert 'nf.load("anna/birds")' in card
    assert f"{tiny_run.config['data']['images']} labelled images" in card
    assert "## Limits" in card


def test_only_the_last_part_of_a_path_is_shown(tiny_run):
    other = copy.copy(tiny_run)
    other.config = copy.deepcopy(tiny_run.config)
    other.config["data"]["source"] = "C:\\Users\\anna\\pictures\\"
    card = model_card(other, "anna/birds", scores=SCORES)
    assert "birds.csv" in card
    assert "pictures" in card
    assert "secret" not in card
    assert "Users" not in card


def test_many_classes_are_counted_and_not_listed(tiny_run):
    card = model_card(renamed(tiny_run, [f"class{i}" for i in range(73)]), "anna/birds")
    assert "class49 and 23 more" in card
    assert "class50" not in card


@given(name=NAMES)
def test_no_name_breaks_the_page(name):
    shown = _plain(name)
    assert "\n" not in shown
    assert shown.replace("\\", "") == " ".join(name.split()).replace("\\", "")
    for mark in "`*_[]<>|#~":
        assert shown.count(mark) == shown.count("\\" + mark)


@given(name=NAMES)
def test_every_name_can_be_read_back_from_the_front(tiny_run, name):
    card = model_card(tiny_run, "anna/birds", scores=SCORES, datasets=[name])
    assert front(card)["datasets"] == [name]


@pytest.mark.parametrize("scores", [{}, {"mean": 3}, [1], "0.5"])
def test_scores_that_are_none_are_refused(tiny_run, scores):
    with pytest.raises(DataError, match="newfound evaluate --out"):
        model_card(tiny_run, "anna/birds", scores=scores)
