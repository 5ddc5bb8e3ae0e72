"""Methods that read a category off a short code: SMILE, PHE, RankStat, WTA and what they share."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from newfound import losses
from newfound.discovery.codes import CodeDictionary, majority_codes
from newfound.discovery.coding import Coding
from newfound.errors import SettingsError
from newfound.method._base import Batch, Known, Method, Settings

_BOTTLENECK = 256
_ROWS = 4096  # features that a head sees at once when it reads, which bounds the memory of its wide layers
# SMILE's training script; for RankStat and WTA on a stream nothing else is published, so they take it over.
_PUBLISHED = {
    "optimizer": "sgd", "momentum": 0.9, "lr": 1e-2, "head_lr": 1e-2, "weight_decay": 5e-5, "head_weight_decay": 5e-5,
    "warmup_epochs": 0, "final_lr": 1e-5, "epochs": 100, "batch_size": 128, "threshold": "own",
}  # fmt: skip
_DEFAULT = {"optimizer": "adamw", "lr": 1e-4, "head_lr": 1e-3, "weight_decay": 0.05, "threshold": "own"}
PRESETS: dict[str, dict[str, Any]] = {"paper": _PUBLISHED, "released": _PUBLISHED, "default": _DEFAULT}


@dataclass(frozen=True)
class CodeSettings(Settings):
    """temperature: what similarities are divided by in the contrastive loss.
    threshold: "own" (the method's own rule, see `Method.own_cut`), "rehearsed" (chosen by rehearsing discovery on
        held-out known classes) or a number: 1 asks for equal codes, 1 - r / span allows r bits to differ.
    """

    temperature: float = 0.07
    threshold: float | Literal["own", "rehearsed"] = "own"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.temperature <= 0:
            raise SettingsError(f"temperature={self.temperature}: it must be above zero.")
        if isinstance(self.threshold, str) and self.threshold not in ("own", "rehearsed"):
            raise SettingsError(f'threshold={self.threshold!r}: choose "own", "rehearsed" or a number.')


@dataclass(frozen=True)
class HashSettings(CodeSettings):
    """bits: the length of a code; hidden: the width of the hash head's first two layers."""

    bits: int = 12
    hidden: int = 2048

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.bits <= 1024:
            raise SettingsError(f"bits={self.bits}: a code has from 1 to 1024 bits.")
        if self.hidden < 1:
            raise SettingsError(f"hidden={self.hidden}: a layer has at least one unit.")


def check_bits(bits: int, classes: int) -> None:
    """Raise SettingsError if there are fewer codes than classes."""
    if 2**bits < classes:
        raise SettingsError(f"bits={bits}: so short codes cannot tell {classes} classes apart; take more bits.")


