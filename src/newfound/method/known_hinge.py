"""LTC with the margin loss on known samples only: an ablation of the paper (Table 3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from newfound.errors import SettingsError
from newfound.method.ltc import LTC, LTCSettings


@dataclass(frozen=True)
class KnownHingeSettings(LTCSettings):
    """LTC's; a creator would contradict what is left out."""

    creator: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.creator is not None:
            raise SettingsError(f"known-hinge creates nothing; for creator={self.creator!r} take the method ltc.")


class KnownHinge(LTC):
    """Keeps the first line of Eq. 10 and creates nothing, so the threshold stays at tau_init."""

    name = "known-hinge"
    about = "LTC without creation: the margin loss on known samples only (an ablation of the paper)"
    settings_class = KnownHingeSettings
    creates = False
    fixed: ClassVar[dict[str, Any]] = {"creator": None}
