"""What the obviously right dictionaries of the tests share: owners, counts, and answers in a form to compare."""

from __future__ import annotations

import numpy as np


class PlainBook:
    """Categories that own rows, kept in lists and dicts."""

    def __init__(self, rows, owners, known):
        self.rows, self.owners = list(rows), list(owners)
        self.next_id = known
        self.counts = dict.fromkeys(range(known), 0)

    def enter(self, category, created, row):
        """Counts a sample; one that founds a category owns its row. Returns the category."""
        if created:
            category = self.next_id
            self.rows.append(row)
            self.owners.append(category)
            self.counts[category] = 0
            self.next_id += 1
        self.counts[category] += 1
        return category

    def merge(self, ids):
        home = min(ids)
        self.owners = [home if owner in ids else owner for owner in self.owners]
        self.counts[home] = sum(self.counts.pop(i) for i in ids)


def answers(out):
    """Decisions as a list of (category, score, created, [(runner-up, score), ...])."""
    pairs = [list(zip(*row, strict=True)) for row in zip(out.runners_up_category, out.runners_up_score, strict=True)]
    return list(zip(out.category.tolist(), out.score.tolist(), out.created.tolist(), pairs, strict=True))


def snapshot(dictionary):
    """A dictionary's state, to be compared bit for bit."""
    return {k: v.tobytes() if isinstance(v, np.ndarray) else v for k, v in dictionary.state().items()}
