"""The two-covariance model: a feature is a class mean plus a spread, both Gaussian, estimated from labelled features.

Speaker recognition calls it PLDA. The model gives every feature a *reading*: coordinates in which the spread within a
class is the identity and the spread between classes is diagonal. :class:`~newfound.discovery.BayesianDictionary`
weighs readings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from newfound.discovery._exact import Float32s, Float64s, Ints
from newfound.discovery._features import as_rows, unit_rows
from newfound.errors import SettingsError

_FLATTEST = 1e-3  # between classes a direction varies at least this much, in units of the spread within
_SINGULAR = 1e-12  # a direction whose share of the largest spread is no more than rounding has none
_COPIES = 1e-7  # of the variance: where less is within classes, their samples differ by rounding alone
_ROOT = 0.5  # the power for features without negative numbers
_HALF = 0.5  # of `usual_within`, where samples are many
_LEAST_SHARE, _FEW = 0.05, 150  # of `usual_between`, which was tried on 3 to 100 classes of 3 to 100 samples


@dataclass(frozen=True)
class TwoCovariance:
    """Readings of features, and how far classes lie apart in them.

    A feature, each number raised to ``power`` with its sign kept and the whole at unit length again, is seen from the
    labelled ``mean``, projected on the ``basis`` of the labelled set's leading principal directions and scaled to unit
    length (which makes it more Gaussian), then seen from the classes' ``centre`` along ``axes`` that make the
    within-class covariance the identity and the between-class covariance ``diag(spread)``.
    """

    mean: Float64s  # [D]
    basis: Float64s  # [D, d]
    centre: Float64s  # [d]
    axes: Float64s  # [d, d]
    spread: Float64s  # [d]
    power: float = 1.0

    @classmethod
    def fit(
        cls,
        features: Any,
        targets: Any,
        *,
        dimensions: int = 512,
        within: float | None = None,
        between: float | None = None,
        inflate: float = 1.0,
        power: float | None = 1.0,
        freedom: int | None = None,
    ) -> TwoCovariance:
        """Estimate the model from labelled features.

        Args:
            features: ``[n, D]``; they are scaled to unit length.
            targets: ``[n]``, the class of each, 0 .. K-1, none of them empty.
            dimensions: directions to keep, as far as there are so many: principal ones, and where samples are too few
                to have as many, any others, because classes that are to be discovered differ in those too.
            within: how far the within-class covariance is drawn towards a multiple of the identity, in [0, 1]. None
                takes :func:`usual_within`.
            between: the same for the between-class covariance, which is drawn towards a multiple of the identity, of
                the within-class one, or of a blend of both (:func:`likeness`). It must not be 0 for unknown classes to
                be told apart: K known ones vary in K - 1 directions only, and those that are to be discovered also in
                others. None takes :func:`usual_between`.
            inflate: how much wider the spread within classes is than these features show. Features that a model was
                trained on lie closer together than new ones.
            power: what each number of a feature is raised to, above 0; its sign is kept. None takes roots (0.5) where
                no labelled number is below 0: means of activations that are never negative have long tails, and their
                roots are more like the Gaussians that the model takes them for. Otherwise it is 1.
            freedom: samples less classes that :func:`likeness` goes by. None takes those given; where they are part of
                a labelled set and play the whole of it, those of the whole make the model what it will be.

        Raises:
            FeatureError: features that are not ``[n, D]``, or a row that is NaN, infinite or zero.
            SettingsError: a setting that cannot be, too few classes or samples to tell the two spreads apart, or no
                spread within classes: the samples of each are copies.
        """
        rows = unit_rows(features, "feature").astype(np.float64)
        check_model(dimensions, within, between, inflate, power)
        if power is None:
            power = _ROOT if rows.min(initial=0.0) >= 0 else 1.0
        rows = _raised(rows, power)
        classes = _classes(rows, targets)
        mean = rows.mean(axis=0)
        basis = _filled_up(_principal(rows - mean, min(dimensions, len(rows) - 1)), dimensions)
        flat = _unit((rows - mean) @ basis)
        sums, counts = class_sums(flat, classes)
        means = sums / counts[:, None]
        rest = flat - means[classes]
        own = len(rows) - len(means)
        inner = rest.T @ rest / own  # W
        outer = np.cov(means.T) - inner * (1 / counts).mean()  # B: the means also scatter because classes are finite
        if within is None:
            within = usual_within(own, len(inner))
        if between is None:
            between = usual_between(len(means), len(rows))
        equal = np.eye(len(inner)) / len(inner)
        inner = _drawn(inner, equal, within) * inflate
        alike = likeness(freedom or own, len(inner))
        outer = _drawn(outer, (1 - alike) * equal + alike * inner / np.trace(inner), between)
        values, vectors = np.linalg.eigh(inner)
        if values[0] <= values[-1] * _SINGULAR:
            raise SettingsError(
                f"within={within}: classes of {len(rows)} samples in all have no spread in some of {len(values)} "
                "directions. Take a larger within, or fewer dimensions."
            )
        whiten = vectors / np.sqrt(values)
        spread, turn = np.linalg.eigh(whiten.T @ outer @ whiten)
        return cls(mean, basis, means.mean(axis=0), whiten @ turn, np.maximum(spread, _FLATTEST), power)

    @property
    def dimension(self) -> int:
        """d, the length of a reading."""
        return len(self.spread)

    def read(self, features: Any) -> Float32s:
        """The readings ``[n, d]`` of features ``[n, D]``.

        Raises:
            FeatureError: the wrong dimension, or a row that is NaN, infinite or zero.
        """
        rows = unit_rows(as_rows(features, "feature", len(self.mean)), "feature").astype(np.float64)
        flat = _unit((_raised(rows, self.power) - self.mean) @ self.basis)
        return ((flat - self.centre) @ self.axes).astype(np.float32)

    def arrays(self) -> dict[str, Float64s]:
        """The model as arrays by name."""
        return {field.name: np.asarray(getattr(self, field.name), np.float64) for field in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> TwoCovariance:
        """The model whose :meth:`arrays` these are; others are ignored. Raises KeyError if one is missing.

        Models of before there was a ``power`` have none; it was 1.
        """
        power = float(arrays.get("power", 1.0))
        names = [field.name for field in fields(cls) if field.name != "power"]
        return cls(**{name: np.asarray(arrays[name], np.float64) for name in names}, power=power)


def class_sums(rows: Any, targets: Any) -> tuple[Float64s, Ints]:
    """The sum and the number of each class's rows.

    Raises:
        SettingsError: targets that are not one class number for each row.
    """
    rows = np.asarray(rows, np.float64)
    classes = _numbers(targets, len(rows))
    counts = np.bincount(classes)
    sums = np.zeros((len(counts), rows.shape[1]))
    np.add.at(sums, classes, rows)
    return sums, counts


def scatter(readings: Any, targets: Ints, sums: Float64s, counts: Ints, *, held_out: bool) -> float:
    """The mean square distance of readings from their class means, an unbiased estimate of the spread, by dimension.

    Args:
        held_out: whether the means were taken without these readings. A mean of n others is off by 1 / n of the
            spread; a mean that a reading is part of is nearer to it by as much.
    """
    sizes = counts[targets].astype(np.float64)
    square = np.square(np.asarray(readings, np.float64) - sums[targets] / sizes[:, None]).mean(axis=1)
    share = sizes / (sizes + 1) if held_out else np.divide(sizes, sizes - 1, where=sizes > 1, out=np.zeros_like(sizes))
    weights = np.ones_like(sizes) if held_out else (sizes > 1).astype(np.float64)
    return float((square * share).sum() / max(weights.sum(), 1.0))


def usual_between(classes: int, samples: int) -> float:
    """How far to draw the covariance of class means towards what is assumed of it (:func:`likeness`).

    Few means, or means of few samples, say little of how classes differ. Half of the classes want a larger share than
    all of them do: what is best on part of a labelled set is too much for the whole.
    """
    return max(_LEAST_SHARE, 1 / (4 + classes / 25), _FEW / (_FEW + samples))


def usual_within(freedom: int, dimensions: int) -> float:
    """How far to draw the covariance within classes towards a multiple of the identity.

    Args:
        freedom: samples less classes: what the covariance is estimated from. Where it is below the dimensions, most of
            them are not seen to vary, and what is seen is taken for more than it says.
    """
    return max(_HALF, dimensions / (dimensions + freedom))


def likeness(freedom: int, dimensions: int) -> float:
    """How far classes are assumed to differ as samples of one class do, and not in all directions alike.

    Samples that are fewer than the dimensions hardly vary in most of them. If classes were to differ there as they do
    elsewhere, nothing but those directions would decide. With twice as many samples that is over.

    Args:
        freedom: samples less classes.
    """
    return min(1.0, dimensions / freedom) ** 4


def check_model(
    dimensions: int, within: float | None, between: float | None, inflate: float, power: float | None = 1.0
) -> None:
    """Raise :class:`SettingsError` for settings that :meth:`TwoCovariance.fit` cannot have."""
    shares = all(share is None or 0 <= share <= 1 for share in (within, between))
    if not (dimensions >= 1 and shares and 0 < inflate < np.inf):
        raise SettingsError(
            f"dimensions={dimensions}, within={within}, between={between}, inflate={inflate}: dimensions count from 1 "
            "up, within and between lie in [0, 1], inflate above 0."
        )
    if power is not None and not 0 < power < np.inf:
        raise SettingsError(f"power={power}: a number above 0, or None for what suits the features.")


def _numbers(targets: Any, samples: int) -> Ints:
    classes = np.asarray(targets)
    if classes.shape != (samples,) or classes.dtype.kind not in "iu" or classes.min(initial=0) < 0:
        raise SettingsError(
            f"targets are one class number, 0 or more, for each of the {samples} features, got {classes.dtype} "
            f"{classes.shape}."
        )
    return classes


def _classes(rows: Float64s, targets: Any) -> Ints:
    classes = _numbers(targets, len(rows))
    there, sizes = np.unique(classes, return_counts=True)
    if there.size and there[-1] >= len(there):
        missing = int(np.flatnonzero(there != np.arange(len(there)))[0])
        raise SettingsError(
            f"targets count classes from 0 without a gap, here 0 to {len(there) - 1}, but they go to {there[-1]} and "
            f"none is {missing}: number them anew with numpy.unique(targets, return_inverse=True)[1]."
        )
    if len(sizes) < 2 or len(rows) == len(sizes):
        raise SettingsError(
            f"{len(rows)} samples of {len(sizes)} classes are too few to tell the spread within classes from that "
            "between them: two classes are needed, one of them with two samples."
        )
    classes = classes.astype(np.int64)
    means = class_sums(rows, classes)[0] / sizes[:, None]
    within, total = np.square(rows - means[classes]).sum(), np.square(rows - rows.mean(axis=0)).sum()
    if within <= _COPIES * total:
        raise SettingsError(
            f"the samples of each of the {len(sizes)} classes are copies of one another, so classes show no spread: "
            "two samples of a class must differ."
        )
    return classes


def _principal(rows: Float64s, wanted: int) -> Float64s:
    """The leading principal directions of centred rows, ``[D, d]``, by the smaller of the two covariance matrices."""
    n, dimension = rows.shape
    if n > dimension:
        _, vectors = np.linalg.eigh(rows.T @ rows)
        return np.ascontiguousarray(vectors[:, ::-1][:, :wanted])
    values, vectors = np.linalg.eigh(rows @ rows.T)
    kept = values[::-1][:wanted] > values[-1] * 1e-10  # copies of a sample add no direction
    directions = rows.T @ vectors[:, ::-1][:, :wanted][:, kept]
    return directions / np.linalg.norm(directions, axis=0)


def _filled_up(basis: Float64s, wanted: int) -> Float64s:
    """More directions where samples are too few for the wanted ones: any that stand upright on them, always the same.

    Classes that are to be discovered differ in directions, too, that a few labelled samples do not vary in.
    """
    length, there = basis.shape
    missing = min(wanted, length) - there
    if missing <= 0:
        return basis
    others = np.random.default_rng(0).standard_normal((length, missing))
    return np.hstack([basis, np.linalg.qr(np.hstack([basis, others]))[0][:, there:]])


def _raised(rows: Float64s, power: float) -> Float64s:
    """Unit rows with every number raised to a power, signs kept, at unit length again."""
    return rows if power == 1 else _unit(np.sign(rows) * np.abs(rows) ** power)


def _drawn(covariance: Float64s, towards: Float64s, share: float) -> Float64s:
    """A covariance drawn by a share towards the multiple with the same trace of another, whose own trace is 1."""
    return (1 - share) * covariance + share * max(np.trace(covariance), 1e-12) * towards


def _unit(rows: Float64s) -> Float64s:
    """Rows at unit length; one that lies on the mean stays there."""
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
