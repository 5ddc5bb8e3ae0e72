"""What speed benchmarks share: a row of their table, and two pieces of work timed in turn."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class SpeedRow:
    """One comparison. `ratio` is what the target speaks of; `low` and `high` are its range over the repeats.

    A target that begins with "at most" is one for a ratio that is better the lower it is.
    """

    stage: str
    ours: float
    baseline: float
    unit: str
    ratio: float
    low: float
    high: float
    target: str
    detail: str

    @property
    def lower_is_better(self) -> bool:
        return self.target.startswith("at most")

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def in_turn(
    ours: Callable, baseline: Callable, repeats: int, before: Callable[[], object] | None = None
) -> tuple[float, float, list[float]]:
    """Median seconds of both, and baseline / ours of each repeat, timed one after the other; `before` each is not."""

    def seconds(work: Callable) -> float:
        if before is not None:
            before()
        return timed(work)[1]

    pairs = [(seconds(ours), seconds(baseline)) for _ in range(repeats)]
    fast, slow = (statistics.median(times) for times in zip(*pairs, strict=True))
    return fast, slow, [b / a for a, b in pairs]


def timed(work: Callable[..., Any], *given: Any) -> tuple[Any, float]:
    """What the work returns, and the seconds it took."""
    start = time.perf_counter()
    result = work(*given)
    return result, time.perf_counter() - start


def quantiles(seconds: list[float]) -> dict[str, float]:
    """The median and the 99th percentile by name; nothing of nothing."""
    return {f"p{share}": float(np.quantile(seconds, share / 100)) for share in (50, 99)} if seconds else {}


def percentiles(seconds: list[float]) -> str:
    """The same for people, in milliseconds."""
    return " / ".join(f"{1000 * value:.1f}" for value in quantiles(seconds).values())


def spread(ratios: list[float]) -> tuple[float, float, float]:
    """Median, lowest, highest."""
    return statistics.median(ratios), min(ratios), max(ratios)
