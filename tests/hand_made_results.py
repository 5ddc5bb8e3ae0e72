"""Results as cells give them, made by hand."""

from __future__ import annotations

from typing import Any


def result(strict: list[float], categories: list[int] | None = None, seed: int = 0, **more: Any) -> dict[str, Any]:
    """A result with the given Strict All of each order; the other accuracies of that order are half of it."""
    counts = categories or [10] * len(strict)
    scores = [_scores(value, count) for value, count in zip(strict, counts, strict=True)]
    best = _scores(0.8, 12)
    return {
        "key": f"key-{seed}", "seed": seed, "method": "ltc", "preset": "default (short)", "settings": {},
        "data": {"protocol": "pets", "class_seed": None, "labelled": 942, "stream": 2738, "known": 19, "classes": 37},
        "backbone": "tf_efficientnet_lite0", "weights": "pretrained", "orders": len(strict), "commit": "abc",
        "newfound": "0", "time": "2026-01-02T03:04:05Z", "threshold": {"value": 0.5, "rule": "fixed"},
        "command": "newfound train ...", "scores": scores, "class_order": _scores(0.9, 7),
        "oracle": {"strict": {"cut": 0.3} | best, "named": {"cut": 0.4} | best},
        "creation": {"samples": 128, "space": "tokens", "seconds": 0.6, "encode_seconds": 0.2},
        "cost": {"train": 130.0, "train_cpu": 90.0, "evaluate": 3.0, "threads": 1},
    } | more  # fmt: skip


def _scores(value: float, categories: int) -> dict[str, Any]:
    half = {"all": value / 2, "old": value / 2, "new": value / 2}
    return {
        "strict": half | {"all": value}, "greedy": half, "named": half, "categories": categories,
        "discovered": categories - 1,
    }  # fmt: skip
