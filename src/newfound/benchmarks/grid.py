"""Run the cells of a table or figure that the store does not have yet: resumable, in one process or several."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

import torch

from newfound.benchmarks.cells import Cell, Setup
from newfound.benchmarks.cost import Estimate
from newfound.benchmarks.store import Result, Store
from newfound.benchmarks.studies import Variant
from newfound.errors import NewfoundError, NoBackboneError, SettingsError, WeightsError
from newfound.progress import Reporter

Measured = bool | NewfoundError  # of a cell: whether it has a result now (another process may be at it), or why not
Attempts = Generator[tuple[Cell, Callable[[], Measured]], None, None]  # each cell, and how to learn what came of it


@dataclass(frozen=True)
class Outcome:
    """The results of the cells that have one, and why the others have none, both by the cell's key."""

    results: dict[str, Result]
    failed: dict[str, str]


def run_grid(
    cells: Iterable[Cell],
    store: Store,
    *,
    jobs: int = 1,
    keep: str | os.PathLike | None = None,
    reporter: Reporter | None = None,
) -> Outcome:
    """Measure each cell that has no result yet, once, in the order given.

    A cell that cannot be measured, for want of weights or because its training diverged, does not stop the others.

    Args:
        jobs: processes; each takes an equal share of the threads that PyTorch has here.
        keep: a folder for trained runs, so that they can be scored again or looked at.

    Raises:
        SettingsError: fewer than one job, or a method, preset or setting that does not exist.
        DataError: the data cannot be had, or the store cannot be written.
        WeightsError: the setup names a weight file that is not there.
        NewfoundError: a process of this grid was killed.
    """
    if jobs < 1:
        raise SettingsError(f"jobs={jobs}: give 1 or more.")
    reporter, folder = reporter or Reporter(), Path(keep) if keep else None
    wanted = {cell.key: cell for cell in cells}
    there = store.results()
    todo = [cell for key, cell in wanted.items() if key not in there]
    failed: dict[str, str] = {}
    if todo:
        jobs = min(jobs, len(todo))
        estimate = Estimate(there.values())
        reporter.say(estimate.describe(todo, len(wanted), jobs))
        try:
            with reporter.stage("cells", len(todo)) as progress:
                failed = _measure_all(todo, store, folder, jobs, estimate, reporter, progress)
        except BrokenProcessPool as error:
            raise NewfoundError(
                "a process of this bench was killed, perhaps for want of memory. What was measured is kept: give the "
                "command again, with fewer --jobs."
            ) from error
        there = store.results()
    return Outcome({key: there[key] for key in wanted if key in there}, failed)


def _measure_all(
    todo: list[Cell],
    store: Store,
    keep: Path | None,
    jobs: int,
    estimate: Estimate,
    reporter: Reporter,
    progress: Callable[[int], None],
) -> dict[str, str]:
    """Try every cell; returns why those have no result that have none."""
    failed: dict[str, str] = {}
    left = {cell.key: cell for cell in todo}
    total, under_way = len(left), set[str]()
    without_weights: dict[tuple[Variant | None, Setup], str] = {}  # whatever the seed is; None: and the variant

    def worth_trying(cells: Iterable[Cell]) -> Iterator[Cell]:
        for cell in cells:
            keys = ((cell.variant, cell.setup), (None, cell.setup))
            if reason := next((without_weights[key] for key in keys if key in without_weights), None):
                failed[cell.key] = reason
                del left[cell.key]
                progress(1)
            else:
                under_way.add(cell.key)
                number = total - len(left) + len(under_way)
                about = f"{number} of {total}, {estimate.words(left.values(), jobs)} left"
                reporter.say(f"{describe(cell)} ({about})")
                yield cell

    for patient in (False, True):  # cells that another process is at come last, and are waited for
        measure = partial(_measure, store=store, keep=keep, wait=patient)
        cells, elsewhere = worth_trying(todo), []
        with closing(_in_turn(cells, measure) if jobs == 1 else _in_processes(cells, measure, jobs)) as attempts:
            for cell, measured in attempts:
                outcome = measured()
                under_way.remove(cell.key)
                if outcome is False:
                    reporter.say(f"{describe(cell)}: another process is at it")
                    elsewhere.append(cell)
                    continue
                if isinstance(outcome, NewfoundError):
                    failed[cell.key] = str(outcome)
                    reporter.say(f"{describe(cell)}: {outcome}")
                if isinstance(outcome, WeightsError):
                    variant = None if isinstance(outcome, NoBackboneError) else cell.variant
                    without_weights[variant, cell.setup] = str(outcome)
                del left[cell.key]
                progress(1)
        todo = elsewhere
    return failed


def _in_turn(cells: Iterator[Cell], measure: Callable[[Cell], Measured]) -> Attempts:
    for cell in cells:
        yield cell, partial(measure, cell)


def _in_processes(cells: Iterator[Cell], measure: Callable[[Cell], Measured], jobs: int) -> Attempts:
    threads = max(1, torch.get_num_threads() // jobs)
    spawn = multiprocessing.get_context("spawn")  # a fork would share PyTorch's threads with its parent
    with ProcessPoolExecutor(jobs, mp_context=spawn, initializer=_begin, initargs=(threads,)) as pool:
        running: dict[Future[Measured], Cell] = {}
        while True:
            for cell in islice(cells, jobs - len(running)):
                running[pool.submit(measure, cell)] = cell
            if not running:
                return
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                yield running.pop(done), done.result


def _begin(threads: int) -> None:
    """In a new process: take its share of the threads, and end with the parent, even one that is killed."""
    torch.set_num_threads(threads)
    parent = multiprocessing.parent_process()
    assert parent is not None, "it was spawned"

    def end() -> None:
        parent.join()
        os._exit(1)  # else it would wait for work for ever

    threading.Thread(target=end, daemon=True).start()


def _measure(cell: Cell, store: Store, keep: Path | None, wait: bool) -> Measured:
    """Give the cell a result; False if another process is at it and this one shall not wait.

    Raises DataError if the store cannot be written, which no other cell could be either.
    """
    with store.claim(cell.key, wait=wait) as mine:
        if mine and cell.key not in store.results():
            try:
                result = cell.measure(keep)
            except NewfoundError as error:
                return error
            store.add(result)
        return mine


def describe(cell: Cell) -> str:
    """A cell in a few words, for progress."""
    v, s = cell.variant, cell.setup
    data = s.about["protocol"] + (f" (class seed {s.class_seed})" if s.class_seed is not None else "")
    settings = "".join(f", {name}={value}" for name, value in cell.settings.items())
    size = f" at {s.image_size} pixels" if s.image_size else ""
    return f"{data}, {s.backbone}{size}: {v.method}, {v.preset}{settings}, seed {cell.seed}"
