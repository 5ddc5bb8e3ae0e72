"""A model as a chain: the parts that `forward_features` calls, in what order and with which keywords.

The order is recorded on noise, not assumed: so it holds for architectures that nobody here has heard of.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from newfound.errors import SettingsError

Call = tuple[nn.Module, dict[str, Any]]  # a part of a model, and the keywords it is called with
Step = Callable[[Tensor], Tensor]
_CONTAINERS = ("blocks", "stages", "layers", "features")
_MIN_SHARE = 0.01  # a unit that counts as a block holds at least this share of the parameters


def execution(model: Any, size: int) -> tuple[list[nn.Module], list[Call]]:
    """The blocks a model is made of, and the order in which `forward_features` calls its parts.

    Hooks note each top-level part (containers of blocks opened up) with its keyword arguments, such as a rotary
    embedding, which do not depend on the image.

    Raises:
        SettingsError: it is no image backbone, or takes no images of this size.
    """
    children = dict(model.named_children())
    opened = {name: _opened(child, name in _CONTAINERS) for name, child in children.items()}
    parts = [part for found in opened.values() for part in found]
    calls: list[Call] = []
    hooks = [
        part.register_forward_pre_hook(lambda module, _args, kw: calls.append((module, kw)), with_kwargs=True)
        for part in parts
    ]
    try:
        with torch.no_grad():
            model.forward_features(probe(size, 0))
    except AttributeError as error:
        raise SettingsError(f"{type(model).__name__} has no forward_features: not an image backbone.") from error
    except (AssertionError, RuntimeError, ValueError) as error:  # how timm's models refuse a size
        raise SettingsError(
            f"{type(model).__name__} takes no images of {size} x {size} pixels ({error}): leave image_size out for "
            f"its own, or take another backbone."
        ) from error
    finally:
        for hook in hooks:
            hook.remove()
    total = sum(p.numel() for p in model.parameters())
    inside = {id(part) for name in _CONTAINERS for part in opened.get(name, []) if part is not children[name]}
    large = [m for m, _ in calls if sum(p.numel() for p in m.parameters()) >= _MIN_SHARE * total]
    units = [m for m in large if id(m) in inside] or large
    return units, calls


def _opened(part: nn.Module, container: bool) -> list[nn.Module]:
    """What is called of a part: itself, the blocks in a container of several, or those in lists, which never are."""
    if isinstance(part, nn.ModuleList):
        return [inner for child in part for inner in _opened(child, container=False)]
    return list(part) if container and isinstance(part, nn.Sequential) and len(part) > 1 else [part]


def head_parameters(model: nn.Module, chain: list[Call]) -> list[nn.Parameter]:
    """Parameters of the parts that only `forward_head` uses: pooling, a last norm, CLIP's projection."""
    called = {id(p) for module, _ in chain for p in module.parameters()}
    own = {id(p) for p in model._parameters.values() if p is not None}  # class token, position embedding: trunk
    return [p for p in model.parameters() if id(p) not in called | own]


def step(module: nn.Module, keywords: dict[str, Any]) -> Step:
    """A call as it was recorded, for other tokens: its keywords follow them from the device they were recorded on."""
    if not any(isinstance(value, Tensor) for value in keywords.values()):
        return partial(module, **keywords)

    def call(tokens: Tensor) -> Tensor:
        there = {k: v.to(tokens.device) if isinstance(v, Tensor) else v for k, v in keywords.items()}
        made: Tensor = module(tokens, **there)
        return made

    return call


def probe(size: int, seed: int) -> Tensor:
    """Noise for one forward pass."""
    return torch.randn(1, 3, size, size, generator=torch.Generator().manual_seed(seed))


__all__ = ["Call", "Step", "execution", "head_parameters", "probe", "step"]
