"""Images become features: decoding ahead in threads, the frozen trunk (cached), the tail, unit length."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from newfound._memory import keep_large_allocations
from newfound._side_by_side import SideBySide
from newfound.backbone import Backbone
from newfound.cache import TokenCache
from newfound.datasets import item_name
from newfound.errors import ImageError, MissingFileError, NewfoundError, SettingsError
from newfound.images import content_hash, content_of, open_image, read_once
from newfound.views import Views

Progress = Callable[[int], None]
_DECODERS = 2  # threads that decode ahead of the encoder


@dataclass
class Block:
    """Some images of a stream with their features; an image that could not be read has its error and no row."""

    items: list[Any]
    features: np.ndarray  # float32 [number readable, dimension]
    rows: list[int | None]  # for each item, its row in `features`
    errors: list[NewfoundError | None]
    contents: list[bytes | None]  # hashes of the files that were read, though others may be in their place by now


class Encoder:
    """A backbone with its views and, if given, a cache for the trunk's outputs.

    Tokens are rounded to half precision, the cache's, before the tail sees them: a feature is the same whether its
    tokens were read or computed.
    """

    runtime = "torch"  # what the backbone runs on; see `newfound.runtimes`
    alters = ""  # a hash of what makes features differ from the backbone's by more than their last bits

    def __init__(self, backbone: Backbone, views: Views, *, cache: TokenCache | None = None, batch: int = 64) -> None:
        keep_large_allocations()
        self.backbone, self.views, self.cache, self.batch = backbone, views, cache, batch
        self.dimension = backbone.dim
        self._read: Callable[[Tensor], Tensor] | None = None
        self._side_by_side = SideBySide()
        self._identity = (backbone.name, backbone.trunk_hash(), backbone.tune_blocks, backbone.split)

    @property
    def device(self) -> torch.device:
        return next(self.backbone.parameters()).device

    def read_with(self, read: Callable[[Tensor], Tensor] | None) -> None:
        """From now on give what `read` makes of unit features, such as the outputs of a hash head; None: themselves."""
        self._read, self.dimension = read, self.backbone.dim
        if read is not None:
            with torch.inference_mode():
                self.dimension = read(torch.ones(1, self.backbone.dim, device=self.device)).shape[1]

    def stream(self, items: Iterable[Any], block: int | None = None) -> Iterator[Block]:
        """Features of a stream, block by block, in order; reads two blocks ahead, and nothing in blocks of one."""
        size = block or self.batch
        pending: list[tuple[Any, Any]] = []
        seen = 0
        for item, tokens in ahead(items, self._tokens_or_pixels, depth=2 * size if size > 1 else 1):
            pending.append((item, tokens))
            if len(pending) == size:
                yield self._block(pending, seen)
                pending, seen = [], seen + size
        if pending:
            yield self._block(pending, seen)

    def contents(self, items: Sequence[Any]) -> list[bytes | None]:
        """The hashes of images' contents; None for one that cannot be read."""
        return [content_of(item) for item in items]

    def features(self, items: Sequence[Any], progress: Progress | None = None) -> np.ndarray:
        """Features of a finite list, all of which must be readable (the first error is raised)."""
        features, _, errors = self.readable(items, progress)
        for error in errors.values():
            raise error
        return features

    def readable(
        self, items: Sequence[Any], progress: Progress | None = None
    ) -> tuple[np.ndarray, list[int], dict[int, NewfoundError]]:
        """Features of the images of a list that can be read, their positions, and the errors of the others."""
        parts, seen = [np.zeros((0, self.dimension), np.float32)], 0
        errors: dict[int, NewfoundError] = {}
        for block in self.stream(items):
            parts.append(block.features)
            errors |= {seen + i: error for i, error in enumerate(block.errors) if error is not None}
            seen += len(block.items)
            if progress:
                progress(len(block.items))
        return np.concatenate(parts), [i for i in range(seen) if i not in errors], errors

    def _tokens_or_pixels(self, item: object) -> tuple[str | None, Tensor, str]:
        """In a decoding thread: the cached tokens, or the pixels to compute them from; and what was read's hash."""
        key, image = None, read_once(item)
        in_memory = image is item  # it stays what it is, and to hash it takes longer than its view
        content = "" if in_memory and self.cache is None else content_hash(image)
        if self.cache is not None:
            key = self.cache.key(self._identity, self.views.centre_key(), content)
            if (stored := self.cache.get(key)) is not None:
                return None, torch.from_numpy(stored), content
        return key or "", self.views.centre(open_image(image)), content

    def _block(self, pending: list[tuple[Any, Any]], seen: int) -> Block:
        """A block of items with what was prepared of each; `seen` items of the stream came before it."""
        errors = [tokens if isinstance(tokens, NewfoundError) else None for _, tokens in pending]
        good = [i for i, error in enumerate(errors) if error is None]
        contents = [None if errors[i] else bytes.fromhex(made[2]) or None for i, (_, made) in enumerate(pending)]
        fresh = [i for i in good if pending[i][1][0] is not None]
        tokens: dict[int, Tensor] = {i: pending[i][1][1] for i in good}
        if fresh:
            for i, computed in zip(fresh, self._tokens(torch.stack([tokens[i] for i in fresh])), strict=True):
                tokens[i] = computed
                if self.cache is not None:
                    self.cache.put(pending[i][1][0], computed.numpy())
        features = self.tail([tokens[i] for i in good]) if good else np.zeros((0, self.dimension), np.float32)
        usable = np.asarray(np.isfinite(features).all(axis=1) & features.any(axis=1))
        for i, fine in zip(good, usable, strict=True):
            if not fine:
                name = item_name(pending[i][0], seen + i)
                size = self.backbone.spec.size
                errors[i] = ImageError(
                    f"{name}: the backbone {self.backbone.name} has no feature for it at {size} x {size} pixels, which "
                    "happens to images of one colour; leave it out, or train with a larger image size"
                )
        rows: list[int | None] = [None] * len(pending)
        for row, i in enumerate(i for i in good if errors[i] is None):
            rows[i] = row
        return Block([item for item, _ in pending], features[usable], rows, errors, contents)

    def _trunk(self, pixels: Tensor) -> Tensor:
        if self.device.type == "cpu":
            return self._side_by_side(lambda part: self.backbone.trunk(part).float(), pixels)
        with torch.inference_mode():
            return self.backbone.trunk(pixels.to(self.device)).float().cpu()

    def _tokens(self, pixels: Tensor) -> list[Tensor]:
        tokens = self._trunk(pixels)
        small = half_or_float(tokens)
        return list(small) if small.dtype == torch.float16 else [half_or_float(row) for row in tokens]

    def _unit_features(self, tokens: Tensor) -> Tensor:
        return unit(self.backbone.tail(tokens.to(self.device)).float())

    def tail(self, tokens: list[Tensor]) -> np.ndarray:
        """Features of the tokens of some images: unit rows, or what is read off them."""
        with torch.inference_mode():
            features = self._unit_features(torch.stack([t.float() for t in tokens]))
            return (features if self._read is None else self._read(features)).float().cpu().numpy()

    def cached_views(
        self, items: Sequence[Any], count: int, seed: int, progress: Progress | None = None
    ) -> list[str]:
        """Make sure that `count` random views of each image are in the cache; returns the keys, one an image."""
        cache = self.cache
        if cache is None:
            raise SettingsError("cached views need a cache: make the encoder with one.")
        keys: list[str] = []

        def prepare(item: object) -> tuple[str, Tensor | None]:
            held = read_once(item)
            content = content_hash(held)
            key = cache.key(self._identity, self.views.random_key(), count, seed, content)
            if cache.mapped(key) is not None:
                return key, None
            image = open_image(held)
            base = int(content[:12], 16)
            return key, torch.stack([self.views.random(image, (seed, base, view)) for view in range(count)])

        waiting: list[tuple[str, Tensor]] = []
        together = max(1, self.batch // count)  # images whose views go through the trunk at once
        for _, result in ahead(items, prepare, depth=2 * together):
            if isinstance(result, NewfoundError):
                raise result
            key, pixels = result
            keys.append(key)
            if pixels is not None:
                waiting.append((key, pixels))
            if len(waiting) == together:
                self._put_views(cache, waiting)
                waiting = []
            if progress:
                progress(1)
        if waiting:
            self._put_views(cache, waiting)
        return keys

    def _put_views(self, cache: TokenCache, waiting: list[tuple[str, Tensor]]) -> None:
        tokens = self._trunk(torch.cat([pixels for _, pixels in waiting]))
        for (key, _), views in zip(waiting, tokens.chunk(len(waiting)), strict=True):
            cache.put(key, views.numpy())


def unit(z: Tensor) -> Tensor:
    """f(x) = z(x) / |z(x)|, the feature of Sec. 3.1."""
    return F.normalize(z, dim=-1)


def seen_from(centre: Tensor, features: Tensor) -> Tensor:
    """Unit directions from a centre, such as the labelled set's mean, to features."""
    return unit(features - centre)


def half_or_float(tokens: Tensor) -> Tensor:
    """Half precision, unless a value would overflow it: what the cache stores."""
    small = tokens.half()
    return small if bool(torch.isfinite(small).all()) else tokens


def ahead(items: Iterable[Any], work: Callable[[Any], Any], depth: int) -> Iterator[tuple[Any, Any]]:
    """Map in threads, in order, at most `depth` ahead; a NewfoundError becomes the item's result.

    What stands alone, or must be answered before the next is asked for (a depth of one), is done on this thread.
    """

    def guarded(item: object) -> object:
        try:
            return work(item)
        except (ImageError, MissingFileError) as error:
            return error

    rest = iter(items)
    first_ones = list(islice(rest, 2)) if depth > 1 else []
    if len(first_ones) < 2:
        for item in chain(first_ones, rest):
            yield item, guarded(item)
        return
    with ThreadPoolExecutor(_DECODERS) as pool:
        waiting: deque[tuple[object, Future[Any]]] = deque()
        try:
            for item in chain(first_ones, rest):
                waiting.append((item, pool.submit(guarded, item)))
                if len(waiting) >= depth:
                    first, future = waiting.popleft()
                    yield first, future.result()
            while waiting:
                first, future = waiting.popleft()
                yield first, future.result()
        finally:  # the consumer may stop early
            for _, future in waiting:
                future.cancel()
