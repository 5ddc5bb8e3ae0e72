"""What a dictionary answers: a category for every sample, and the score and the cut behind it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from newfound._arguments import whole


@dataclass(frozen=True)
class Decisions:
    """The answers to a batch of samples, one row a sample, in the order of the batch.

    Attributes:
        category: The category's id; -1 where ``predict`` finds that the sample would found a new one.
        score: The best similarity at the moment of the decision. For a founder that is the best it had before
            it founded, and -1 if there was nothing to compare it with.
        created: Whether the sample founded its category (``predict``: would found one).
        cut: What the scores were held against. Below it a sample fits no category: it is new, or doubtful. One that
            founds a category with a sample that was doubtful may have a score above it.
        runners_up_category: The next best categories of every sample, best first, in as many columns as were
            asked for; -1 where there are none. For a founder, the ones it came closest to.
        runners_up_score: Their similarities; -1 where there are none.
        probability: How probable the answer is: of the category, or for a founder that it is of a new one. None
            where the dictionary has no probabilities.
        new_probability: How probable it is that the sample is of no category that there was; or None.
        runners_up_probability: Those of ``runners_up_category``, 0 where there are none; or None.

    The scores of a :class:`~newfound.discovery.BayesianDictionary` are log ratios in place of similarities; where there
    is nothing to compare with, they are -1e30.
    """

    category: NDArray[np.int64]
    score: NDArray[np.float64]
    created: NDArray[np.bool_]
    cut: float
    runners_up_category: NDArray[np.int64]
    runners_up_score: NDArray[np.float64]
    probability: NDArray[np.float64] | None = None
    new_probability: NDArray[np.float64] | None = None
    runners_up_probability: NDArray[np.float64] | None = None

    @property
    def doubtful(self) -> NDArray[np.bool_]:
        """Which samples were answered with a category although their score is below the cut."""
        return ~self.created & (self.score < self.cut)

    def __len__(self) -> int:
        return len(self.category)

    @classmethod
    def blank(cls, samples: int, cut: float, runners_up: int, *, probabilities: bool = False) -> Decisions:
        """Room for the answers to so many samples, with or without probabilities.

        Raises:
            SettingsError: A number of runners-up that is none, or negative.
        """
        whole(runners_up, "runners_up")
        return cls(
            category=np.empty(samples, np.int64),
            score=np.empty(samples),
            created=np.empty(samples, bool),
            cut=cut,
            runners_up_category=np.empty((samples, runners_up), np.int64),
            runners_up_score=np.empty((samples, runners_up)),
            probability=np.empty(samples) if probabilities else None,
            new_probability=np.empty(samples) if probabilities else None,
            runners_up_probability=np.empty((samples, runners_up)) if probabilities else None,
        )
