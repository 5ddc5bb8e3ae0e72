"""WTA: the winners of groups of dimensions are a feature's category (Jia et al., ICCV 2021, in LTC's comparison)."""

from __future__ import annotations

from dataclasses import dataclass

from newfound.discovery.coding import GroupArgmax
from newfound.errors import SettingsError
from newfound.method._hashing import ProjectionMethod, ProjectionSettings


@dataclass(frozen=True)
class WTASettings(ProjectionSettings):
    """groups: into how many equal parts the `dimension` values are divided."""

    dimension: int = 48
    groups: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.groups < 1 or self.dimension % self.groups or self.dimension // self.groups < 2:
            raise SettingsError(
                f"groups={self.groups}: {self.dimension} dimensions must be divided into equal groups of 2 or more."
            )


class WTA(ProjectionMethod):
    """The largest value in each of 3 groups of 16 projected ones: 16^3 = 4,096 categories can be told apart.

    Winners are found within groups, so that no few dimensions decide all codes. As for RankStat, the projection learns
    by the supervised contrastive loss alone.
    """

    name = "wta"
    about = "winner takes all: the largest value in each of 3 groups of 16 as a code; an unseen code is a new category"
    settings_class = WTASettings
    settings: WTASettings

    def coding(self) -> GroupArgmax:
        return GroupArgmax(self.settings.dimension, self.settings.groups)
