"""Protocols and scores for streams of known and unknown classes.

>>> from newfound.evaluation import score
>>> score(["cat", "owl"], ["cat", 7], known=["cat"]).strict.all
1.0
"""

from newfound.evaluation.calibration import Reliability, named_right, reliability, unheard_of
from newfound.evaluation.score import Accuracy, Scores, score
from newfound.evaluation.stream import StreamResult, by_name, evaluate_stream, stream_order

__all__ = [
    "Accuracy",
    "Reliability",
    "Scores",
    "StreamResult",
    "by_name",
    "evaluate_stream",
    "named_right",
    "reliability",
    "score",
    "stream_order",
    "unheard_of",
]
