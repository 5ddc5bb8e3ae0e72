"""When an answer is worth a second look: near the cut, below it, or between two categories."""

from __future__ import annotations

from newfound.discovery import BayesianDictionary
from newfound.discovery.dictionary import Dictionary
from newfound.journal.rows import SightingRow

# How near is near: a likelihood ratio of e^2, about 7, or 0.03 of a cosine.
_LOG_RATIO, _COSINE = 2.0, 0.03


def score_kind(dictionary: Dictionary) -> str:
    """What its scores are: "log ratio" or "cosine"."""
    return "log ratio" if isinstance(dictionary, BayesianDictionary) else "cosine"


def margin_of(dictionary: Dictionary) -> float:
    """How far from the cut, or from the next category, an answer is beyond doubt."""
    return _LOG_RATIO if isinstance(dictionary, BayesianDictionary) else _COSINE


def is_doubtful(row: SightingRow) -> bool:
    """Whether a sighting was answered with a category although its score is below the cut."""
    return not row.created and row.score is not None and row.cut is not None and row.score < row.cut


def is_borderline(row: SightingRow, margin: float) -> bool:
    """Whether a sighting is doubtful, has a score near the cut, or a runner-up that fits nearly as well."""
    if row.score is None or row.cut is None:  # it was forgotten
        return False
    if is_doubtful(row) or abs(row.score - row.cut) < margin:
        return True
    return bool(row.runners_up) and not row.created and row.score - row.runners_up[0][1] < margin
