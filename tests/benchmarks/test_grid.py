"""Promises of the grid: nothing is measured twice, nothing that fails or is killed takes the rest with it."""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path

import pytest

import newfound as nf
from newfound.benchmarks import cells, grid
from newfound.benchmarks.cells import Cell, Variant
from newfound.benchmarks.grid import describe, run_grid
from newfound.benchmarks.store import Store, read_lines
from newfound.errors import DataError, NewfoundError, SettingsError, WeightsError
from newfound.progress import Reporter
from newfound.weights import from_hub

pytestmark = pytest.mark.usefixtures("one_thread")
FROZEN = Variant("frozen", settings={"threshold": 0.5})
LONG = Variant("baseline", "paper", {"epochs": 100_000, "batch_size": 16, "views": 2})


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def measured(monkeypatch) -> list[Cell]:
    """Cells are not trained but noted, for tests of who is measured when."""
    noted: list[Cell] = []

    def measure(cell: Cell, keep: Path | None = None) -> dict:
        noted.append(cell)
        return cell.identity | {"key": cell.key}

    monkeypatch.setattr(Cell, "measure", measure)
    return noted


class Telling(Reporter):
    """Notes all that is said, and each step of progress."""

    def __init__(self, on_step=lambda: None) -> None:
        self.told: list[str] = []
        self.on_step = on_step

    @contextmanager
    def stage(self, title, total=None):
        def step(done: int) -> None:
            assert done == 1
            self.told.append("a step")
            self.on_step()

        self.told.append(f"{title}: {total}")
        yield step

    def say(self, message: str) -> None:
        self.told.append(message)


def order(store: Store) -> list[str]:
    """Keys as they were added, with every repetition."""
    return [result["key"] for result in read_lines(store.path)]


def scores(outcome) -> dict[str, list]:
    return {key: result["scores"] for key, result in outcome.results.items()}


def test_each_missing_cell_is_measured_once_and_in_the_order_given(bench, store, monkeypatch):
    first, second = Cell(FROZEN, 5, bench), Cell(Variant("frozen", settings={"threshold": 0.9}), 0, bench)
    again = Cell(Variant("frozen", settings={"threshold": 0.5, "centre": True}), 5, bench)  # the preset's own value
    outcome = run_grid([first, second, again], store)
    assert outcome.failed == {}
    assert list(outcome.results) == order(store) == [first.key, second.key]
    assert outcome.results == store.results()
    monkeypatch.setattr(Cell, "measure", lambda *a: pytest.fail("measured again"))
    later = run_grid([second, first], store)
    assert (list(later.results), later.results) == ([second.key, first.key], outcome.results)


def test_only_the_cells_that_were_asked_for_come_out(bench, store, measured):
    one, other = Cell(FROZEN, 0, bench), Cell(FROZEN, 1, bench)
    run_grid([one], store)
    assert list(run_grid([other], store).results) == [other.key]


