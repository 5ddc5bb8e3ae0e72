"""The dynamic prototype dictionary of LTC: the nearest prototype, or a new one if none is near."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np

from newfound.discovery._categories import Categories
from newfound.discovery._coarse import Coarse
from newfound.discovery._edits import Given, Moves
from newfound.discovery._exact import Float32s, Ints, direction
from newfound.discovery._features import cosine, unit_rows
from newfound.discovery._found import Found, sweep
from newfound.discovery._merging import add_in_order, by_row, mutual_nearest, sum_in_order
from newfound.discovery._pruning import Pruning
from newfound.discovery._rows import Rows
from newfound.discovery._search import Block, Scratch
from newfound.discovery._stream import judge, stream_fixed, stream_running
from newfound.discovery._vectors import Vectors
from newfound.discovery.decisions import Decisions
from newfound.errors import SettingsError

_PRODUCTS = 1 << 23  # held at a time when all prototypes are compared with each other, 32 MB


class PrototypeDictionary(Vectors):
    """Known and discovered categories, a unit vector each, that name a stream of features and grow with it.

    A sample goes to the prototype with the highest cosine similarity (Eq. 5), of equal ones to the lowest id.
    If that similarity is below the threshold, the sample founds a category of its own (Alg. 1). Known
    categories have the ids 0 .. K-1, discovered ones K, K+1, ... in the order of their founding; no id is ever
    used again.

    **Any batching gives exactly the ids and scores of one sample at a time**, with any BLAS, number of threads,
    block size and memory layout. In floating point that takes a definition and a bound:

    - *The similarity of two vectors is a function of the two alone.* Their float32 entries are multiplied in
      float64, which is exact, and added up by a halving tree of elementwise float64 additions, whose order the
      dimension fixes; the sum is clipped to [-1, 1]. All scores are this canonical value, and all decisions
      (which is highest, is it below the threshold) are defined by it.
    - *The matrix product is a filter.* A float32 product of two unit vectors is within
      E = gamma_{D+2} (1 + 1e-5)^2 of the canonical value (gamma_n = n u / (1 - n u), u = 2^-24), for every
      order of summation, with or without fused multiply-add. A decision is read off the products only where
      this settles it: where the best leads by more than 2 E and is further than E from the threshold.
      Everywhere else the canonical values of all prototypes within reach are computed and compared.

    - *Of many prototypes, most are left out.* Upper bounds of their similarities, with all rounding paid for, rule
      out those that cannot be among the nearest: from an outline of clusters
      (:class:`newfound.discovery._outline.Outline` has the proof) or, where PyTorch is loaded and the processor
      multiplies bytes fast, from codes of a byte an entry (:class:`newfound.discovery._coarse.Coarse`).

    So no answer depends on how a product was rounded, and grouping samples into products changes nothing.

    Features and prototypes are rounded to float32. Rows whose norm is within 1e-5 of 1 keep their bits, all
    others are normalised, by the same kind of arithmetic. (A rounded unit vector's cosine with itself can be a
    little below 1, so a threshold of exactly 1 asks for more than equality.)

    Args:
        prototypes: ``[K, D]``, one row a known class (Eq. 4: the direction of its mean feature). K may be 0.
        threshold: tau, in [-1, 1]: a sample below it is new, one that equals it is not.
        update: ``"fixed"``: a discovered prototype stays the feature that founded it, as in the paper.
            ``"running"``: it is the direction of the sum of its members, added in the order of the stream.
            Known prototypes stay what they are.
        merge_every: Merge after every so many observed samples, counted over all batches; None never does.
            Discovered categories that are each other's nearest among the discovered ones, with a similarity
            of at least ``merge_at``, become one. (The released code does so every 1,000 samples.)
        merge_at: See ``merge_every``.

    A merged prototype is the mean weighted by members (the released code's weights count founders only), or,
    with ``update="running"``, the direction of all members' sum. The lower id lives on; the higher one becomes
    its alias and leaves the search. Answers given before stay valid: :meth:`resolve` says where an id lives.

    Sightings that a person moves (:meth:`reassign`) take their part of running sums along; fixed prototypes stay. A
    category that they found has the direction of their sum, added in the order of the stream.

    Raises:
        FeatureError: Prototypes that are not ``[K, D]``, or a row that is NaN, infinite or zero.
        SettingsError: A setting that cannot be.

    Example:
        >>> p = PrototypeDictionary([[1.0, 0.0], [0.0, 1.0]], threshold=0.9)
        >>> p.observe([[0.96, 0.28], [-1.0, 0.0], [-0.96, 0.28]]).category
        array([0, 2, 2])
    """

    # Sizes that change the speed and nothing else.
    _block_rows = 512
    _lane_columns = 256
    _sweep_from = 8192  # prototypes: of more, not all products are kept

    def __init__(
        self,
        prototypes: Any,
        threshold: float = 0.7,
        *,
        update: Literal["fixed", "running"] = "fixed",
        merge_every: int | None = None,
        merge_at: float = 0.995,
    ) -> None:
        if update not in ("fixed", "running"):
            raise SettingsError(f'update is "fixed" or "running", not {update!r}')
        if merge_every is not None and (not isinstance(merge_every, int | np.integer) or merge_every < 1):
            raise SettingsError(f"merge_every is a number of samples from 1 up, or None, not {merge_every!r}")
        rows = unit_rows(prototypes, "prototype")
        self.threshold = threshold
        self._update = update
        self._merge_every = None if merge_every is None else int(merge_every)
        self._merge_at = cosine(merge_at, "merge_at")
        self._seen = 0
        self._categories = Categories(len(rows))
        self._prototypes = Rows(rows)
        self._pruning, self._coarse = Pruning(), Coarse()  # both follow from the prototypes: they are no state
        self._sums = Rows(np.empty((0, rows.shape[1])))  # of discovered categories, if they are running

    def observe(self, features: Any, runners_up: int = 0) -> Decisions:
        """Decides on each feature in turn, and founds a category where none is near enough.

        Args:
            features: ``[n, D]`` or a single ``[D]``: an array, a torch tensor or lists.
            runners_up: How many of the next best categories to report.

        Raises:
            FeatureError: The wrong dimension, or a row that is NaN, infinite or zero; nothing has changed then.
        """
        samples = self._read(features)
        decisions = Decisions.blank(len(samples), self.threshold, runners_up)
        scratch, start, k = Scratch(self.dimension), 0, runners_up + 1
        while start < len(samples):
            block = self._block(samples[start : start + self._until_merge()], scratch, k)
            part = slice(start, start + len(block.samples))
            if self._update == "running":
                verdicts = stream_running(block, self._prototypes, self._sums, self.known, self.threshold, k)
                self._loosen(verdicts.rows[~verdicts.created & (verdicts.rows[:, 0] >= self.known), 0])
            else:
                verdicts = stream_fixed(block, self._prototypes, self.threshold, k)
            chosen = self._categories.enter(verdicts.rows[:, 0], verdicts.created)
            verdicts.write(decisions, part, chosen, self.ids)
            self._seen += part.stop - start
            start = part.stop
            if self._merge_every and self._seen % self._merge_every == 0:
                self._merge_twins()
        return decisions

    def predict(self, features: Any, runners_up: int = 0) -> Decisions:
        """What each feature alone would be told as things stand; nothing changes.

        A sample that would found a category has the category -1 and ``created`` set. Arguments and errors are
        those of :meth:`observe`.
        """
        samples = self._read(features)
        decisions = Decisions.blank(len(samples), self.threshold, runners_up)
        scratch, start = Scratch(self.dimension), 0
        while start < len(samples):
            block = self._block(samples[start:], scratch, runners_up + 1)
            part = slice(start, start + len(block.samples))
            verdicts = judge(block, self._prototypes.view, self.threshold, runners_up + 1)
            chosen = np.where(verdicts.created, -1, verdicts.rows[:, 0])
            verdicts.write(decisions, part, chosen, self.ids)
            start = part.stop
        return decisions

    def _block(self, samples: Float32s, scratch: Scratch, k: int) -> Block:
        """The next of the samples, as many as suit, with their products with all prototypes that matter to them."""
        samples, prototypes, lane = samples[: self._block_rows], self._prototypes.view, self._lane_columns
        found = self._found(samples, prototypes, k)
        if found is None:
            return Block.of_all(samples, prototypes, lane, scratch)
        return Block.of_some(samples[: len(found.cuts)], len(prototypes), found, lane, scratch)

    def _found(self, samples: Float32s, prototypes: Float32s, k: int) -> Found | None:
        """The prototypes that may matter, of as many of the samples as there is room for; None: all of so few may."""
        many, lane = len(prototypes) >= self._sweep_from, self._lane_columns
        found = self._pruning.find(samples, prototypes, k, lane) if many else None
        if found is not None:
            return found
        if self._pruning.outline is None and self._coarse.pays(len(samples), *prototypes.shape):
            found = self._coarse.find(samples, prototypes, k)
        elif many:
            found = sweep(samples, prototypes, k, 4 * lane)  # of so many, few lanes are looked at again
        else:
            return None
        self._pruning.searched(samples[: len(found.cuts)], prototypes, found.cuts)
        if self._pruning.outline is not None:
            self._coarse.drop()  # there is memory for one of the two
        return found

    def _loosen(self, rows: Ints) -> None:
        """The prototypes in these rows have moved."""
        self._pruning.loosen(rows)
        self._coarse.loosen(rows)

    def _until_merge(self) -> int:
        return self._merge_every - self._seen % self._merge_every if self._merge_every else self._block_rows

    def __repr__(self) -> str:
        return self._repr(f"dimension={self.dimension}, threshold={self.threshold:g}, update={self._update!r}")

    def merge(self, ids: Iterable[int]) -> int:
        """Makes one category of several and returns the id it lives on under.

        A known category takes the others in and keeps its prototype; without one, the lowest id lives on, as
        described for the class. An id merged before stands for the one it lives on under, so merging the same
        ids again changes nothing.

        Raises:
            SettingsError: No ids, an id that was never given out, or two known categories.
        """
        rows = self._categories.rows_to_merge(ids)
        survivor = int(self.ids[rows[0]])
        self._unite([rows])
        return survivor

    def _merge_twins(self) -> None:
        discovered = self._prototypes.view[self.known :]
        pairs = mutual_nearest(discovered, self._merge_at, max(1, _PRODUCTS // max(1, len(discovered))))
        self._unite([[self.known + i, self.known + j] for i, j in pairs])

    def _unite(self, groups: list[list[int]]) -> None:
        """Merges each group of rows (ascending, no row in two groups) into its first."""
        prototypes, sums = self._prototypes.view, self._sums.view
        running = self._update == "running"
        for home, *others in groups:
            if home < self.known or not others:
                continue
            rows = np.array([home, *others])
            total = sum_in_order(sums[rows - self.known] if running else prototypes[rows] * self.counts[rows, None])
            prototypes[home] = direction(total, otherwise=prototypes[home])
            self._loosen(rows[:1])
            if running:
                sums[home - self.known] = total
        self._join_books(groups)

    def _join_books(self, groups: list[list[int]]) -> None:
        left = self._categories.unite(groups)
        if not left.all():
            self._prototypes.keep(left)
            self._pruning.keep(left)
            self._coarse.drop()  # merging is rare, and codes are soon made
            if self._update == "running":
                self._sums.keep(left[self.known :])

    def _rehome(self, moves: Moves, readings: Float32s) -> None:
        running = self._update == "running"
        if moves.founds:
            total = sum_in_order(readings)
            self._prototypes.append(direction(total, otherwise=readings[0])[None])
            if running:
                self._sums.append(total[None])
        self._categories.move(moves)
        if running:
            away = np.flatnonzero(moves.leaving)
            for row, some in by_row(moves.sources, away):
                self._add(row, -readings[some])
            if not moves.founds:
                self._add(moves.target, readings[away])
        self._join_books(moves.emptied(self.counts, self.known))

    def _take_in(self, readings: Float32s, given: Given) -> None:
        rows = self._categories.enter(given.rows, given.created)
        self._prototypes.append(readings[given.created])
        if self._update == "running":
            self._sums.append(readings[given.created])
            for row, some in by_row(rows, np.flatnonzero(~given.created)):
                self._add(row, readings[some])

    def _add(self, row: int, samples: Float32s) -> None:
        """Adds samples to the running sum of a category, one after the other; a known one has none."""
        if row >= self.known:
            sums, prototypes = self._sums.view, self._prototypes.view
            sums[row - self.known], last = add_in_order(sums[row - self.known], samples)
            prototypes[row] = direction(last, otherwise=prototypes[row])
            self._loosen(np.array([row]))

    @property
    def nbytes(self) -> int:
        """The memory that the vectors take: prototypes, sums of members, and what makes the search fast."""
        outline = self._pruning.outline
        return self._prototypes.nbytes + self._sums.nbytes + self._coarse.nbytes + (outline.nbytes if outline else 0)

    def state(self) -> dict[str, Any]:
        """All that the dictionary is, as arrays (copies) and plain values, fit for safetensors and JSON."""
        return {
            **self._categories.state(),
            "prototypes": self._prototypes.view.copy(),
            "sums": self._sums.view.copy(),
            "seen": self._seen,
            "threshold": self._threshold,
            "update": self._update,
            "merge_every": self._merge_every,
            "merge_at": self._merge_at,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> PrototypeDictionary:
        """The dictionary whose :meth:`state` this is, bit for bit: it continues the stream as if never stopped.

        Raises:
            SettingsError: Something is missing, or the parts do not fit together.
            FeatureError: Prototypes that are NaN or zero.
        """
        settings = ("threshold", "update", "merge_every", "merge_at")
        try:
            restored = cls(state["prototypes"], **{name: state[name] for name in settings})
            restored._categories = Categories.from_state(state)
            restored._sums = Rows(np.asarray(state["sums"], np.float64))
            restored._seen = int(state["seen"])
        except KeyError as missing:
            raise SettingsError(f"this state of a dictionary lacks {missing}: it is damaged") from None
        discovered = len(restored) - restored.known if restored._update == "running" else 0
        fits = restored._sums.view.shape == (discovered, restored.dimension)
        if len(restored) != len(restored._prototypes) or not fits:
            raise SettingsError("the prototypes of this state do not fit its categories: it is damaged")
        return restored

    def copy(self) -> PrototypeDictionary:
        """An independent dictionary that is the same in every bit."""
        return self.from_state(self.state())
