"""RankStat: the set of a feature's largest dimensions is its category (Han et al., ICLR 2020, in LTC's comparison)."""

from __future__ import annotations

from dataclasses import dataclass

from newfound.discovery.coding import TopK
from newfound.errors import SettingsError
from newfound.method._hashing import ProjectionMethod, ProjectionSettings


@dataclass(frozen=True)
class RankStatSettings(ProjectionSettings):
    """top: how many of the `dimension` values make the code."""

    dimension: int = 32
    top: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.top < self.dimension:
            raise SettingsError(f"top={self.top}: it lies between 1 and dimension - 1, here {self.dimension - 1}.")


class RankStat(ProjectionMethod):
    """The 3 largest of 32 projected values, in any order, are the code: C(32, 3) = 4,960 categories can be told apart.

    Only the code is AutoNovel's: its training needs unlabelled samples of the novel classes, which a stream does not
    give beforehand, so the projection learns by the supervised contrastive loss alone.
    """

    name = "rankstat"
    about = "RankStat: the set of the 3 largest of 32 projected values as a code; an unseen set is a new category"
    settings_class = RankStatSettings
    settings: RankStatSettings

    def coding(self) -> TopK:
        return TopK(self.settings.dimension, self.settings.top)
