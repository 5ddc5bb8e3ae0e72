"""`newfound bench speed`: every stage against a named baseline, measured in the same run.

Machines differ and are shared, so a row is a ratio: ours and the baseline are timed in turn, several times, and the
median of the ratios is shown with its range. Nothing here is asserted; the targets stand beside the figures.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable

import numpy as np

from newfound.benchmarks import journal_speed
from newfound.benchmarks._plain import code_loop, prototype_loop, square_matrix_score
from newfound.benchmarks._timing import SpeedRow, in_turn, spread, timed
from newfound.errors import SettingsError
from newfound.progress import Reporter


def run_speed(only: list[str] | None = None, reporter: Reporter | None = None) -> list[SpeedRow]:
    """Measure the stages, all or those named in `only`; those on request only if named.

    Raises SettingsError if one that is named does not exist, or cannot be measured here.
    """
    import torch

    torch.set_num_threads(min(2, torch.get_num_threads()))
    stages = STAGES | ON_REQUEST
    unknown = set(only or ()) - set(stages)
    if unknown:
        raise SettingsError(f"there is no stage {', '.join(sorted(unknown))}; choose from {', '.join(stages)}.")
    rows = []
    reporter = reporter or Reporter()
    with reporter.stage("measuring", len(only or STAGES)) as progress:
        for name in only or STAGES:
            try:
                rows.append(stages[name]())
            except SettingsError as error:
                if only:
                    raise
                reporter.say(f"{name} cannot be measured here: {error}")
            progress(1)
    return rows


def observe_speed(samples: int = 20_000, repeats: int = 3) -> SpeedRow:
    """`observe` against the bare matrix product and maximum of the same growing sizes, and the plain loop's ids."""
    from newfound.discovery import PrototypeDictionary

    rng = np.random.default_rng(0)
    features = _unit(rng.standard_normal((samples, 512), dtype=np.float32))
    known = _unit(rng.standard_normal((100, 512), dtype=np.float32))
    threshold, block = 0.1485, 256  # random features found about 6,000 categories at this cut
    reference, plain_seconds = timed(lambda: prototype_loop(known, features, threshold))
    sizes = [100 + int(n) for n in np.cumsum(reference[1])[::block]]
    prototypes = np.concatenate([known, features[reference[1]]])

    def bare() -> None:
        for start, size in zip(range(0, samples, block), sizes, strict=True):
            (features[start : start + block] @ prototypes[:size].T).max(axis=1)

    def ours() -> np.ndarray:
        return PrototypeDictionary(known, threshold=threshold).observe(features).category

    same = bool(np.array_equal(ours(), reference[0]))
    fast, slow, ratios = in_turn(ours, bare, repeats)
    return SpeedRow(
        "observe", samples / fast, samples / slow, "samples/s", *spread(ratios), "at least 0.5 of the bare product",
        f"100 known growing to {100 + int(reference[1].sum())}; ids equal to the plain loop: {same}; "
        f"the plain loop: {samples / plain_seconds:.0f} samples/s",
    )  # fmt: skip


def exact_code_speed(samples: int = 20_000, repeats: int = 3) -> SpeedRow:
    """Codes of 12 bits that must match exactly, against a list that is searched with `in` and `index`."""
    return _code_speed("codes", 0, samples, repeats)


def near_code_speed(samples: int = 20_000, repeats: int = 3) -> SpeedRow:
    """Codes of 12 bits of which one may differ, against a list of Hamming distances for every sample."""
    return _code_speed("codes-near", 1, samples, repeats)


def _code_speed(stage: str, radius: int, samples: int, repeats: int, length: int = 12) -> SpeedRow:
    from newfound.discovery import CodeDictionary, SignCode

    rng = np.random.default_rng(0)
    readings = rng.standard_normal((samples, length), dtype=np.float32)
    known = rng.permutation(2**length)[:100, None] >> np.arange(length) & 1
    codes, ids = (readings > 0).astype(int).tolist(), {}

    def ours() -> None:
        dictionary = CodeDictionary(known, range(100), 100, SignCode(length), threshold=1 - radius / length)
        ids["ours"] = dictionary.observe(readings).category.tolist()

    def plain() -> None:
        ids["plain"] = code_loop(known.tolist(), codes, radius)

    fast, slow, ratios = in_turn(ours, plain, repeats)
    return SpeedRow(
        stage, samples / fast, samples / slow, "samples/s", *spread(ratios), "at least 50 times as fast",
        f"{samples:,} codes of {length} bits, radius {radius}, 100 known growing to {max(ids['plain']) + 1:,}; "
        f"ids equal to the plain loop: {ids['ours'] == ids['plain']}",
    )  # fmt: skip


def score_speed(repeats: int = 7) -> SpeedRow:
    """All protocols, NMI and ARI on 100,000 samples, against the square-matrix loop for Strict and Greedy."""
    from newfound.evaluation import score

    rng = np.random.default_rng(0)
    labels = rng.integers(0, 200, 100_000)
    predictions = np.where(rng.random(100_000) < 0.6, labels, rng.integers(0, 3_000, 100_000))
    known = list(range(100))
    result = score(labels, predictions, known)
    square = square_matrix_score(labels, predictions, known)
    same = all(abs(a - b) < 1e-12 for a, b in zip(square, (result.strict.all, result.greedy.all), strict=True))
    fast, slow, ratios = in_turn(
        lambda: score(labels, predictions, known), lambda: square_matrix_score(labels, predictions, known), repeats
    )
    return SpeedRow(
        "score", 1000 * fast, 1000 * slow, "ms", *spread(ratios), "under 50 ms",
        f"100,000 samples, 200 classes, 3,000 clusters; Strict and Greedy equal to the square matrix's: {same}",
    )  # fmt: skip


