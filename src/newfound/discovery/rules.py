"""A dictionary of prototypes with the rule of a newer system in place of LTC's single threshold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from newfound.discovery import _filter
from newfound.discovery._categories import Categories
from newfound.discovery._edits import Given, Moves
from newfound.discovery._exact import Float32s, Float64s, Ints, Similarity, direction, tree_sum
from newfound.discovery._features import unit_rows
from newfound.discovery._merging import sum_in_order
from newfound.discovery._rows import Rows
from newfound.discovery._vectors import Vectors
from newfound.discovery.decisions import Decisions
from newfound.discovery.ruling import RULES, Membership, Rule, rule_from_state, rule_state
from newfound.errors import SettingsError

_FOUNDED = (0.0, 0.0, 0.0, 0.0)  # a founder's membership: scatter, joiners, total, squares
_ROUNDING = 1e-12  # far more than adding a lift to a similarity is rounded by


class RuleDictionary(Vectors):
    """Known and discovered categories, a unit vector each, that name a stream of features by a rule and grow with it.

    The rule says which similarity a category asks for and how prototypes move: :class:`OnlinePrototypes` (TALON),
    :class:`ThreeWay` (PACO) or :class:`GaussianExpansion` (AGE). The threshold is the one knob that all share: it is
    the cut of known categories, and those of discovered ones follow it. Known categories have the ids 0 .. K-1,
    discovered ones K, K+1, ... in the order of their founding; no id is ever used again.

    **A score is relative to the threshold**, since decisions have a single cut: it is the similarity + (threshold -
    the category's own cut), clipped to [-1, 1], so a known category's score is its similarity. A sample goes to the
    highest score, of equal ones to the lowest id, or, if the rule asks for known categories first, to the highest
    known one that is not below the threshold. Then a runner-up can have the higher score. If no score reaches the
    threshold, the sample founds a category. At a threshold of -1 nothing is ever new, unless there is nothing yet.

    Samples are decided on one after the other, each in its own right, so any batching gives exactly the ids and
    scores of one sample at a time. Similarities are the canonical ones that :class:`PrototypeDictionary` describes;
    here too a matrix product only rules out prototypes that cannot matter.

    A sighting that a person moves (:meth:`reassign`) joins the target as it is then, by the rule, and leaves its source
    as far as what was learned can be taken back: sums can, a step of :class:`OnlinePrototypes` cannot. A category that
    moved sightings found has the direction of their sum.

    Args:
        prototypes: ``[K, D]``, one row a known class. K may be 0.
        rule: How to decide and learn.
        threshold: In [-1, 1]: a sample that is less similar to all known classes is not known.

    Raises:
        FeatureError: Prototypes that are not ``[K, D]``, or a row that is NaN, infinite or zero.
        SettingsError: A setting that cannot be.

    Example:
        >>> from newfound.discovery.ruling import ThreeWay
        >>> d = RuleDictionary([[1.0, 0.0], [0.0, 1.0]], ThreeWay(offset=-0.2), threshold=0.9)
        >>> d.observe([[0.96, 0.28], [-1.0, 0.0], [-0.8, 0.6]]).category
        array([0, 2, 2])
    """

    def __init__(self, prototypes: Any, rule: Rule, threshold: float = 0.7) -> None:
        if not isinstance(rule, tuple(RULES.values())):
            raise SettingsError(f"rule is one of {', '.join(RULES)}, such as ThreeWay(), not {rule!r}")
        rows = unit_rows(prototypes, "prototype")
        self.threshold = threshold
        self._rule = rule
        self._categories = Categories(len(rows))
        self._prototypes = Rows(rows)
        self._sums = Rows(np.empty((0, rows.shape[1])))  # of the discovered categories' members
        self._membership = Rows(np.empty((0, len(_FOUNDED))))
        self._similarity = Similarity(rows.shape[1])

    def observe(self, features: Any, runners_up: int = 0) -> Decisions:
        """Decides on each feature in turn, moves prototypes, and founds a category where none is near enough.

        Args:
            features: ``[n, D]`` or a single ``[D]``: an array, a torch tensor or lists.
            runners_up: How many of the next best categories to report, by their scores.

        Raises:
            FeatureError: The wrong dimension, or a row that is NaN, infinite or zero; nothing has changed then.
        """
        samples = self._read(features)
        decisions = Decisions.blank(len(samples), self.threshold, runners_up)
        for i, sample in enumerate(samples):
            row, similarity = self._decide(decisions, i, sample)
            self._learn(row, sample, similarity)
            if row < 0:
                decisions.category[i] = self.ids[-1]
        self._seen += len(samples)
        return decisions

    def predict(self, features: Any, runners_up: int = 0) -> Decisions:
        """What each feature alone would be told as things stand; nothing changes.

        A sample that would found a category has the category -1 and ``created`` set. Arguments and errors are
        those of :meth:`observe`.
        """
        samples = self._read(features)
        decisions = Decisions.blank(len(samples), self.threshold, runners_up)
        for i, sample in enumerate(samples):
            self._decide(decisions, i, sample)
        return decisions

    def _decide(self, into: Decisions, i: int, sample: Float32s) -> tuple[int, float]:
        """Writes the answer to a sample; returns the row it joins, -1 if none, and its similarity to it."""
        k = into.runners_up_category.shape[1] + 1
        lifts = self._lifts()
        rows = self._pool(sample, lifts, k)
        similarities = self._similarity(sample[None], np.zeros_like(rows), self._prototypes.view, rows)
        relative = similarities + lifts[rows]
        order = np.lexsort((rows, -relative))
        scores = np.clip(relative, -1.0, 1.0)
        known = order[(rows[order] < self.known) & (scores[order] >= self.threshold)]
        if self._rule.known_first and known.size:
            order = np.append(known[0], order[order != known[0]])

        created = not order.size or bool(scores[order[0]] < self.threshold)
        into.created[i] = created
        into.category[i] = -1 if created else self.ids[rows[order[0]]]
        into.score[i] = scores[order[0]] if order.size else -1.0
        into.runners_up_category[i], into.runners_up_score[i] = -1, -1.0
        others = order[: k - 1] if created else order[1:k]
        into.runners_up_category[i, : len(others)] = self.ids[rows[others]]
        into.runners_up_score[i, : len(others)] = scores[others]
        return (-1, -1.0) if created else (int(rows[order[0]]), float(similarities[order[0]]))

    def _lifts(self) -> Float64s:
        """How far below the threshold each category's own cut is."""
        membership = Membership(self.counts[self.known :], *self._membership.view.T)
        return np.concatenate([np.zeros(self.known), self._rule.lift(self.threshold, membership)])

    def _pool(self, sample: Float32s, lifts: Float64s, k: int) -> Ints:
        """The rows that may have one of the k highest scores, or the highest of the known ones."""
        products = _filter.products(sample[None], self._prototypes.view)[0].astype(np.float64)
        about = np.clip(products, -1.0, 1.0) + lifts
        slack = 2 * _filter.bound(self.dimension) + _ROUNDING
        wanted = about >= (np.partition(about, -k)[-k] - slack if len(about) > k else -np.inf)
        if self._rule.known_first and self.known:
            known = about[: self.known]
            wanted[: self.known] |= known >= known.max() - slack
        return np.flatnonzero(wanted)

    def _learn(self, row: int, sample: Float32s, similarity: float) -> None:
        """Counts a sample as a member of ``row``, or of a new category if that is -1, and moves the prototype."""
        created = row < 0
        (row,) = self._categories.enter(np.array([row]), np.array([created])).tolist()
        if created:
            self._prototypes.append(sample[None])
            self._sums.append(sample[None])
            self._membership.append(np.array([_FOUNDED]))
        else:
            self._join(row, sample, similarity)

    def _join(self, row: int, sample: Float32s, similarity: float) -> None:
        """Learns from a member that has been counted."""
        total: Float64s | None = None
        if row >= self.known:
            total = self._sums.view[row - self.known]
            total += sample
            shown = self._membership.view[row - self.known]
            shown[0] = _scatter(total, self.counts.item(row))
            shown[1:] += 1.0, similarity, similarity**2
        prototypes = self._prototypes.view
        prototypes[row] = self._rule.moved(prototypes[row], sample, total, similarity, self.threshold)

    def _leave(self, row: int, sample: Float32s) -> None:
        """Forgets a member that is no longer counted; with which similarity it joined nobody knows any more."""
        members = self.counts.item(row)
        if row < self.known or not members:
            return
        total, shown = self._sums.view[row - self.known], self._membership.view[row - self.known]
        total -= sample
        shown[0] = _scatter(total, members)
        if joiners := shown.item(1):  # an average one leaves: mean and deviation of the others stay
            shown[1] = joiners - 1.0
            shown[2:] *= (joiners - 1.0) / joiners
        prototypes = self._prototypes.view
        prototypes[row] = self._rule.left(prototypes[row], total)

    def _rehome(self, moves: Moves, readings: Float32s) -> None:
        self._categories.move(moves)
        if moves.founds:  # all of them are founders
            total = sum_in_order(readings)
            self._prototypes.append(direction(total, otherwise=readings[0])[None])
            self._sums.append(total[None])
            self._membership.append(np.array([(_scatter(total, len(readings)), *_FOUNDED[1:])]))
        for i in np.flatnonzero(moves.leaving).tolist():
            self._leave(int(moves.sources[i]), readings[i])
            if not moves.founds:
                self._join(moves.target, readings[i], self._similarity_to(moves.target, readings[i]))
        self._keep(self._categories.unite(moves.emptied(self.counts, self.known)))

    def _take_in(self, readings: Float32s, given: Given) -> None:
        for sample, row, created in zip(readings, given.rows.tolist(), given.created.tolist(), strict=True):
            self._learn(-1 if created else row, sample, -1.0 if created else self._similarity_to(row, sample))

    def _similarity_to(self, row: int, sample: Float32s) -> float:
        return self._similarity(sample[None], np.array([0]), self._prototypes.view, np.array([row])).item()

    def __repr__(self) -> str:
        return self._repr(f"dimension={self.dimension}, threshold={self.threshold:g}, rule={self._rule}")

    @property
    def rule(self) -> Rule:
        """How the dictionary decides and learns."""
        return self._rule

    @property
    def cuts(self) -> Float64s:
        """The similarity that each living category asks for as things stand."""
        return self.threshold - self._lifts()

    def merge(self, ids: Iterable[int]) -> int:
        """Makes one category of several and returns the id it lives on under.

        A known category takes the others in and keeps its prototype. Without one the lowest id lives on: its
        prototype becomes the direction of the sum of all members, whatever the rule, and it has shown what all of
        them had. An id merged before stands for the one it lives on under, so merging the same ids again changes
        nothing.

        Raises:
            SettingsError: No ids, an id that was never given out, or two known categories.
        """
        group = self._categories.rows_to_merge(ids)
        home = group[0]
        survivor = int(self.ids[home])
        if len(group) == 1:
            return survivor
        if home >= self.known:
            rows = np.array(group) - self.known
            total, shown = sum_in_order(self._sums.view[rows]), sum_in_order(self._membership.view[rows])
            shown[0] = _scatter(total, int(self.counts[group].sum()))
            self._sums.view[rows[0]], self._membership.view[rows[0]] = total, shown
            prototypes = self._prototypes.view
            prototypes[home] = direction(total, otherwise=prototypes[home])
        self._keep(self._categories.unite([group]))
        return survivor

    def _keep(self, left: NDArray[np.bool_]) -> None:
        self._prototypes.keep(left)
        self._sums.keep(left[self.known :])
        self._membership.keep(left[self.known :])

    def state(self) -> dict[str, Any]:
        """All that the dictionary is, as arrays (copies) and plain values, fit for safetensors and JSON."""
        return {
            **self._categories.state(),
            "prototypes": self._prototypes.view.copy(),
            "sums": self._sums.view.copy(),
            "membership": self._membership.view.copy(),
            "seen": self._seen,
            "threshold": self._threshold,
            "rule": rule_state(self._rule),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> RuleDictionary:
        """The dictionary whose :meth:`state` this is, bit for bit: it continues the stream as if never stopped.

        Raises:
            SettingsError: Something is missing, or the parts do not fit together.
            FeatureError: Prototypes that are NaN or zero.
        """
        try:
            restored = cls(state["prototypes"], rule_from_state(state["rule"]), state["threshold"])
            restored._categories = Categories.from_state(state)
            restored._sums = Rows(np.asarray(state["sums"], np.float64))
            restored._membership = Rows(np.asarray(state["membership"], np.float64))
            restored._seen = int(state["seen"])
        except KeyError as missing:
            raise SettingsError(f"this state of a dictionary lacks {missing}: it is damaged") from None
        discovered, sums, membership = len(restored) - restored.known, restored._sums.view, restored._membership.view
        shapes = (discovered, restored.dimension), (discovered, len(_FOUNDED))
        fits = (sums.shape, membership.shape) == shapes and len(restored) == len(restored._prototypes)
        if not fits or not (np.isfinite(sums).all() and np.isfinite(membership).all()):
            raise SettingsError("the prototypes and members of this state do not fit its categories: it is damaged")
        return restored

    def copy(self) -> RuleDictionary:
        """An independent dictionary that is the same in every bit."""
        return self.from_state(self.state())


def _scatter(total: Float64s, members: int) -> float:
    """The sum of the members' squared distances from their mean; they are unit vectors that add up to ``total``."""
    return max(0.0, members - tree_sum(np.square(total)[None]).item() / members)