class CodeMethod(Method):
    """A sample's category is that of the nearest known or discovered code.

    Subclasses say what a code is (`coding`) and what it is read off (`project`). Known are the distinct codes of the
    labelled samples, each owned by the class that most of its samples have.
    """

    settings_class = CodeSettings
    settings: CodeSettings
    presets = PRESETS
    smooth_cuts = False  # a bit more is a decision of its own
    smallest_batch = 32  # the variance of a few samples is near zero, and a batch norm divides by it

    @abstractmethod
    def coding(self) -> Coding:
        """How the values that `project` gives become bits."""

    @abstractmethod
    def project(self, features: Tensor) -> Tensor:
        """The values that a code is read off, one row for each unit feature."""

    def teach(self, features: Tensor, targets: Tensor) -> dict[str, np.ndarray]:
        codes, owners = majority_codes(self.coding().bits(self._values(features)), targets.cpu().numpy())
        return self._known(codes, owners, targets)

    def _known(self, codes: np.ndarray, owners: np.ndarray, targets: Tensor) -> dict[str, np.ndarray]:
        # The number of classes is kept beside the owners because a class may have no code of its own.
        return {
            "codes": np.packbits(codes, axis=1, bitorder="little"),
            "owners": np.asarray(owners, np.int64),
            "classes": np.array([int(targets.max()) + 1]),
        }

    def _values(self, features: Tensor) -> np.ndarray:
        return self.read(features, {}).float().cpu().numpy()

    @torch.no_grad()
    def read(self, features: Tensor, known: Known) -> Tensor:
        was_training = self.training
        self.eval()  # a reading must not depend on the samples beside it, as batch norms do while they train
        try:
            return torch.cat([self.project(part) for part in features.split(_ROWS)])
        finally:
            self.train(was_training)

    def dictionary(self, known: Known, threshold: float) -> CodeDictionary:
        return CodeDictionary(
            known["codes"], known["owners"], known=int(known["classes"][0]), coding=self.coding(), threshold=threshold
        )

    def cuts(self) -> np.ndarray:
        span = self.coding().span
        return 1 - np.arange(span // 2, -1, -1) / span

    def own_cut(self, features: Tensor | None = None, targets: Tensor | None = None) -> tuple[float, str]:
        return 1.0, "its own rule: equal codes"


@dataclass(frozen=True)
class ProjectionSettings(CodeSettings):
    """dimension: the length of the projection that a code is read off."""

    dimension: int = 32

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dimension < 1:
            raise SettingsError(f"dimension={self.dimension}: a projection has at least one dimension.")


class ProjectionMethod(CodeMethod):
    """A linear projection of the feature learns by the supervised contrastive loss (Eq. 1 of LTC's paper)."""

    settings_class = ProjectionSettings
    settings: ProjectionSettings

    def __init__(self, dim: int, classes: int, settings: ProjectionSettings) -> None:
        super().__init__(dim, classes, settings)
        self.projection = nn.Linear(dim, settings.dimension)

    def project(self, features: Tensor) -> Tensor:
        return self.projection(standardised(features))

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        projected = F.normalize(self.project(batch.encode(torch.cat([batch.first, batch.second]))), dim=1)
        both = torch.cat([batch.targets, batch.targets])
        return {"loss": losses.supervised_contrastive(projected, both, self.settings.temperature)}


class RunningNorm(nn.BatchNorm1d):
    """A batch norm whose running statistics are a mean of the first ten batches', and then move as usual.

    The usual ones start at 0 and 1. Small initial weights make the true variances a thousandth of that, so that a short
    training would end with statistics that squash all readings into one code.
    """

    momentum: float

    def forward(self, input: Tensor) -> Tensor:
        assert self.num_batches_tracked is not None
        if self.training:
            self.momentum = max(0.1, 1 / (1 + int(self.num_batches_tracked)))
        return super().forward(input)


class HashMLP(nn.Module):
    """The trunk of SMILE's and PHE's hash heads: three linear layers with GELU, a batch norm before the last one's.

    Linear weights start truncated normal with standard deviation 0.02, biases at zero.
    """

    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU(), nn.Linear(hidden, _BOTTLENECK)
        )
        self.norm = RunningNorm(_BOTTLENECK)
        self.width = _BOTTLENECK
        self.apply(start_small)

    def forward(self, inputs: Tensor, alone: bool = False) -> Tensor:
        """Hidden values [n, width].

        Args:
            alone: the rows are all there are of their kind: normalise them by their own mean and variance in training
                and in evaluation, and leave the running ones to the samples.
        """
        values = self.layers(inputs)
        if alone:
            normed = F.batch_norm(values, None, None, self.norm.weight, self.norm.bias, True, eps=self.norm.eps)
        else:
            normed = self.norm(values)
        return F.gelu(normed)


def start_small(module: nn.Module) -> None:
    """The initial weights of the published heads, for `Module.apply`."""
    if isinstance(module, nn.Linear):
        nn.init.trunc_normal_(module.weight, std=0.02)
        if module.bias is not None:
            nn.init.zeros_(module.bias)


def standardised(features: Tensor) -> Tensor:
    """Unit features times sqrt(dim), so that their values have about unit variance.

    The published heads see a transformer's layer-normed output, not unit vectors, and their small initial weights are
    made for that; at unit length the first layer would start with next to no signal.
    """
    return features * math.sqrt(features.shape[1])
