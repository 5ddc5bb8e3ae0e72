"""The frozen backbone: nothing is learnt but the class means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from newfound.errors import SettingsError
from newfound.method._prototypes import PrototypeMethod, PrototypeSettings


@dataclass(frozen=True)
class FrozenSettings(PrototypeSettings):
    """Those of the dictionary; no epochs, as there is nothing to learn."""

    epochs: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.epochs:
            raise SettingsError(
                f"epochs={self.epochs}: frozen has nothing to learn; leave epochs out, or take a method that learns, "
                f"such as baseline or ltc."
            )


class Frozen(PrototypeMethod):
    """The pretrained features as they are, with a prototype dictionary on top."""

    name = "frozen"
    about = "the pretrained backbone as it is: class means and a dictionary, no training"
    settings_class = FrozenSettings
    fixed: ClassVar[dict[str, Any]] = {"epochs": 0, "share": 1.0}
