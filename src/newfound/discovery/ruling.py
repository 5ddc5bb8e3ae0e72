"""Rules by which a dictionary decides and learns from a stream: ideas of the systems published after LTC.

Each is the idea of a paper in this project's own terms, known here from abstracts and public summaries. What a rule
leaves out of its paper, its docstring says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from newfound.discovery._exact import Float32s, Float64s, Ints, direction, tree_sum
from newfound.discovery._features import unit_rows
from newfound.errors import SettingsError


@dataclass(frozen=True)
class Membership:
    """What the members of the discovered categories have shown so far, an entry a category.

    Attributes:
        members: How many there are, n.
        scatter: The sum of their squared distances from their mean, n - |sum|^2 / n for unit vectors; a founder's is 0.
        joiners: How many of them joined the category; founders, of which merges bring more, did not.
        total: The sum of the joiners' similarities to the prototype, as it was when they came.
        squares: The sum of the squares of these similarities.
    """

    members: Ints
    scatter: Float64s
    joiners: Float64s
    total: Float64s
    squares: Float64s


class Rule(Protocol):
    """When a sample joins a category, and what it does to the prototype of the one it joins.

    A known category takes a sample whose similarity reaches the threshold. A discovered one may have a cut of its
    own; its *lift* is how far that is below the threshold.
    """

    known_first: ClassVar[bool]
    """Whether a sample that reaches a known category goes there, however well a discovered one would suit it."""

    def lift(self, threshold: float, membership: Membership) -> Float64s:
        """For each discovered category, the threshold less the similarity that a sample must have to join it."""

    def moved(
        self, prototype: Float32s, sample: Float32s, total: Float64s | None, similarity: float, threshold: float
    ) -> Float32s:
        """The prototype after ``sample``, which had this similarity to it, has joined its category.

        ``total`` is the sum of a discovered category's members, with the sample; a known one has None.
        """

    def left(self, prototype: Float32s, total: Float64s) -> Float32s:
        """The prototype of a discovered category after a member has left it; the others add up to ``total``."""


@dataclass(frozen=True)
class OnlinePrototypes:
    """Prototypes, known ones too, follow the samples that surely belong to them (the idea of TALON, CVPR 2026).

    A sample goes to the nearest prototype if its similarity reaches the threshold. If it even reaches the threshold
    + ``margin``, the prototype becomes the direction of ``momentum`` * prototype + (1 - ``momentum``) * sample;
    other samples join and leave it where it is.

    TALON updates in batches, by a step that grows with confidence and number of samples, and adapts the encoder as
    well; neither is carried over.

    Args:
        momentum: In [0, 1]: how much of a prototype stays. With 1 none ever moves.
        margin: In [0, 2]: how much more than the threshold it takes to move a prototype.
        known: Whether known prototypes move; if not, only discovered ones do.

    Raises:
        SettingsError: A setting that cannot be.
    """

    momentum: float = 0.9
    margin: float = 0.05
    known: bool = True

    known_first: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _number(self, "momentum", 0.0, 1.0)
        _number(self, "margin", 0.0, 2.0)
        if not isinstance(self.known, bool):
            raise SettingsError(f"known is True or False, not {self.known!r}")

    def lift(self, threshold: float, membership: Membership) -> Float64s:
        return np.zeros(len(membership.members))

    def moved(
        self, prototype: Float32s, sample: Float32s, total: Float64s | None, similarity: float, threshold: float
    ) -> Float32s:
        if similarity < threshold + self.margin or (total is None and not self.known):
            return prototype
        blend = self.momentum * prototype.astype(np.float64) + (1.0 - self.momentum) * sample.astype(np.float64)
        return direction(blend, otherwise=prototype)

    def left(self, prototype: Float32s, total: Float64s) -> Float32s:
        return prototype  # which step was this member's, if it made one, is not known


class _RunningMeans:
    """Discovered prototypes are the directions of their members' sums."""

    def moved(
        self, prototype: Float32s, sample: Float32s, total: Float64s | None, similarity: float, threshold: float
    ) -> Float32s:
        return _running(prototype, total)

    def left(self, prototype: Float32s, total: Float64s) -> Float32s:
        return _running(prototype, total)


@dataclass(frozen=True)
class ThreeWay(_RunningMeans):
    """Known, else discovered before, else new, with a cut for each question (the idea of PACO, arXiv 2604.11484).

    A sample whose best known similarity reaches the threshold is known. If not, it joins the nearest discovered
    category whose similarity reaches the second cut, or else founds one. Discovered prototypes are the directions of
    their members' sums; known ones stay.

    The second cut starts as the threshold + ``offset``. As soon as there are mature categories it is where their
    members' similarities end: the mean over these categories of (mean - ``width`` * standard deviation) of the
    similarities with which samples joined them. It never leaves the start by more than ``limit``: only samples
    that reach the cut are counted, so it could otherwise lift itself up step by step.

    PACO also asks, between the two, whether a sample looks like the birth of a category; of its formulas nothing is
    carried over. Its simulated discovery, which sets the cuts, is here the rehearsal that chooses the threshold.

    Args:
        offset: In [-2, 2]: the second cut less the threshold, at the start.
        mature: From 2 up: how many members make a category mature.
        width: From 0 up, in standard deviations: how far below the mean the members' similarities end.
        limit: In [0, 2]: how far the second cut may go from its start; 0 keeps it there.

    Raises:
        SettingsError: A setting that cannot be.
    """

    offset: float = 0.0
    mature: int = 5
    width: float = 2.0
    limit: float = 0.1

    known_first: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _number(self, "offset", -2.0, 2.0)
        _number(self, "width", 0.0, np.inf)
        _number(self, "limit", 0.0, 2.0)
        if isinstance(self.mature, bool) or not isinstance(self.mature, int | np.integer) or self.mature < 2:
            raise SettingsError(f"mature is a number of members, from 2 up, not {self.mature!r}")
        object.__setattr__(self, "mature", int(self.mature))

    def lift(self, threshold: float, membership: Membership) -> Float64s:
        lift = -self.offset
        mature = (membership.members >= self.mature) & (membership.joiners > 0)
        if mature.any():
            joiners = membership.joiners[mature]
            mean = membership.total[mature] / joiners
            deviation = np.sqrt(np.maximum(membership.squares[mature] / joiners - np.square(mean), 0.0))
            ends = mean - self.width * deviation
            end = tree_sum(ends[None]).item() / len(joiners)
            lift = min(max(threshold - end, lift - self.limit), lift + self.limit)
        return np.full(len(mature), lift)


