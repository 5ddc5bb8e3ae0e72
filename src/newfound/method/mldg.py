"""MLDG: meta-learning for domain generalisation (Li et al., AAAI 2018), with classes in the place of domains."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call
from torch.nn.attention import SDPBackend, sdpa_kernel

from newfound.errors import SettingsError
from newfound.method._base import Batch
from newfound.method.baseline import Baseline, BaselineSettings

Weights = dict[str, Tensor]
# How far an inner step moves a weight: as far as an AdamW step at the default rate. Gradients of unit features grow as
# the features they are made of shrink, so no rate suits all backbones: too low a one tests nothing, too high a one
# destroys the features. With this length the meta-train loss fell on each of five, with ten times this length on one.
_INNER_STEP = 1e-4
_NO_GRADIENT = 1e-24  # what is added to the mean square, so that a gradient of zero is no step


@dataclass(frozen=True)
class MLDGSettings(BaselineSettings):
    """meta_test_share: the share of a batch's classes that the step is tested on; at least one class is on each side.
    meta_weight: beta, the weight of the meta-test loss.
    inner_lr: alpha, the rate of the step that is tested, a plain gradient step of tail and head. None for the rate at
        which that step changes weights by 1e-4 (root mean square), whatever the size of the gradient.
    first_order: take the inner gradient for a constant, which saves the second derivatives; False goes through it.
    """

    inner_lr: float | None = None
    meta_test_share: float = 0.3
    meta_weight: float = 1.0
    first_order: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.inner_lr is not None and not 0 < self.inner_lr < float("inf"):
            raise SettingsError(f"inner_lr={self.inner_lr}: a step needs a rate above zero, or None.")
        if not 0 < self.meta_test_share < 1:
            raise SettingsError(f"meta_test_share={self.meta_test_share}: it must lie between 0 and 1.")
        if not 0 <= self.meta_weight < float("inf"):
            raise SettingsError(f"meta_weight={self.meta_weight}: it cannot be negative; 0 leaves the meta-test out.")


class MLDG(Baseline):
    """L(theta; meta-train) + beta L(theta - inner_lr grad L(theta; meta-train); meta-test), with L of Eq. 3.

    A step that learns some classes shall also help with classes that had no part in it: that is what discovery asks of
    features. The head knows all known classes on both sides; only the samples are dealt out.
    """

    name = "mldg"
    about = "meta-learning over classes on the baseline: what is learnt on some must help with the others"
    settings_class = MLDGSettings
    settings: MLDGSettings
    shares_batches = False  # the inner step takes gradients of weights, of which a process has its own rows' part only

    def forward(self, features: Tensor, targets: Tensor) -> Tensor:
        """L, as the call that `functional_call` can make with other weights."""
        return self.representation_loss(features, targets)["loss"]

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        if len(batch.targets.unique()) < 2:  # nothing to deal out: the batch is learnt from as the baseline would
            plain = super().loss(batch)["loss"]
            return {"loss": plain, "meta_train": plain.detach(), "meta_test": plain.new_zeros(())}
        tested = draw_meta_test(batch.targets, self.settings.meta_test_share, batch.rng)
        own: Weights = dict(self.named_parameters())
        # Fused attention has no second derivative.
        with nullcontext() if self.settings.first_order else sdpa_kernel(SDPBackend.MATH):
            train = self._loss_on(~tested, batch, batch.encode, own)
        tail, own = self._step(train, batch.encode.parameters(), own)
        test = self._loss_on(tested, batch, batch.encode.at(tail), own)
        total = train + self.settings.meta_weight * test
        return {"loss": total, "meta_train": train.detach(), "meta_test": test.detach()}

    def _loss_on(self, rows: Tensor, batch: Batch, encode: Callable[[Tensor], Tensor], own: Weights) -> Tensor:
        features = encode(torch.cat([batch.first[rows], batch.second[rows]]))
        return functional_call(self, own, (features, batch.targets[rows]))

    def _step(self, loss: Tensor, tail: Weights, own: Weights) -> tuple[Weights, Weights]:
        """Tail and own weights after a gradient step, still tied to the weights that they come from."""
        before = [*tail.values(), *own.values()]
        gradients = torch.autograd.grad(
            loss, before, retain_graph=True, create_graph=not self.settings.first_order, allow_unused=True
        )
        rate = self._inner_rate([g for g in gradients if g is not None])
        after = [w if g is None else w - rate * g for w, g in zip(before, gradients, strict=True)]
        return dict(zip(tail, after, strict=False)), dict(zip(own, after[len(tail) :], strict=True))

    def _inner_rate(self, gradients: list[Tensor]) -> float | Tensor:
        if self.settings.inner_lr is not None:
            return self.settings.inner_lr
        squares = torch.stack([g.square().sum() for g in gradients]).sum() / sum(g.numel() for g in gradients)
        return _INNER_STEP / (squares + _NO_GRADIENT).sqrt()


def draw_meta_test(targets: Tensor, share: float, rng: np.random.Generator) -> Tensor:
    """Which samples are of meta-test classes, a mask; `targets` must have two classes or more."""
    classes = targets.unique().cpu().numpy()
    count = min(max(round(share * len(classes)), 1), len(classes) - 1)
    chosen = torch.from_numpy(rng.permutation(classes)[:count])
    return torch.isin(targets, chosen.to(targets.device))
