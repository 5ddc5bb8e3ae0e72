"""Evaluate a method on a labelled stream in several orders: mean and spread."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from newfound._arguments import whole
from newfound.errors import DataError
from newfound.evaluation.codes import Codes, distinct_values, factorise
from newfound.evaluation.score import Scores, score

Standing = tuple[Iterable[Hashable], ArrayLike]
AtOnce = tuple[Iterable[Hashable], ArrayLike | None, ArrayLike | None]
Answer = AtOnce | tuple[Iterable[Hashable], ArrayLike | None, ArrayLike | None, Standing | None]


@dataclass(frozen=True)
class StreamResult:
    """The scores of a stream in each of its orders: of the answers as given at once, which is the protocol.

    `standing` has those of the answers as they stand when the stream is over, where a dictionary has second thoughts.
    """

    scores: tuple[Scores, ...]
    seed: int
    class_order: bool = False
    standing: tuple[Scores, ...] | None = None

    @property
    def orders(self) -> int:
        """How many orders were scored."""
        return len(self.scores)

    @property
    def mean(self) -> dict[str, Any]:
        """The mean of each figure, shaped as :meth:`Scores.as_dict`; None where an order lacks the figure."""
        figures: dict[str, Any] = _combine([s.as_dict() for s in self.scores], statistics.fmean)
        return figures

    @property
    def std(self) -> dict[str, Any]:
        """The standard deviation over the orders (n - 1 in its denominator; 0 for one order), as `mean`."""
        figures: dict[str, Any] = _combine([s.as_dict() for s in self.scores], _spread)
        return figures

    @property
    def standing_mean(self) -> dict[str, Any] | None:
        """The mean of each figure for the answers as they stand in the end; None if no answer was changed."""
        return _combine([s.as_dict() for s in self.standing], statistics.fmean) if self.standing else None

    def as_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        changed = {"standing": [s.as_dict() for s in self.standing]} if self.standing else {}
        return {
            "orders": self.orders,
            "seed": self.seed,
            "class_order": self.class_order,
            "mean": self.mean,
            "std": self.std,
            "scores": [s.as_dict() for s in self.scores],
            **changed,
        }

    def table(self) -> list[tuple[str, ...]]:
        """Rows of four cells to print, the header first: mean ± spread, per cent but for counts."""
        mean, std = self.mean, self.std
        rows: list[tuple[str, ...]] = [("", "All", "Old", "New")]
        for protocol in ("strict", "greedy", "named"):
            means, spreads = mean[protocol] or {}, std[protocol] or {}
            cells = [self._cell(means.get(kind), spreads.get(kind), 100) for kind in ("all", "old", "new")]
            rows.append((protocol.capitalize(), *cells))
        for name in ("nmi", "ari", "auroc"):
            rows.append((name.upper(), self._cell(mean[name], std[name], 100), "", ""))
        for name in ("categories", "discovered"):
            rows.append((name.capitalize(), self._cell(mean[name], std[name], 1), "", ""))
        if self.standing:
            rows += StreamResult(self.standing, self.seed)._in_the_end()
        return rows

    def _in_the_end(self) -> list[tuple[str, ...]]:
        kept = ("Strict", "Named", "Categories")
        return [(f"{name}, in the end", *cells) for name, *cells in self.table() if name in kept]

    def _cell(self, mean: float | None, spread: float | None, scale: int) -> str:
        if mean is None or spread is None:
            return "-"
        return f"{scale * mean:.1f}" + (f" ± {scale * spread:.1f}" if self.orders > 1 else "")


def evaluate_stream(
    decide: Callable[[NDArray[np.int64]], Answer],
    labels: Iterable[Hashable],
    known: Iterable[Hashable],
    *,
    orders: int = 3,
    seed: int = 0,
    class_order: bool = False,
    max_clusters: int | None = None,
) -> StreamResult:
    """Score a method on a labelled stream in several orders.

    `decide` is called once for each order with a permutation of the samples' positions. It starts afresh,
    takes the samples in that order, and returns a tuple of the predictions, the mask of the discovered ones
    and the novelty scores, all in the order of the permutation. The last two may be None; :func:`score` says
    what each means. A fourth value, if any, is None or the predictions as they stand in the end with their mask.

    Order k is ``stream_order(n, seed, k)``. With `class_order` there is a single order, class after class as
    their labels sort, whatever `orders` says: it is what much published code does, and not a real stream.

    Raises :class:`SettingsError` for `orders` below 1 or a negative `seed`, and :class:`DataError` for an
    answer that is not such a tuple, labels that do not sort where they must, and all that :func:`score`
    refuses.
    """
    whole(orders, "orders", 1)
    codes, classes = factorise(labels, "labels")
    known_labels = distinct_values(known, "known")
    if class_order:
        streams = [_by_class(codes, classes)]
    else:
        streams = [stream_order(len(codes), seed, k) for k in range(orders)]

    scores, standing, changed = [], [], False
    for order in streams:
        answer = decide(order)
        if not isinstance(answer, tuple) or len(answer) not in (3, 4):
            raise DataError("decide must return predictions, discovered and novelty (or None for these two).")
        predictions, discovered, novelty = answer[:3]
        in_order = [classes[code] for code in codes[order].tolist()]
        scores.append(score(in_order, predictions, known_labels, discovered, max_clusters, novelty))
        now = answer[3] if len(answer) == 4 else None
        changed |= now is not None
        standing.append(score(in_order, now[0], known_labels, now[1], max_clusters) if now else scores[-1])
    return StreamResult(tuple(scores), seed, class_order, tuple(standing) if changed else None)


def by_name(category: NDArray[np.int64], classes: Sequence[Any]) -> tuple[list[Any], NDArray[np.bool_]]:
    """Categories as predictions: the class's own label for the ids of known ones, the id for all others; and a mask of
    those others, the discovered ones."""
    discovered = category >= len(classes)
    pairs = zip(category.tolist(), discovered.tolist(), strict=True)
    return [number if new else classes[number] for number, new in pairs], discovered


def stream_order(samples: int, seed: int, k: int) -> NDArray[np.int64]:
    """The k-th random order of a stream: a permutation of its positions that depends on nothing else.

    Raises :class:`SettingsError` for a negative `seed`.
    """
    whole(seed, "seed")
    return np.random.default_rng([seed, k]).permutation(samples)


def _by_class(codes: Codes, classes: list[Any]) -> NDArray[np.int64]:
    try:
        ranking = sorted(range(len(classes)), key=classes.__getitem__)
    except TypeError as error:
        raise DataError(f"class_order sorts the labels, and these cannot be sorted: {error}.") from None
    rank = np.empty(len(classes), dtype=np.int64)
    rank[ranking] = np.arange(len(classes))
    return np.argsort(rank[codes], kind="stable")


def _spread(figures: list[float]) -> float:
    return statistics.stdev(figures) if len(figures) > 1 else 0.0


def _combine(parts: list[Any], combine: Callable[[list[float]], float]) -> Any:
    if any(part is None for part in parts):
        return None
    if isinstance(parts[0], dict):
        return {name: _combine([part[name] for part in parts], combine) for name in parts[0]}
    return float(combine(parts))
