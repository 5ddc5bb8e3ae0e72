"""Rehearsal: choosing the threshold, and how far to trust what was learnt, without a single novel sample.

The labelled set plays the whole story in small: some of its classes are hidden, the method learns the others from part
of their images, then everything else is streamed and scored at many thresholds. What was best in rehearsal is taken.
Held-out images matter: a model's own training images lie much closer to their prototypes than anything it will meet.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import torch

from newfound.discovery import PrototypeDictionary
from newfound.evaluation import score
from newfound.features import Encoder, seen_from
from newfound.method import Method, Settings, class_means
from newfound.training import blend_tail, learn

MIN_CLASSES, MIN_IMAGES = 4, 4  # classes in all; images a class, on average
FALLBACK, FALLBACK_CENTRED = 0.7, 0.4  # the paper's tau_init; what rehearsals come to on centred features
_GRID = np.round(np.arange(0.10, 0.96, 0.02), 2)
_SHARES = (1.0, 0.75, 0.5, 0.25)  # of equal ones the largest is taken; never 0: what was learnt has a say
_TAUGHT_SHARE = 0.7  # of a taught class's images that are learnt from; the rest are streamed


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
    progress=None,
) -> Rehearsal:
    """Choose a threshold for this method on this labelled set. The encoder's tail is as it was afterwards."""
    classes = int(targets.max()) + 1
    if classes < MIN_CLASSES or len(items) < MIN_IMAGES * classes:
        reason = (
            f"{classes} classes with {len(items)} images are too few to hide some of them "
            f"({MIN_CLASSES} classes of {MIN_IMAGES} images are needed)"
        )
        cut = FALLBACK_CENTRED if settings.centre else FALLBACK
        share = 1.0 if isinstance(settings.share, str) else settings.share
        return Rehearsal(cut, share, [], [], 0, (cut, cut), reason)
    before = copy.deepcopy(encoder.backbone.tail_state())
    shares = [settings.share] if not isinstance(settings.share, str) else _SHARES if settings.epochs else [1.0]
    curves = np.zeros((len(shares), len(_GRID)))
    for draw in range(draws):
        rng = np.random.default_rng((seed, 77, draw))
        taught, stream = _deal(targets, rng)
        names = np.unique(targets[taught])
        local = np.searchsorted(names, targets[taught])
        method = build_method(encoder, items_at(items, taught), local, method_class, settings, len(names), seed + draw)
        learn(
            encoder, items_at(items, taught), local, method,
            seed=seed + draw, fabric=fabric, progress=progress,
        )  # fmt: skip
        after = copy.deepcopy(encoder.backbone.tail_state())
        order = rng.permutation(stream)
        for curve, share in zip(curves, shares, strict=True):
            encoder.backbone.model.load_state_dict(after, strict=False)
            blend_tail(encoder.backbone, before, share)
            prototypes = known_prototypes(encoder, items_at(items, taught), local, settings)
            features = encoder.features(items_at(items, order))
            curve += [_score_at(t, prototypes, names, features, targets[order], settings) / draws for t in _GRID]
            encoder.centre = None
        encoder.backbone.model.load_state_dict(before, strict=False)
    smooth = np.array([np.convolve(np.pad(c, 1, mode="edge"), [0.25, 0.5, 0.25], mode="valid") for c in curves])
    best, at = np.unravel_index(smooth.argmax(), smooth.shape)
    low, high = _plateau(smooth[best], int(at))
    return Rehearsal(
        threshold=float(_GRID[(low + high) // 2]),
        share=float(shares[best]),
        grid=_GRID.tolist(),
        scores=smooth[best].tolist(),
        draws=draws,
        flat=(float(_GRID[low]), float(_GRID[high])),
    )


def build_method(
    encoder: Encoder, items: list, targets: np.ndarray, method_class: type[Method], settings: Settings,
    classes: int, seed: int,
) -> Method:  # fmt: skip
    """A method started on the labelled set's features; its own initial weights come from the seed alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        method = method_class(encoder.backbone.dim, classes, settings).to(encoder.device)
    if settings.epochs:
        features = torch.from_numpy(encoder.features(items)).to(encoder.device)
        method.start(features, torch.from_numpy(targets).to(encoder.device))
    return method


def known_prototypes(encoder: Encoder, items: list, targets: np.ndarray, settings: Settings) -> np.ndarray:
    """P_k of the labelled set (Eq. 4), seen from its centre if the settings say so; the encoder keeps the centre."""
    features = torch.from_numpy(encoder.features(items))
    if settings.centre:
        centre = features.mean(dim=0)
        encoder.centre, features = centre.numpy(), seen_from(centre, features)
    return class_means(features, torch.from_numpy(targets), int(targets.max()) + 1).numpy()


def items_at(items: list, indices: np.ndarray) -> list:
    return [items[i] for i in indices]


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


def _score_at(threshold, prototypes, names, features, labels, settings: Settings) -> float:
    dictionary = PrototypeDictionary(prototypes, threshold=float(threshold), update=settings.update)
    out = dictionary.observe(features)
    discovered = out.category >= len(names)
    predicted = np.where(discovered, out.category, names[np.minimum(out.category, len(names) - 1)])
    result = score(labels, predicted, known=names.tolist(), discovered=discovered)
    assert result.named is not None, "predictions carry labels"
    return (result.strict.all + result.named.all) / 2
