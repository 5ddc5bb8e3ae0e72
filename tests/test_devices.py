"""Devices are named as PyTorch names them, and one that is not here is told with those that are."""

from __future__ import annotations

import pytest
import torch

from newfound.devices import check_device, devices
from newfound.errors import SettingsError


@pytest.fixture
def two_gpus(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)


def test_all_that_is_here_is_listed(two_gpus, monkeypatch):
    assert devices() == ["cpu", "cuda:0", "cuda:1"]
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert devices()[-1] == "mps"


@pytest.mark.parametrize("name", ["cpu", "cpu:0", "cuda", "cuda:1"])
def test_what_is_here_is_taken(two_gpus, name):
    check_device(name)


@pytest.mark.parametrize("name", ["cuda:2", "mps", "warp", ""])
def test_what_is_not_here_is_refused_with_what_is(two_gpus, name):
    with pytest.raises(SettingsError, match=f"no device '{name}' here; take one of cpu, cuda:0, cuda:1, auto"):
        check_device(name)
