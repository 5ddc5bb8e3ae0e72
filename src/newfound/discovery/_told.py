"""What a person tells a dictionary that weighs evidence: the ledger follows, and remembers who said so."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from newfound.discovery._edits import Given, Moves
from newfound.discovery._exact import Float32s, Ints
from newfound.discovery._ledger import Ledger
from newfound.discovery._merging import add_in_order, by_row, sum_in_order
from newfound.errors import SettingsError


def rehome(ledger: Ledger, moves: Moves, readings: Float32s, seen: int) -> None:
    """Moves sightings, of ``seen`` in all, with what they are evidence for, and pins those that shall stay.

    A category left without evidence dissolves into the target; candidates that were answered with it go along.

    Raises:
        SettingsError: Sources that the books contradict, or that have too little evidence; nothing has changed then.
    """
    evidence, memory, known = ledger.evidence, ledger.memory, ledger.categories.known
    places = moves.numbers - seen + len(memory.homes)
    remembered = places >= 0
    doubtful = ledger.candidates.no_evidence(moves.numbers)
    _check_homes(ledger, moves, remembered, places)
    _check_evidence(ledger, moves, moves.sources[~doubtful & moves.leaving])

    for i in np.flatnonzero(moves.leaving & ~doubtful).tolist():
        ledger.shift(int(moves.sources[i]), readings[i], -1)
    if moves.founds:
        evidence.append(sum_in_order(readings), len(readings))
    else:
        for i in np.flatnonzero(moves.leaving | doubtful).tolist():
            ledger.shift(moves.target, readings[i], 1)
    ledger.candidates.settle(moves.numbers)
    ledger.categories.move(moves)
    memory.rehome(places[remembered], int(ledger.categories.ids.view[moves.target]))
    memory.pinned[places[remembered]] = moves.pinned[remembered]

    groups = moves.emptied(evidence.counts, known)
    evidence.sums[[source for _, source in groups]] = 0.0  # what rounding has left of them
    changed = np.unique(np.append(moves.sources, moves.target))
    evidence.refresh(changed[evidence.counts[changed] > 0])
    ledger.unite(groups)


def _check_homes(ledger: Ledger, moves: Moves, remembered: NDArray[np.bool_], places: Ints) -> None:
    rows = ledger.rows(ledger.memory.homes[places[remembered]])
    wrong = np.flatnonzero(rows != moves.sources[remembered])
    if wrong.size:
        i, ids = wrong[0], ledger.categories.ids.view
        raise SettingsError(
            f"sighting {moves.numbers[remembered][i]} belongs to category {ids[rows[i]]}, "
            f"not to {ids[moves.sources[remembered][i]]}"
        )


def _check_evidence(ledger: Ledger, moves: Moves, leaving: Ints) -> None:
    """Refuses what would leave a known category without its labelled readings, or a discovered one with less than 0."""
    evidence, rows = ledger.evidence, np.arange(len(ledger.evidence))
    out = np.bincount(leaving, minlength=len(rows))
    least = np.where(ledger.learns(rows), rows < ledger.categories.known, evidence.counts)
    short = np.flatnonzero((out > 0) & (evidence.members - out < least))
    if short.size:
        identity = ledger.categories.ids.view[short[0]]
        raise SettingsError(
            f"{out[short[0]]} sightings cannot leave category {identity}: fewer are evidence for it. "
            "Where do they belong now?"
        )


def take_in(ledger: Ledger, readings: Float32s, given: Given) -> None:
    """Takes samples in as evidence for the categories that are given for them; none is doubtful."""
    evidence = ledger.evidence
    rows = ledger.categories.enter(given.rows, given.created)
    for reading in readings[given.created]:
        evidence.append(reading.astype(np.float64), 1)
    for row, some in by_row(rows, np.flatnonzero(~given.created)):
        evidence.members[row] += len(some)
        if ledger.learns(row):
            evidence.counts[row] += len(some)
            evidence.sums[row] = add_in_order(evidence.sums[row], readings[some])[0]
        evidence.refresh_row(row)
    ledger.memory.append(readings, given.ids, given.pinned)
