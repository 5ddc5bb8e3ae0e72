"""What a representation could give: the scores at the cut that the stream itself shows to be best.

No method may choose so, for the stream's labels are what is to be found out. The scores tell how much of a loss is the
threshold's and how much the features'.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from newfound.run import Run

_FOR = ("strict", "named")


def oracle(run: Run, features: np.ndarray, labels: list, *, orders: int, seed: int) -> dict[str, Any] | None:
    """The scores at the cut with the best Strict All, and at the one with the best Named All.

    Every cut that the method knows is tried on the first of the orders; the best is then scored in all of them.

    Args:
        features, labels: a stream as `Run.read_stream` gives it.

    Returns:
        For each protocol {"cut", "strict", "greedy", "named", "categories"}, means over the orders; None for a method
        that discovers nothing, which has no cut.
    """
    if not run.method.discovers:
        return None

    def mean(cut: float, orders: int) -> dict[str, Any]:
        found = run.score_stream(features, labels, orders=orders, seed=seed, threshold=cut).mean
        return {name: found[name] for name in ("strict", "greedy", "named", "categories")}

    cuts = [float(cut) for cut in np.union1d(run.method.cuts(), [run.threshold])]
    tried = [mean(cut, 1) for cut in cuts]
    best = {name: cuts[int(np.argmax([scores[name]["all"] for scores in tried]))] for name in _FOR}
    return {name: {"cut": cut} | mean(cut, orders) for name, cut in best.items()}
