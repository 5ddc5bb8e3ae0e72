"""Rehearsal on features that somebody brings along: the draws of `newfound.rehearsal` without an encoder."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from newfound.method.frozen import Frozen, FrozenSettings
from newfound.rehearsal import MIN_CLASSES, MIN_IMAGES, Rehearsal, Scene, _Cast, choose


def rehearse_features(
    features: NDArray[np.float32], targets: NDArray[np.int64], settings: FrozenSettings, *, draws: int, seed: int
) -> Rehearsal | None:
    """The threshold and open settings that discover hidden classes best; None if there are too few to hide some.

    Args:
        features: ``[n, D]`` unit rows.
        targets: ``[n]``, the class of each, 0 .. K-1.
        draws: how often half of the classes are hidden.
    """
    classes = int(targets.max()) + 1
    if classes < MIN_CLASSES or len(targets) < MIN_IMAGES * classes:
        return None
    scenes = []
    for draw in range(draws):
        cast = _Cast.of(list(features), targets, np.random.default_rng((seed, draw)))
        taught, stream = (torch.from_numpy(np.stack(rows)) for rows in (cast.taught, cast.stream))
        scenes.append(Scene(Frozen(features.shape[1], len(cast.names), settings), cast, taught, stream))
    return choose({1.0: scenes}, {})
