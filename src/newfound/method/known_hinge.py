"""LTC with the margin loss on known samples only: an ablation of the paper (Table 3)."""

from __future__ import annotations

from dataclasses import dataclass

from newfound.method.ltc import LTC, LTCSettings


@dataclass(frozen=True)
class KnownHingeSettings(LTCSettings):
    creator: str | None = None


class KnownHinge(LTC):
    """Keeps the first line of Eq. 10 and creates nothing, so the threshold stays at tau_init."""

    name = "known-hinge"
    about = "LTC without creation: the margin loss on known samples only (an ablation of the paper)"
    Settings = KnownHingeSettings
    creates = False
