"""Rehearsal: choosing how to discover, and how far to trust what was learnt, without a single novel sample.

The labelled set plays the whole story in small: some of its classes are hidden, the method learns the others from part
of their images, then everything else is streamed and scored at many thresholds. What was best in rehearsal is taken.
Held-out images matter: a model's own training images lie much closer to their prototypes than anything it will meet.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from newfound._scenes import Cast, Scene, with_settings
from newfound._trust import trusted
from newfound.errors import SettingsError
from newfound.features import Encoder, Progress
from newfound.method import Method, Settings
from newfound.progress import Reporter
from newfound.run_files import replace
from newfound.teaching import train
from newfound.training import blend_tail

MIN_CLASSES, MIN_IMAGES = 4, 4  # classes in all; images a class, on average
SHARES = (1.0, 0.75, 0.5, 0.25)  # of equal ones the largest is taken; never 0: what was learnt has a say
LEAST = 0.1  # for evidence, where training is faster
WORTH = 0.01  # by how much another setting must be better than the one that is usually good
_KEPT = "chosen.json"
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
            return f"not rehearsed: {self.fallback}"
        low, high = self.flat
        kept = f" with {self.share:.0%} of what was learnt" if self.share < 1 else ""
        chosen = "".join(f", {name} {value:.3g}" for name, value in self.settings.items())
        among = f" and {len(self.trials)} settings" if len(self.trials) > 1 else ""
        return (
            f"threshold {self.threshold:.2f}{chosen}{kept}, rehearsed on {self.draws} draws of hidden classes{among} "
            f"(score {100 * max(self.scores):.1f}; within a point of it from {low:.2f} to {high:.2f})"
        )


def rehearse_once(
    make: Callable[[], Rehearsal], fabric, folder: Path | None, key: Mapping[str, Any]
) -> Rehearsal:  # fmt: skip
    """What `make` chooses, in all processes; or what it chose in this folder before the training was interrupted.

    Args:
        folder: where the choice is kept, by the first process; None keeps nothing.
        key: all that the choice depends on, as JSON has it. What was kept under another is not used.
    """
    found = _recall(folder, key) if folder and fabric.is_global_zero else None
    found = fabric.broadcast(found)
    if found is not None:
        return found
    chosen = fabric.broadcast(make())
    if folder and fabric.is_global_zero:
        text = json.dumps({"key": key, "chosen": asdict(chosen)})
        with suppress(OSError):  # it can be played again; on a full disk, the next checkpoint says so
            folder.mkdir(parents=True, exist_ok=True)
            replace(folder / _KEPT, lambda part: part.write_text(text, encoding="utf-8"))
    return chosen


def _recall(folder: Path, key: Mapping[str, Any]) -> Rehearsal | None:
    try:
        told = json.loads((folder / _KEPT).read_text(encoding="utf-8"))
        low, high = told["chosen"]["flat"]
        return Rehearsal(**told["chosen"] | {"flat": (low, high)}) if told["key"] == key else None
    except (OSError, ValueError, KeyError, TypeError):  # none, or damaged: it is played again
        return None


def draws_for(settings: Settings) -> int:
    """How often classes are hidden: what learns does so in every draw."""
    return 2 if settings.epochs else 8


def too_few(classes: int, images: int) -> str | None:
    """Why there is nothing to rehearse on so many classes and images; None if there is."""
    if classes >= MIN_CLASSES and images >= MIN_IMAGES * classes:
        return None
    return (
        f"{classes} classes with {images} images in all are too few to hide some of them "
        f"({MIN_CLASSES} classes, and {MIN_IMAGES} images a class, are needed)"
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
    reporter: Reporter | None = None,
) -> Rehearsal:
    """Choose a threshold and the open settings of this method on this labelled set.

    The encoder's tail is as it was afterwards.

    Args:
        draws: how often classes are hidden; None takes 2 for a method that learns, which it does in every draw, else 8.
        folder: where a method may keep the images that it makes, one folder a draw.
        reporter: told how far it is.
    """
    with torch.random.fork_rng(devices=[]):
        blank = method_class(encoder.backbone.dim, int(targets.max()) + 1, settings)
    shares = shares_for(settings)
    draws = draws or draws_for(settings)
    why = too_few(int(targets.max()) + 1, len(items))
    if why is None:
        try:
            with (reporter or Reporter()).stage("rehearsing discovery", _steps(blank, draws)) as progress:
                scenes = play(
                    encoder, items, targets, method_class, settings, shares,
                    seed=seed, fabric=fabric, draws=draws, folder=folder, progress=progress,
                )  # fmt: skip
                return choose(scenes, {}, progress)
        except SettingsError as error:
            why = str(error)
    cut = blank.own_cut()[0]
    return Rehearsal(cut, shares[-1], [], [], 0, (cut, cut), fallback=why)  # few images: little is kept


def shares_for(settings: Settings) -> Sequence[float]:
    """How much of what is learnt a rehearsal tries to keep, descending."""
    asked = getattr(settings, "share", 1.0)
    if not isinstance(asked, str):
        return (asked,)
    if not settings.epochs:
        return (1.0,)
    return (*SHARES, LEAST) if getattr(settings, "dictionary", None) == "bayesian" else SHARES


def _steps(method: Method, draws: int) -> int | None:
    """How many steps a rehearsal has: for each draw one to encode it, and one for each setting that it is played with.

    None for a method that learns, which counts the images that it learns from, too: how many it makes is not known.
    """
    played = 1 + sum(len(others) for _, *others in method.trials().values())
    return None if method.settings.epochs else draws * (1 + played)


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
    progress: Progress | None = None,
) -> dict[float, list[Scene]]:
    """Learn several draws of the labelled set; for each share of what was learnt, a scene a draw.

    Args:
        progress: called with the number of samples learnt from, and with 1 for a draw of a method that does not learn.

    Raises:
        SettingsError: too few classes or images to hide some.
    """
    if why := too_few(int(targets.max()) + 1, len(items)):
        raise SettingsError(why)
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
        if progress and not settings.epochs:
            progress(1)
    return scenes


def choose(
    scenes: Mapping[float, list[Scene]], settings: Mapping[str, Any], progress: Progress | None = None
) -> Rehearsal:
    """Choose share, threshold and open settings on draws that were learnt.

    The score is the mean of Strict All and Named All, less the method's `miscount` times the log of how many times too
    many or too few categories there are. First the share is chosen, with the settings that the method starts from, then
    one setting after the other, each with all thresholds. A draw is a small sample, so a setting stays where it starts
    unless another is clearly better.

    Args:
        settings: other settings for the method than those it was learnt with.
        progress: called with 1 for each draw that was played with all thresholds.

    Raises:
        SettingsError: too few samples for this method.
    """
    blank = with_settings(next(iter(scenes.values()))[0].method, settings)
    grid, open_ = blank.cuts(), blank.trials()
    chosen = {name: values[0] for name, values in open_.items()}
    given = {share: {**settings, **_measured(played, settings)} for share, played in scenes.items()}
    curves = {
        share: _mean_curve(played, {**given[share], **chosen}, grid, progress) for share, played in scenes.items()
    }
    share = max(curves, key=lambda name: curves[name].max())
    played, common, curve = scenes[share], given[share], curves[share]
    tried = [(chosen, float(curve.max()))]
    for name, (_, *others) in open_.items():
        trials = [{**chosen, name: value} for value in others]
        found = [(trial, _mean_curve(played, {**common, **trial}, grid, progress)) for trial in trials]
        tried += [(trial, float(values.max())) for trial, values in found]
        best, values = max(found, key=lambda pair: pair[1].max())
        if values.max() >= curve.max() + WORTH:
            chosen, curve = best, values
    low, high = _plateau(curve, int(curve.argmax()))
    cut = float(grid[low] + grid[high]) / 2
    return Rehearsal(
        threshold=cut,
        share=float(share),
        grid=grid.tolist(),
        scores=curve.tolist(),
        draws=len(played),
        flat=(float(grid[low]), float(grid[high])),
        settings=_found({**common, **chosen, **trusted(played, {**common, **chosen}, cut)}, settings),
        trials=[{**trial, "score": value} for trial, value in tried],
    )


def _mean_curve(
    scenes: list[Scene], settings: Mapping[str, Any], grid: np.ndarray, progress: Progress | None
) -> np.ndarray:
    curves = []
    for scene in scenes:
        curves.append(scene.curve(settings, grid))
        if progress:
            progress(1)
    curve = np.mean(curves, axis=0)
    return _smooth(curve) if scenes[0].method.smooth_cuts else curve


def _found(chosen: dict[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in chosen.items() if name not in given}


def _measured(scenes: list[Scene], settings: Mapping[str, Any]) -> dict[str, float]:
    found = [scene.measured(settings) for scene in scenes]
    return {name: float(np.mean([values[name] for values in found if name in values])) for name in found[0]}


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
