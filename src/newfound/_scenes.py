"""Scenes of a rehearsal: draws of the labelled set in which some classes play the unknown ones, and their scores."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from newfound.discovery import Dictionary
from newfound.evaluation import by_name, named_right, score, unheard_of
from newfound.features import Encoder
from newfound.method import Method

_TAUGHT_SHARE = 0.7  # of a taught class's images that are learnt from; the rest are streamed
_SHOWS_SPREAD = 3  # images of a class, two of which are taught
# Settings that change neither what is taught nor what is read.
_ONLINE = ("reconsider_at", "evidence_temperature", "even_at", "new_slope", "new_shift")
_PLAYED_EVERY = 100  # second thoughts in a rehearsal, whose streams are short


@dataclass(frozen=True)
class Cast:
    """Who plays what in a draw: half of the classes are hidden, and part of the others' images are held out."""

    taught: list[Any]
    classes: np.ndarray  # of the taught images, counted from 0
    names: np.ndarray  # what those classes are called in the labelled set
    stream: list[Any]
    labels: np.ndarray
    freedom: int  # samples less classes of the labelled set

    @classmethod
    def of(cls, items: list[Any], targets: np.ndarray, rng: np.random.Generator) -> Cast:
        taught, stream = _deal(targets, rng)
        order, names = rng.permutation(stream), np.unique(targets[taught])
        local = np.searchsorted(names, targets[taught])
        freedom = len(targets) - len(np.unique(targets))
        return cls([items[i] for i in taught], local, names, [items[i] for i in order], targets[order], freedom)


@dataclass(frozen=True)
class Told:
    """What was said of the images of a draw, one after the other, and what came true."""

    probability: np.ndarray  # of the answer
    new_probability: np.ndarray
    created: np.ndarray  # whether the answer is a new category
    right: np.ndarray  # whether the answer was right
    new: np.ndarray  # whether the image was of a class without a category


@dataclass(frozen=True)
class Scene:
    """A draw that was learnt: features of its images, and the method that reads them."""

    method: Method
    cast: Cast
    taught: Tensor
    stream: Tensor
    read: dict[Any, Any] = field(default_factory=dict)  # what was taught and read, by the settings it depends on
    orders: int = 1  # in which the stream is played: the one it was dealt in, and others

    @classmethod
    def of(cls, encoder: Encoder, method: Method, cast: Cast, orders: int = 1) -> Scene:
        method.eval()
        taught, stream = (
            torch.from_numpy(encoder.features(images)).to(encoder.device) for images in (cast.taught, cast.stream)
        )
        return cls(method, cast, taught, stream, orders=orders)

    def measured(self, settings: Mapping[str, Any]) -> dict[str, float]:
        """What the images that were held out tell the method of those that it learnt."""
        known = np.flatnonzero(np.isin(self.cast.labels, self.cast.names))
        classes = np.searchsorted(self.cast.names, self.cast.labels[known])
        method = with_settings(self.method, settings)
        return method.measured(self.taught, torch.from_numpy(self.cast.classes), self.stream[known], classes)

    def reading(self, settings: Mapping[str, Any]) -> tuple[Method, dict[str, np.ndarray], np.ndarray]:
        """The method with these settings, what it knows, and what its dictionary is given."""
        every = {"reconsider_every": _PLAYED_EVERY} if getattr(self.method.settings, "reconsider_every", None) else {}
        method = copy.copy(with_settings(self.method, {**every, **settings}))
        method.freedom = self.cast.freedom  # what is rehearsed is the model that the whole labelled set will have
        key = tuple(sorted((name, value) for name, value in settings.items() if name not in _ONLINE))
        if key not in self.read:
            with torch.inference_mode():
                known = method.teach(self.taught, torch.from_numpy(self.cast.classes).to(self.taught.device))
                self.read[key] = known, method.read(self.stream, known).float().cpu().numpy()
        return method, *self.read[key]

    def curve(self, settings: Mapping[str, Any], grid: np.ndarray) -> np.ndarray:
        """The score at each threshold, a mean over orders of the stream."""
        method, known, readings = self.reading(settings)
        names, labels, cuts, worse = self.cast.names, self.cast.labels, grid.tolist(), method.miscount
        curves: list[list[float]] = []
        for k in range(self.orders):
            order = np.random.default_rng(k).permutation(len(labels)) if k else np.arange(len(labels))
            rows, classes = readings[order], labels[order]
            curves.append([_score(method.dictionary(known, cut), names, rows, classes, worse) for cut in cuts])
        return np.asarray(np.mean(curves, axis=0))

    def told(self, settings: Mapping[str, Any], cut: float) -> Told | None:
        """The probabilities of the answers, and what came true; None for a dictionary without probabilities."""
        method, known, readings = self.reading(settings)
        out = method.dictionary(known, cut).observe(readings)
        if out.probability is None or out.new_probability is None:
            return None
        names, labels = self.cast.names.tolist(), self.cast.labels.tolist()
        predicted, discovered = by_name(out.category, names)
        right = named_right(labels, predicted, names, discovered)
        new = unheard_of(labels, predicted, names, discovered)
        return Told(out.probability, out.new_probability, out.created, right, new)


def with_settings(method: Method, changes: Mapping[str, Any]) -> Method:
    """The same method, with the same weights, under other settings."""
    if not changes:
        return method
    other = copy.copy(method)
    other.settings = dataclasses.replace(method.settings, **changes)
    return other


def judged(ids: np.ndarray, names: np.ndarray, labels: np.ndarray, miscount: float) -> float:
    """How good answers are: the mean of Strict All and Named All, less `miscount` for each factor e of categories too
    many or too few.

    Args:
        ids: the category of each sample, in the order of the stream.
        names: what the known ones, 0 .. K-1, are called in `labels`.
    """
    predicted, discovered = by_name(ids, names.tolist())
    result = score(labels, predicted, known=names.tolist(), discovered=discovered)
    assert result.named is not None, "predictions carry labels"
    off = abs(np.log(result.categories / len(np.unique(labels))))
    return float((result.strict.all + result.named.all) / 2 - miscount * off)


def _score(
    dictionary: Dictionary, names: np.ndarray, readings: np.ndarray, labels: np.ndarray, miscount: float
) -> float:
    return judged(dictionary.observe(readings).category, names, labels, miscount)


def shown_classes(targets: np.ndarray, rng: np.random.Generator) -> list[int]:
    """Half of the classes, drawn, in ascending order.

    Where all that were drawn have an image or two, the largest class takes the place of one of them: what is learnt
    from single images does not show how images of a class differ.
    """
    classes, counts = np.unique(targets, return_counts=True)
    drawn = rng.permutation(len(classes))[: (len(classes) + 1) // 2]
    if counts[drawn].max() < _SHOWS_SPREAD <= counts.max():
        drawn[0] = counts.argmax()
    shown: list[int] = np.sort(classes[drawn]).tolist()
    return shown


def _deal(targets: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Indices to learn from and indices to stream: half of the classes are hidden, part of the others held out."""
    taught: list[int] = []
    for label in shown_classes(targets, rng):
        members = rng.permutation(np.flatnonzero(targets == label))
        taught.extend(members[: max(1, round(_TAUGHT_SHARE * len(members)))].tolist())
    chosen = np.array(sorted(taught))
    return chosen, np.setdiff1d(np.arange(len(targets)), chosen)
