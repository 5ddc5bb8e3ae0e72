"""Rehearsal: choosing how to discover, and how far to trust what was learnt, without a single novel sample.

The labelled set plays the whole story in small: some of its classes are hidden, the method learns the others from part
of their images, then everything else is streamed and scored at many thresholds. What was best in rehearsal is taken.
Held-out images matter: a model's own training images lie much closer to their prototypes than anything it will meet.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from newfound.discovery import Dictionary
from newfound.errors import SettingsError
from newfound.evaluation import by_name, named_right, reliability, score
from newfound.features import Encoder
from newfound.method import Method, Settings
from newfound.teaching import train
from newfound.training import blend_tail

MIN_CLASSES, MIN_IMAGES = 4, 4  # classes in all; images a class, on average
SHARES = (1.0, 0.75, 0.5, 0.25)  # of equal ones the largest is taken; never 0: what was learnt has a say
_TAUGHT_SHARE = 0.7  # of a taught class's images that are learnt from; the rest are streamed
_WORTH = 0.01  # by how much another setting must be better than the one that is usually good
_TEMPERATURES = (1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 50.0)
_ONLINE = ("reconsider_at", "evidence_temperature")  # settings that change neither what is taught nor what is read
_PLAYED_EVERY = 100  # second thoughts in a rehearsal, whose streams are short
_ORDERS = 3  # of a stream whose draw took a training: what evidence founds depends on what comes first


@dataclass(frozen=True)
class Rehearsal:
    """The chosen threshold, share and settings, and the curve they were chosen from."""

    threshold: float
    share: float
    grid: list[float]
    scores: list[float]  # at each threshold, for what was chosen: see `choose`
    draws: int
    flat: tuple[float, float]  # thresholds within one point of the best
    settings: dict[str, Any] = field(default_factory=dict)  # of the method, as chosen
    trials: list[dict[str, Any]] = field(default_factory=list)  # all that was tried, with the best score of each
    fallback: str | None = None  # why nothing was rehearsed

    def describe(self) -> str:
        if self.fallback:
            return f"threshold {self.threshold:.2f}, not rehearsed: {self.fallback}"
        low, high = self.flat
        kept = f" with {self.share:.0%} of what was learnt" if self.share < 1 else ""
        chosen = "".join(f", {name} {value:.3g}" for name, value in self.settings.items())
        among = f" and {len(self.trials)} settings" if len(self.trials) > 1 else ""
        return (
            f"threshold {self.threshold:.2f}{chosen}{kept}, rehearsed on {self.draws} draws of hidden classes{among} "
            f"(score {100 * max(self.scores):.1f}; within a point of it from {low:.2f} to {high:.2f})"
        )


def rehearse(
    encoder: Encoder,
    items: list,
    targets: np.ndarray,
    method_class: type[Method],
    settings: Settings,
    *,
    seed: int,
    fabric,
    draws: int | None = None,
    folder: Path | None = None,
    progress=None,
) -> Rehearsal:
    """Choose a threshold and the open settings of this method on this labelled set.

    The encoder's tail is as it was afterwards.

    Args:
        draws: how often classes are hidden; None takes 2 for a method that learns, which it does in every draw, else 4.
        folder: where a method may keep the images that it makes, one folder a draw.
    """
    with torch.random.fork_rng(devices=[]):
        blank = method_class(encoder.backbone.dim, int(targets.max()) + 1, settings)
    asked = getattr(settings, "share", 1.0)
    shares = [asked] if not isinstance(asked, str) else SHARES if settings.epochs else [1.0]
    try:
        scenes = play(
            encoder, items, targets, method_class, settings, shares,
            seed=seed, fabric=fabric, draws=draws or (2 if settings.epochs else 4), folder=folder, progress=progress,
        )  # fmt: skip
        return choose(scenes, {})
    except SettingsError as error:
        cut = blank.own_cut()[0]
        return Rehearsal(cut, 1.0 if isinstance(asked, str) else asked, [], [], 0, (cut, cut), fallback=str(error))


def play(
    encoder: Encoder,
    items: list,
    targets: np.ndarray,
    method_class: type[Method],
    settings: Settings,
    shares: Sequence[float],
    *,
    seed: int,
    fabric,
    draws: int = 2,
    folder: Path | None = None,
    progress=None,
) -> dict[float, list[Scene]]:
    """Learn several draws of the labelled set; for each share of what was learnt, a scene a draw.

    Raises:
        SettingsError: too few classes or images to hide some.
    """
    classes = int(targets.max()) + 1
    if classes < MIN_CLASSES or len(items) < MIN_IMAGES * classes:
        raise SettingsError(
            f"{classes} classes with {len(items)} images are too few to hide some of them "
            f"({MIN_CLASSES} classes of {MIN_IMAGES} images are needed)"
        )
    before = copy.deepcopy(encoder.backbone.tail_state())
    orders = _ORDERS if settings.epochs and getattr(settings, "dictionary", None) == "bayesian" else 1
    scenes: dict[float, list[Scene]] = {share: [] for share in shares}
    for draw in range(draws):
        rng = np.random.default_rng((seed, 77, draw))
        cast = Cast.of(items, targets, rng)
        method = train(
            encoder, cast.taught, cast.classes, method_class, settings, seed=seed + draw, fabric=fabric,
            progress=progress, folder=folder / f"draw-{draw}" if folder else None,
        ).method  # fmt: skip
        after = copy.deepcopy(encoder.backbone.tail_state())
        for share in shares:
            encoder.backbone.model.load_state_dict(after, strict=False)
            blend_tail(encoder.backbone, before, share)
            scenes[share].append(Scene.of(encoder, method, cast, orders))
        encoder.backbone.model.load_state_dict(before, strict=False)
    return scenes


def choose(scenes: Mapping[float, list[Scene]], settings: Mapping[str, Any]) -> Rehearsal:
    """Choose share, threshold and open settings on draws that were learnt.

    The score is the mean of Strict All and Named All, less the method's `miscount` times the log of how many times too
    many or too few categories there are. First the share is chosen, with the settings that the method starts from, then
    one setting after the other, each with all thresholds. A draw is a small sample, so a setting stays where it starts
    unless another is clearly better.

    Args:
        settings: other settings for the method than those it was learnt with.

    Raises:
        SettingsError: too few samples for this method.
    """
    blank = with_settings(next(iter(scenes.values()))[0].method, settings)
    grid, open_ = blank.cuts(), blank.trials()
    chosen = {name: values[0] for name, values in open_.items()}
    given = {share: {**settings, **_measured(played, settings)} for share, played in scenes.items()}
    curves = {share: _mean_curve(played, {**given[share], **chosen}, grid) for share, played in scenes.items()}
    share = max(curves, key=lambda name: curves[name].max())
    played, common, curve = scenes[share], given[share], curves[share]
    tried = [(chosen, float(curve.max()))]
    for name, (_, *others) in open_.items():
        trials = [{**chosen, name: value} for value in others]
        found = [(trial, _mean_curve(played, {**common, **trial}, grid)) for trial in trials]
        tried += [(trial, float(values.max())) for trial, values in found]
        best, values = max(found, key=lambda pair: pair[1].max())
        if values.max() >= curve.max() + _WORTH:
            chosen, curve = best, values
    low, high = _plateau(curve, int(curve.argmax()))
    cut = float(grid[high if blank.takes_highest_cut else (low + high) // 2])
    return Rehearsal(
        threshold=cut,
        share=float(share),
        grid=grid.tolist(),
        scores=curve.tolist(),
        draws=len(played),
        flat=(float(grid[low]), float(grid[high])),
        settings=_found({**common, **chosen, **_temperature(played, {**common, **chosen}, cut)}, settings),
        trials=[{**trial, "score": value} for trial, value in tried],
    )


@dataclass(frozen=True)
class Cast:
    """Who plays what in a draw: half of the classes are hidden, and part of the others' images are held out."""

    taught: list
    classes: np.ndarray  # of the taught images, counted from 0
    names: np.ndarray  # what those classes are called in the labelled set
    stream: list
    labels: np.ndarray

    @classmethod
    def of(cls, items: list, targets: np.ndarray, rng: np.random.Generator) -> Cast:
        taught, stream = _deal(targets, rng)
        order, names = rng.permutation(stream), np.unique(targets[taught])
        local = np.searchsorted(names, targets[taught])
        return cls(items_at(items, taught), local, names, items_at(items, order), targets[order])


