"""A process of its own that says line by line what was acknowledged, to be killed in the middle of its work."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path


class Mortal:
    """A script beside this file, run with arguments.

    Attributes:
        told: its lines so far. One that the kill cuts off was heard by nobody and is not among them.
    """

    def __init__(self, script: str, *arguments: object) -> None:
        command = [sys.executable, str(Path(__file__).with_name(script)), *map(str, arguments)]
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  (a pipe that nobody reads would fill)
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self._errors, text=True)
        self.told: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self._process.stdout:
            if line.endswith("\n"):
                self.told.append(line)

    def wait_until(self, enough: Callable[[list[str]], bool], seconds: float = 300) -> None:
        """Wait for what it says; asked of each time there is more. Fails if it ends before that."""
        until, asked = time.monotonic() + seconds, 0
        while len(self.told) == asked or not enough(self.told[: (asked := len(self.told))]):
            if self._process.poll() is not None:
                self._reader.join()
                assert enough(self.told), f"it ended: {self._said_of_itself()}"
                return
            assert time.monotonic() < until, f"it has only said {self.told[-3:]}"
            time.sleep(0.01)

    def kill(self) -> bool:
        """Kill it; returns whether it was still at work."""
        at_work = self._process.poll() is None
        self._process.kill()
        self._ended(30)
        return at_work

    def finish(self, seconds: float = 300) -> list[str]:
        """Let it do all its work; returns all it said."""
        self._ended(seconds)
        assert self._process.returncode == 0, self._said_of_itself()
        return self.told

    def _ended(self, seconds: float) -> None:
        self._process.wait(seconds)
        self._reader.join()
        self._process.stdout.close()

    def _said_of_itself(self) -> str:
        self._errors.seek(0)
        return self._errors.read()
