"""When a snapshot is due: the next opening decides again on all that came after the last, and should not take long."""

from __future__ import annotations

from dataclasses import dataclass

_SECONDS = 1.0  # that deciding again may take; or _TIMES as long as a snapshot, if that is more
_TIMES = 8


@dataclass
class Due:
    """Counts what deciding has cost since the last snapshot, so that writing them costs little in comparison.

    No answer depends on when they are written: a book is the same from any of them.

    Attributes:
        at: how many sightings the last snapshot holds.
        decided: seconds of the processor that deciding has taken since.
        saving: seconds that writing the last one took.
    """

    at: int = 0
    decided: float = 0.0
    saving: float = 0.0

    @property
    def after(self) -> float:
        """The seconds of deciding after which it is time for one."""
        return max(_SECONDS, _TIMES * self.saving)

    @property
    def now(self) -> bool:
        """Whether it is time for one."""
        return self.decided >= self.after

    def kept(self, at: int) -> None:
        """There is a snapshot of so many sightings."""
        if at != self.at:
            self.at, self.decided = at, 0.0
