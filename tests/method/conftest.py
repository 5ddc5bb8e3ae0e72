"""A toy problem for methods: four clusters of features that any of them can learn in a second."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import Tensor

from newfound.features import unit
from newfound.method import Batch, Method


@dataclass(frozen=True)
class Toy:
    """Labelled unit features, methods on them, and batches of two noisy views of all of them."""

    features: Tensor
    targets: Tensor

    @property
    def dim(self) -> int:
        return self.features.shape[1]

    @property
    def classes(self) -> int:
        return int(self.targets.max()) + 1

    def build(self, cls: type[Method], *, classes: int | None = None, **settings) -> Method:
        """A method for these features with fixed initial weights."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return cls(self.dim, classes or self.classes, cls.settings_class(**settings))

    def batch(self, step: int) -> Batch:
        rng = np.random.default_rng((1, step))
        first, second = (self.features + 0.05 * torch.from_numpy(rng.normal(size=self.features.shape)).float()
                         for _ in range(2))  # fmt: skip
        return Batch(first, second, self.targets, unit, step, np.random.default_rng((2, step)))

    def learn(self, method: Method, steps: int = 60, lr: float = 3e-3) -> list[float]:
        """Train the method's own weights; returns the loss of every step. The method is left in evaluation mode."""
        optimizer = torch.optim.AdamW(method.parameters(), lr=lr)
        path = []
        method.train()
        for step in range(steps):
            loss = method.loss(self.batch(step))["loss"]
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            method.after_step()
            path.append(loss.item())
        method.eval()
        return path


@pytest.fixture
def toy(one_thread) -> Toy:
    """Four classes of twelve unit features in 16 dimensions, class by class."""
    rng = np.random.default_rng(0)
    targets = torch.arange(4).repeat_interleave(12)
    centres = rng.normal(size=(4, 16))[targets.numpy()]
    return Toy(unit(torch.from_numpy(centres + 0.2 * rng.normal(size=centres.shape)).float()), targets)
