"""Looking again at what was answered: sightings move to where they fit now, categories without members dissolve.

Early categories are founded on one image. Once there is more evidence, a remembered sighting is held against all
categories once more, its own without it, and moves if another explains it better.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from newfound.discovery._exact import Float32s, Ints
from newfound.discovery._ledger import Event, Ledger
from newfound.discovery._products import Products, Readings
from newfound.discovery._unions import unions

_BLOCK = 512  # sightings looked at together: it changes the speed and nothing else


def reconsider(ledger: Ledger, seen: int, at_least: float) -> None:
    """Moves remembered sightings to the categories that fit them best as things stand.

    All are judged before any is moved. The category that a sighting belongs to is judged without it, which leaves
    nothing of a category it is alone in; a candidate belongs to none yet. Others count if they are known or have two
    members. A sighting moves if one of them fits better than its own, with a score of at least ``at_least``; of equal
    ones the lowest id takes it. Moves are applied and recorded in the order of the stream. A category left without
    members dissolves: its id becomes an alias of where its last member went. What a person has put somewhere stays
    there. Candidates that are no longer remembered stop waiting.
    """
    memory = ledger.memory
    first = seen - len(memory.homes)
    waiting = np.isin(first + np.arange(len(memory.homes)), ledger.candidates.sightings.view)
    rows = ledger.rows(memory.homes)
    targets = np.full(len(rows), -1, np.int64)
    for start in range(0, len(rows), _BLOCK):
        part = slice(start, start + _BLOCK)
        targets[part] = _better(ledger, memory.readings[part], np.where(waiting[part], -1, rows[part]), at_least)
    _move(ledger, np.flatnonzero((targets >= 0) & ~memory.pinned), rows, targets, waiting, seen)
    ledger.candidates.lapse(before=first)


def _better(ledger: Ledger, readings: Float32s, own: Ints, at_least: float) -> Ints:
    """The category that each reading should move to, -1 for none; ``own``: the row it belongs to, -1 for none."""
    evidence = ledger.evidence
    block = Readings(readings, evidence.model)
    products = Products(block, evidence)
    new = evidence.prior.of_new(len(evidence))
    each, members = np.arange(len(own)), np.flatnonzero(own >= 0)
    to_beat = np.full(len(own), -np.inf)
    to_beat[members] = evidence.scores_without(readings[members], own[members], ledger.learns(own[members])) - new
    values = products.values
    values[:, (evidence.counts < 2) & (np.arange(len(evidence)) >= ledger.categories.known)] = -np.inf
    values[each[members], own[members]] = -np.inf
    errors = evidence.model.error(block.lengths, block.largest_bends, products.longest, products.highest)
    peaks = values.max(axis=1, initial=-np.inf).astype(np.float64)
    targets = np.full(len(own), -1, np.int64)
    for i in np.flatnonzero(peaks + errors >= np.maximum(to_beat, at_least) + new).tolist():
        rows, _ = products.pool(values[i], peaks[i] - 2 * errors[i], len(evidence), 0.0)
        scores = evidence.scores(readings[i].astype(np.float64), rows) - new
        best = int(scores.argmax())  # rows ascend, so of equal ones this is the lowest
        if scores[best] >= at_least and scores[best] > to_beat[i]:
            targets[i] = rows[best]
    return targets


def _move(ledger: Ledger, moving: Ints, rows: Ints, targets: Ints, waiting: NDArray[np.bool_], seen: int) -> None:
    """Applies the moves of the sightings ``moving`` of the memory, and dissolves what they leave empty."""
    memory, evidence, ids = ledger.memory, ledger.evidence, ledger.categories.ids.view
    first = seen - len(memory.homes)
    last_went: dict[int, int] = {}
    for i in moving.tolist():
        source, target = int(rows[i]), int(targets[i])
        if not waiting[i]:  # a candidate was no evidence for the category it was answered with
            ledger.shift(source, memory.readings[i], -1)
            last_went[source] = target
        ledger.shift(target, memory.readings[i], 1)
        ledger.record_move(first + i, int(ids[source]), int(ids[target]), seen, seen)
    settled = np.isin(ledger.candidates.sightings.view, first + moving)
    ledger.candidates.keep(~settled)
    groups = [[target, source] for source, target in sorted(last_went.items()) if evidence.counts[source] == 0]
    for target, source in groups:
        ledger.events.append(Event("dissolved", seen, None, int(ids[source]), int(ids[target])))
        evidence.sums[source] = 0.0  # what rounding has left of them
    changed = np.unique(np.append(rows[moving], targets[moving]))
    evidence.refresh(changed[evidence.counts[changed] > 0])
    ledger.unite(groups)


def merge_twins(ledger: Ledger, seen: int, at_least: float) -> None:
    """Merges discovered categories, the best pair first, while one explanation gains ``at_least`` over two.

    Two that both have remembered sightings which a person put there stay two.
    """
    known, evidence, ids = ledger.categories.known, ledger.evidence, ledger.categories.ids.view
    told = np.zeros(len(evidence), bool)
    told[ledger.rows(ledger.memory.homes[ledger.memory.pinned])] = True
    pairs = unions(evidence.model, evidence.sums[known:], evidence.counts[known:], told[known:], at_least)
    groups = [[known + low, known + high] for low, high in pairs]
    for low, high in groups:
        ledger.events.append(Event("merged", seen, None, int(ids[high]), int(ids[low])))
    ledger.unite(groups)
