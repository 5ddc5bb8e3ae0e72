"""Arrays that grow by rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_GROWTH = 1.25  # copies are amortised, and never more than a quarter of the rows in use is reserved


class Rows:
    """An array that can be appended to: a buffer with room to spare, of which the first rows are in use."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._buffer = np.array(array, order="C")
        self._used = len(array)

    @property
    def view(self) -> NDArray[Any]:
        """The rows in use; writable, and valid until the next ``append`` or ``keep``."""
        return self._buffer[: self._used]

    @property
    def frozen(self) -> NDArray[Any]:
        """The rows in use, for people: read-only."""
        view = self.view
        view.flags.writeable = False
        return view

    @property
    def nbytes(self) -> int:
        """The memory it takes, with what is reserved."""
        return self._buffer.nbytes

    def append(self, rows: NDArray[Any]) -> None:
        """Adds ``rows`` at the end."""
        start = self._used
        self.extend(len(rows))
        self._buffer[start : self._used] = rows

    def extend(self, count: int) -> None:
        """Adds so many rows at the end, with anything in them."""
        needed = self._used + count
        if needed > len(self._buffer):
            capacity = max(needed, int(len(self._buffer) * _GROWTH))
            buffer = np.empty((capacity, *self._buffer.shape[1:]), self._buffer.dtype)
            buffer[: self._used] = self.view
            self._buffer = buffer
        self._used = needed

    def reserve(self, count: int) -> NDArray[Any]:
        """The whole buffer, with room for so many rows more; it is valid until rows are added or dropped."""
        self.extend(count)
        self._used -= count
        return self._buffer

    def use(self, rows: int) -> None:
        """The first so many rows of the buffer are in use from now on."""
        self._used = rows

    def keep(self, which: NDArray[np.bool_]) -> None:
        """Drops the rows that are not marked, in a buffer of its own: views given out keep what they show."""
        self._buffer = self.view[which]
        self._used = len(self._buffer)

    def __len__(self) -> int:
        return self._used
