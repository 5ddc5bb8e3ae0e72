"""Two views of each image, batch by batch: what a training learns from, stored or made anew every epoch."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from newfound.errors import NewfoundError
from newfound.features import Encoder, ahead
from newfound.images import content_hash, open_image
from newfound.method import Settings

_MAX_MAPS = 20_000  # Linux allows a process 65,530


class ViewSource(Protocol):
    """Where views come from; `space` says what they are, "pixels" or "tokens"."""

    space: str

    def pairs(self, batches: list[np.ndarray], epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        """First and second views of each batch, which is given as positions in the list of images."""


def view_source(encoder: Encoder, items: Sequence[Any], settings: Settings, seed: int) -> ViewSource:
    """The source that the settings ask for."""
    if settings.cached:
        return _CachedViews(encoder, items, settings.views, seed)
    return _FreshViews(encoder, items, seed)


class _CachedViews:
    """Two different stored views of each image, drawn anew every epoch."""

    space = "tokens"

    def __init__(self, encoder: Encoder, items: Sequence[Any], views: int, seed: int) -> None:
        keys = encoder.cached_views(items, views, seed=0)  # the views are the data's; a run's seed picks among them
        # A map an image, opened once; beyond what an operating system allows, opened at every use.
        self._maps = [self._open(encoder, key) for key in keys] if len(keys) <= _most_maps() else None
        self._encoder, self._keys = encoder, keys
        self.views, self.seed = views, seed

    def pairs(self, batches: list[np.ndarray], epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        rng = np.random.default_rng((self.seed, epoch, 2))
        chosen = np.argsort(rng.random((len(self._keys), self.views)), axis=1)[:, :2]
        for batch in batches:
            yield self._stack(batch, chosen[batch, 0]), self._stack(batch, chosen[batch, 1])

    def _stack(self, batch: np.ndarray, views: np.ndarray) -> Tensor:
        rows = [self._view(i, view) for i, view in zip(batch, views, strict=True)]
        return torch.from_numpy(np.stack(rows)).float()

    def _view(self, image: int, view: int) -> np.ndarray:
        found: np.ndarray
        if self._maps is not None:
            found = self._maps[image][view]
        else:
            found = self._open(self._encoder, self._keys[image])[view].copy()  # which lets go of the map
        return found

    @staticmethod
    def _open(encoder: Encoder, key: str) -> np.ndarray:
        stored = encoder.cache.mapped(key) if encoder.cache else None
        if stored is None:
            raise NewfoundError(
                "an entry of the cache was lost while training; start again, and if that helps only for a while, give "
                "the cache more room (NEWFOUND_CACHE_GIB)."
            )
        return stored


class _FreshViews:
    """Two new random views of each image every epoch, decoded ahead in threads."""

    space = "pixels"

    def __init__(self, encoder: Encoder, items: Sequence[Any], seed: int) -> None:
        self.views, self.items, self.seed = encoder.views, items, seed
        self.bases = [int(content_hash(item)[:12], 16) for item in items]

    def pairs(self, batches: list[np.ndarray], epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        def views(index: int) -> tuple[Tensor, Tensor]:
            image = open_image(self.items[index])
            seeds = [(self.seed, epoch, self.bases[index], view) for view in range(2)]
            return self.views.random(image, seeds[0]), self.views.random(image, seeds[1])

        ready = ahead((int(i) for batch in batches for i in batch), views, depth=2 * max(map(len, batches)))
        for batch in batches:
            pairs = []
            for _ in batch:
                _, pair = next(ready)
                if isinstance(pair, NewfoundError):
                    raise pair
                pairs.append(pair)
            yield torch.stack([a for a, _ in pairs]), torch.stack([b for _, b in pairs])


def _most_maps() -> int:
    """How many maps may stay open: each keeps a file open too, and many systems allow a process 1,024 of them."""
    try:
        import resource

        open_now = len(os.listdir("/dev/fd"))
    except (ImportError, OSError):  # Windows, where a map keeps none
        return _MAX_MAPS
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MAX_MAPS if files == resource.RLIM_INFINITY else min(_MAX_MAPS, (files - open_now) // 2)


__all__ = ["ViewSource", "view_source"]
