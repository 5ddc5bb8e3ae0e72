"""Deciding a block of the stream: the nearest prototype or a new one (Eq. 5, Alg. 1), as if one by one."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from newfound.discovery import _filter
from newfound.discovery._exact import Float32s, Float64s, Ints, direction
from newfound.discovery._rows import Rows
from newfound.discovery._search import NOTHING, Block, nearest, rank
from newfound.discovery.decisions import Decisions


@dataclass
class Verdicts:
    """For every sample of a block: the k nearest rows it met, their similarities, and whether it is new."""

    rows: Ints
    scores: Float64s
    created: NDArray[np.bool_]

    def write(self, into: Decisions, part: slice, chosen: Ints, ids: Ints) -> None:
        """Puts the answers into their place: the ids of the ``chosen`` rows, and of the next best."""
        ids = np.append(ids, -1)  # the row -1, which is none, gets the id -1
        into.category[part] = ids[chosen]
        into.score[part] = self.scores[:, 0]
        into.created[part] = self.created
        if self.rows.shape[1] > 1:
            # A founder goes to none of the k, any other sample to the first of them.
            others = np.arange(self.rows.shape[1] - 1) + ~self.created[:, None]
            into.runners_up_category[part] = ids[np.take_along_axis(self.rows, others, axis=1)]
            into.runners_up_score[part] = np.take_along_axis(self.scores, others, axis=1)


def judge(block: Block, prototypes: Float32s, threshold: float, k: int) -> Verdicts:
    """Every sample against the prototypes that its block says it meets."""
    rows, scores = nearest(block, prototypes, k)  # Eq. 5
    return Verdicts(rows, scores, (scores[:, 0] < threshold) | (rows[:, 0] < 0))


def stream_fixed(block: Block, prototypes: Rows, threshold: float, k: int) -> Verdicts:
    """The samples one after the other; founders are appended to ``prototypes``, which else do not change.

    Only who founds depends on the order of the block. Once that is known, every sample is compared with all
    prototypes and with the founders before it, at once.
    """
    founders, products = _founders(block, prototypes.view, threshold)
    if founders.size:
        prototypes.append(block.samples[founders])
        block.add_founders(founders, products)
    return judge(block, prototypes.view, threshold, k)


def _founders(block: Block, prototypes: Float32s, threshold: float) -> tuple[Ints, Float32s]:
    """The samples that found a category, ascending, and the products of all samples with them."""
    surely_new, surely_not = _filter.floor_for(threshold - block.bound), threshold + block.bound
    peaks = block.peaks()
    waiting = np.flatnonzero(peaks.astype(np.float64) < surely_not)
    peaks = peaks[waiting]
    products = _filter.products(block.samples, block.samples[waiting])
    among = products[waiting]
    # rival[j, f]: if f founds a category, j may belong to it. Without rivals, a low enough peak is all it takes.
    rival = np.tril(among.astype(np.float64) >= surely_new, -1)
    founds = ~rival.any(axis=1) & (peaks.astype(np.float64) < surely_new)
    for j in np.flatnonzero(~founds).tolist():
        rivals = np.flatnonzero(rival[j] & founds)
        peak = max(peaks.item(j), float(among[j, rivals].max(initial=-np.inf)))
        if peak >= surely_not:
            continue
        if peak >= surely_new:
            sample = int(waiting[j])
            near = prototypes[block.contenders(sample, surely_new)]
            pool = np.concatenate([near, block.samples[waiting[rivals]]])
            _, best = rank(block, sample, pool, np.arange(len(pool)), 1)
            if best >= threshold:
                continue
        founds[j] = True
    return waiting[founds], products[:, founds]


@dataclass
class _Moved:
    """The prototypes that the block itself has founded or moved so far, as they are now, in one array."""

    vectors: Float32s
    rows: list[int] = field(default_factory=list)
    slots: dict[int, int] = field(default_factory=dict)

    def put(self, row: int, vector: Float32s) -> None:
        slot = self.slots.setdefault(row, len(self.rows))
        if slot == len(self.rows):
            self.rows.append(row)
        self.vectors[slot] = vector

    def products(self, sample: Float32s) -> Float32s:
        return _filter.products(sample[None], self.vectors[: len(self.rows)])[0]


def stream_running(block: Block, prototypes: Rows, sums: Rows, known: int, threshold: float, k: int) -> Verdicts:
    """The samples one after the other; a discovered prototype is the direction of the sum of its members.

    ``sums`` belongs to the prototypes from row ``known`` on. The block's products stay valid for prototypes
    that do not move. Those that do are withdrawn from it and compared afresh with each sample that follows.
    Where what was withdrawn had ruled others out, the sample is compared with all prototypes as they are now.
    """
    surely_new, surely_not = _filter.floor_for(threshold - block.bound), threshold + block.bound
    leaders, values = (array.tolist() for array in block.leaders(1))
    n, size = len(block.samples), len(prototypes)
    verdicts = Verdicts(np.full((n, k), -1, np.int64), np.full((n, k), NOTHING), np.zeros(n, bool))
    moved = _Moved(np.empty_like(block.samples))
    clear, partners = [], np.empty_like(block.samples)
    for i, sample in enumerate(block.samples):
        (row,), (best, second) = leaders[i], values[i]
        if row in moved.slots:
            column, best, second = _top_two(block.products(i))
            row = block.row(i, column)
        fresh = moved.products(sample)
        if fresh.size:
            slot, top, next_to_top = _top_two(fresh)
            if top > best:
                row, best, second = moved.rows[slot], top, max(best, next_to_top)
            else:
                second = max(second, top)

        undecided = surely_new <= best < surely_not or _clip(second) >= _clip(best) - 2 * block.bound
        if undecided or k > 1 or _clip(best) - block.bound < block.cuts[i]:
            pool = _pool(block, i, prototypes.view, moved.rows, fresh, k)
            verdicts.rows[i], verdicts.scores[i] = rank(block, i, prototypes.view, pool, k)
            row = int(verdicts.rows[i, 0])
            is_new = row < 0 or bool(verdicts.scores[i, 0] < threshold)
        else:  # the similarity is left for all such samples at once, with the partner as it is now
            clear.append(i)
            verdicts.rows[i, 0], partners[i] = row, prototypes.view[row]
            is_new = best < surely_new

        verdicts.created[i] = is_new
        if is_new:
            moved.put(len(prototypes), sample)
            prototypes.append(sample[None])
            sums.append(sample[None])
        elif row >= known:
            total = sums.view[row - known]
            total += sample
            prototypes.view[row] = direction(total, otherwise=prototypes.view[row])
            if row < size and row not in moved.slots:
                block.withdraw(row)
            moved.put(row, prototypes.view[row])
    at = np.array(clear, np.int64)
    verdicts.scores[at, 0] = block.similarity(block.samples, at, partners, at)
    return verdicts


def _pool(block: Block, i: int, prototypes: Float32s, moved: list[int], fresh: Float32s, k: int) -> Ints:
    """The rows that may be among the k nearest of sample ``i``; ``fresh``: its products with the ``moved``."""
    kth = _kth(np.concatenate([block.products(i), fresh]), k)
    if kth - block.bound < block.cuts[i]:
        products = _filter.products(block.samples[i : i + 1], prototypes)[0]
        return np.flatnonzero(products >= np.float64(_filter.floor_for(_kth(products, k) - 2 * block.bound)))
    floor = _filter.floor_for(kth - 2 * block.bound)
    again = [row for row, product in zip(moved, fresh.tolist(), strict=True) if product >= floor]
    return np.concatenate([block.contenders(i, floor), np.array(again, np.int64)])


def _kth(products: Float32s, k: int) -> float:
    """The k-th largest, clipped as similarities are; -1 if there are fewer."""
    return _clip(np.partition(products, -k)[-k].item()) if products.size >= k else -1.0


def _top_two(products: Float32s) -> tuple[int, float, float]:
    """Position and value of the largest, and the value of the second largest or -inf."""
    position = int(products.argmax())
    best = products.item(position)
    products[position] = -np.inf
    second = float(products.max())
    products[position] = best
    return position, best, second


def _clip(product: float) -> float:
    return max(-1.0, min(1.0, product))
