"""Leaving in good order: SIGINT, SIGTERM and SIGHUP end the stream, not the block that is being decided."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, TypeVar

T = TypeVar("T")


def _numbers() -> list[int]:
    """What ends a stream: also a terminal that is closed, unless that is to be ignored, as under nohup."""
    hang_up: int | None = getattr(signal, "SIGHUP", None)  # Windows has none
    if hang_up is None or signal.getsignal(hang_up) is signal.SIG_IGN:
        return [signal.SIGINT, signal.SIGTERM]
    return [signal.SIGINT, signal.SIGTERM, hang_up]


class _CutShort(KeyboardInterrupt):
    """Raised by the first signal inside a wait."""


class Stop:
    """While entered, remembers that a signal asked to stop. A second Ctrl-C raises KeyboardInterrupt, at once; a third
    ends the process, whatever it is still closing: what is committed stays, as after any crash.

    The first signal raises nothing, except inside `wait`: an exception could come between the commit of a block and
    its answers, and Python drops one that is raised while an object is being cleaned up, as finished streams are.
    Outside the main thread, where no handler can be set, nothing is ever asked.
    """

    def __init__(self) -> None:
        self.asked = False
        self._waiting = False
        self._leaving = False  # a second Ctrl-C has come
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Stop:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._note) for number in _numbers()}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        again, self.asked = self.asked, True
        if self._waiting:
            raise _CutShort
        if again and number == signal.SIGINT:  # a supervisor that repeats SIGTERM has SIGKILL for more
            if self._leaving:  # raised once more, it would come out of the middle of some library's clean-up
                os._exit(128 + number)
            self._leaving = True
            raise KeyboardInterrupt

    def wait(self, work: Callable[[], T]) -> T | None:
        """What `work` returns; None if a signal comes before it does, or has come already.

        `work` waits for the world outside, and what it would have returned may be lost.
        """
        try:
            self._waiting = True  # before the question: a signal between the two raises
            return None if self.asked else work()
        except _CutShort:
            return None
        finally:
            self._waiting = False
