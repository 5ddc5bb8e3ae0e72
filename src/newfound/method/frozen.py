"""The frozen backbone: nothing is learnt but the class means."""

from __future__ import annotations

from dataclasses import dataclass

from newfound.method._base import Method, Settings


@dataclass(frozen=True)
class FrozenSettings(Settings):
    epochs: int = 0


class Frozen(Method):
    """The pretrained features as they are, with a prototype dictionary on top."""

    name = "frozen"
    about = "the pretrained backbone as it is: class means and a dictionary, no training"
    settings_class = FrozenSettings
