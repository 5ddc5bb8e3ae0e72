"""Sequential leader clustering (SLC): join the nearest leader that is near enough, else lead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from newfound.discovery._categories import Categories
from newfound.discovery._edits import Given, Moves
from newfound.discovery._exact import Float32s, Ints
from newfound.discovery._features import unit_rows
from newfound.discovery._owned import Owned, categories_for, majority
from newfound.discovery.decisions import Decisions
from newfound.discovery.prototypes import PrototypeDictionary
from newfound.errors import SettingsError


class LeaderDictionary(Owned):
    """Known and discovered categories, one or more leaders each, that name a stream of features and grow with it.

    A sample joins the leader with the highest cosine similarity, of equal ones the oldest, and belongs to the
    category that owns it. If that similarity is below the threshold, the sample leads a category of its own. Leaders
    never move. Known categories have the ids 0 .. ``known`` - 1, discovered ones the numbers after them in the order
    of their founding; no id is ever used again.

    The search is that of a :class:`PrototypeDictionary` over the leaders, so its promise holds: any batching gives
    exactly the ids and scores of one sample at a time.

    A sighting that a person moves (:meth:`reassign`) leads from then on: what is like it goes where it went. So do
    pinned ones that are admitted.

    Args:
        leaders: ``[M, D]``, oldest first, for instance from :func:`lead`. M may be 0.
        owners: ``[M]``, the known category of each leader.
        known: The number of known categories; some may have no leader.
        threshold: In [-1, 1]: a sample below it is new, one that equals it is not.

    Raises:
        FeatureError: Leaders that are not ``[M, D]``, or a row that is NaN, infinite or zero.
        SettingsError: A setting that cannot be.

    Example:
        >>> d = LeaderDictionary([[1.0, 0.0], [0.0, 1.0]], [0, 0], known=1, threshold=0.9)
        >>> d.observe([[0.28, 0.96], [-1.0, 0.0], [-0.96, 0.28]]).category
        array([0, 1, 1])
    """

    def __init__(self, leaders: Any, owners: Any, known: int, threshold: float = 0.7) -> None:
        self._fill(leaders, owners, categories_for(known), threshold)

    def _fill(self, leaders: Any, owners: Any, categories: Categories, threshold: float) -> None:
        # Every leader is a category of the inner dictionary. It never merges, so an id there is a row here.
        self._leaders = PrototypeDictionary(leaders, threshold)
        self._own(owners, len(self._leaders), categories)

    def observe(self, features: Any, runners_up: int = 0) -> Decisions:
        """Decides on each feature in turn, and founds a category where no leader is near enough.

        Args:
            features: ``[n, D]`` or a single ``[D]``: an array, a torch tensor or lists.
            runners_up: How many of the next best categories to report; a category is as near as its nearest leader,
                and of equally near ones the one with the oldest such leader comes first.

        Raises:
            FeatureError: The wrong dimension, or a row that is NaN, infinite or zero; nothing has changed then.
        """
        out = self._leaders.observe(features, self._enough(runners_up))
        self._add_rows(int(out.created.sum()))
        category = self._enter(self._names(out.category), out.created)
        self._seen += len(out)
        return self._decisions(out, category, runners_up)

    def predict(self, features: Any, runners_up: int = 0) -> Decisions:
        """What each feature alone would be told as things stand; nothing changes.

        A sample that would found a category has the category -1 and ``created`` set. Arguments and errors are
        those of :meth:`observe`.
        """
        out = self._leaders.predict(features, self._enough(runners_up))
        return self._decisions(out, self._names(out.category), runners_up)

    def _read(self, features: Any) -> Float32s:
        return unit_rows(features, "feature", self.dimension)

    def _rehome(self, moves: Moves, readings: Float32s) -> None:
        self._categories.move(moves)
        target = int(self.ids[moves.target])
        self._unite(moves.emptied(self.counts, self.known))
        for sample in readings[moves.leaving]:
            self._put_at_the_head(sample, target)

    def _take_in(self, readings: Float32s, given: Given) -> None:
        start = 0
        for end in [*np.flatnonzero(given.pinned).tolist(), len(readings)]:
            founders = start + np.flatnonzero(given.created[start:end])
            self._add_leaders(readings[founders], given.ids[founders])
            if end < len(readings):
                self._put_at_the_head(readings[end], int(given.ids[end]))
            start = end + 1
        self._enter(given.ids, given.created)

    def _put_at_the_head(self, sample: Float32s, owner: int) -> None:
        """Makes a sample lead, so that what is like it goes to ``owner``.

        Of equal leaders the oldest is found, so that one changes hands. A discovered category which owned nothing else
        gets a copy, behind it.
        """
        leaders, owners = self.leaders, self._owners.view
        same = np.flatnonzero(leaders[:, 0] == sample[0])  # a quick look that leaves few
        same = same[(leaders[same] == sample).all(axis=1)]
        heir = owner
        if same.size:
            heir = owners.item(same[0])
            owners[same[0]] = owner
            if heir < self.known or (owners == heir).any():
                return
        self._add_leaders(sample[None], np.array([heir]))

    def _add_leaders(self, samples: Float32s, owners: Ints) -> None:
        rows = len(self._leaders)
        self._leaders.admit(samples, np.arange(rows, rows + len(samples)))
        self._owners.append(owners)

    def _enough(self, runners_up: int) -> int:
        """How many leaders to ask for, so that so many other categories are surely among them.

        At worst the categories with the most leaders come first, with all their leaders. Those that a batch
        founds have one each, and there may be none with more.
        """
        if runners_up <= 0:
            return runners_up
        sizes = np.sort(np.bincount(self.owners))[::-1][:runners_up]
        return int(np.maximum(sizes, 1).sum()) + runners_up - len(sizes)

    def _names(self, rows: Ints) -> Ints:
        """The owners of leaders; -1 stays -1."""
        return np.append(self.owners, -1)[rows]

    def _decisions(self, out: Decisions, category: Ints, runners_up: int) -> Decisions:
        """The inner dictionary's answers with categories in place of leaders."""
        decisions = Decisions.blank(len(out), out.cut, runners_up)
        decisions.category[:], decisions.score[:], decisions.created[:] = category, out.score, out.created
        decisions.runners_up_category[:], decisions.runners_up_score[:] = -1, -1.0
        filled = np.zeros(len(out), np.int64)
        for rows, scores in zip(out.runners_up_category.T, out.runners_up_score.T, strict=True):
            names = self._names(rows)
            named = (decisions.runners_up_category == names[:, None]).any(axis=1) | (names == category)
            fresh = np.flatnonzero((names >= 0) & ~named & (filled < runners_up))
            decisions.runners_up_category[fresh, filled[fresh]] = names[fresh]
            decisions.runners_up_score[fresh, filled[fresh]] = scores[fresh]
            filled[fresh] += 1
        return decisions

    def __repr__(self) -> str:
        return self._repr(f"{len(self._leaders)} leaders, dimension={self.dimension}, threshold={self.threshold:g}")

    @property
    def dimension(self) -> int:
        """D, the dimension of features."""
        return self._leaders.dimension

    @property
    def threshold(self) -> float:
        """A sample whose best similarity is below it is new. It can be set at any time."""
        return self._leaders.threshold

    @threshold.setter
    def threshold(self, value: float) -> None:
        self._leaders.threshold = value

    @property
    def leaders(self) -> Float32s:
        """All leaders, oldest first, a read-only view; ``owners`` says whose they are."""
        return self._leaders.prototypes

    def state(self) -> dict[str, Any]:
        """All that the dictionary is, as arrays (copies) and plain values, fit for safetensors and JSON."""
        return {**self._book(), "leaders": self.leaders.copy(), "threshold": self.threshold}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> LeaderDictionary:
        """The dictionary whose :meth:`state` this is, bit for bit: it continues the stream as if never stopped.

        Raises:
            SettingsError: Something is missing, or the parts do not fit together.
            FeatureError: Leaders that are NaN or zero.
        """
        try:
            restored = cls(state["leaders"][:0], [], 0, state["threshold"])
            restored._fill(state["leaders"], state["owners"], Categories.from_state(state), state["threshold"])
            restored._seen = int(state["seen"])
        except KeyError as missing:
            raise SettingsError(f"this state of a dictionary lacks {missing}: it is damaged") from None
        return restored

    def copy(self) -> LeaderDictionary:
        """An independent dictionary that is the same in every bit."""
        return self.from_state(self.state())


def lead(features: Any, targets: Any, threshold: float) -> tuple[Float32s, Ints]:
    """The leaders of labelled features, clustered in their order from nothing, and whose they are.

    A leader belongs to the class that most of its members have, of equals to the lowest.

    Args:
        features: ``[n, D]``.
        targets: ``[n]``, the class of each, from 0 up.
        threshold: A feature that is less similar than this to all leaders leads.

    Returns:
        leaders: ``[M, D]``, unit rows.
        owners: ``[M]``, the class of each leader.

    Raises:
        FeatureError: Features that are not ``[n, D]``, or a row that is NaN, infinite or zero.
        SettingsError: A threshold that is no cosine, or targets that are not one class for each feature.
    """
    rows = unit_rows(features, "feature")
    clusters = PrototypeDictionary(rows[:0], threshold)
    groups = clusters.observe(rows).category
    return clusters.prototypes.copy(), majority(groups, targets)
