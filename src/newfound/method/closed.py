"""The closed-set control: the baseline's features, and never anything new."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from newfound.errors import SettingsError
from newfound.method.baseline import Baseline, BaselineSettings


@dataclass(frozen=True)
class ClosedSettings(BaselineSettings):
    """The baseline's; a threshold of one's own would contradict a closed set."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dictionary != "prototypes":
            raise SettingsError(f'dictionary={self.dictionary!r}: a closed set discovers nothing; leave "prototypes".')
        if not isinstance(self.threshold, str):
            raise SettingsError(
                f"threshold={self.threshold}: closed gives every image to a known class; for a threshold take the "
                f"method baseline."
            )


class Closed(Baseline):
    """Gives every image to the nearest known class. A method that cannot beat it discovers nothing."""

    name = "closed"
    about = "the control: trained like the baseline, gives every image to a known class"
    settings_class = ClosedSettings
    fixed: ClassVar[dict[str, Any]] = {"dictionary": "prototypes"}
    discovers = False
