"""Compiled versions of the innermost loops (:mod:`newfound.discovery._kernels`), for streams long enough to repay them.

To load them takes a second or two, and up to a minute the first time on a machine, when they are compiled. So NumPy
does the work at first, and goes on doing it while they are being loaded in a thread of their own. No answer depends on
which of the two has computed it: both give the same bits.
"""

from __future__ import annotations

import importlib
import logging
import os
import threading
from types import ModuleType

SWITCH = "NEWFOUND_COMPILED"  # "0": never; "1": from the first number on
_WORTH = 1 << 28  # numbers that go through NumPy before, some seconds' worth

_log = logging.getLogger(__name__)
_compiling = threading.Lock()  # two that compile the same kernel are in each other's way


class _Loader:
    def __init__(self) -> None:
        self.kernels: ModuleType | None = None
        self.why_not: str | None = None
        self._left = _WORTH
        self._lock = threading.Lock()
        self._begun = False

    def count(self, numbers: int) -> None:
        """So many numbers more would be worked on."""
        self._left -= numbers
        if (self._left < 0 or os.environ.get(SWITCH) == "1") and not self._begun:
            with self._lock:
                if self._begun:
                    return
                self._begun = True
            if os.environ.get(SWITCH) == "1":
                self.load()
            else:
                self._load_aside()

    def _load_aside(self) -> None:
        """Loads the kernels in a thread that nobody waits for: not even a program that ends."""
        try:
            threading.Thread(target=self.load, name="newfound-compile", daemon=True).start()
        except RuntimeError as error:  # there are too many threads, or the program is ending
            self.why_not = str(error)

    def load(self) -> None:
        """Loads the kernels, or notes why that cannot be."""
        self._begun = True
        if os.environ.get(SWITCH) == "0":
            self.why_not = f"{SWITCH} is 0"
        elif self.kernels is None and self.why_not is None:
            try:
                kernels = importlib.import_module("newfound.discovery._kernels")
                with _compiling:
                    kernels.compile_all()
                self.kernels = kernels
            except Exception as error:  # whatever the compiler has against this machine, NumPy does without
                self.why_not = f"{type(error).__name__}: {error}"
                _log.info("loops are not compiled (%s): NumPy does the work.", self.why_not)


_loader = _Loader()


def kernels(numbers: int) -> ModuleType | None:
    """The kernels, if they are loaded; ``numbers``: how many are to be worked on, which counts towards loading them."""
    if _loader.kernels is None and _loader.why_not is None:
        _loader.count(numbers)
    return _loader.kernels


def load() -> str | None:
    """Loads the kernels now; returns why that cannot be, or None."""
    _loader.load()
    return _loader.why_not
