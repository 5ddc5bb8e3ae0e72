"""Long work in the background stands back while a request is answered: Python runs one thread at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Courtesy:
    """Counts the requests that are being answered."""

    def __init__(self) -> None:
        self._requests = 0
        self._changed = threading.Condition()

    @contextmanager
    def answering(self) -> Iterator[None]:
        """For as long as a request is being answered."""
        with self._changed:
            self._requests += 1
        try:
            yield
        finally:
            with self._changed:
                self._requests -= 1
                self._changed.notify_all()

    def stand_back(self, most: float = 0.25) -> None:
        """Wait until no request is being answered, for so many seconds at most: where they never end, work must."""
        with self._changed:
            self._changed.wait_for(lambda: self._requests == 0, most)
