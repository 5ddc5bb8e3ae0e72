"""How a CNN's map of activations becomes one feature: by their mean, or by a generalised mean.

A plain mean lets a small part that tells classes apart, such as a beak, drown in its surroundings; the higher the power
of a generalised mean, the more the largest activations count (Radenovic et al., Fine-tuning CNN image retrieval with no
human annotation, 2018).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from newfound._arguments import power_of_mean
from newfound._chain import probe
from newfound.errors import SettingsError

_LEAST = 1e-6  # what a map without activations gives: a root is infinitely steep at 0


class GeneralizedMean(nn.Module):
    """The mean of the activations' powers over the map, and its root: 1 is the mean, infinity would be the maximum."""

    def __init__(self, power: float, *, flat: bool = False) -> None:
        super().__init__()
        self.power, self.flat = power, flat

    def forward(self, activations: Tensor) -> Tensor:
        """Activations [n, channels, h, w], none below zero, to [n, channels, 1, 1], or [n, channels] if flat.

        Powers are taken of shares of a channel's largest activation: those of the activations themselves overflow or
        vanish. The result does not depend on what they are shares of, and so neither do gradients.
        """
        wide = activations.to(torch.promote_types(activations.dtype, torch.float32))
        least = wide.new_tensor(_LEAST)
        # Not clamp, which an export in 8-bit integers would round to 0, and divide by.
        largest = torch.maximum(wide.detach().amax(dim=(2, 3), keepdim=True), least)
        mean = (wide / largest).pow(self.power).mean(dim=(2, 3), keepdim=True)
        pooled = largest * torch.maximum(mean, (least / largest).pow(self.power)).pow(1 / self.power)
        return (pooled.flatten(1) if self.flat else pooled).to(activations.dtype)


def set_pooling(model: nn.Module, power: float, size: int, name: str) -> None:
    """Have the model pool with a generalised mean; 1 leaves it as it is.

    Raises:
        SettingsError: a power that is none, or a model that takes no mean of activations from zero up.
    """
    if power_of_mean(power, "pooling") == 1:
        return
    from timm.layers import SelectAdaptivePool2d

    pools: list[Any] = [part for part in model.modules() if isinstance(part, SelectAdaptivePool2d)]
    pooled = _pooled(model, pools[0], size) if len(pools) == 1 else None
    if pooled is None:
        raise SettingsError(
            f"pooling={power:g}: {name} takes no mean of activations from zero up; leave pooling out for its own."
        )
    pools[0].pool = GeneralizedMean(power, flat=pooled.ndim == 2)  # some of timm's flatten within, others behind


def _pooled(model: Any, pool: Any, size: int) -> Tensor | None:
    """What a model's own pooling makes of some noise, if that is the mean of a map of activations from zero up."""
    seen: list[Tensor] = []
    hook = pool.register_forward_pre_hook(lambda _module, args: seen.append(args[0]))
    try:
        with torch.no_grad():
            model.forward_head(model.forward_features(probe(size, 0)))
    finally:
        hook.remove()
    if len(seen) != 1 or seen[0].ndim != 4 or seen[0].min() < 0:
        return None
    own: Tensor = pool.pool(seen[0])
    mean = seen[0].mean(dim=(2, 3))
    same = own.flatten(1).shape == mean.shape and torch.allclose(own.flatten(1), mean, rtol=1e-4, atol=1e-6)
    return own if same else None
