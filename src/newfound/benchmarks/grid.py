"""Run the cells of a table or figure that the store does not have yet: resumable, in one process or several."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

import torch

from newfound.benchmarks.cells import Cell
from newfound.benchmarks.cost import Estimate
from newfound.benchmarks.store import Result, Store
from newfound.errors import NewfoundError, SettingsError, WeightsError
from newfound.progress import Reporter


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
        SettingsError: fewer than one job.
        DataError: the data cannot be had, or the store cannot be written.
    """
    if jobs < 1:
        raise SettingsError(f"jobs={jobs}: give 1 or more.")
    reporter, folder = reporter or Reporter(), Path(keep) if keep else None
    wanted = {cell.key: cell for cell in cells}
    there = store.results()
    todo = [cell for key, cell in wanted.items() if key not in there]
    failed: dict[str, str] = {}
    if todo:
        estimate = Estimate(there.values())
        reporter.say(estimate.describe(todo, len(wanted), jobs))
        run = _in_turn if jobs == 1 else _in_processes
        with reporter.stage("cells", len(todo)) as progress:
            failed = run(todo, store, folder, min(jobs, len(todo)), reporter, progress)
        there = store.results()
    return Outcome({key: there[key] for key in wanted if key in there}, failed)


def _in_turn(
    todo: Sequence[Cell], store: Store, keep: Path | None, jobs: int, reporter: Reporter, progress: Callable
) -> dict[str, str]:
    failed: dict[str, str] = {}
    without_weights: dict[str, str] = {}
    elsewhere: list[Cell] = []  # being measured by another process
    for cell in todo:
        name = describe(cell)
        if cell.variant.method in without_weights:
            failed[cell.key] = without_weights[cell.variant.method]
        else:
            reporter.say(name)
            try:
                if not _measure(cell, store, keep, wait=False):
                    elsewhere.append(cell)
                    continue
            except NewfoundError as error:
                failed[cell.key] = str(error)
                reporter.say(f"{name}: {error}")
                if isinstance(error, WeightsError):
                    without_weights[cell.variant.method] = str(error)
        progress(1)
    for cell in elsewhere:
        reporter.say(f"{describe(cell)}: waiting for another process")
        try:
            _measure(cell, store, keep, wait=True)
        except NewfoundError as error:
            failed[cell.key] = str(error)
        progress(1)
    return failed


def _in_processes(
    todo: Sequence[Cell], store: Store, keep: Path | None, jobs: int, reporter: Reporter, progress: Callable
) -> dict[str, str]:
    failed: dict[str, str] = {}
    threads = max(1, torch.get_num_threads() // jobs)
    spawn = multiprocessing.get_context("spawn")  # a fork would share PyTorch's threads with its parent
    pool = ProcessPoolExecutor(jobs, mp_context=spawn, initializer=torch.set_num_threads, initargs=(threads,))
    try:
        waiting = {pool.submit(_measure, cell, store, keep, wait=True): cell for cell in todo}
        for done in as_completed(waiting):
            cell = waiting[done]
            try:
                done.result()
                reporter.say(describe(cell))
            except NewfoundError as error:
                failed[cell.key] = str(error)
                reporter.say(f"{describe(cell)}: {error}")
            except BrokenProcessPool as error:
                raise NewfoundError(
                    "a process of this bench was killed, perhaps for want of memory. What was measured is kept: give "
                    "the command again, with fewer --jobs."
                ) from error
            progress(1)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    return failed


def _measure(cell: Cell, store: Store, keep: Path | None, wait: bool) -> bool:
    """Whether the cell has a result now: not if another process is at it and this one shall not wait."""
    with store.claim(cell.key, wait=wait) as mine:
        if mine and cell.key not in store.results():
            store.add(cell.measure(keep))
        return mine


def describe(cell: Cell) -> str:
    """A cell in a few words, for progress."""
    v = cell.variant
    settings = "".join(f", {name}={value}" for name, value in cell.settings.items())
    return f"{cell.setup.protocol}: {v.method}, {v.preset}{settings}, seed {cell.seed}"
