"""The LTC baseline: contrastive and cross-entropy learning, a dynamic prototype dictionary at test time (Sec. 3.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from newfound import losses
from newfound.errors import SettingsError
from newfound.method._base import Batch, class_means
from newfound.method._prototypes import PrototypeMethod, PrototypeSettings


@dataclass(frozen=True)
class BaselineSettings(PrototypeSettings):
    """alpha: weight of the contrastive loss; ce: of the cross-entropy (0 drops it, as in the paper's ablation);
    head: "linear" (the paper) or "cosine" on unit class weights with a learnt scale (the released code);
    first_view_only: cross-entropy, and LTC's margin of known samples, on the first view alone (the released code)."""

    alpha: float = 0.3
    ce: float = 1.0
    temperature: float = 0.07
    head: Literal["linear", "cosine"] = "cosine"
    first_view_only: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.temperature <= 0:
            raise SettingsError(f"temperature={self.temperature}: it must be above zero.")


class CosineHead(nn.Module):
    """Logits are cosines to unit class weights times a learnt scale, which starts at 20."""

    def __init__(self, dim: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(nn.functional.normalize(torch.randn(classes, dim), dim=1))
        self.scale = nn.Parameter(torch.tensor(20.0))

    def forward(self, features: Tensor) -> Tensor:
        return self.scale * features @ nn.functional.normalize(self.weight, dim=1).T


class Baseline(PrototypeMethod):
    """alpha L_sup + L_ce (Eq. 3)."""

    name = "baseline"
    about = "the LTC baseline: supervised contrastive loss and cross-entropy (Eq. 3), a prototype dictionary"
    settings_class = BaselineSettings
    settings: BaselineSettings

    def __init__(self, dim: int, classes: int, settings: BaselineSettings) -> None:
        super().__init__(dim, classes, settings)
        self.head: nn.Module = nn.Linear(dim, classes) if settings.head == "linear" else CosineHead(dim, classes)

    @torch.no_grad()
    def start(self, features: Tensor, targets: Tensor) -> None:
        if isinstance(self.head, CosineHead):
            self.head.weight.copy_(class_means(features, targets, self.classes))

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        features = batch.encode(torch.cat([batch.first, batch.second]))
        return self.representation_loss(features, batch.targets)

    def representation_loss(self, features: Tensor, targets: Tensor) -> dict[str, Tensor]:
        """Eq. 3 for the features of both views, the first view's rows before the second's."""
        both = torch.cat([targets, targets])
        seen = len(targets) if self.settings.first_view_only else len(both)
        sup = losses.supervised_contrastive(features, both, self.settings.temperature)
        ce = losses.cross_entropy(self.head(features[:seen]), both[:seen])
        return {"loss": self.settings.alpha * sup + self.settings.ce * ce, "sup": sup.detach(), "ce": ce.detach()}
