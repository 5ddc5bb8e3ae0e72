"""SLC: sequential leader clustering (Hartigan 1975) on the features of the baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from torch import Tensor

from newfound.discovery import LeaderDictionary, lead
from newfound.errors import SettingsError
from newfound.method._base import Known
from newfound.method.baseline import Baseline, BaselineSettings


@dataclass(frozen=True)
class SLCSettings(BaselineSettings):
    """update, merge_every: leaders neither move nor merge, so these are "fixed" and None."""

    update: Literal["fixed", "running"] = "fixed"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dictionary != "prototypes":
            raise SettingsError(f'dictionary={self.dictionary!r}: SLC has its own, of leaders; leave "prototypes".')
        if self.threshold == "adaptive":
            raise SettingsError('threshold="adaptive": SLC learns no radius; take "rehearsed" or a number.')
        if self.update != "fixed":
            raise SettingsError(f'update={self.update!r}: a leader stays the sample that it is; take update="fixed".')
        if self.merge_every is not None:
            raise SettingsError(f"merge_every={self.merge_every}: leaders are not merged; take merge_every=None.")


class SLC(Baseline):
    """A sample joins the nearest leader within a radius, else it leads; the labelled set is clustered first.

    A known class may so have many leaders, and is recognised near any of them. The radius, as a cosine, is the
    threshold; as it makes the known leaders too, what is kept of the labelled set is all of its features.
    """

    name = "slc"
    about = "sequential leader clustering on the baseline's features: a class may have many leaders"
    settings_class = SLCSettings
    settings: SLCSettings
    # The paper tuned one radius on CUB; here the labelled set chooses it, as SLC learns none.
    fixed: ClassVar[dict[str, Any]] = {
        "threshold": "rehearsed", "dictionary": "prototypes", "update": "fixed", "merge_every": None,
    }  # fmt: skip

    # Leaders are costly to find: the last ones, with the rows and the threshold that they were found for.
    _led: tuple[np.ndarray, float, np.ndarray, np.ndarray] | None = None

    def teach(self, features: Tensor, targets: Tensor) -> dict[str, np.ndarray]:
        known = super().teach(features, targets)
        del known["prototypes"]  # what is left is the centre, if there is one
        rows = self.read(features, known).float().cpu().numpy()
        return known | {"features": rows, "targets": targets.cpu().numpy().astype(np.int64)}

    def dictionary(self, known: Known, threshold: float) -> LeaderDictionary:
        rows = known["features"]
        if self._led is None or self._led[0] is not rows or self._led[1] != threshold:
            self._led = (rows, threshold, *lead(rows, known["targets"], threshold))
        _, _, leaders, owners = self._led
        return LeaderDictionary(leaders, owners, known=int(known["targets"].max()) + 1, threshold=threshold)
