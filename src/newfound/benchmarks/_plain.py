"""The baselines of the speed benchmark: plain loops, as in released code."""

from __future__ import annotations

import numpy as np


def prototype_loop(known: np.ndarray, features: np.ndarray, threshold: float) -> tuple[np.ndarray, np.ndarray]:
    """One sample at a time, one matrix-vector product each: what the released code does."""
    store = np.concatenate([known, np.empty_like(features)])
    size, ids, created = len(known), [], []
    for row in features:
        similarity = store[:size] @ row
        best = int(similarity.argmax())
        new = bool(similarity[best] < threshold)
        if new:
            store[size] = row
            best, size = size, size + 1
        ids.append(best)
        created.append(new)
    return np.array(ids), np.array(created)


def code_loop(known: list[list[int]], codes: list[list[int]], radius: int) -> list[int]:
    """One code at a time in a list of lists: what the released code does."""
    store, ids = list(known), []
    for code in codes:
        if code in store:
            ids.append(store.index(code))
            continue
        if radius:
            distances = [sum(a != b for a, b in zip(code, other, strict=True)) for other in store]
            nearest = min(distances)
            if nearest <= radius:
                ids.append(distances.index(nearest))
                continue
        ids.append(len(store))
        store.append(code)
    return ids


def square_matrix_score(labels: np.ndarray, predictions: np.ndarray, known: list[int]) -> tuple[float, float]:
    """Strict and Greedy All as the peers compute them: a square matrix of the largest id, filled in a loop."""
    from scipy.optimize import linear_sum_assignment

    def right(mask: np.ndarray) -> int:
        size = int(max(labels.max(), predictions.max())) + 1
        counts = np.zeros((size, size), dtype=np.int64)
        for prediction, label in zip(predictions[mask], labels[mask], strict=True):
            counts[prediction, label] += 1
        rows, columns = linear_sum_assignment(counts, maximize=True)
        return int(counts[rows, columns].sum())

    old = np.isin(labels, known)
    return right(np.ones(len(labels), bool)) / len(labels), (right(old) + right(~old)) / len(labels)
