"""Starting a training on Lightning Fabric, in one process or in several, and ending it when one of them fails.

Processes on one machine are started by running the program again with its place in the environment (LOCAL_RANK), as
Fabric's own launcher does. They are started here and not there so that a process that dies ends the others with a line
that says so; Fabric's launcher would kill them without a word. Under `torchrun`, SLURM and their like the processes are
there already.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import sysconfig
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from newfound.errors import NewfoundError, SettingsError

_TIMEOUT = 1800.0  # seconds; what one process does alone takes far less
_GRACE = 5.0  # seconds for an error to surface by itself after a process has died
_LOOK_EVERY = 0.2
# How lost connections are worded by gloo, NCCL and the store that processes meet at.
_LOST = re.compile(r"gloo|nccl|tcpstore|connection (closed|reset|refused)|broken pipe|timed? ?out", re.IGNORECASE)


def make_fabric(
    accelerator: str = "auto", devices: int | str = 1, num_nodes: int = 1, strategy: str = "auto",
    precision: Any = "32-true",
):  # fmt: skip
    """A Fabric that is not launched yet, for one process a device.

    ``NEWFOUND_TIMEOUT`` is the number of seconds that a process waits for another (1800).

    Raises:
        SettingsError: this machine cannot do that, or newfound cannot.
    """
    import logging

    from lightning_fabric import Fabric
    from lightning_fabric.strategies import DDPStrategy

    logging.getLogger("lightning_fabric").setLevel(logging.ERROR)
    if str(precision).endswith("-true") and precision != "32-true":
        raise SettingsError(f"precision={precision}: weights stay in 32 bits; take 32-true, bf16-mixed or 16-mixed.")
    asked = {"accelerator": accelerator, "devices": devices, "num_nodes": num_nodes, "precision": precision}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            fabric = Fabric(strategy=strategy, **asked)  # type: ignore[arg-type]
            if strategy not in ("auto", "ddp"):
                raise SettingsError(
                    f"strategy={strategy}: take auto or ddp. What learns is small, so that every device holds all of "
                    f"it; and other ways to start processes lose the run when they end."
                )
            if strategy == "ddp" or fabric.world_size > 1:
                ddp = DDPStrategy(timeout=timedelta(seconds=_timeout()))
                fabric = Fabric(strategy=ddp, **asked)  # type: ignore[arg-type]
        except SettingsError:
            raise
        except (ValueError, TypeError, RuntimeError) as error:  # Fabric refuses what is not here, or does not exist
            named = ", ".join(f"{name}={value}" for name, value in {**asked, "strategy": strategy}.items())
            raise SettingsError(f"this machine cannot train with {named}: {error}") from error
    _check_environment(fabric, num_nodes)
    return fabric


def launch(**options: Any):
    """A launched Fabric for one process on one device; options as for `make_fabric`, which says what it raises."""
    fabric = make_fabric(**options)
    if fabric.world_size > 1:
        raise SettingsError(f"this runs in one process on one device, not on {fabric.world_size}.")
    fabric.launch()
    return fabric


@contextmanager
def together(fabric) -> Iterator[None]:
    """Launch the Fabric, with all its processes; an error in one of them is an error in all.

    Raises:
        SettingsError: this program cannot be run again, or was started in another number of processes.
        NewfoundError: a process has ended, or does not answer.
    """
    children, done = _Children(_start_others(fabric)), False
    try:
        try:
            fabric.launch()
        except ValueError as error:  # from the cluster's environment, which was started for other numbers
            raise SettingsError(str(error)) from error
        yield
        fabric.barrier()  # whoever goes on finds the run complete
        done = True
    except RuntimeError as error:
        if fabric.world_size > 1 and not isinstance(error, NewfoundError) and _LOST.search(str(error)):
            raise NewfoundError(children.account()) from error
        raise
    finally:
        children.leave(kill=not done)


def leads() -> bool:
    """Whether this process is the one that speaks and writes: the first, or the only one."""
    import torch

    return not (torch.distributed.is_available() and torch.distributed.is_initialized()) or (
        torch.distributed.get_rank() == 0
    )


class _Children:
    """The processes that this one started. If one fails and nothing happens, a thread ends them all."""

    def __init__(self, processes: list[subprocess.Popen]) -> None:
        self._processes, self._left = processes, threading.Event()
        if processes:
            threading.Thread(target=self._watch, name="newfound-processes", daemon=True).start()

    def _watch(self) -> None:
        while not self._left.wait(_LOOK_EVERY):
            if self._failed() is None:
                continue
            # Waiting for the dead one usually fails by itself, with the chance to unwind. It does not where this
            # process computes on, or hangs in a collective that takes no notice.
            if not self._left.wait(_GRACE):
                print(f"newfound: {self.account()}", file=sys.stderr, flush=True)
                self._kill()
                os._exit(1)

    def _failed(self) -> tuple[int, int] | None:
        """Place and exit code of a process that has failed."""
        codes = ((place, process.poll()) for place, process in enumerate(self._processes, 1))
        return next(((place, code) for place, code in codes if code), None)

    def account(self) -> str:
        """What has happened, for people."""
        deadline = time.monotonic() + 1.0  # a connection may end a moment before its process
        while self._processes and self._failed() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        what = "another process of this training has ended, or has not answered in time"
        if failed := self._failed():
            place, code = failed
            how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"failed with exit code {code}"
            what = f"process {place} of this training {how}"
        return f"{what}. If it left a message, that says why; the same command goes on from the last epoch in its run."

    def leave(self, *, kill: bool) -> None:
        self._left.set()
        if kill:
            self._kill()

    def _kill(self) -> None:
        for process in self._processes:
            if process.poll() is None:
                process.kill()  # a process that waits in a collective takes no notice of less


def _start_others(fabric) -> list[subprocess.Popen]:
    """The processes that are missing on this machine, started."""
    environment = getattr(fabric.strategy, "cluster_environment", None)
    if fabric.world_size == 1 or environment is None or environment.creates_processes_externally:
        return []
    command = _this_program()
    os.environ |= {
        "MASTER_ADDR": environment.main_address,
        "MASTER_PORT": str(environment.main_port),
        "NODE_RANK": str(environment.node_rank()),
        "LOCAL_RANK": "0",  # from here on Fabric takes all processes for started
        "WORLD_SIZE": str(fabric.world_size),
    }
    places = range(1, fabric.strategy.num_processes)
    return [subprocess.Popen(command, env=os.environ | {"LOCAL_RANK": str(place)}) for place in places]


def _this_program() -> list[str]:
    """The command that runs this program again. Raises SettingsError if there is none, or none that should."""
    main = sys.modules["__main__"]
    file, spec = getattr(main, "__file__", None), getattr(main, "__spec__", None)
    name = spec.name if spec else Path(file).stem if file else "a console or notebook"
    if name.partition(".")[0] == "newfound":
        return [sys.executable, "-m", "newfound", *sys.argv[1:]]
    tools = [Path(sysconfig.get_path(kind)).resolve() for kind in ("scripts", "purelib", "platlib", "stdlib")]
    if file is None or any(Path(file).resolve().is_relative_to(folder) for folder in tools):
        raise SettingsError(
            f"several processes are started by running the program again, and {name} is not one to run again: here "
            f"training takes one process (devices=1). Take the command `newfound train --devices N`, a script of your "
            f"own, or torchrun."
        )
    return [sys.executable, *(["-m", spec.name] if spec else [str(Path(file).resolve())]), *sys.argv[1:]]


def _check_environment(fabric, num_nodes: int) -> None:
    """Raise SettingsError if processes would wait for others that never come, or not know of each other."""
    from lightning_fabric.plugins.environments import LightningEnvironment

    started = int(os.environ.get("WORLD_SIZE", fabric.world_size))
    if started != fabric.world_size:
        raise SettingsError(
            f"{started} processes were started (WORLD_SIZE), and {fabric.world_size} are asked for: devices times "
            f"num_nodes (--devices, --num-nodes) must be {started}."
        )
    plain = isinstance(getattr(fabric.strategy, "cluster_environment", None), LightningEnvironment)
    missing = [name for name in ("MASTER_ADDR", "MASTER_PORT", "NODE_RANK") if name not in os.environ]
    if num_nodes > 1 and plain and missing:
        raise SettingsError(
            f"num_nodes={num_nodes}: the machines find each other by {', '.join(missing)}, which the environment does "
            f"not have. Set on each the address of the first, a free port there, and its own number from 0; or start "
            f"by torchrun or SLURM, which do."
        )


def _timeout() -> float:
    text = os.environ.get("NEWFOUND_TIMEOUT", str(_TIMEOUT))
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise SettingsError(f"NEWFOUND_TIMEOUT={text!r} is not a number of seconds.")
    return seconds
