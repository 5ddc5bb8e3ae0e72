"""A dictionary that weighs evidence: the category that explains a sample best, or one that was never seen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from newfound.discovery._answers import Odds
from newfound.discovery._categories import Categories, Register
from newfound.discovery._checks import labelled, number, variances, whitened, whole
from newfound.discovery._edits import Given, Moves
from newfound.discovery._evidence import Evidence, Prior
from newfound.discovery._exact import Float32s
from newfound.discovery._ledger import Candidates, Event, Ledger, Memory
from newfound.discovery._model import Model
from newfound.discovery._told import rehome, take_in
from newfound.discovery._weighing import Weighing
from newfound.discovery.decisions import Decisions
from newfound.discovery.second_thoughts import merge_twins, reconsider, width_of_notes
from newfound.errors import SettingsError

_PRODUCTS = 1 << 23  # products held at a time, 32 MB: with more categories, blocks have fewer samples
_FEWEST = 32  # but not so few that reading the categories costs more than multiplying them


class BayesianDictionary(Register):
    """Known and discovered categories, Gaussians that sharpen as they are seen, that name a stream and grow with it.

    A reading is the mean of its class plus a spread, both Gaussian (two-covariance model, PLDA); readings are
    whitened, so that the spread is the identity and class means have the variances ``spread`` around 0. A category
    seen n times has a predictive density in closed form, and so has a category never seen; their log ratio says how
    well a sample fits. The sample joins the category with the best one, of equal ones the lowest id. If that is below
    the threshold, it founds a category. Known categories have the ids 0 .. K-1, discovered ones K, K+1, ... in the
    order of their founding; no id is ever used again.

    **Any batching gives exactly the ids, scores, probabilities and events of one sample at a time.** The log ratio of
    a reading and a category is a function of the two alone: float64 arithmetic in an order that is written down. All
    decisions are defined by these values. Float32 matrix products, whose error has a proven bound, only rule out
    categories that cannot matter.

    Args:
        spread: ``[d]``, above 0: the variances of class means.
        sums: ``[K, d]``: the sum of each known category's labelled readings. K may be 0.
        counts: ``[K]``, 1 or more: how many those are.
        threshold: The log ratio from which on a sample joins a category.
        cap: A category with more members counts as one with so many and the same mean: it stays open to change.
        learn_known: Whether samples that join a known category are evidence for it, as for discovered ones.
        alone: None: every sample below the threshold founds a category. A number: only those that are also below it
            do. A sample between the two is *doubtful*: it is answered with its best category, is no evidence
            for it, and waits as a candidate. A later sample that fits a candidate better than all categories, with at
            least the threshold, founds a category together with it; the candidate then moves there.
        temperature: Log ratios are divided by it before they become probabilities.
        even_at: The log ratio at which a category and one never seen are equally probable. None: the threshold. The
            threshold says when to found a category, which takes more than being a little more probable; 0 says what
            the densities alone do.
        new_slope: The log odds that a sample is of a new category are multiplied by it, and ``new_shift`` is added,
            before categories share what is left as they shared it before. 1 and 0 leave the softmax as it is.
        new_shift: See ``new_slope``.
        concentration: Of a Pitman-Yor prior, which adds log(members - discount) - log(concentration + discount *
            categories) to every log ratio; with ``discount`` 0 it is a Chinese restaurant process. None: no prior.
            Members of a known category are its labelled readings and the samples that joined it.
        discount: See ``concentration``; from 0 to below 1.
        reconsider_every: After every so many observed samples, counted over all batches, the last ``memory`` ones are
            looked at again (:func:`~newfound.discovery.second_thoughts.reconsider`), and candidates older than these
            stop waiting. None never does.
        reconsider_at: The log ratio from which on a sample moves to a category that fits it better than its own.
        memory: See ``reconsider_every``.
        merge_at: After that, discovered categories merge, the best pair first, while explaining them as one gains at
            least so much log density. None merges none.

    Sightings that a person moves (:meth:`reassign`) take their evidence along; that is no event. Candidates among them
    stop waiting and become evidence, even those that belong to the target already. All are pinned (unless ``pinned``
    says that a move is merely taken back), as are samples that
    are admitted so: second thoughts never move them, nor merge two categories that both have remembered ones.

    The score of a sample is its best log ratio with a category, the prior included; -1e30 if there is none. Its
    probabilities are the softmax of (log ratio - even_at) / temperature over the categories (at most the best 32 of
    those within 16 temperatures) and of 0 for a new one, with which candidates count; then ``new_slope`` and
    ``new_shift`` say what that of a new one amounts to.

    Raises:
        FeatureError: Sums that are not ``[K, d]`` finite numbers.
        SettingsError: A setting that cannot be.

    Example:
        >>> b = BayesianDictionary(spread=[9.0], sums=[[50.0]], counts=[10])
        >>> b.observe([[4.5], [-5.0], [-6.0]]).category
        array([0, 1, 1])
    """

    _block_rows = 256  # it changes the speed and nothing else

    def __init__(
        self,
        spread: Any,
        sums: Any,
        counts: Any,
        threshold: float = 0.0,
        *,
        cap: int = 30,
        learn_known: bool = False,
        alone: float | None = None,
        temperature: float = 1.0,
        even_at: float | None = None,
        new_slope: float = 1.0,
        new_shift: float = 0.0,
        concentration: float | None = None,
        discount: float = 0.0,
        reconsider_every: int | None = None,
        reconsider_at: float = 0.0,
        memory: int = 5000,
        merge_at: float | None = None,
    ) -> None:
        self._alone = None if alone is None else number(alone, "alone")
        self.threshold = threshold
        self._temperature = number(temperature, "temperature", above=0.0)
        self._even_at = None if even_at is None else number(even_at, "even_at")
        self._new_slope, self._new_shift = number(new_slope, "new_slope", above=0.0), number(new_shift, "new_shift")
        self._reconsider_every = None if reconsider_every is None else whole(reconsider_every, "reconsider_every")
        self._reconsider_at = number(reconsider_at, "reconsider_at")
        self._memory = whole(memory, "memory")
        self._merge_at = None if merge_at is None else number(merge_at, "merge_at")
        if merge_at is not None and reconsider_every is None:
            raise SettingsError("merge_at says what merges after second thoughts: set reconsider_every too")
        prior = Prior(
            None if concentration is None else number(concentration, "concentration", above=0.0),
            number(discount, "discount"),
        )
        if not 0.0 <= prior.discount < 1.0:
            raise SettingsError(f"discount is a number from 0 to below 1, not {discount!r}")
        if not isinstance(learn_known, bool | np.bool_):
            raise SettingsError(f"learn_known is True or False, not {learn_known!r}")
        model = Model(variances(spread), whole(cap, "cap"))
        rows, numbers = labelled(sums, counts, model.dimension)
        none = np.empty((0, model.dimension))
        some = np.empty(0, np.int64)
        limit = 0 if reconsider_every is None else self._memory
        self._categories = Categories(len(rows))
        self._ledger = Ledger(
            categories=self._categories,
            evidence=Evidence(model, prior, rows, numbers, numbers),
            candidates=Candidates(Evidence(model, prior, none, some, some), some, some, some),
            memory=Memory(limit, none.astype(np.float32), some, np.empty(0, bool), width_of_notes(model)),
            events=[],
            learn_known=bool(learn_known),
        )

    def observe(self, features: Any, runners_up: int = 0) -> Decisions:
        """Decides on each reading in turn, and founds a category where none explains it.

        Args:
            features: ``[n, d]`` or a single ``[d]``: an array, a torch tensor or lists.
            runners_up: How many of the next best categories to report.

        Raises:
            FeatureError: The wrong dimension, or a row that is NaN, infinite or beyond 1e9; nothing has changed then.
        """
        readings = self._read(features)
        decisions = Decisions.blank(len(readings), self.threshold, runners_up, probabilities=True)
        start = 0
        while start < len(readings):
            part = slice(start, min(start + self._block_size(), start + self._until_second_thoughts(), len(readings)))
            self._weigh(readings[part], grow=True).observe(decisions, start, self._seen)
            self._seen += part.stop - start
            start = part.stop
            if self._reconsider_every and self._seen % self._reconsider_every == 0:
                reconsider(self._ledger, self._seen, self._reconsider_at)
                if self._merge_at is not None:
                    merge_twins(self._ledger, self._seen, self._merge_at)
        return decisions

    def predict(self, features: Any, runners_up: int = 0) -> Decisions:
        """What each reading alone would be told as things stand; nothing changes.

        A sample that would found a category, alone or with a candidate, has the category -1 and ``created`` set; a
        doubtful one has its best category. Arguments and errors are those of :meth:`observe`.
        """
        readings = self._read(features)
        decisions = Decisions.blank(len(readings), self.threshold, runners_up, probabilities=True)
        step = self._block_size()
        for start in range(0, len(readings), step):
            self._weigh(readings[start : start + step], grow=False).predict(decisions, start)
        return decisions

    def _read(self, features: Any) -> Float32s:
        return whitened(features, self.dimension)

    def _rehome(self, moves: Moves, readings: Float32s) -> None:
        rehome(self._ledger, moves, readings, self._seen)

    def _take_in(self, readings: Float32s, given: Given) -> None:
        take_in(self._ledger, readings, given)

    def _weigh(self, readings: Float32s, *, grow: bool) -> Weighing:
        even = self._threshold if self._even_at is None else self._even_at
        odds = Odds(even, self._temperature, self._new_slope, self._new_shift)
        alone = None if self._alone is None else min(self._alone, self._threshold)
        return Weighing(readings, self._ledger, self._threshold, alone, odds, grow=grow)

    def _block_size(self) -> int:
        rows = len(self) + len(self._ledger.candidates.evidence)
        return min(self._block_rows, max(_FEWEST, _PRODUCTS // max(1, rows)))

    def _until_second_thoughts(self) -> int:
        every = self._reconsider_every
        return every - self._seen % every if every else self._block_rows

    @property
    def temperature(self) -> float:
        """What log ratios are divided by before they become probabilities."""
        return self._temperature

    def __repr__(self) -> str:
        return self._repr(f"dimension={self.dimension}, threshold={self.threshold:g}")

    @property
    def dimension(self) -> int:
        """d, the length of a reading."""
        return self._ledger.evidence.model.dimension

    @property
    def threshold(self) -> float:
        """A sample whose best log ratio is below it joins no category. It can be set at any time."""
        return self._threshold

    @threshold.setter
    def threshold(self, value: float) -> None:
        self._threshold = number(value, "threshold")

    @property
    def candidates(self) -> int:
        """How many doubtful samples wait for a second one of their kind."""
        return len(self._ledger.candidates.evidence)

    def drain_events(self) -> list[Event]:
        """What the dictionary changed by itself since the last call, oldest first: moves, merges, dissolutions."""
        events, self._ledger.events = self._ledger.events, []
        return events

    def merge(self, ids: Iterable[int]) -> int:
        """Makes one category of several, with the evidence of all, and returns the id it lives on under.

        That is the known one, which keeps its own evidence unless known ones learn, else the lowest. An id merged
        before stands for the one it lives on under, so merging the same ids again changes nothing. It is no event.

        Raises:
            SettingsError: No ids, an id that was never given out, or two known categories.
        """
        rows = self._categories.rows_to_merge(ids)
        survivor = int(self.ids[rows[0]])
        self._ledger.unite([rows])
        return survivor

    def state(self) -> dict[str, Any]:
        """All that the dictionary is, as arrays (copies) and plain values, fit for safetensors and JSON."""
        model, prior = self._ledger.evidence.model, self._ledger.evidence.prior
        return {
            **self._ledger.state(),
            "spread": model.spread.copy(),
            "seen": self._seen,
            "threshold": self._threshold,
            "cap": model.cap,
            "learn_known": self._ledger.learn_known,
            "alone": self._alone,
            "temperature": self._temperature,
            "even_at": self._even_at,
            "new_slope": self._new_slope,
            "new_shift": self._new_shift,
            "concentration": prior.concentration,
            "discount": prior.discount,
            "reconsider_every": self._reconsider_every,
            "reconsider_at": self._reconsider_at,
            "memory": self._memory,
            "merge_at": self._merge_at,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> BayesianDictionary:
        """The dictionary whose :meth:`state` this is, bit for bit: it continues the stream as if never stopped.

        Raises:
            SettingsError: Something is missing, or the parts do not fit together.
            FeatureError: A spread that cannot be.
        """
        settings = (
            "threshold", "cap", "learn_known", "alone", "temperature", "concentration", "discount",
            "reconsider_every", "reconsider_at", "memory", "merge_at",
        )  # fmt: skip
        of_late = {"even_at": None, "new_slope": 1.0, "new_shift": 0.0}  # which older states lack
        try:
            spread = state["spread"]
            given = {name: state[name] for name in settings}
            given |= {name: state.get(name, value) for name, value in of_late.items()}
            restored = cls(spread, np.empty((0, len(spread))), [], **given)
            restored._seen = int(state["seen"])
            restored._ledger.restore(state, restored._seen)
        except KeyError as missing:
            raise SettingsError(f"this state of a dictionary lacks {missing}: it is damaged") from None
        restored._categories = restored._ledger.categories
        return restored

    def copy(self) -> BayesianDictionary:
        """An independent dictionary that is the same in every bit."""
        return self.from_state(self.state())
