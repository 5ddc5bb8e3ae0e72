"""MKEE: Minimizing Kernel Energy and Maximizing Entropy (Sec. 3.2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from newfound.creation._base import Model
from newfound.creation.mixup import Mixup
from newfound.errors import SettingsError


@dataclass(frozen=True)
class MKEE(Mixup):
    """From mixup anchors, one normalised gradient step towards high entropy and low density (Eq. 7 to 9).

    Works on whatever the inputs are: pixels, as in the paper, or the trunk's tokens, which costs a fraction.

    Args:
        eps: the length of the step; in units of the input, or of its norm with `relative_step`.
        relative_step: the paper's absolute 0.05 is lost on a token map of norm 700; relative steps are not.
        sigma_0: the factor on the median distance that gives the kernel's bandwidth.
        lambda_rho: the weight of density against entropy.
        entropy, density: switch a term off, for the paper's ablations.
    """

    eps: float = 0.05
    relative_step: bool = False
    sigma_0: float = 1.0
    lambda_rho: float = 0.1
    entropy: bool = True
    density: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.eps < 0 or self.sigma_0 <= 0:
            raise SettingsError(f"MKEE needs eps >= 0 and sigma_0 > 0, not eps={self.eps}, sigma_0={self.sigma_0}.")

    def __call__(
        self, inputs: Tensor, targets: Tensor, model: Model, reference: Tensor, rng: np.random.Generator
    ) -> Tensor:
        x_mix = self.blend(inputs, targets, rng)
        return self.perturb(x_mix, model, reference) if len(x_mix) else x_mix

    def perturb(self, x_mix: Tensor, model: Model, reference: Tensor) -> Tensor:
        """x_pus = x_mix + eps * grad J / |grad J|, sample by sample (Eq. 8)."""
        with torch.enable_grad():
            x = x_mix.detach().requires_grad_(True)
            # Given the bandwidth, a sample's J depends on that sample alone (norms do not learn from the batch), so
            # one backward pass of the sum gives every sample's own gradient.
            (gradient,) = torch.autograd.grad(self.objective(model.encode(x), model, reference).sum(), x)
        shape = (-1, *[1] * (x.ndim - 1))
        # Scaled by its largest entry first: the squares of a small gradient would vanish, and so would its length.
        largest = gradient.flatten(1).abs().amax(dim=1).reshape(shape)
        gradient = gradient / torch.where(largest > 0, largest, 1.0)
        length = gradient.flatten(1).norm(dim=1).clamp(min=1.0).reshape(shape)  # at least 1, but for a zero gradient
        step = self.eps * (x_mix.flatten(1).norm(dim=1).reshape(shape) if self.relative_step else 1.0)
        return (x_mix + step * gradient / length).detach()

    def objective(self, features: Tensor, model: Model, reference: Tensor) -> Tensor:
        """J(x), one value a sample (Eq. 7)."""
        value = features.new_zeros(len(features))
        if self.entropy:
            log_p = torch.log_softmax(model.classify(features), dim=1)
            value = value - (log_p.exp() * log_p).sum(1)
        if self.density:
            value = value - self.lambda_rho * kernel_density(features, reference, self.sigma_0)
        return value


def kernel_density(features: Tensor, reference: Tensor, sigma_0: float = 1.0) -> Tensor:
    """rho_batch(x): a Gaussian kernel over reference features (Eq. 9).

    Its bandwidth is sigma_0 times the median distance of the features to the reference, and a constant to gradients.
    """
    precise = torch.promote_types(features.dtype, torch.float32)  # there are no distances in half precision
    distances = torch.cdist(
        features.to(precise), reference.to(precise), compute_mode="donot_use_mm_for_euclid_dist"
    )
    sigma = sigma_0 * distances.detach().median().clamp(min=1e-6)
    return torch.exp(-distances.square() / (2 * sigma**2)).mean(dim=1)
