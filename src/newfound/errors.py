"""Errors for people: each says what was wrong, with which file or value, and what to do.

Everything newfound raises on purpose is a :class:`NewfoundError`. Errors about a value that was passed in are
also a :class:`ValueError`, and a missing file is also a :class:`FileNotFoundError`, so that code that knows
nothing of newfound can catch them.
"""

from __future__ import annotations


class NewfoundError(Exception):
    """The base of all errors that newfound raises on purpose."""


class ImageError(NewfoundError, ValueError):
    """These bytes are not a picture that can be used: unreadable, truncated, empty or too large."""


class DataError(NewfoundError, ValueError):
    """A data set that cannot be used: an empty folder, a single class, a CSV without the right columns."""


class MissingFileError(DataError, FileNotFoundError):
    """A file or folder that is not there."""

    def __str__(self) -> str:  # OSError would print its errno form
        return str(self.args[0]) if self.args else ""


class FeatureError(NewfoundError, ValueError):
    """A feature array that cannot be decided on: NaN, zero rows, the wrong dimension."""


class SettingsError(NewfoundError, ValueError):
    """A setting with a value that it cannot have, or a name that does not exist."""


class WeightsError(NewfoundError, RuntimeError):
    """Pretrained weights that cannot be had here, or that do not fit the model."""


class NoBackboneError(WeightsError):
    """A backbone's pretrained weights cannot be had here, whatever shall be trained on it."""


class CacheError(NewfoundError, OSError):
    """The cache cannot be written: the disk is full, or the folder may not be written to."""


class RunError(NewfoundError, ValueError):
    """A run folder that cannot be read: files missing, damaged, or written by a newer newfound."""


class UnfinishedError(RunError):
    """A folder holds an unfinished training that cannot go on: its settings or data are others, or it is damaged."""


class JournalError(NewfoundError, RuntimeError):
    """A journal that cannot be read or written: full disk, no access, locked, damaged, or of another model."""


class HubError(NewfoundError, RuntimeError):
    """The model hub cannot be reached, refuses, or holds something else than a model of newfound's."""
