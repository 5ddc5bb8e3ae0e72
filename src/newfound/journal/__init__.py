"""The journal of a discoverer: everything it saw and everything people did, from which its state can be told again."""

from newfound.journal.journal import Journal
from newfound.journal.rows import EventRow, Model, Position, SightingRow, Snapshot
from newfound.journal.writing import Writer

__all__ = ["EventRow", "Journal", "Model", "Position", "SightingRow", "Snapshot", "Writer"]
