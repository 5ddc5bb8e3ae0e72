"""What dictionaries that hold a unit vector for each category have in common."""

from __future__ import annotations

from typing import Any

from newfound.discovery._categories import Register
from newfound.discovery._exact import Float32s
from newfound.discovery._features import cosine, unit_rows
from newfound.discovery._rows import Rows


class Vectors(Register):
    """A prototype for each living category, and a cosine that samples are held against."""

    _prototypes: Rows

    def _read(self, features: Any) -> Float32s:
        return unit_rows(features, "feature", self.dimension)

    @property
    def dimension(self) -> int:
        """D, the dimension of features."""
        return self._prototypes.view.shape[1]

    @property
    def threshold(self) -> float:
        """tau: a sample whose best score is below it is new. It can be set at any time."""
        return self._threshold

    @threshold.setter
    def threshold(self, value: float) -> None:
        self._threshold = cosine(value, "threshold")

    @property
    def prototypes(self) -> Float32s:
        """The prototypes of the living categories, a read-only view."""
        return self._prototypes.frozen
