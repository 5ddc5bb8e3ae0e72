"""Protocols and scores for streams of known and unknown classes.

>>> from newfound.evaluation import score
>>> score(["cat", "owl"], ["cat", 7], known=["cat"]).strict.all
1.0
"""

from newfound.evaluation.score import Accuracy, Scores, score
from newfound.evaluation.stream import StreamResult, evaluate_stream, stream_order

__all__ = ["Accuracy", "Scores", "StreamResult", "evaluate_stream", "score", "stream_order"]
