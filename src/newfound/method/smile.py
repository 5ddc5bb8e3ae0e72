"""SMILE: the signs of a feature are its category (Du et al., CVPR 2023)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from newfound import losses
from newfound.discovery.coding import SignCode
from newfound.errors import SettingsError
from newfound.method._base import Batch
from newfound.method._hashing import (
    CodeMethod,
    HashMLP,
    HashSettings,
    RunningNorm,
    check_bits,
    standardised,
    start_small,
)

_SERIES_BELOW = 0.03  # where v / tanh(v) and its gradient are better taken from their series


@dataclass(frozen=True)
class SMILESettings(HashSettings):
    """sign_weight: weight of the loss that drives signs to -1 and 1."""

    sign_weight: float = 3.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sign_weight < 0:
            raise SettingsError(f"sign_weight={self.sign_weight}: it cannot be negative.")


class SMILE(CodeMethod):
    """Signs times magnitudes learn by the supervised contrastive loss, and the signs alone are the code.

    A shared MLP feeds two branches of as many outputs as the code has bits, each a linear layer without bias and a
    batch norm: sign = tanh(h) and magnitude = v / tanh(v), the released code's smooth |v|, which is 1 at zero. What is
    minimised is

        SupCon(unit(sign * magnitude)) + 3 mean(1 - |sign|)

    over both views. A code not seen before is a new category. Unlike the published head's inputs, unit features come
    in, scaled to unit variance.
    """

    name = "smile"
    about = "SMILE (CVPR 2023): the signs of a hash head as a 12-bit code; an unseen code is a new category"
    settings_class = SMILESettings
    settings: SMILESettings

    def __init__(self, dim: int, classes: int, settings: SMILESettings) -> None:
        super().__init__(dim, classes, settings)
        check_bits(settings.bits, classes)
        self.mlp = HashMLP(dim, settings.hidden)
        self.sign = self._branch()
        self.magnitude = self._branch()

    def _branch(self) -> nn.Module:
        bits = self.settings.bits
        return nn.Sequential(nn.Linear(self.mlp.width, bits, bias=False), RunningNorm(bits)).apply(start_small)

    def coding(self) -> SignCode:
        return SignCode(self.settings.bits)

    def project(self, features: Tensor) -> Tensor:
        return torch.tanh(self.sign(self.mlp(standardised(features))))

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        features = batch.encode(torch.cat([batch.first, batch.second]))
        hidden = self.mlp(standardised(features))
        signs, magnitudes = torch.tanh(self.sign(hidden)), smooth_magnitude(self.magnitude(hidden))
        both = torch.cat([batch.targets, batch.targets])
        sup = losses.supervised_contrastive(F.normalize(signs * magnitudes, dim=1), both, self.settings.temperature)
        reg = losses.quantisation(signs)
        return {"loss": sup + self.settings.sign_weight * reg, "sup": sup.detach(), "quantisation": reg.detach()}


def smooth_magnitude(values: Tensor) -> Tensor:
    """v / tanh(v), which is |v| far from zero and 1 at it."""
    near = values.abs() < _SERIES_BELOW
    far = torch.where(near, torch.ones_like(values), values)
    return torch.where(near, 1 + values.square() / 3, far / torch.tanh(far))
