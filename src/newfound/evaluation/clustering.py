"""How well clusters agree with classes: their table, its best matching, NMI and ARI; and the AUROC."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from newfound.evaluation.codes import Codes

Counts = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Table:
    """The clusters x classes table of counts, as its non-empty cells, class by class.

    There are at most as many cells as samples, so a method that opens a cluster for every sample is scored in
    as little memory as any other.
    """

    cluster: Codes
    klass: Codes
    count: Counts
    clusters: int
    classes: int

    @classmethod
    def of(cls, cluster_codes: Codes, class_codes: Codes, clusters: int, classes: int) -> Table:
        """Count the samples of each (cluster, class); codes are below `clusters` and `classes`."""
        cell = class_codes * clusters + cluster_codes
        # Counting all cells is faster than sorting the samples, until most cells are empty.
        if clusters * classes <= 16 * len(cell):
            every_count = np.bincount(cell)
            cell = np.flatnonzero(every_count)
            count = every_count[cell]
        else:
            cell, count = np.unique(cell, return_counts=True)
        klass, cluster = np.divmod(cell, clusters)
        return cls(cluster, klass, count, clusters, classes)

    def where(self, keep: Mask) -> Table:
        """The table with the other cells emptied."""
        return Table(self.cluster[keep], self.klass[keep], self.count[keep], self.clusters, self.classes)

    def cluster_sizes(self) -> Counts:
        """How many samples each cluster has."""
        return np.bincount(self.cluster, weights=self.count, minlength=self.clusters).astype(np.int64)

    def class_sizes(self) -> Counts:
        """How many samples each class has."""
        return np.bincount(self.klass, weights=self.count, minlength=self.classes).astype(np.int64)


def match(table: Table, weight: Counts) -> Mask:
    """Choose the cells of the largest total weight, at most one in a cluster and one in a class.

    This is the Hungarian matching of the clusters x classes matrix that has `weight`, positive integers, in
    the table's cells and zero elsewhere. Returns the mask of the chosen cells.
    """
    if not len(weight):
        return np.zeros(0, dtype=bool)
    favourites = _favourites(table, weight)
    if len(np.unique(table.cluster[favourites])) == len(favourites):  # everybody gets the best: nothing is better
        chosen = np.zeros(len(weight), dtype=bool)
        chosen[favourites] = True
        return chosen
    # The search grows with the number of those who choose, so the shorter side does.
    if table.classes <= table.clusters:
        return _search(table.klass, table.cluster, table.classes, table.clusters, weight)
    order = np.argsort(table.cluster, kind="stable")
    chosen = np.empty(len(weight), dtype=bool)
    chosen[order] = _search(table.cluster[order], table.klass[order], table.clusters, table.classes, weight[order])
    return chosen


def _favourites(table: Table, weight: Counts) -> NDArray[np.intp]:
    """The cell of the largest weight of every class that has any; of equal ones the first."""
    starts = np.flatnonzero(np.diff(table.klass, prepend=-1))
    largest = np.maximum.reduceat(weight, starts)
    cells = np.flatnonzero(weight == np.repeat(largest, np.diff(starts, append=len(weight))))
    return cells[np.flatnonzero(np.diff(table.klass[cells], prepend=-1))]


def _search(chooser: Codes, choice: Codes, choosers: int, choices: int, weight: Counts) -> Mask:
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    # SciPy solves the sparse problem if everybody can be matched, so each chooser, in whose order the cells are, gets
    # a blank of its own at the end. It is worth 1, as SciPy takes 0 for no cell, and all cells 1 more: the best choice
    # stays the best.
    ends = np.cumsum(np.bincount(chooser, minlength=choosers) + 1)
    values, columns = np.ones(len(weight) + choosers), np.empty(len(weight) + choosers, np.int32)
    place = np.arange(len(weight)) + chooser
    values[place], columns[place] = weight + 1.0, choice
    columns[ends - 1] = choices + np.arange(choosers)
    rows = np.concatenate([[0], ends]).astype(np.int32)
    graph = csr_matrix((values, columns, rows), shape=(choosers, choices + choosers))
    _, chosen = min_weight_full_bipartite_matching(graph, maximize=True)
    taken: Mask = np.asarray(chosen)[chooser] == choice
    return taken


def normalised_mutual_information(table: Table) -> float:
    """Mutual information over the mean of the two entropies, in [0, 1]; 1 for one cluster and one class."""
    if table.clusters == table.classes == 1:
        return 1.0
    in_cluster, in_class = table.cluster_sizes(), table.class_sizes()
    samples = int(table.count.sum())
    expected = np.log(in_cluster)[table.cluster] + np.log(in_class)[table.klass] - np.log(samples)
    # Not a product of BLAS, whose threads take longer to wake than to add so few numbers.
    information = float((table.count * (np.log(table.count) - expected)).sum()) / samples
    mean_entropy = (_entropy(in_cluster) + _entropy(in_class)) / 2
    return min(max(information / mean_entropy, 0.0), 1.0)


def adjusted_rand_index(table: Table) -> float:
    """The Rand index adjusted for chance: 1 for equal partitions, about 0 for unrelated ones."""
    both, in_cluster, in_class = map(_pairs, (table.count, table.cluster_sizes(), table.class_sizes()))
    total = _pairs(table.count.sum(keepdims=True))
    # These are Python's integers: the products outgrow 64 bits at some 100,000 samples.
    above_chance = 2 * (both * total - in_cluster * in_class)
    at_most = (in_cluster + in_class) * total - 2 * in_cluster * in_class
    return above_chance / at_most if at_most else 1.0


def area_under_roc(scores: NDArray[Any], positive: Mask) -> float | None:
    """The chance that a positive sample scores above a negative one, ties counting half.

    None if there are no samples of one kind.
    """
    above, below = np.sort(scores[positive]), np.sort(scores[~positive])
    if not (above.size and below.size):
        return None
    wins = np.searchsorted(below, above, "left").sum() + np.searchsorted(below, above, "right").sum()
    return int(wins) / (2 * above.size * below.size)


def _entropy(sizes: Counts) -> float:
    share = sizes / sizes.sum()
    return -float((share * np.log(share)).sum())


def _pairs(sizes: Counts) -> int:
    return int((sizes * (sizes - 1) // 2).sum())
