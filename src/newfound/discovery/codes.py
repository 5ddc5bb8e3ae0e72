"""The dictionary of binary codes: the nearest code within a radius, or a new category."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from newfound.discovery import _hamming
from newfound.discovery._categories import Categories
from newfound.discovery._edits import Given, Moves
from newfound.discovery._exact import Ints
from newfound.discovery._features import cosine
from newfound.discovery._hamming import Words
from newfound.discovery._owned import Owned, categories_for, majority
from newfound.discovery._readings import bit_rows, code_rows, real_rows
from newfound.discovery._rows import Rows
from newfound.discovery.coding import (
    Bits,
    Coding,
    GroupArgmax,
    SignCode,
    TopK,
    coding_from_state,
    coding_state,
    radius_of,
    score_of,
)
from newfound.discovery.decisions import Decisions
from newfound.errors import SettingsError


class CodeDictionary(Owned):
    """Known and discovered categories, one or more binary codes each, that name a stream of readings and grow with it.

    A reading's code goes to the nearest code by Hamming distance, of equally near ones to the oldest. If that is
    further away than the radius, the reading founds a category with its code. The score is 1 - distance / span; a
    threshold t stands for the radius floor((1 - t) span), so 1 asks for the same code and 0 or less takes any.
    Known categories have the ids 0 .. ``known`` - 1, discovered ones the numbers after them in the order of their
    founding; no id is ever used again.

    **Any batching gives exactly the answers of one reading at a time**: distances are whole numbers, and within a
    batch a reading meets the codes that were there before it and no others.

    A code belongs to one category. With a sighting that a person moves (:meth:`reassign`), its code goes to the target
    if nobody has it, or if its discovered owner has no other members left: that one dissolves, and all its codes go.
    Else it stays, since others may share it. A category founded by such sightings alone has a code that is not found
    as long as the older owner has it. Pinned samples that are admitted bring a code that nobody has.

    Args:
        codes: The codes of the known categories, in the order in which they win ties: bits ``[M, dimension]``, or
            packed by ``np.packbits(bits, axis=1, bitorder="little")``. M may be 0.
        owners: ``[M]``, the known category of each code. Of equal codes the first is the one that is found.
        known: The number of known categories; some may have no code.
        coding: How readings become codes: :class:`SignCode`, :class:`TopK` or :class:`GroupArgmax`.
        threshold: In [-1, 1]: a reading whose score is below it is new.

    Raises:
        FeatureError: Codes of the wrong shape, or that this coding cannot give.
        SettingsError: A setting that cannot be.

    Example:
        >>> from newfound.discovery import SignCode
        >>> d = CodeDictionary([[1, 1, 0, 0]], [0], known=1, coding=SignCode(4), threshold=0.75)
        >>> d.observe([[0.3, 0.1, -2.0, 0.4], [-0.2, 0.0, 0.9, 0.1]]).category
        array([0, 1])
    """

    def __init__(self, codes: Any, owners: Any, known: int, coding: Coding, threshold: float = 1.0) -> None:
        if not isinstance(coding, SignCode | TopK | GroupArgmax):
            raise SettingsError(f"coding is a SignCode, a TopK or a GroupArgmax, such as SignCode(12), not {coding!r}")
        self._coding = coding
        self.threshold = threshold
        self._fill(codes, owners, categories_for(known))

    def _fill(self, codes: Any, owners: Any, categories: Categories) -> None:
        words = _hamming.pack(code_rows(codes, self._coding))
        self._own(owners, len(words), categories)
        self._codes = Rows(words)
        self._oldest: dict[Any, int] = {}  # the first row that has a code
        for row, key in enumerate(_hamming.flat(words).tolist()):
            self._oldest.setdefault(key, row)

    def observe(self, features: Any, runners_up: int = 0) -> Decisions:
        """Decides on each reading in turn, and founds a category where no code is near enough.

        Args:
            features: ``[n, dimension]`` or a single ``[dimension]``: an array, a torch tensor or lists.
            runners_up: How many of the next best categories to report; a category is as near as its nearest code,
                and of equally near ones the lowest id comes first.

        Raises:
            FeatureError: The wrong dimension, or a row that is NaN or infinite; nothing has changed then.
        """
        batch = _Batch(self._read(features))
        decisions = Decisions.blank(len(batch.words), self._cut, runners_up)
        size = len(self._codes)
        founders = self._founders(batch)
        for row, key in enumerate(_hamming.flat(batch.words[founders]).tolist(), start=size):
            self._oldest[key] = row
        self._codes.append(batch.words[founders])
        self._add_rows(len(founders))
        self._judge(batch, size + np.searchsorted(founders, np.arange(len(batch.words))), decisions)
        decisions.category[:] = self._enter(decisions.category, decisions.created)
        self._seen += len(decisions)
        return decisions

    def predict(self, features: Any, runners_up: int = 0) -> Decisions:
        """What each reading alone would be told as things stand; nothing changes.

        A reading that would found a category has the category -1 and ``created`` set. Arguments and errors are
        those of :meth:`observe`.
        """
        batch = _Batch(self._read(features))
        decisions = Decisions.blank(len(batch.words), self._cut, runners_up)
        self._judge(batch, np.full(len(batch.words), len(self._codes)), decisions)
        return decisions

    def _read(self, features: Any) -> Words:
        return _hamming.pack(self._coding.bits(real_rows(features, "reading", self.dimension)))

    def _rehome(self, moves: Moves, readings: Words) -> None:
        self._categories.move(moves)
        target = int(self.ids[moves.target])
        self._unite(moves.emptied(self.counts, self.known))
        words = readings[moves.leaving]
        self._add_codes(words, np.full(len(words), target), np.zeros(len(words), bool))
        if not (self.owners == target).any() and moves.founds:
            self._add_codes(words[:1], np.array([target]), np.array([True]))

    def _take_in(self, readings: Words, given: Given) -> None:
        some = given.created | given.pinned
        self._add_codes(readings[some], given.ids[some], given.created[some])
        self._enter(given.ids, given.created)

    def _add_codes(self, words: Words, owners: Ints, anyway: NDArray[np.bool_]) -> None:
        """Gives codes that nobody has to ``owners``, in order; ``anyway``: also behind one that has the same."""
        added: list[int] = []
        size = len(self._codes)
        for i, key in enumerate(_hamming.flat(words).tolist()):
            if anyway[i] or key not in self._oldest:
                self._oldest.setdefault(key, size + len(added))
                added.append(i)
        self._codes.append(words[added])
        self._owners.append(owners[added])

    def _founders(self, batch: _Batch) -> Ints:
        """The samples that found a category, ascending.

        Of equal codes only the first sample can: either it founds, or a code is near enough for the others too.
        """
        unseen = np.sort(batch.first[batch.rows(self._oldest) < 0])
        if self._radius:
            _, away = _hamming.nearest(batch.words[unseen], self._codes.view, np.full(len(unseen), len(self._codes)))
            unseen = unseen[away > self._radius]
        return unseen[_hamming.founders(batch.words[unseen], self._radius)]

    def _judge(self, batch: _Batch, upto: Ints, decisions: Decisions) -> None:
        """Fills in the decisions, each sample against the first ``upto`` codes; the category of new ones is -1.

        ``upto`` ascends. Equal codes that meet the same rows are compared once.
        """
        codes, span, k = self._codes.view, self._coding.span, decisions.runners_up_category.shape[1]
        rows = batch.rows(self._oldest)[batch.group]
        away = np.zeros(len(rows), np.int64)
        # The same code settles everything but the runners-up: only the rest needs to be measured.
        rest = np.arange(len(rows)) if k else np.flatnonzero((rows < 0) | (rows >= upto))
        pairs = upto[rest] * len(batch.first) + batch.group[rest]
        _, one_of_each, back = np.unique(pairs, return_index=True, return_inverse=True)
        some = rest[one_of_each]
        found, distance = _hamming.nearest(batch.words[some], codes, upto[some])
        rows[rest], away[rest] = found[back], distance[back]
        decisions.created[:] = (rows < 0) | (away > self._radius)
        decisions.score[:] = np.where(rows < 0, -1.0, score_of(away, span))
        decisions.category[:] = np.where(decisions.created, -1, np.append(self.owners, -1)[rows])
        if k:
            own = decisions.category[some]
            others, distance = _hamming.nearest_owners(batch.words[some], codes, upto[some], self.owners, own, k)
            scores = np.where(others < 0, -1.0, score_of(distance, span))
            decisions.runners_up_category[:], decisions.runners_up_score[:] = others[back], scores[back]

    def __repr__(self) -> str:
        return self._repr(f"{len(self._codes)} codes, coding={self._coding}, threshold={self.threshold:g}")

    @property
    def dimension(self) -> int:
        """The length of a reading."""
        return self._coding.dimension

    @property
    def coding(self) -> Coding:
        """How readings become codes."""
        return self._coding

    @property
    def threshold(self) -> float:
        """A reading whose best score is below it is new. It can be set at any time."""
        return self._threshold

    @threshold.setter
    def threshold(self, value: float) -> None:
        self._threshold = cosine(value, "threshold")
        self._radius = radius_of(self._threshold, self._coding.span)
        # A threshold that was meant as a score may be a rounding error above it; the cut never is.
        self._cut = min(self._threshold, score_of(self._radius, self._coding.span))

    @property
    def radius(self) -> int:
        """The largest distance at which a reading joins a category."""
        return self._radius

    @property
    def codes(self) -> Bits:
        """All codes, ``[M, dimension]``, oldest first; ``owners`` says whose they are."""
        return _hamming.unpack(self._codes.view, self.dimension)

    def state(self) -> dict[str, Any]:
        """All that the dictionary is, as arrays (copies) and plain values, fit for safetensors and JSON."""
        packed = np.packbits(self.codes, axis=1, bitorder="little")
        return {**self._book(), "codes": packed, "coding": coding_state(self._coding), "threshold": self._threshold}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> CodeDictionary:
        """The dictionary whose :meth:`state` this is: it continues the stream as if never stopped.

        Raises:
            SettingsError: Something is missing, or the parts do not fit together.
            FeatureError: Codes that the coding cannot give.
        """
        try:
            coding = coding_from_state(state["coding"])
            restored = cls(np.empty((0, coding.dimension), bool), [], 0, coding, state["threshold"])
            restored._fill(state["codes"], state["owners"], Categories.from_state(state))
            restored._seen = int(state["seen"])
        except KeyError as missing:
            raise SettingsError(f"this state of a dictionary lacks {missing}: it is damaged") from None
        return restored

    def copy(self) -> CodeDictionary:
        """An independent dictionary that is the same in every bit."""
        return self.from_state(self.state())


class _Batch:
    """Packed codes in the order of the stream, and which of them are equal."""

    def __init__(self, words: Words) -> None:
        self.words = words
        keys, self.first, self.group = np.unique(_hamming.flat(words), return_index=True, return_inverse=True)
        self._keys = keys.tolist()

    def rows(self, oldest: Mapping[Any, int]) -> Ints:
        """The first row that has the code of each group, -1 if none has."""
        return np.array([oldest.get(key, -1) for key in self._keys], np.int64)


def majority_codes(bits: Any, targets: Any) -> tuple[Bits, Ints]:
    """The distinct codes of labelled samples, in the order in which they first appear, and whose they are.

    A code belongs to the class that most of its samples have, of equals to the lowest.

    Args:
        bits: ``[n, dimension]``, the code of each sample.
        targets: ``[n]``, the class of each sample, from 0 up.

    Returns:
        codes: ``[M, dimension]``.
        owners: ``[M]``, the class of each code.

    Raises:
        FeatureError: Bits that are not rows of zeros and ones.
        SettingsError: Targets that are not one class for each sample.
    """
    rows = bit_rows(bits)
    batch = _Batch(_hamming.pack(rows))
    order = np.argsort(batch.first)
    return rows[batch.first[order]], majority(batch.group, targets)[order]