def cached_epoch_speed(images: int = 256, epochs: int = 4) -> SpeedRow:
    """An epoch from cached trunk outputs against one with a full forward pass, and what accuracy each reaches."""
    from newfound.fitting import fit

    labelled, stream = _digits(images)
    results = {}
    with tempfile.TemporaryDirectory() as cache:
        for name, cached in (("cached", True), ("full", False)):
            clock = _EpochClock(len(labelled.items))
            run = fit(
                labelled, method="ltc", short=True, epochs=epochs, warmup_epochs=1, threshold="adaptive", flip=False,
                cached=cached, space="tokens", views=4, cache=cache, reporter=clock,
            )  # fmt: skip
            results[name] = (clock.seconds(), run.evaluate(stream, orders=1).mean)
    (fast, ours), (slow, theirs) = results["cached"], results["full"]
    count = min(len(fast), len(slow))
    ratios = [b / a for a, b in zip(fast[:count], slow[:count], strict=True)]
    accuracy = [f"{100 * m['strict']['all']:.1f} / {100 * m['greedy']['all']:.1f}" for m in (ours, theirs)]
    return SpeedRow(
        "cached-epoch", statistics.median(fast), statistics.median(slow), "s an epoch", *spread(ratios),
        "at least 5 times as fast",
        f"{len(labelled.items)} digits at 224 px, batches of 128 in two views; Strict / Greedy All after {epochs} "
        f"epochs: cached {accuracy[0]}, full {accuracy[1]}",
    )  # fmt: skip


def creation_speed_tokens() -> SpeedRow:
    """What MKEE adds to a cached epoch in token space."""
    return _creation_speed("mkee-tokens", cached=True, space="tokens", images=384, target="at most 0.30 added")


def creation_speed_pixels() -> SpeedRow:
    """What MKEE adds to an uncached epoch in pixel space."""
    return _creation_speed("mkee-pixels", cached=False, space="pixels", images=128, target="at most 0.60 added")


def _creation_speed(stage: str, *, cached: bool, space: str, images: int, target: str, p_gen: float = 0.3) -> SpeedRow:
    from newfound.fitting import fit

    labelled, _ = _digits(images)
    medians = {}
    with tempfile.TemporaryDirectory() as cache:
        for chance in (0.0, 1.0):
            clock = _EpochClock(len(labelled.items))
            fit(
                labelled, method="ltc", short=True, epochs=4, threshold="adaptive", flip=False, cached=cached,
                space=space, views=2, p_gen=chance, creation_from_epoch=0, cache=cache, reporter=clock,
            )  # fmt: skip
            medians[chance] = clock.seconds()
    added = [p_gen * (b / a - 1) for a, b in zip(medians[0.0], medians[1.0], strict=True)]
    without = statistics.median(medians[0.0])
    return SpeedRow(
        stage, without * (1 + statistics.median(added)), without, "s an epoch", *spread(added), target,
        f"share of the epoch's time that creation adds at p_gen {p_gen}: epochs that always create against epochs that "
        f"never do, times {p_gen}; {len(labelled.items)} digits at 224 px",
    )  # fmt: skip


STAGES: dict[str, Callable[[], SpeedRow]] = {
    "observe": observe_speed,
    "codes": exact_code_speed,
    "codes-near": near_code_speed,
    "score": score_speed,
    "cached-epoch": cached_epoch_speed,
    "mkee-tokens": creation_speed_tokens,
    "mkee-pixels": creation_speed_pixels,
    "journal": journal_speed.prototype_entering,
    "journal-evidence": journal_speed.evidence_entering,
    "journal-open": journal_speed.opening,
    "journal-writers": journal_speed.writers,
}
ON_REQUEST: dict[str, Callable[[], SpeedRow]] = {"journal-open-full": journal_speed.opening_with_features}


class _EpochClock(Reporter):
    """Times the epochs of the stage "learning" from its progress; the first is a warm-up and left out."""

    def __init__(self, images: int) -> None:
        self.images, self.done, self.watching = images, 0, False
        self.times: list[float] = []

    def stage(self, title: str, total: int | None = None):
        from contextlib import contextmanager

        @contextmanager
        def watch():
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
        return np.diff(self.times)[1:].tolist()


def _digits(images: int):
    from sklearn.datasets import load_digits

    from newfound.datasets import LabelledImages, load_dataset, split_protocol

    digits = load_digits()
    pixels = (digits.images / 16 * 255).astype(np.uint8)
    data = load_dataset((list(pixels), [str(t) for t in digits.target]))
    labelled, stream = split_protocol(data, [str(d) for d in range(5)], seed=0)
    some = np.random.default_rng(0).permutation(len(stream))[:300]
    chosen: LabelledImages = labelled.subset(np.random.default_rng(1).permutation(len(labelled))[:images])
    return chosen, stream.subset(some)


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)
