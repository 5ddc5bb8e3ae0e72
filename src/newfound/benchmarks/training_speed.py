"""How fast training is from cached trunk outputs, and what creation adds to it."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from newfound.benchmarks._timing import SpeedRow, spread
from newfound.progress import Reporter

VIT = "vit_base_patch16_224"


def cached_epoch(images: int = 256, epochs: int = 4) -> SpeedRow:
    """An epoch from cached trunk outputs against one with a full forward pass, and what accuracy each reaches."""
    labelled, stream = digits(images)
    results = {}
    with tempfile.TemporaryDirectory() as cache:
        for name, cached in (("cached", True), ("full", False)):
            clock = EpochClock(len(labelled.items))
            run = _fit(labelled, clock, cache, epochs=epochs, warmup_epochs=1, views=4, cached=cached)
            results[name] = (clock.seconds(), run.evaluate(stream, orders=1).mean)
    (fast, ours), (slow, theirs) = results["cached"], results["full"]
    accuracy = [f"{100 * m['strict']['all']:.1f} / {100 * m['greedy']['all']:.1f}" for m in (ours, theirs)]
    return _row(
        "cached-epoch", fast, slow, "at least 5 times the full forward pass",
        f"{len(labelled.items)} digits at 224 px, batches of 128 in two views; Strict / Greedy All after {epochs} "
        f"epochs: cached {accuracy[0]}, full {accuracy[1]}",
    )  # fmt: skip


def cached_epoch_vit(images: int = 128, epochs: int = 3, name: str = VIT) -> SpeedRow:
    """The same on a ViT with random weights, whose tail needs the last block for the class token only."""
    labelled, _ = digits(images)
    times = {}
    with tempfile.TemporaryDirectory() as cache:
        for cached in (True, False):
            clock = EpochClock(len(labelled.items))
            # The slow side has one epoch after its warm-up: minutes on a CPU.
            _fit(labelled, clock, cache, epochs=epochs if cached else 2, views=2, cached=cached, backbone=name,
                 weights="random", p_gen=0.0)  # fmt: skip
            times[cached] = clock.seconds()
    ratios = [times[False][0] / seconds for seconds in times[True]]
    return SpeedRow(
        "cached-epoch-vit", statistics.median(times[True]), times[False][0], "s an epoch", *spread(ratios),
        "at least 10 times the full forward pass",
        f"{name}, random weights, {len(labelled.items)} digits at 224 px, one batch in two views, without creation; "
        f"largest difference of a unit feature from the model's own: {_difference(name):.0e}",
    )  # fmt: skip


def creation_in_tokens() -> SpeedRow:
    """What MKEE adds to a cached epoch in token space."""
    return _creation("mkee-tokens", cached=True, space="tokens", images=384, target="at most 0.30 added")


def creation_in_pixels() -> SpeedRow:
    """What MKEE adds to an uncached epoch in pixel space."""
    return _creation("mkee-pixels", cached=False, space="pixels", images=128, target="at most 0.60 added")


def _creation(stage: str, *, cached: bool, space: str, images: int, target: str, p_gen: float = 0.3) -> SpeedRow:
    labelled, _ = digits(images)
    seconds = {}
    with tempfile.TemporaryDirectory() as cache:
        for chance in (0.0, 1.0):
            clock = EpochClock(len(labelled.items))
            _fit(labelled, clock, cache, epochs=4, views=2, cached=cached, space=space, p_gen=chance,
                 creation_from_epoch=0)  # fmt: skip
            seconds[chance] = clock.seconds()
    added = [p_gen * (b / a - 1) for a, b in zip(seconds[0.0], seconds[1.0], strict=True)]
    without = statistics.median(seconds[0.0])
    return SpeedRow(
        stage, without * (1 + statistics.median(added)), without, "s an epoch", *spread(added), target,
        f"share of the epoch's time that creation adds at p_gen {p_gen}: epochs that always create against epochs that "
        f"never do, times {p_gen}; {len(labelled.items)} digits at 224 px",
    )  # fmt: skip


def _fit(labelled: Any, clock: EpochClock, cache: str, **settings: Any) -> Any:
    from newfound.fitting import fit

    chosen: dict[str, Any] = {"threshold": "adaptive", "flip": False, "space": "tokens"} | settings
    return fit(labelled, method="ltc", short=True, cache=cache, reporter=clock, **chosen)


def _row(stage: str, fast: list[float], slow: list[float], target: str, detail: str) -> SpeedRow:
    count = min(len(fast), len(slow))
    ratios = [b / a for a, b in zip(fast[:count], slow[:count], strict=True)]
    return SpeedRow(
        stage, statistics.median(fast), statistics.median(slow), "s an epoch", *spread(ratios), target, detail
    )  # fmt: skip


def _difference(name: str) -> float:
    """How far the tail's unit features are from those of the model as timm runs it, at most."""
    import torch
    from torch.nn import functional as F

    from newfound import backbone

    cut = backbone.create(name, weights="random")
    pixels = torch.randn(4, 3, cut.spec.size, cut.spec.size, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        ours, own = cut(pixels), cut.model.forward_head(cut.model.forward_features(pixels))
    return float((F.normalize(ours) - F.normalize(own)).abs().max())


class EpochClock(Reporter):
    """Times the epochs of the stage "learning" from its progress; the first is a warm-up and left out."""

    def __init__(self, images: int) -> None:
        self.images, self.done, self.watching = images, 0, False
        self.times: list[float] = []

    def stage(self, title: str, total: int | None = None):  # type: ignore[no-untyped-def]
        @contextmanager
        def watch() -> Iterator[Any]:
            self.watching = title == "learning"
            self.times = [time.perf_counter()] if self.watching else self.times
            yield self._advance

        return watch()

    def _advance(self, count: int) -> None:
        if self.watching:
            self.done += count
            if self.done % self.images == 0:
                self.times.append(time.perf_counter())

    def seconds(self) -> list[float]:
        """The seconds of every epoch but the first."""
        return [float(seconds) for seconds in np.diff(self.times)[1:]]


def digits(images: int) -> tuple[Any, Any]:
    """Some images of scikit-learn's digits 0 to 4 with labels, and 300 of all ten as a stream."""
    from sklearn.datasets import load_digits

    from newfound.datasets import load_dataset, split_protocol

    digits = load_digits()
    pixels = (digits.images / 16 * 255).astype(np.uint8)
    data = load_dataset((list(pixels), [str(t) for t in digits.target]))
    labelled, stream = split_protocol(data, [str(d) for d in range(5)], seed=0)
    some = np.random.default_rng(0).permutation(len(stream))[:300]
    chosen = labelled.subset(np.random.default_rng(1).permutation(len(labelled))[:images])
    return chosen, stream.subset(some)
