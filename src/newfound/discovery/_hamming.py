"""Packed codes: distances by exclusive or and popcount, and the nearest of a growing list, as if one by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from newfound.discovery._exact import Ints
from newfound.discovery.coding import Bits

Words = NDArray[Any]  # [n, words] of unsigned integers; bits that no value has are 0

_DISTANCES = 1 << 18  # held at a time: few enough to stay in the cache


def pack(bits: Bits) -> Words:
    """Rows of bits in the narrowest unsigned integer that holds them, or in several of 64 bits."""
    octets = np.packbits(bits, axis=1, bitorder="little")
    size = next((size for size in (1, 2, 4, 8) if size >= octets.shape[1]), 8)
    padded = np.zeros((len(octets), -(-octets.shape[1] // size) * size), np.uint8)
    padded[:, : octets.shape[1]] = octets
    return padded.view(f"u{size}")


def unpack(words: Words, dimension: int) -> Bits:
    """The bits that :func:`pack` was given."""
    octets = np.ascontiguousarray(words).view(np.uint8)
    return np.unpackbits(octets, axis=1, count=dimension, bitorder="little").astype(bool)


def flat(words: Words) -> NDArray[Any]:
    """One value a row, equal where the rows are; its ``tolist`` gives what a dict can look up."""
    if words.shape[1] == 1:
        return words[:, 0]
    return np.ascontiguousarray(words).view(np.dtype((np.void, words.shape[1] * words.itemsize)))[:, 0]


def distances(a: Words, b: Words) -> NDArray[Any]:
    """The number of different bits of each row of ``a`` and each row of ``b``, ``[a, b]``, in few bytes."""
    total = np.bitwise_count(a[:, :1] ^ b[:, 0]).astype(_type_for(a), copy=False)
    for word in range(1, a.shape[1]):
        total += np.bitwise_count(a[:, word, None] ^ b[:, word])
    return total


def far(words: Words) -> int:
    """What stands for the distance to a code that is not there: more than any distance of such codes."""
    return int(np.iinfo(_type_for(words)).max)


def _type_for(words: Words) -> np.dtype[Any]:
    bits = 8 * words.itemsize * words.shape[1]
    return np.min_scalar_type(bits + 1)


def prefix_distances(words: Words, codes: Words, upto: Ints) -> Iterator[tuple[slice, NDArray[Any]]]:
    """The distances of each row of ``words`` to the first ``upto`` of the ``codes``, some rows at a time.

    ``upto`` ascends. What comes with a slice of the rows has as many columns as the last of them needs; where a
    row has fewer codes, the distance is :func:`far`. Slices without a single code are left out.
    """
    start = 0
    while start < len(words):
        part = slice(start, start + max(1, _DISTANCES // max(1, int(upto[-1]))))
        low, high = int(upto[part][0]), int(upto[part][-1])
        start = part.stop
        if high:
            away = distances(words[part], codes[:high])
            away[:, low:][np.arange(low, high) >= upto[part, None]] = far(words)
            yield part, away


def nearest(words: Words, codes: Words, upto: Ints) -> tuple[Ints, Ints]:
    """For each row the nearest of the first ``upto`` codes, of equals the first, and the distance.

    The code is -1 and the distance :func:`far` where there is none. ``upto`` ascends.
    """
    rows, away = np.full(len(words), -1, np.int64), np.full(len(words), far(words), np.int64)
    for part, block in prefix_distances(words, codes, upto):
        best = block.argmin(axis=1)
        away[part] = block[np.arange(len(best)), best]
        rows[part] = np.where(away[part] < far(words), best, -1)
    return rows, away


def nearest_owners(words: Words, codes: Words, upto: Ints, owners: Ints, without: Ints, k: int) -> tuple[Ints, Ints]:
    """The k nearest owners of the first ``upto`` codes, best first, of equals the lowest, and their distances.

    An owner is as near as the nearest of its codes. Each row leaves out the one owner in ``without`` (-1: none).
    The owner is -1 and the distance :func:`far` where there are fewer. ``upto`` ascends.
    """
    nobody = far(words)
    found, away = np.full((len(words), k), -1, np.int64), np.full((len(words), k), nobody, np.int64)
    for part, block in prefix_distances(words, codes, upto):
        order = np.argsort(owners[: block.shape[1]], kind="stable")
        sorted_owners = owners[order]
        starts = np.flatnonzero(np.diff(sorted_owners, prepend=-1))
        names = sorted_owners[starts]
        best = np.minimum.reduceat(block[:, order], starts, axis=1)
        best[names == without[part, None]] = nobody
        each = np.arange(len(best))
        for place in range(k):
            column = best.argmin(axis=1)
            away[part, place] = best[each, column]
            found[part, place] = np.where(best[each, column] < nobody, names[column], -1)
            best[each, column] = nobody
    return found, away


def founders(words: Words, radius: int) -> Ints:
    """Which rows found a category if each one joins an earlier founder within the radius; the rows are distinct."""
    waiting = np.arange(len(words))
    if radius == 0:
        return waiting
    found = []
    while waiting.size:
        found.append(waiting[0])
        waiting = waiting[distances(words[waiting[:1]], words[waiting])[0] > radius]
    return np.array(found, np.int64)