@dataclass(frozen=True)
class Scene:
    """A draw that was learnt: features of its images, and the method that reads them."""

    method: Method
    cast: Cast
    taught: Tensor
    stream: Tensor
    read: dict = field(default_factory=dict)  # what was taught and read, by the settings it depends on
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
        method = with_settings(self.method, {**every, **settings})
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
        curves = []
        for k in range(self.orders):
            order = np.random.default_rng(k).permutation(len(labels)) if k else np.arange(len(labels))
            rows, classes = readings[order], labels[order]
            curves.append([_score(method.dictionary(known, cut), names, rows, classes, worse) for cut in cuts])
        return np.mean(curves, axis=0)

    def trust(self, settings: Mapping[str, Any], cut: float) -> float | None:
        """How far probabilities are from what comes true (the Brier score); None for a dictionary without any."""
        method, known, readings = self.reading(settings)
        out = method.dictionary(known, cut).observe(readings)
        if out.probability is None:
            return None
        names = self.cast.names.tolist()
        predicted, discovered = by_name(out.category, names)
        right = named_right(self.cast.labels.tolist(), predicted, names, discovered)
        return reliability(out.probability, right).brier


def with_settings(method: Method, changes: Mapping[str, Any]) -> Method:
    """The same method, with the same weights, under other settings."""
    if not changes:
        return method
    other = copy.copy(method)
    other.settings = dataclasses.replace(method.settings, **changes)
    return other


