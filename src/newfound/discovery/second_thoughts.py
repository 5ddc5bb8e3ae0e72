"""Looking again at what was answered: sightings move to where they fit now, categories without members dissolve.

Early categories are founded on one image. Once there is more evidence, a remembered sighting is held against all
categories once more, its own without it, and moves if another explains it better.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from newfound.discovery._answers import Pairs
from newfound.discovery._exact import Float32s, Float64s, Ints
from newfound.discovery._ledger import Event, Ledger
from newfound.discovery._model import Model
from newfound.discovery._products import Products, Readings, all_at_most
from newfound.discovery._unions import unions

_BLOCK = 512  # sightings looked at together: it changes the speed and nothing else


def width_of_notes(model: Model) -> int:
    """How many numbers are noted about a remembered sighting."""
    return 2 + Readings.width_of_facts(model)


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
    targets = _targets(ledger, np.where(waiting, -1, rows), at_least)
    _move(ledger, np.flatnonzero((targets >= 0) & ~memory.pinned), rows, targets, waiting, seen)
    ledger.candidates.lapse(before=first)


def _targets(ledger: Ledger, own: Ints, at_least: float) -> Ints:
    """The category that each remembered sighting should move to, -1 for none; ``own``: the row it belongs to, or -1.

    Of every sighting two values are noted: its score with its own category, and what its scores with others do not
    exceed. Both hold the next time but for categories that have changed since, so only these are multiplied with it.
    Where that does not rule a move out, the sighting is looked at afresh.
    """
    evidence, notes = ledger.evidence, ledger.memory.notes
    readings = Readings(ledger.memory.readings, evidence.model, _facts(ledger))
    to_beat, bounds = notes[:, 0], notes[:, 1]
    to_beat[(own < 0) | evidence.changed[own]] = np.nan
    unheard, changed = np.isnan(bounds), np.flatnonzero(evidence.changed)
    for some in _blocks(np.flatnonzero(~unheard)):
        bounds[some] = np.maximum(bounds[some], _others(ledger, readings[some], own[some], changed)[1])
    for some in _blocks(np.flatnonzero(unheard)):
        bounds[some] = _others(ledger, readings[some], own[some], slice(None))[1]
    new = evidence.prior.of_new(len(evidence))
    for some in _blocks(np.flatnonzero((bounds >= at_least + new) & np.isnan(to_beat))):
        to_beat[some] = _own_scores(ledger, readings.rows[some], own[some])
    targets = np.full(len(own), -1, np.int64)
    for some in _blocks(np.flatnonzero(bounds >= np.maximum(to_beat - new, at_least) + new)):
        products, bounds[some] = _others(ledger, readings[some], own[some], slice(None))
        targets[some] = _better(products, readings[some], bounds[some], to_beat[some] - new, at_least)
    evidence.changed[:] = False
    return targets


def _facts(ledger: Ledger) -> Float64s:
    """What products need to know of the remembered readings, noted beside the rest."""
    memory = ledger.memory
    unheard = np.flatnonzero(np.isnan(memory.notes[:, 2]))
    memory.notes[unheard, 2:] = Readings(memory.readings[unheard], ledger.evidence.model).facts
    return memory.notes[:, 2:]


def _blocks(which: Ints) -> Iterator[Ints]:
    return (which[start : start + _BLOCK] for start in range(0, len(which), _BLOCK))


def _own_scores(ledger: Ledger, readings: Float32s, own: Ints) -> Float64s:
    """The scores of readings with their own categories, without them; -inf where there is none."""
    members = np.flatnonzero(own >= 0)
    scores = np.full(len(own), -np.inf)
    rows = own[members]
    scores[members] = ledger.evidence.scores_without(readings[members], rows, ledger.learns(rows))
    return scores


def _others(ledger: Ledger, block: Readings, own: Ints, rows: Any) -> tuple[Products, Float64s]:
    """The products of readings with ``rows``, and what no score with one that they may move to exceeds.

    That is a known one or one with two members, and not their own; the products of the others become -inf.
    """
    evidence = ledger.evidence
    products = Products(block, evidence, rows=rows)
    columns = np.arange(len(evidence))[rows]
    products.values[:, (evidence.counts[columns] < 2) & (columns >= ledger.categories.known)] = -np.inf
    if len(columns):
        place = np.minimum(np.searchsorted(columns, own), len(columns) - 1)
        mine = np.flatnonzero(columns[place] == own)
        products.values[mine, place[mine]] = -np.inf
    errors = block.errors(products.longest, products.highest)
    return products, products.values.max(axis=1, initial=-np.inf) + errors


def _better(products: Products, block: Readings, bounds: Float64s, to_beat: Float64s, at_least: float) -> Ints:
    """The category that each reading should move to, -1 for none."""
    evidence = products.evidence
    new = evidence.prior.of_new(len(evidence))
    errors = block.errors(products.longest, products.highest)
    may = np.flatnonzero(bounds >= np.maximum(to_beat, at_least) + new)
    near = products.values[may] >= all_at_most(bounds[may] - 3 * errors[may])[:, None]
    at, rows = near.nonzero()
    at = may[at]
    pairs = Pairs.ranked(at, rows, evidence.scores(block.rows, at, rows) - new)
    firsts = pairs.firsts()
    at, rows, scores = pairs.at[firsts], pairs.rows[firsts], pairs.scores[firsts]
    moves = (scores >= at_least) & (scores > to_beat[at])
    targets = np.full(len(block), -1, np.int64)
    targets[at[moves]] = rows[moves]
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
