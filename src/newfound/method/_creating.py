"""What methods that create have in common: which creator, with which settings."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar, Literal

from newfound.creation import Creator, make_creator
from newfound.creation.diffusion import STABLE_DIFFUSION
from newfound.errors import SettingsError


@dataclass(frozen=True)
class CreatorChoice:
    """A creator by name, and the settings of all creators; each takes those that it has.

    eta, across_classes, per_sample, min_lambda (mixup, and all others draw pairs by them too), eps, relative_step,
    sigma_0, lambda_rho (MKEE), pipeline (a local folder or an id of the model hub), prompt, strength, steps, guidance
    (diffusion).
    """

    takes_features: ClassVar[bool] = False  # whether a creator may make features in the place of inputs
    creator: str | None = "mkee"
    eta: float = 0.4
    across_classes: bool = True
    per_sample: bool = True
    min_lambda: float = 0.0
    eps: float = 0.05
    relative_step: bool = False
    sigma_0: float = 1.0
    lambda_rho: float = 0.1
    pipeline: str = STABLE_DIFFUSION
    prompt: str = "a photo"
    strength: float = 0.5
    steps: int = 30
    guidance: float = 7.5

    def make_creator(self) -> Creator | None:
        """The creator that was chosen; None if nothing shall be created.

        Raises:
            SettingsError: there is no such creator, it cannot have such a setting, or the method has no use for it.
        """
        if self.creator is None:
            return None
        values = {field.name: getattr(self, field.name) for field in fields(CreatorChoice) if field.name != "creator"}
        creator = make_creator(self.creator, **values)
        if "features" in creator.spaces and not self.takes_features:
            raise SettingsError(
                f"creator={self.creator!r} makes features, and this method learns from images: take another creator, "
                f"or the method ltc."
            )
        return creator


@dataclass(frozen=True)
class CreatorSettings(CreatorChoice):
    """For methods that create while they train; space: what the creator is given, "pixels" or "tokens" (the creator
    "between" needs neither)."""

    takes_features: ClassVar[bool] = True
    space: Literal["pixels", "tokens"] = "pixels"

    def check_creation(self, *, cached: bool) -> None:
        """Raise SettingsError unless the creator can be made and can work in the chosen space."""
        if self.space not in ("pixels", "tokens"):
            raise SettingsError(f'space={self.space!r}: choose "pixels" or "tokens".')
        creator = self.make_creator()
        if creator is None or "features" in creator.spaces:
            return
        if self.space not in creator.spaces:
            raise SettingsError(
                f"creator={self.creator!r} works on {' and '.join(creator.spaces)}, not on {self.space}: take "
                f'space="{creator.spaces[0]}" and cached=False, or another creator, or one of the methods diffgre-*, '
                f"which create before training."
            )
        if cached and self.space == "pixels":
            remedy = 'space="tokens" or cached=False' if "tokens" in creator.spaces else "cached=False"
            raise SettingsError(f'space="pixels" needs the pixels, and cached views hold only tokens: take {remedy}.')