def test_an_interrupted_grid_goes_on_with_the_rest(bench, store, monkeypatch):
    todo, calls, fit = [Cell(FROZEN, seed, bench) for seed in range(3)], [], cells.fit

    def interrupted(*arguments, seed, **options):
        calls.append(seed)
        if calls == [0, 1]:
            raise KeyboardInterrupt
        return fit(*arguments, seed=seed, **options)

    monkeypatch.setattr(cells, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_grid(todo, store)
    assert order(store) == [todo[0].key]
    assert list(run_grid(todo, store).results) == order(store) == [cell.key for cell in todo]
    assert calls == [0, 1, 1, 2]


def test_a_training_that_fails_is_told_and_does_not_stop_the_others(bench, store):
    hopeless = {"epochs": 3, "warmup_epochs": 0, "batch_size": 16, "views": 2, "lr": 1e30}
    bad, good, reporter = Cell(Variant("baseline", "paper", hopeless), 0, bench), Cell(FROZEN, 0, bench), Telling()
    outcome = run_grid([bad, good], store, reporter=reporter)
    assert list(outcome.results) == order(store) == [good.key]
    assert list(outcome.failed) == [bad.key]
    assert "diverged" in outcome.failed[bad.key]
    assert f"{describe(bad)}: {outcome.failed[bad.key]}" in reporter.told
    assert reporter.told.count("a step") == 2


def test_a_variant_without_weights_is_tried_once_and_the_others_of_its_method_too(bench, store, measured, monkeypatch):
    without, other = (Variant("ltc", settings={"creator": creator}) for creator in ("mixup", "cutmix"))
    todo = [Cell(variant, seed, bench) for variant in (without, other) for seed in (0, 1)]
    measure, tried = Cell.measure, []

    def lacking(cell: Cell, keep=None) -> dict:
        tried.append(cell)
        if cell.variant == without:
            raise WeightsError("there are no weights here")
        return measure(cell, keep)

    monkeypatch.setattr(Cell, "measure", lacking)
    reporter = Telling()
    outcome = run_grid(todo, store, reporter=reporter)
    assert tried == [todo[0], *todo[2:]]
    assert outcome.failed == dict.fromkeys([todo[0].key, todo[1].key], "there are no weights here")
    assert list(outcome.results) == [todo[2].key, todo[3].key]
    assert sum("no weights here" in line for line in reporter.told) == 1
    assert reporter.told.count("a step") == 4


def test_a_backbone_without_weights_is_tried_once_for_all_lines_of_a_table(bench, store, monkeypatch):
    away = dataclasses.replace(bench, weights=None)
    variants = [FROZEN, Variant("ltc"), Variant("smile")]
    todo, tried = [Cell(variant, seed, away) for variant in variants for seed in (0, 1)], []

    def unreachable(pretrained: bool) -> None:
        tried.append(pretrained)
        raise OSError("no hub here")

    monkeypatch.setattr(Cell, "measure", lambda cell, keep=None: from_hub(unreachable, cell.setup.backbone))
    outcome = run_grid(todo, store)
    assert tried == [True]
    assert list(outcome.failed) == [cell.key for cell in todo]
    assert len(set(outcome.failed.values())) == 1
    assert "the pretrained weights of test_efficientnet cannot be had here (OSError)" in outcome.failed[todo[-1].key]


def test_how_many_cells_and_how_long_is_said_before_the_first_starts(bench, store, measured):
    done, *todo = (Cell(FROZEN, seed, bench) for seed in range(3))
    run_grid([done], store)
    reporter = Telling()
    run_grid([done, *todo], store, reporter=reporter)
    assert reporter.told == [
        "2 of 3 cells to measure: about a minute in 1 job", "cells: 2",
        "cifar10, test_efficientnet: frozen, default, threshold=0.5, seed 1 (1 of 2, about a minute left)", "a step",
        "cifar10, test_efficientnet: frozen, default, threshold=0.5, seed 2 (2 of 2, about a minute left)", "a step",
    ]  # fmt: skip
    finished = Telling()
    run_grid([done, *todo], store, reporter=finished)
    assert finished.told == []


def test_cells_of_several_jobs_are_counted_one_by_one(bench, store, measured, monkeypatch):
    def in_pairs(cells, measure, jobs):
        while pair := list(islice(cells, jobs)):
            yield from ((cell, partial(measure, cell)) for cell in pair)

    monkeypatch.setattr(grid, "_in_processes", in_pairs)
    reporter = Telling()
    run_grid([Cell(FROZEN, seed, bench) for seed in range(5)], store, jobs=2, reporter=reporter)
    said = [line.partition(" (")[2][:6] for line in reporter.told if " (" in line]
    assert said == ["1 of 5", "2 of 5", "3 of 5", "4 of 5", "5 of 5"]


def test_there_are_never_more_jobs_than_cells(bench, store, measured):
    reporter = Telling()
    run_grid([Cell(FROZEN, 0, bench)], store, jobs=4, reporter=reporter)
    assert reporter.told[0] == "1 of 1 cells to measure: about a minute in 1 job"


def test_runs_are_kept_under_the_key_of_their_training(bench, store, tmp_path):
    cell = Cell(FROZEN, 0, bench)
    outcome = run_grid([cell], store, keep=tmp_path / "runs")
    kept = nf.load(tmp_path / "runs" / cell.training)
    assert kept.threshold == 0.5 == outcome.results[cell.key]["threshold"]["value"]


def test_wrong_requests_are_refused_before_anything_is_measured(bench, store, measured, tmp_path):
    good = Cell(FROZEN, 0, bench)
    with pytest.raises(SettingsError, match="jobs=0"):
        run_grid([good], store, jobs=0)
    with pytest.raises(SettingsError, match="telepathy"):
        run_grid([good, Cell(Variant("telepathy"), 0, bench)], store)
    with pytest.raises(DataError, match="37 classes"):
        run_grid([good, Cell(FROZEN, 0, dataclasses.replace(bench, protocol="pets"))], store)
    with pytest.raises(WeightsError, match=r"gone\.pth"):
        run_grid([good, Cell(FROZEN, 0, dataclasses.replace(bench, weights=str(tmp_path / "gone.pth")))], store)
    assert measured == []


def test_a_store_that_can_no_longer_be_written_stops_the_grid(bench, store, measured):
    def break_it() -> None:
        shutil.rmtree(store.folder)
        store.folder.write_text("not a folder")

    with pytest.raises(DataError, match="cannot be written"):
        run_grid([Cell(FROZEN, seed, bench) for seed in range(4)], store, reporter=Telling(break_it))
    assert [cell.seed for cell in measured] == [0], "what could not be kept is not computed"


HOLD = """
import sys
from newfound.benchmarks.store import Store
folder, key, leave = sys.argv[1:]
store = Store(folder)
with store.claim(key) as mine:
    print(mine, flush=True)
    sys.stdin.readline()
    if leave == "result":
        store.add({"key": key, "from": "another process"})
"""


@pytest.mark.parametrize("leave", ["result", "nothing"])
def test_a_cell_that_another_process_is_at_comes_last_and_is_waited_for(bench, store, measured, leave):
    todo, pipe = [Cell(FROZEN, seed, bench) for seed in range(3)], subprocess.PIPE
    command = [sys.executable, "-c", HOLD, str(store.folder), todo[0].key, leave]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as other:
        assert other.stdout.readline() == "True\n"

        def let_go_at_the_end() -> None:
            if len(measured) == 2 and not other.stdin.closed:
                other.stdin.close()

        outcome = run_grid(todo, store, reporter=Telling(let_go_at_the_end))
    assert order(store) == [todo[1].key, todo[2].key, todo[0].key]
    assert list(outcome.results) == [cell.key for cell in todo]
    assert [cell.seed for cell in measured] == ([1, 2] if leave == "result" else [1, 2, 0])


# With real processes, each of which takes seconds to import PyTorch


@pytest.mark.slow
def test_two_jobs_give_the_scores_of_one(bench, tmp_path):
    quick = Variant("rankstat", settings={"epochs": 1, "batch_size": 16, "views": 2})
    nowhere = Variant("diffgre-smile", settings={"pipeline": str(tmp_path / "nowhere"), "epochs": 1})
    todo = [Cell(nowhere, seed, bench) for seed in range(3)]
    todo += [Cell(variant, seed, bench) for variant in (FROZEN, quick) for seed in range(2)]
    reporter = Telling()
    together = run_grid(todo, Store(tmp_path / "together"), jobs=2, reporter=reporter)
    alone = run_grid(todo, Store(tmp_path / "alone"))
    assert scores(together) == scores(alone)
    assert set(together.results) == {cell.key for cell in todo[3:]}
    assert together.failed == alone.failed
    assert set(together.failed) == {cell.key for cell in todo[:3]}
    tried = [cell for cell in todo[:3] if describe(cell) in reporter.told]
    assert len(tried) < 3, "not after the first was told to have no weights"
    assert reporter.told.count("a step") == len(todo)


@pytest.mark.slow
def test_a_killed_worker_is_told_and_what_was_measured_stays(bench, store):
    def kill() -> None:
        for child in multiprocessing.active_children():
            os.kill(child.pid, signal.SIGKILL)

    todo = [Cell(FROZEN, 0, bench), *(Cell(LONG, seed, bench) for seed in range(2))]
    with pytest.raises(NewfoundError, match=r"killed.*What was measured is kept.*fewer --jobs"):
        run_grid(todo, store, jobs=2, reporter=Telling(kill))
    assert order(store) == [todo[0].key]
    with store.claim(todo[1].key) as mine:
        assert mine


GRID = """
import multiprocessing, sys
from contextlib import contextmanager
import torch
from newfound.benchmarks.cells import Cell, Setup, Variant
from newfound.benchmarks.grid import run_grid
from newfound.benchmarks.store import Store
from newfound.progress import Reporter

class Workers(Reporter):
    @contextmanager
    def stage(self, title, total=None):
        yield lambda done: print(*[child.pid for child in multiprocessing.active_children()], flush=True)

if __name__ == "__main__":
    torch.set_num_threads(1)
    folder, data, weights, jobs = sys.argv[1:]
    setup = Setup("cifar10", data, "test_efficientnet", orders=2, weights=weights, check=False)
    todo = [Cell(Variant("frozen", settings={"threshold": 0.5}), seed, setup) for seed in range(4)]
    if int(jobs) > 1:
        long = {"epochs": 100_000, "batch_size": 16, "views": 2}
        todo = [todo[0], Cell(Variant("baseline", "paper", long), 0, setup)]
    measure, measured = Cell.measure, []
    Cell.measure = lambda cell, keep: measured.append(cell) or measure(cell, keep)
    print("ready", flush=True)
    sys.stdin.readline()
    outcome = run_grid(todo, Store(folder), jobs=int(jobs), reporter=Workers() if int(jobs) > 1 else None)
    print(len(measured), len(outcome.results), flush=True)
"""


@pytest.fixture
def start_grid(bench, store, tmp_path):
    """start_grid(jobs): another process that is about to run a grid on the store, after all its imports."""
    (tmp_path / "grid.py").write_text(GRID)
    started: list[subprocess.Popen] = []

    def start(jobs: int = 1) -> subprocess.Popen:
        arguments = [str(tmp_path / "grid.py"), str(store.folder), bench.data, bench.weights, str(jobs)]
        pipe = subprocess.PIPE
        started.append(subprocess.Popen([sys.executable, *arguments], stdin=pipe, stdout=pipe, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def go(process: subprocess.Popen) -> None:
    assert process.stdout.readline() == "ready\n"
    process.stdin.write("go\n")
    process.stdin.flush()


@pytest.mark.slow
def test_two_processes_that_share_a_store_measure_each_cell_once(bench, store, start_grid):
    both = [start_grid(), start_grid()]
    for process in both:
        go(process)
    said = [process.stdout.readline().split() for process in both]
    assert [results for _, results in said] == ["4", "4"], "each has all of them"
    assert sum(int(measured) for measured, _ in said) == 4
    assert sorted(order(store)) == sorted(Cell(FROZEN, seed, bench).key for seed in range(4))


@pytest.mark.slow
def test_a_grid_that_is_killed_takes_its_workers_with_it(bench, store, start_grid):
    process = start_grid(jobs=2)
    go(process)
    workers = [int(pid) for pid in process.stdout.readline().split()]
    assert len(workers) == 2
    process.kill()
    process.wait()
    try:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            with store.claim(Cell(LONG, 0, bench).key) as mine:
                if mine:
                    return
            time.sleep(0.1)
        pytest.fail("a worker goes on with a training of days")
    finally:
        for worker in workers:
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
