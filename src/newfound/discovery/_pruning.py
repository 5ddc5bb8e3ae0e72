"""When an outline of the prototypes is made, used, left aside and made anew. No answer depends on any of it."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from newfound.discovery import _cells
from newfound.discovery._exact import Float32s, Float64s, Ints
from newfound.discovery._found import Found
from newfound.discovery._outline import Outline
from newfound.discovery._outline_search import OutlineSearch, cost_in_full


class Pruning:
    """Decides, by counting and not by clocks, whether a block is searched through an outline or in full.

    All work is told in samples searched in full. An outline costs about :attr:`rent` of them, so it is made when that
    many have been: never much more than twice the work of having known. Before, a few cells are tried on the last
    block; where they rule out too little (features without structure), four times as many samples go by until the
    next trial. A search that is given up, because it comes to cost too much, is charged to what others have saved; when
    that is used up, the outline is left aside until the loss is :attr:`loss` of all work since. An outline that leaves
    out an eighth of the prototypes, because they are new or have moved, is made anew if it has saved what that costs.
    """

    # Sizes that change the speed and nothing else.
    least = 8192  # prototypes: fewer are compared faster than they are chosen
    rent = 2048
    cell = 48  # prototypes: of which one centre is kept
    directions = 4  # dimensions: for which one coordinate is kept
    tried = 32  # cells
    most = 0.8  # of a search in full: what another may cost
    loss = 1 / 20
    kept = 1024  # samples: what is saved beyond that does not make up for later losses

    def __init__(self) -> None:
        self._outline: Outline | None = None
        self._patience = 1
        self._paid = self._saved = self._balance = 0.0

    @property
    def outline(self) -> Outline | None:
        """The outline in use, if there is one."""
        return self._outline

    def ready(self, size: int) -> bool:
        """Whether the next block will be looked for in an outline of ``size`` prototypes."""
        return self._outline is not None and size >= self.least and self._balance >= 0

    def find(self, samples: Float32s, prototypes: Float32s, k: int, lane: int) -> Found | None:
        """The prototypes that may be among the k nearest of each sample, or None: then all have to be searched."""
        if not self.ready(len(prototypes)) or self._outline is None:
            return None
        if 8 * len(self._outline.loose(len(prototypes))) > len(prototypes):
            self._outline, saved, self._saved = None, self._saved, 0.0  # gone first, so that there are never two
            if saved < self.rent:
                return None
            self._outline = self._made(prototypes)
        search = OutlineSearch(self._outline, samples, prototypes, k)
        full = cost_in_full(len(samples), *prototypes.shape)
        found = search.run(self.most * full, lane)
        sample = cost_in_full(1, *prototypes.shape) - cost_in_full(0, *prototypes.shape)
        saved = ((0.0 if found is None else full) - search.cost) / sample
        self._saved += saved
        self._balance = min(self.kept, self._balance + saved)
        return found

    def searched(self, samples: Float32s, prototypes: Float32s, cuts: Float64s) -> None:
        """Counts a block that was searched in full; ``cuts``: what k prototypes of each sample reach."""
        if len(prototypes) < self.least:
            return
        work = cost_in_full(len(samples), 1, 1)
        if self._outline is not None:
            self._balance += self.loss * work
            return
        self._paid += work
        if self._paid < self._patience * max(self.rent, self._trial_cost(*prototypes.shape) / self.loss):
            return
        self._paid = self._balance = 0.0
        if self._pays(samples, prototypes, cuts):
            self._outline, self._patience = self._made(prototypes), 1
        else:
            self._patience *= 4

    def loosen(self, rows: Ints) -> None:
        """The prototypes in these rows have moved."""
        if self._outline is not None:
            self._outline.loosen(rows)

    def keep(self, which: NDArray[np.bool_]) -> None:
        """The rows that are not marked are gone."""
        if self._outline is not None:
            self._outline.keep(which)

    def _pays(self, samples: Float32s, prototypes: Float32s, cuts: Float64s) -> bool:
        """Whether searches through an outline would cost little enough, going by cells around a few prototypes."""
        near = _cells.neighbours(prototypes, self.tried, self.cell)
        some = prototypes[near.ravel()]
        starts = np.arange(0, len(some) + 1, near.shape[1])
        trial = Outline(some, min(len(some), self._coordinates(prototypes)), np.arange(len(some)), starts)
        cost = OutlineSearch(trial, samples, some, 1).predicted(cuts, len(prototypes) / len(some))
        return cost <= self.most * cost_in_full(len(samples), *prototypes.shape)

    def _trial_cost(self, size: int, dimension: int) -> float:
        rows, coordinates = self.tried * self.cell, dimension / self.directions
        return cost_in_full(self.tried, 1, 1) + 8 * rows * coordinates / size

    def _coordinates(self, prototypes: Float32s) -> int:
        return max(1, prototypes.shape[1] // self.directions)

    def _made(self, prototypes: Float32s) -> Outline:
        return Outline.of(prototypes, math.ceil(len(prototypes) / self.cell), self._coordinates(prototypes))
