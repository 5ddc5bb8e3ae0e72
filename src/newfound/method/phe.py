"""PHE: prototypical hash encoding (Zheng et al., NeurIPS 2024)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from newfound import losses
from newfound.discovery.coding import SignCode
from newfound.errors import SettingsError
from newfound.method._base import Batch
from newfound.method._hashing import PRESETS, CodeMethod, HashMLP, HashSettings, check_bits, standardised, start_small

_EPS = 1e-4  # of the prototypes' activation
_ZERO = 1e-20  # a squared distance below it is one of rounding; at 0 the root has no gradient
_SHARPNESS = 3.0  # tanh(3 x) stands for the sign of a hash centre
# The released warm-up starts the tail at its full rate, so there is none to repeat.
_PUBLISHED = {
    "optimizer": "adamw", "lr": 1e-4, "head_lr": 1e-3, "weight_decay": 1e-3, "head_weight_decay": 0.05,
    "warmup_epochs": 0, "final_lr": 1e-5, "epochs": 200, "batch_size": 128, "threshold": "own",
}  # fmt: skip


@dataclass(frozen=True)
class PHESettings(HashSettings):
    """per_class, dimension: the prototypes of a class, and the space that they live in.
    theta: the chance that a prototype is left out for a sample while training.
    centre_weight: weight of the separation and the quantisation of hash centres; feature_weight: of the loss that
        draws hash outputs to their centres, with `temperature` (1 as published).
    oracle_classes: an ORACLE, for comparison with published figures only: the true number of classes in the stream,
        which the released code uses for its distance and radius. None: the classes that are learnt, as in earnest.
    """

    temperature: float = 1.0
    per_class: int = 10
    dimension: int = 768
    theta: float = 0.1
    centre_weight: float = 0.1
    feature_weight: float = 3.0
    oracle_classes: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("per_class", "dimension", "oracle_classes"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise SettingsError(f"{name}={value}: it must be at least 1.")
        for name in ("centre_weight", "feature_weight"):
            if getattr(self, name) < 0:
                raise SettingsError(f"{name}={getattr(self, name)}: it cannot be negative.")
        if not 0 <= self.theta < 1:
            raise SettingsError(f"theta={self.theta}: it must lie in [0, 1).")


class PHE(CodeMethod):
    """Prototypes of each class become its hash centre, and samples are drawn to the centre of their class.

    A layer is put on the feature; in its space each class has 10 prototypes, and a class's logit is the sum of what its
    prototypes say less half of what all others say. The hash head turns samples into codes and the mean prototype of a
    class into its centre. With c = tanh(3 centre) and d_max from `hash_distance`, what is minimised over both views is

        NLL(logits) + 0.1 (separation(c, d_max) + quantisation(c)) + 3 feature-to-centre

    A sample within max(floor(d_max / 2), 1) bits of a known or discovered centre is of that category, else its code is
    a new centre.

    What differs from the released code. Its batch norm sees samples and centres in turn, each normalised by their own
    statistics, but both move the running ones, so that samples are read with a mixture. Here the centres, which are
    always at hand in full, are normalised by their own statistics when read too, and the running ones are the samples'
    alone. Its evaluation compares 0/1 codes with -1/+1 centres and knows the number of novel classes; here bits are
    compared with bits, and d_max comes from the number of classes that are learnt. The added layer decays like the rest
    of the head, both views are used, and unit features come in, scaled to unit variance.
    """

    name = "phe"
    about = "PHE (NeurIPS 2024): hash centres made of class prototypes; a code within a Hamming ball belongs to them"
    settings_class = PHESettings
    settings: PHESettings
    presets = PRESETS | {"paper": _PUBLISHED, "released": _PUBLISHED}

    def __init__(self, dim: int, classes: int, settings: PHESettings) -> None:
        super().__init__(dim, classes, settings)
        check_bits(settings.bits, classes)
        s = settings
        self.added = nn.Sequential(nn.Linear(dim, s.dimension), nn.GELU()).apply(start_small)
        self.prototypes = nn.Parameter(torch.rand(classes, s.per_class, s.dimension))
        self.mlp = HashMLP(s.dimension, s.hidden)
        self.hash = nn.Linear(self.mlp.width, s.bits, bias=False).apply(start_small)
        # Virtual classes count: their centres are kept as far apart as those of known ones.
        self.distance = hash_distance(s.bits, s.oracle_classes or classes)

    def coding(self) -> SignCode:
        return SignCode(self.settings.bits)

    def project(self, features: Tensor) -> Tensor:
        return self.hash(self.mlp(self.added(standardised(features))))

    def centres(self) -> Tensor:
        """The hash centres [classes, bits], before any sign is taken."""
        return self.hash(self.mlp(self.prototypes.mean(dim=1), alone=True))

    def logits(self, added: Tensor, rng: np.random.Generator | None = None) -> Tensor:
        """Class logits for outputs of the added layer: own activations less half of the others'.

        Args:
            rng: decides which prototypes are left out; None weighs all by the chance that they are kept.
        """
        activations = self.activations(added)
        if rng is None:
            activations = activations * (1 - self.settings.theta)
        else:
            kept = rng.random(activations.shape) >= self.settings.theta
            activations = activations * torch.from_numpy(kept).to(activations)
        own = activations.sum(dim=2)
        return own - 0.5 * (own.sum(dim=1, keepdim=True) - own)

    def activations(self, added: Tensor) -> Tensor:
        """log((d + 1) / (d + eps)) [n, classes, per_class] for the distance d of unit vectors to unit prototypes."""
        # In double precision: in single, distances near zero would be rounded to some 3e-4, which is above eps.
        prototypes = F.normalize(self.prototypes.double(), dim=2).flatten(0, 1)
        d = (2 - 2 * F.normalize(added.double(), dim=1) @ prototypes.T).clamp(min=_ZERO).sqrt()
        return torch.log((d + 1) / (d + _EPS)).to(added.dtype).unflatten(1, self.prototypes.shape[:2])

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        s = self.settings
        both = torch.cat([batch.targets, batch.targets])
        added = self.added(standardised(batch.encode(torch.cat([batch.first, batch.second]))))
        centres = self.centres()
        signs = torch.tanh(_SHARPNESS * centres)
        nll = losses.cross_entropy(self.logits(added, batch.rng), both)
        separation, quantisation = losses.centre_separation(signs, self.distance), losses.quantisation(signs)
        to_centre = losses.feature_to_centre(self.hash(self.mlp(added)), centres, both, s.temperature)
        parts = {"nll": nll, "separation": separation, "quantisation": quantisation, "to_centre": to_centre}
        total = nll + s.centre_weight * (separation + quantisation) + s.feature_weight * to_centre
        return {"loss": total} | {name: value.detach() for name, value in parts.items()}

    @torch.no_grad()
    def teach(self, features: Tensor, targets: Tensor) -> dict[str, np.ndarray]:
        present = torch.unique(targets)  # virtual classes have centres too, but they are not known
        codes = self.coding().bits(self.centres()[present].float().cpu().numpy())
        return self._known(codes, present.cpu().numpy(), targets)

    def own_cut(self, features: Tensor | None = None, targets: Tensor | None = None) -> tuple[float, str]:
        bits, oracle = self.settings.bits, self.settings.oracle_classes
        radius = max(self.distance // 2, 1)
        source = f"{oracle} classes in the stream, an ORACLE count" if oracle else f"{self.classes} classes learnt"
        return 1 - radius / bits, f"its own rule: {radius} of {bits} bits may differ (from {source})"


def hash_distance(length: int, classes: int) -> int:
    """d_max: how far apart so many codes of this length can be expected to lie.

    The first d in 2 .. length with C(length, d - 2) <= 2^length / classes <= C(length, d - 1), a bound in the manner of
    Gilbert and Varshamov; 0 if there is none, as for very few classes.
    """
    for d in range(2, length + 1):  # in whole numbers, as 2^length may be beyond any float
        if math.comb(length, d - 2) * classes <= 2**length <= math.comb(length, d - 1) * classes:
            return d
    return 0