@dataclass(frozen=True)
class GaussianExpansion(_RunningMeans):
    """A discovered category is a Gaussian around its members and reaches as far as they do (AGE, ICLR 2026).

    A sample whose best known similarity reaches the threshold is known. If not, it joins the discovered category
    whose reach it is furthest inside of, or else founds one. Discovered prototypes are the directions of their
    members' sums; known ones stay.

    The Gaussian is round. Its variance v (the expected squared distance of a member from the mean) is that of the
    members, shrunk towards the ``spread`` v0 of labelled classes as if ``prior`` deviations of it had been seen:

        v = (prior * v0 + scatter) / (prior + n - 1).

    A squared distance of 2 (1 - similarity) is within reach up to a fixed number of variances, the same for every
    category; the threshold t says which, for a category as wide as a labelled class. So the cut of a category is

        1 - (1 - t) * v / v0:

    t for one that was just founded, lower for wide and higher for narrow ones. v / v0 is kept between 1 / ``widest``
    and ``widest``: a category that grows takes in more distant members, which make it grow.

    From AGE come the order of the questions, the Gaussians and the weight of the prior; its full covariances, the
    reduction to few dimensions and a threshold for each known class are not carried over.

    Args:
        spread: v0, above 0 and at most 2, for instance from :func:`typical_spread`.
        prior: Above 0: how many deviations the spread counts for. (AGE's weight is prior / (prior + n), with 2.)
        widest: From 1 up: v / v0 at most; with 1 all categories have the same reach.

    Raises:
        SettingsError: A setting that cannot be.
    """

    spread: float
    prior: float = 2.0
    widest: float = 1.5

    known_first: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _number(self, "spread", 0.0, 2.0, above=True)
        _number(self, "prior", 0.0, np.inf, above=True)
        _number(self, "widest", 1.0, np.inf)

    def lift(self, threshold: float, membership: Membership) -> Float64s:
        ratio = (self.prior + membership.scatter / self.spread) / (self.prior + membership.members - 1)
        return (1.0 - threshold) * (np.clip(ratio, 1.0 / self.widest, self.widest) - 1.0)


def typical_spread(features: Any, targets: Any) -> float:
    """The variance of labelled classes for :class:`GaussianExpansion`: the mean squared distance from the class mean.

    The classes' sums of squares are pooled and divided by the number of samples less the number of classes.

    Args:
        features: ``[n, D]``; they are normalised.
        targets: ``[n]``, the class of each.

    Raises:
        FeatureError: Features that are not ``[n, D]``, or a row that is NaN, infinite or zero.
        SettingsError: Not one class for each feature, or no class with two samples that differ.
    """
    rows = unit_rows(features, "feature").astype(np.float64)
    labels = np.asarray(targets)
    if labels.shape != (len(rows),):
        raise SettingsError(f"there must be one target for each of {len(rows)} features, got {list(labels.shape)}")
    _, groups, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    means = np.zeros((len(sizes), rows.shape[1]))
    np.add.at(means, groups, rows)
    means /= sizes[:, None]
    scatter = float(np.square(rows - means[groups]).sum())
    if not scatter:
        raise SettingsError("no class has two features that differ, so they show no spread: give it as a number")
    return scatter / (len(rows) - len(sizes))


def _running(prototype: Float32s, total: Float64s | None) -> Float32s:
    return prototype if total is None else direction(total, otherwise=prototype)


def _number(rule: Any, name: str, low: float, high: float, above: bool = False) -> None:
    """Makes the setting ``name`` a plain number, from ``low``, or ``above`` it, up to ``high``; infinity is none."""
    value = getattr(rule, name)
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if not (low < number if above else low <= number) or not number <= high or np.isinf(number):
        if above:
            span = f"above {low:g}" + ("" if np.isinf(high) else f", {high:g} at most")
        else:
            span = f"from {low:g} up" if np.isinf(high) else f"from {low:g} to {high:g}"
        raise SettingsError(f"{name} is a number {span}, not {value!r}")
    object.__setattr__(rule, name, number)


RULES = {rule.__name__: rule for rule in (OnlinePrototypes, ThreeWay, GaussianExpansion)}
"""The rules by name."""


def rule_state(rule: Any) -> dict[str, Any]:
    """What a rule is, as plain values."""
    return {"kind": type(rule).__name__, **asdict(rule)}


def rule_from_state(state: Mapping[str, Any]) -> Rule:
    """The rule whose :func:`rule_state` this is.

    Raises:
        SettingsError: There is no such rule, or one of its settings cannot be.
    """
    settings = dict(state)
    try:
        rule: Rule = RULES[settings.pop("kind")](**settings)
    except (KeyError, TypeError):
        raise SettingsError(f"no rule is described by {dict(state)}: this state of a dictionary is damaged") from None
    return rule
