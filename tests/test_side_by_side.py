"""Promises of batches in parts: what one pass gives, row by row, on threads that are given back."""

from __future__ import annotations

import threading

import pytest
import timm
import torch

from newfound._side_by_side import SideBySide
from newfound.backbone import Backbone, InputSpec


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 64, 65, 201])
def test_parts_are_put_together_in_order_and_no_larger_than_suits_the_cache(size):
    seen = []

    def work(part):
        seen.append(len(part))
        return part * 2

    rows = torch.arange(size * 3.0).reshape(size, 3)
    assert torch.equal(SideBySide()(work, rows), rows * 2)
    assert sum(seen) == size
    assert max(seen) <= 32
    assert len(seen) > 1 or size < 4


@pytest.mark.usefixtures("two_threads")
def test_a_backbones_tokens_are_those_of_one_pass_on_several_threads_at_once():
    torch.manual_seed(0)
    model = timm.create_model("tf_efficientnet_lite0", num_classes=0)
    spec = InputSpec(64, (0.5,) * 3, (0.5,) * 3, "bicubic", 1.0)
    backbone = Backbone("tf_efficientnet_lite0", model, spec, tune_blocks=1, weights="none")
    pixels, names = torch.randn(20, 3, 64, 64), set()
    both = threading.Barrier(2, timeout=60)

    def work(part):
        names.add(threading.current_thread().name)
        both.wait()  # neither part waits for the other to end
        assert torch.get_num_threads() == 1
        assert torch.is_inference_mode_enabled()
        return backbone.trunk(part)

    found = SideBySide()(work, pixels)
    assert len(names) == 2
    with torch.inference_mode():
        torch.testing.assert_close(found, backbone.trunk(pixels), rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("two_threads")
def test_threads_are_given_back_also_after_an_error():
    def fails(part):
        raise ValueError("no room")

    side_by_side = SideBySide()
    with pytest.raises(ValueError, match="no room"):
        side_by_side(fails, torch.zeros(8, 1))
    assert torch.get_num_threads() == 2
    later = []
    thread = threading.Thread(target=lambda: later.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert later == [2]


@pytest.mark.usefixtures("two_threads")
def test_fewer_threads_later_on_are_heeded():
    side_by_side = SideBySide()
    side_by_side(lambda part: part, torch.zeros(8, 1))
    torch.set_num_threads(1)
    seen = []
    side_by_side(lambda part: seen.append(len(part)) or part, torch.zeros(8, 1))
    assert seen == [8]
