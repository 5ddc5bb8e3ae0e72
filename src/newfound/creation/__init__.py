"""Creation: how pseudo-novel samples are made while training.

A creator is an object that a method calls with a batch of known inputs, in pixel space or in token space; it needs
nothing but the current model (diffusion also has a pipeline of its own). `creators()` lists them;
`make_creator(name, ...)` builds one.
"""

from __future__ import annotations

from typing import Any

from newfound.creation._base import Creator, Model, PixelScale, draw_partners
from newfound.creation.between import Between
from newfound.creation.cutmix import CutMix
from newfound.creation.diffusion import Diffusion
from newfound.creation.mixup import Mixup
from newfound.creation.mkee import MKEE
from newfound.errors import SettingsError

_CREATORS = {
    "mkee": (MKEE, {}, "mixup, then one step towards high entropy and low density (the paper's)"),
    "mkee-no-entropy": (MKEE, {"entropy": False}, "MKEE with the density term alone (an ablation of the paper)"),
    "mkee-no-density": (MKEE, {"density": False}, "MKEE with the entropy term alone (an ablation of the paper)"),
    "mixup": (Mixup, {}, "a blend of two images of different classes"),
    "cutmix": (CutMix, {}, "a rectangle of an image of another class in the place of the same rectangle"),
    "diffusion": (Diffusion, {}, "two images blended by Stable Diffusion, as in DiffGRE; needs its weights"),
}
_DRAWN = {"between": Between}  # makes features; not for methods that learn from images


def creators() -> dict[str, str]:
    """The creators of inputs, which every method that creates can take, with a line about each."""
    return {name: about for name, (_, _, about) in _CREATORS.items()}


def make_creator(name: str, **settings: Any) -> Creator:
    """A creator by name, also "between"; settings it does not have are left out (mixup has no step size)."""
    if name in _DRAWN:
        return _DRAWN[name]()
    if name not in _CREATORS:
        raise SettingsError(f"there is no creator {name!r}; choose one of {', '.join([*_CREATORS, *_DRAWN])}.")
    cls, fixed, _ = _CREATORS[name]
    fields = cls.__dataclass_fields__
    return cls(**{key: value for key, value in settings.items() if key in fields} | fixed)


__all__ = [
    "MKEE", "Between", "Creator", "CutMix", "Diffusion", "Mixup", "Model", "PixelScale",
    "creators", "draw_partners", "make_creator",
]  # fmt: skip
