"""`--device`: where PyTorch computes is said, and what is not here is refused before anything else is done."""

from __future__ import annotations

import json

import pytest

from newfound.devices import devices


@pytest.mark.parametrize("command", [("discover", "--in-memory"), ("evaluate",), ("serve", "--port", "0")])
def test_a_device_that_is_not_here_is_told_with_those_that_are(invoke, run, stream, command):
    name, *options = command
    sources = [] if name == "serve" else [stream]
    result = invoke(name, run, *sources, *options, "--device", "cuda:17")
    assert result.exit_code == 2
    here = ", ".join([*devices(), "auto"])
    assert result.stderr == f"newfound: there is no device 'cuda:17' here; take one of {here}.\n"


def test_another_runtime_stays_on_the_processor(invoke, run, stream):
    result = invoke("evaluate", run, stream, "--runtime", "onnx", "--device", "meta")
    assert result.exit_code == 2
    assert "the runtime onnx uses the processor" in result.stderr


def test_encoders_elsewhere_choose_their_own_device(invoke, run, stream):
    result = invoke("discover", run, stream, "--ray", "local", "--device", "cpu")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "--device cpu is for this machine" in result.stderr


def test_the_doctor_says_what_can_be_asked_for(invoke, monkeypatch):
    monkeypatch.setattr("newfound.cli.doctor._proof", lambda _: {"works": True, "backbone": "", "detail": ""})
    found = json.loads(invoke("doctor", "--json").stdout)["devices"]
    assert found["names"] == devices()
    assert found["auto"] in ("cpu", "cuda")
    assert f"{', '.join(devices())}; --device auto takes {found['auto']}" in invoke("doctor").stdout
