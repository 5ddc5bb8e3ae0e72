"""What the page of methods promises of a creator of one's own: a class and a line in the table are enough."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from torch import Tensor

import newfound as nf
from newfound import creation
from newfound.creation import Mixup

pytestmark = pytest.mark.usefixtures("one_thread")


@dataclass(frozen=True)
class Sharpened(Mixup):
    """A blend that is carried past its own mean."""

    eta: float = 0.4
    by: float = 1.5

    def blend(self, inputs: Tensor, targets: Tensor, rng: np.random.Generator) -> Tensor:
        return self.by * super().blend(inputs, targets, rng)


def test_a_creator_of_ones_own_is_a_class_and_a_line_in_the_table(monkeypatch, fit_tiny, pictures):
    monkeypatch.setitem(creation._CREATORS, "sharpened", (Sharpened, {"by": 2.0}, "a blend, twice as strong"))
    assert nf.creators()["sharpened"] == "a blend, twice as strong"
    assert creation.make_creator("sharpened", eta=0.7, strength=0.5) == Sharpened(eta=0.7, by=2.0)
    run = fit_tiny(pictures(2, 4), method="ltc", creator="sharpened", space="tokens", cached=True, epochs=2, p_gen=1.0)
    assert run.log[-1]["created"] > 0
