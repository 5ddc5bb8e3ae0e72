"""Every method works with every command: trained, asked, scored."""

from __future__ import annotations

import dataclasses
import json

import pytest

import newfound as nf
from newfound.method import get_method


@pytest.mark.parametrize("name", list(nf.methods()))
def test_it_is_trained_asked_and_scored_by_the_commands(invoke, labelled, stream, tmp_path, name):
    settings = ["views=2", "batch_size=4", *(["creator=mixup"] if get_method(name).creates else [])]
    wanted = [arg for pair in settings for arg in ("--set", pair)]
    learning = [] if get_method(name).fixed.get("epochs") == 0 else ["--epochs", "1"]
    train = ["train", labelled, "--out", tmp_path / "run", "--method", name, "--short", "--image-size", 32]
    result = invoke(*train, *learning, *wanted, "--json")
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    assert (told["method"], told["classes"]) == (name, ["blue", "green", "red"])

    result = invoke("discover", tmp_path / "run", stream)
    assert result.exit_code == 0, result.stderr
    sightings = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(sightings) == 9
    assert all(s["category"] is not None for s in sightings)
    weighs = getattr(nf.load(tmp_path / "run").method.settings, "dictionary", None) == "bayesian"
    if weighs:
        assert all(0 <= s[name] <= 1 for s in sightings for name in ("probability", "new_probability"))
    else:
        assert all(s["score"] <= 1 and "probability" not in s for s in sightings)

    result = invoke("evaluate", tmp_path / "run", stream, "--orders", 2, "--json")
    assert result.exit_code == 0, result.stderr
    figures = json.loads(result.stdout)
    assert figures["label"] == f"{name}, default (short)"
    assert 0 <= figures["mean"]["strict"]["all"] <= 1


def test_the_help_of_train_names_every_method(invoke):
    text = invoke("train", "--help").stdout
    flat = "".join(text.split())
    assert all(name in flat for name in nf.methods())


def test_a_setting_of_another_method_is_refused_with_those_it_has(invoke, labelled, tmp_path):
    result = invoke("train", labelled, "--out", tmp_path / "run", "--method", "smile", "--set", "tau_init=0.5")
    assert result.exit_code == 2
    assert "smile has no setting 'tau_init'" in result.stderr
    own = {field.name for field in dataclasses.fields(get_method("smile").settings_class)}
    assert "tau_init" not in own
