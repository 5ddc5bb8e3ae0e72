"""Discovery for feature arrays, as a scikit-learn estimator: `fit` teaches, `partial_fit` discovers, `predict` looks.

It is the `frozen` method of a run without the images: the same model, dictionaries and rehearsal, on features that one
brings along.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from newfound._category_labels import CategoryLabels, label_column, one_kind, unlabelled
from newfound.discovery import BayesianDictionary, PrototypeDictionary, class_sums, events_of, standing
from newfound.discovery._features import unit_rows
from newfound.errors import DataError

try:
    from sklearn.utils.validation import validate_data as _validate
except ImportError:  # scikit-learn before 1.6

    def _validate(estimator: Any, X: Any, y: Any = "no_validation", **how: Any) -> Any:
        return estimator._validate_data(X, y, **how)


if TYPE_CHECKING:
    from torch import Tensor

    from newfound.discovery import Decisions, Event


class OnTheFlyClassifier(ClassifierMixin, BaseEstimator):
    """Recognises the classes it was fitted on and discovers others in the stream that follows.

    Rows are compared by direction: they are scaled to unit length, as embeddings are. Columns with units of their own
    (centimetres beside grams) belong behind a ``StandardScaler``.

    Labels: taught classes keep theirs. A discovered category gets one that no other has, once and for all: for numbers
    the next above all labels so far, otherwise the text ``"new-1"``, ``"new-2"``, ... A row that fits no category, and
    would found one if it were in the stream, is predicted as ``new_label_``: for numbers -1, or the number below the
    lowest class if that is negative, otherwise ``"new"``.

    Args:
        dictionary: ``"evidence"`` weighs it (:class:`~newfound.discovery.BayesianDictionary`); ``"prototypes"``
            compares cosines with class means (:class:`~newfound.discovery.PrototypeDictionary`); ``"auto"`` takes what
            rehearses better, and prototypes where nothing can be rehearsed.
        threshold: The score from which on a row belongs to a category: a log ratio or a cosine, so not with
            ``"auto"``. None: rehearsed on the labelled rows, half of whose classes play the unknown ones; with fewer
            than 4 classes of 4 rows, by how close rows of a class are, and with one row a class what is usually good.
        dimensions: Of evidence: directions to keep.
        between: Of evidence: how far the spread between classes is drawn towards what is assumed of it, in [0, 1].
            None: further the fewer classes and rows there are. ``"rehearsed"``: that, or all the way, whichever
            rehearses better.
        reconsider_every: Of evidence: second thoughts after so many rows of the stream; None never has any.
        centre: Of prototypes: see rows from the mean of the labelled ones.
        draws: How often classes are hidden in a rehearsal.
        random_state: Draws those classes.

    Attributes:
        classes_: The labels of the living categories: the taught ones sorted, then others in the order of founding. It
            grows with the stream.
        new_label_: What a row of none of these is predicted as.
        threshold_, threshold_rule_: The threshold in use, and where it comes from in words.
        dictionary_: The dictionary, of one kind or the other; its ids are positions in the order of founding.
        n_features_in_, feature_names_in_: As everywhere in scikit-learn.

    Example:
        >>> X = [[9, 1, 0], [9, 0, 1], [8, 1, 1], [0, 9, 1], [1, 9, 0], [1, 8, 1]]
        >>> model = OnTheFlyClassifier("prototypes", threshold=0.5).fit(X, ["a", "a", "a", "b", "b", "b"])
        >>> model.partial_fit([[0, 1, 9], [1, 0, 9]]).predict([[9, 1, 1], [0, 0, 9]]).tolist()
        ['a', 'new-1']
    """

    def __init__(
        self,
        dictionary: Literal["auto", "evidence", "prototypes"] = "auto",
        threshold: float | None = None,
        *,
        dimensions: int = 512,
        between: float | Literal["rehearsed"] | None = "rehearsed",
        reconsider_every: int | None = 250,
        centre: bool = True,
        draws: int = 8,
        random_state: Any = 0,
    ) -> None:
        self.dictionary = dictionary
        self.threshold = threshold
        self.dimensions = dimensions
        self.between = between
        self.reconsider_every = reconsider_every
        self.centre = centre
        self.draws = draws
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> OnTheFlyClassifier:
        """Learns labelled rows and forgets everything before.

        Raises:
            ValueError: Data or settings that cannot be; newfound's own errors, such as that of a row without a
                direction, are among them.
        """
        rows, labels = _validate(self, X, y, dtype=np.float64, ensure_min_features=2)
        return self._learn(rows, labels)

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None) -> OnTheFlyClassifier:
        """Takes in the next rows of a stream, in order.

        Without ``y`` rows are decided on one after the other, and discover. A row with a label teaches: a class or
        category of that label, or a new one. None or NaN in ``y`` marks a row without.

        Args:
            classes: Not needed: classes may appear at any time.

        Raises:
            ValueError: As :meth:`fit`; a label that is of another kind than those so far, or is ``new_label_``; or no
                label at all before the first ``fit``.
        """
        first = not hasattr(self, "dictionary_")
        if y is None and first:
            raise NotFittedError("there is nothing to discover beside yet: fit labelled rows first, with fit(X, y).")
        if first and not unlabelled(y).any():
            return self.fit(X, y)
        if first:
            self.fit_predict(X, y)
            return self
        rows = _validate(self, X, dtype=np.float64, reset=False)
        if y is None:
            self._decide(rows)
        else:
            self._mixed(rows, label_column(y, len(rows)), unlabelled(y))
        return self

    def observe(self, X: Any) -> NDArray[Any]:
        """The labels of the next rows of the stream as they are decided, one after the other; discovers as it goes."""
        ids, _ = self._decide(self._rows(X))
        return self._labels.of(ids)

    def fit_predict(self, X: Any, y: Any) -> NDArray[Any]:
        """Learns the rows that have labels, then streams the others in order: the labels of all rows in the end.

        Args:
            y: One label for each row; None or NaN for those to be decided on.

        Raises:
            ValueError: As :meth:`fit`.
        """
        rows = _validate(self, X, dtype=np.float64, ensure_min_features=2)
        labels, open_ = label_column(y, len(rows)), unlabelled(y)
        unit_rows(rows, "feature")  # one that has no direction is told of before anything is learnt
        taught = one_kind(labels[~open_].tolist())
        self._learn(rows[~open_], taught)
        every = np.empty(len(rows), np.int64)
        every[~open_] = self._labels.ids(taught.tolist())
        every[open_] = standing(self.dictionary_, *self._decide(rows[open_]))
        return self._labels.of(every)

    def predict(self, X: Any) -> NDArray[Any]:
        """The label of each row as things stand, ``new_label_`` where it fits none; nothing changes."""
        ids = self._look(X).category
        return self._labels.of(ids)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """How well each row fits each of ``classes_``, as a log ratio or a cosine: ``[n, classes]``.

        With two classes it is how much better the second fits than the first, ``[n]``, as scikit-learn has it.
        """
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """How well each row fits the category that it fits best; the lower, the newer."""
        return self._scores(X).max(axis=1)

    def _weighs_evidence(self) -> bool:
        """Cosines are no probabilities; which ones it has, ``"auto"`` knows when it is fitted."""
        if self.dictionary == "auto":
            return isinstance(getattr(self, "dictionary_", None), BayesianDictionary)
        return self.dictionary == "evidence"

    @available_if(_weighs_evidence)
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """How probable each of ``classes_`` is, ``[n, classes]``, if a row is of one of them: rows add up to 1.

        Whether it is of one of them at all is what :meth:`predict_new_proba` says.
        """
        scores = self._scores(X)
        assert isinstance(self.dictionary_, BayesianDictionary), "other dictionaries have no probabilities"
        scores = scores / self.dictionary_.temperature
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        return weights / weights.sum(axis=1, keepdims=True)

    @available_if(_weighs_evidence)
    def predict_new_proba(self, X: Any) -> NDArray[np.float64]:
        """How probable it is that each row is of none of ``classes_``: ``[n]``."""
        found = self._look(X).new_probability
        assert found is not None, "a dictionary that weighs evidence has probabilities"
        return found

    @property
    def classes_(self) -> NDArray[Any]:
        return self._labels.of(np.array(self.dictionary_.ids))

    @property
    def new_label_(self) -> Any:
        return self._labels.of(np.array([-1]))[0]

    def _learn(self, rows: NDArray[np.float64], labels: Any) -> OnTheFlyClassifier:
        from newfound._feature_rehearsal import chosen_method

        if not len(rows):
            raise DataError("no row has a label: some rows of two classes or more are needed to start from.")
        check_classification_targets(labels)
        classes, targets = np.unique(labels, return_inverse=True)
        if len(classes) < 2:
            raise DataError("all rows are of one class; two are needed to see how classes differ.")
        features = unit_rows(rows, "feature")
        method, chosen = chosen_method(
            features, targets, dictionary=self.dictionary, threshold=self.threshold, between=self.between,
            dimensions=self.dimensions, reconsider_every=self.reconsider_every, centre=self.centre,
            draws=self.draws, random_state=self.random_state,
        )  # fmt: skip
        taught = _tensor(features), _tensor(targets.astype(np.int64))
        rule: tuple[float, str]
        if self.threshold is not None:
            rule = float(self.threshold), "fixed by setting"
        elif chosen is not None:
            rule = chosen.threshold, chosen.describe()
        else:
            cut, why = method.own_cut(*taught)
            rule = cut, f"{why}; too few classes or rows to rehearse"
        self._deciding = method.deciding
        self._known = self._deciding.teach(*taught)
        self._labels = CategoryLabels(classes)
        self._sums = class_sums(self._read(rows).astype(np.float64), targets)[0]
        self.threshold_, self.threshold_rule_ = rule
        self.dictionary_ = self._deciding.dictionary(self._known, self.threshold_)
        return self

    def _decide(self, rows: NDArray[np.float64]) -> tuple[NDArray[np.int64], list[Event]]:
        """The ids of rows as they are decided in turn, and what the dictionary has changed since."""
        ids = self.dictionary_.observe(self._read(rows)).category
        self._labels.found(int(ids.max(initial=-1)))
        return ids, events_of(self.dictionary_)

    def _mixed(self, rows: NDArray[np.float64], labels: NDArray[Any], open_: NDArray[np.bool_]) -> None:
        """Decides on some rows and is taught others, in the order of the stream."""
        self._labels.check(labels[~open_].tolist())
        unit_rows(rows, "feature")  # one that has no direction is told of before any other is taken in
        for undecided, group in groupby(range(len(rows)), key=open_.__getitem__):
            part = list(group)
            if undecided:
                self._decide(rows[part])
            else:
                self._teach(self._read(rows[part]), labels[part].tolist())

    def _teach(self, readings: NDArray[np.float32], labels: list[Any]) -> None:
        dictionary, so_far = self.dictionary_, len(self._labels)
        ids = self._labels.ids(labels)
        ids[ids < so_far] = dictionary.resolve(ids[ids < so_far])
        if isinstance(dictionary, BayesianDictionary):
            # What a stream decides is no evidence for a known class, but what a person says is.
            learning = BayesianDictionary.from_state(dictionary.state() | {"learn_known": True})
            learning.admit(readings, ids, np.ones(len(ids), bool))
            self.dictionary_ = BayesianDictionary.from_state(learning.state() | {"learn_known": False})
        else:
            dictionary.admit(readings, ids)
            known = ids < len(self._sums)
            np.add.at(self._sums, ids[known], readings[known])
            state = dictionary.state()
            state["prototypes"][: len(self._sums)] = self._sums
            self.dictionary_ = PrototypeDictionary.from_state(state)

    def _rows(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self)
        return _validate(self, X, dtype=np.float64, reset=False)

    def _read(self, rows: NDArray[np.float64]) -> NDArray[np.float32]:
        return self._deciding.read(_tensor(unit_rows(rows, "feature")), self._known).numpy()

    def _look(self, X: Any, *, every: bool = False) -> Decisions:
        """What the dictionary says of rows as things stand, of their best category or of every one."""
        rows = self._rows(X)  # first: it says what to do if nothing was fitted
        return self.dictionary_.predict(self._read(rows), runners_up=len(self.dictionary_) if every else 0)

    def _scores(self, X: Any) -> NDArray[np.float64]:
        found = self._look(X, every=True)
        ids = np.column_stack([found.category, found.runners_up_category])
        scores = np.empty((len(ids), len(self.dictionary_) + 1))  # the last column takes what is no category
        columns = np.where(ids < 0, len(self.dictionary_), np.searchsorted(self.dictionary_.ids, ids))
        np.put_along_axis(scores, columns, np.column_stack([found.score, found.runners_up_score]), axis=1)
        return scores[:, :-1]


def _tensor(array: NDArray[Any]) -> Tensor:
    import torch

    return torch.from_numpy(np.ascontiguousarray(array))