def items_at(items: list, indices: np.ndarray) -> list:
    return [items[i] for i in indices]


def _mean_curve(scenes: list[Scene], settings: Mapping[str, Any], grid: np.ndarray) -> np.ndarray:
    curve = np.mean([scene.curve(settings, grid) for scene in scenes], axis=0)
    return _smooth(curve) if scenes[0].method.smooth_cuts else curve


def _found(chosen: dict[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in chosen.items() if name not in given}


def _measured(scenes: list[Scene], settings: Mapping[str, Any]) -> dict[str, float]:
    found = [scene.measured(settings) for scene in scenes]
    return {name: float(np.mean([values[name] for values in found if name in values])) for name in found[0]}


def _temperature(scenes: list[Scene], settings: Mapping[str, Any], cut: float) -> dict[str, float]:
    """The temperature at which probabilities come closest to what comes true; nothing where there are none."""
    given = getattr(scenes[0].method.settings, "evidence_temperature", 1.0) != 1.0
    if given or scenes[0].trust(settings, cut) is None:
        return {}
    errors = [
        np.mean([scene.trust({**settings, "evidence_temperature": t}, cut) for scene in scenes]) for t in _TEMPERATURES
    ]
    return {"evidence_temperature": _TEMPERATURES[int(np.argmin(errors))]}


def _smooth(curve: np.ndarray) -> np.ndarray:
    return np.convolve(np.pad(curve, 1, mode="edge"), [0.25, 0.5, 0.25], mode="valid")


def _plateau(curve: np.ndarray, peak: int) -> tuple[int, int]:
    """First and last position around the peak where the curve stays within one point of it: its middle is safe."""
    low = high = peak
    while low > 0 and curve[low - 1] >= curve[peak] - 0.01:
        low -= 1
    while high < len(curve) - 1 and curve[high + 1] >= curve[peak] - 0.01:
        high += 1
    return low, high


def _deal(targets: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Indices to learn from and indices to stream: half of the classes are hidden, part of the others held out."""
    classes = rng.permutation(np.unique(targets))
    shown = set(classes[: (len(classes) + 1) // 2].tolist())
    taught: list[int] = []
    for label in sorted(shown):
        members = rng.permutation(np.flatnonzero(targets == label))
        taught.extend(members[: max(1, round(_TAUGHT_SHARE * len(members)))].tolist())
    chosen = np.array(sorted(taught))
    return chosen, np.setdiff1d(np.arange(len(targets)), chosen)


def _score(
    dictionary: Dictionary, names: np.ndarray, readings: np.ndarray, labels: np.ndarray, miscount: float = 0.0
) -> float:
    predicted, discovered = by_name(dictionary.observe(readings).category, names.tolist())
    result = score(labels, predicted, known=names.tolist(), discovered=discovered)
    assert result.named is not None, "predictions carry labels"
    off = abs(np.log(result.categories / len(np.unique(labels))))
    return (result.strict.all + result.named.all) / 2 - miscount * off
