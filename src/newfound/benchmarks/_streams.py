"""Made-up streams of features for measurements: categories that can be told apart, and now and then a new one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from newfound.discovery import BayesianDictionary, Dictionary, PrototypeDictionary
from newfound.journal.book import Book
from newfound.journal.catalogue import Catalogue

KINDS = ("prototypes", "evidence")
_NEW = 0.01  # the share of features that belong to no category
_VARIANCE = 9.0  # of class means in whitened readings, whose spread within a class is 1


@dataclass
class Stream:
    """A dictionary that knows so many categories, and features for it.

    Args:
        kind: "prototypes" (unit features, cosines), or "evidence" (whitened readings, the settings of a default run).
    """

    kind: str
    categories: int
    dimension: int = 512
    settings: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng(0)
        centres = self._rng.standard_normal((self.categories, self.dimension), dtype=np.float32)
        self._centres = centres * np.float32(np.sqrt(_VARIANCE))

    def dictionary(self) -> Dictionary:
        """A fresh one."""
        if self.kind == "prototypes":
            return PrototypeDictionary(_unit(self._centres), threshold=0.7)
        usual: dict[str, Any] = {"alone": -20.0, "reconsider_every": 250, "memory": 5000}
        seen = np.full(self.categories, 20)
        spread = np.full(self.dimension, _VARIANCE)
        sums = self._centres.astype(np.float64) * seen[:, None]
        return BayesianDictionary(spread, sums, seen, 10.0, **(usual | self.settings))

    def book(self) -> Book:
        """A fresh one, of a journal in which nothing has happened."""
        return Book(self.dictionary(), Catalogue([f"class {number}" for number in range(self.categories)]))

    def features(self, count: int) -> NDArray[np.float32]:
        """The next ones."""
        rng = self._rng
        rows = self._centres[rng.integers(0, self.categories, count)]
        rows += rng.standard_normal(rows.shape, dtype=np.float32)
        new = rng.random(count) < _NEW
        rows[new] = np.sqrt(_VARIANCE + 1) * rng.standard_normal((int(new.sum()), self.dimension), dtype=np.float32)
        return _unit(rows) if self.kind == "prototypes" else rows


def _unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)
