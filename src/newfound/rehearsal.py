"""Rehearsal: choosing the threshold, and how far to trust what was learnt, without a single novel sample.

The labelled set plays the whole story in small: some of its classes are hidden, the method learns the others from part
of their images, then everything else is streamed and scored at many thresholds. What was best in rehearsal is taken.
Held-out images matter: a model's own training images lie much closer to their prototypes than anything it will meet.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from newfound.discovery import Dictionary
from newfound.evaluation import score
from newfound.features import Encoder
from newfound.method import Method, Settings
from newfound.teaching import read, teach, train
from newfound.training import blend_tail

MIN_CLASSES, MIN_IMAGES = 4, 4  # classes in all; images a class, on average
_SHARES = (1.0, 0.75, 0.5, 0.25)  # of equal ones the largest is taken; never 0: what was learnt has a say
_TAUGHT_SHARE = 0.7  # of a taught class's images that are learnt from; the rest are streamed
_FINE = 0.03  # thresholds that lie closer than this are smoothed over; those of codes are decisions of their own


@dataclass(frozen=True)
class Rehearsal:
    """The chosen threshold and share, and the curve they were chosen from."""

    threshold: float
    share: float
    grid: list[float]
    scores: list[float]  # mean of Strict All and Named All at each threshold, for the chosen share
    draws: int
    flat: tuple[float, float]  # thresholds within one point of the best
    fallback: str | None = None  # why nothing was rehearsed

    def describe(self) -> str:
        if self.fallback:
            return f"threshold {self.threshold:.2f}, not rehearsed: {self.fallback}"
        low, high = self.flat
        kept = f" with {self.share:.0%} of what was learnt" if self.share < 1 else ""
        return (
            f"threshold {self.threshold:.2f}{kept}, rehearsed on {self.draws} draws of hidden classes "
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
    draws: int = 2,
    folder: Path | None = None,
    progress=None,
) -> Rehearsal:
    """Choose a threshold for this method on this labelled set. The encoder's tail is as it was afterwards.

    Args:
        folder: where a method may keep the images that it makes, one folder a draw.
    """
    classes = int(targets.max()) + 1
    asked = getattr(settings, "share", 1.0)
    with torch.random.fork_rng(devices=[]):
        blank = method_class(encoder.backbone.dim, classes, settings)
    if classes < MIN_CLASSES or len(items) < MIN_IMAGES * classes:
        reason = (
            f"{classes} classes with {len(items)} images are too few to hide some of them "
            f"({MIN_CLASSES} classes of {MIN_IMAGES} images are needed)"
        )
        cut = blank.own_cut()[0]
        return Rehearsal(cut, 1.0 if isinstance(asked, str) else asked, [], [], 0, (cut, cut), reason)
    grid = blank.cuts()
    before = copy.deepcopy(encoder.backbone.tail_state())
    shares = [asked] if not isinstance(asked, str) else _SHARES if settings.epochs else [1.0]
    curves = np.zeros((len(shares), len(grid)))
    for draw in range(draws):
        rng = np.random.default_rng((seed, 77, draw))
        taught, stream = _deal(targets, rng)
        names = np.unique(targets[taught])
        local = np.searchsorted(names, targets[taught])
        shown = items_at(items, taught)
        method = train(
            encoder, shown, local, method_class, settings, seed=seed + draw, fabric=fabric, progress=progress,
            folder=folder / f"draw-{draw}" if folder else None,
        ).method  # fmt: skip
        after = copy.deepcopy(encoder.backbone.tail_state())
        order = rng.permutation(stream)
        for curve, share in zip(curves, shares, strict=True):
            encoder.backbone.model.load_state_dict(after, strict=False)
            blend_tail(encoder.backbone, before, share)
            known = teach(encoder, method, shown, local)
            readings = read(encoder, method, known, items_at(items, order))
            curve += [
                _score(method.dictionary(known, float(cut)), names, readings, targets[order]) / draws for cut in grid
            ]
        encoder.backbone.model.load_state_dict(before, strict=False)
    smooth = np.array([_smooth(grid, curve) for curve in curves])
    best, at = np.unravel_index(smooth.argmax(), smooth.shape)
    low, high = _plateau(smooth[best], int(at))
    return Rehearsal(
        threshold=float(grid[(low + high) // 2]),
        share=float(shares[best]),
        grid=grid.tolist(),
        scores=smooth[best].tolist(),
        draws=draws,
        flat=(float(grid[low]), float(grid[high])),
    )


def items_at(items: list, indices: np.ndarray) -> list:
    return [items[i] for i in indices]


def _smooth(grid: np.ndarray, curve: np.ndarray) -> np.ndarray:
    if np.diff(grid).max(initial=0) > _FINE:
        return curve
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


def _score(dictionary: Dictionary, names: np.ndarray, readings: np.ndarray, labels: np.ndarray) -> float:
    out = dictionary.observe(readings)
    discovered = out.category >= len(names)
    predicted = np.where(discovered, out.category, names[np.minimum(out.category, len(names) - 1)])
    result = score(labels, predicted, known=names.tolist(), discovered=discovered)
    assert result.named is not None, "predictions carry labels"
    return (result.strict.all + result.named.all) / 2
