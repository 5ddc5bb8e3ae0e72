"""Progress for long work, as a function to call with what was done; silent unless someone is watching."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Reporter:
    """Says nothing. The command's reporter draws bars; a library user may pass one of their own."""

    @contextmanager
    def stage(self, title: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
        """A piece of work of `total` steps; yields a function to call with the number of steps just done."""
        yield lambda done: None

    def say(self, message: str) -> None:
        """A line that a person should see."""


class Stopwatch(Reporter):
    """Hands everything on to another reporter, and adds up the processor seconds of each stage."""

    def __init__(self, reporter: Reporter) -> None:
        self.reporter = reporter
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, title: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
        start = time.process_time()
        try:
            with self.reporter.stage(title, total) as progress:
                yield progress
        finally:
            self.seconds[title] = self.seconds.get(title, 0.0) + time.process_time() - start

    def say(self, message: str) -> None:
        self.reporter.say(message)


class BarReporter(Reporter):
    """Bars and lines on standard error, so that standard output stays for results."""

    def __init__(self) -> None:
        from rich.console import Console

        self.console = Console(stderr=True)

    @contextmanager
    def stage(self, title: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
        from rich import progress as bars

        columns = (
            bars.TextColumn("{task.description:<24}"),
            bars.BarColumn(),
            bars.MofNCompleteColumn(),
            bars.TimeElapsedColumn(),
            bars.TimeRemainingColumn(),
        )
        with bars.Progress(*columns, console=self.console, transient=not self.console.is_terminal) as bar:
            task = bar.add_task(title, total=total)
            yield lambda done: bar.advance(task, done)

    def say(self, message: str) -> None:
        self.console.print(message, highlight=False, markup=False, soft_wrap=True)
