"""How fast a stream is scored, and in how much memory."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np

from newfound.benchmarks._plain import square_matrix_score
from newfound.benchmarks._timing import SpeedRow, in_turn, spread, timed


def scoring(repeats: int = 7) -> SpeedRow:
    """All protocols, NMI and ARI on 100,000 samples, against the square-matrix loop for Strict and Greedy."""
    from newfound.evaluation import score

    labels, predictions, known = _stream(100_000, 200, 3_000)
    result = score(labels, predictions, known)
    square = square_matrix_score(labels, predictions, known)
    same = all(abs(a - b) < 1e-12 for a, b in zip(square, (result.strict.all, result.greedy.all), strict=True))
    fast, slow, ratios = in_turn(
        lambda: score(labels, predictions, known), lambda: square_matrix_score(labels, predictions, known), repeats
    )
    return SpeedRow(
        "score", 1000 * fast, 1000 * slow, "ms", *spread(ratios), "at least 35 times the square matrix",
        f"100,000 samples, 200 classes, 3,000 clusters; Strict and Greedy equal to the square matrix's: {same}",
    )  # fmt: skip


def scoring_large(repeats: int = 3, samples: int = 1_000_000, classes: int = 1_000, clusters: int = 50_000) -> SpeedRow:
    """A million samples in a process of its own, whose memory is measured; the bound is 10 seconds."""
    command = [sys.executable, "-m", __name__, str(samples), str(classes), str(clusters)]
    answers = [subprocess.run(command, check=True, capture_output=True, text=True).stdout for _ in range(repeats)]
    runs = list(map(json.loads, answers))
    seconds = sorted(run["seconds"] for run in runs)
    gigabytes = max(run["gigabytes"] for run in runs)
    return SpeedRow(
        "score-large", seconds[len(seconds) // 2], 10.0, "s", *spread([s / 10 for s in seconds]), "at most 1",
        f"{samples:,} samples, {classes:,} classes, {clusters:,} clusters; the baseline is the bound of 10 s; "
        f"at most {gigabytes:.2f} GB of memory above what was there before",
    )  # fmt: skip


def _stream(samples: int, classes: int, clusters: int) -> tuple[np.ndarray, np.ndarray, list[int]]:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, classes, samples)
    predictions = np.where(rng.random(samples) < 0.6, labels, rng.integers(0, clusters, samples))
    return labels, predictions, list(range(classes // 2))


def _measure(samples: int, classes: int, clusters: int) -> dict[str, float]:
    import resource

    from newfound.evaluation import score

    stream = _stream(samples, classes, clusters)
    score([0, 1], [0, 1], [0])  # loads what it needs
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    _, seconds = timed(score, *stream)
    return {"seconds": seconds, "gigabytes": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e6}


if __name__ == "__main__":
    print(json.dumps(_measure(*map(int, sys.argv[1:]))))
