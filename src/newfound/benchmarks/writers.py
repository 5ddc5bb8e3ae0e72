"""Writers of one journal, a process each, that encode images and enter them: python -m newfound.benchmarks.writers.

A writer reads orders from standard input, a JSON object a line, and answers each with a line: how long every block took
to encode and to enter. So several can be started once and set to work together as often as wanted.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

BACKBONE, PIXELS, BLOCK = "tf_efficientnet_lite0", 64, 64
_THREADS = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}


@dataclass(frozen=True)
class Round:
    """What some writers did at the same time.

    Attributes:
        images: by all of them.
        seconds: until the last was done.
        encode, enter: seconds of every block.
    """

    images: int
    seconds: float
    encode: list[float]
    enter: list[float]

    @property
    def rate(self) -> float:
        """Images a second."""
        return self.images / self.seconds


class Writers:
    """Processes that are ready to write; :func:`started` makes them."""

    def __init__(self, processes: Sequence[subprocess.Popen[str]]) -> None:
        self._processes = processes

    def work(self, count: int, blocks: int, *, enter: bool = True) -> Round:
        """So many of the writers encode so many blocks each, at once, and enter them unless told not to."""
        self._ask({"catch_up": True}, self._processes)  # nobody starts with old work to do
        some = self._processes[:count]
        start = time.perf_counter()
        told = self._ask({"blocks": blocks, "enter": enter}, some)
        seconds = time.perf_counter() - start
        laps = {name: [lap for one in told for lap in one[name]] for name in ("encode", "enter")}
        return Round(count * blocks * BLOCK, seconds, **laps)

    def _ask(self, order: dict[str, Any], some: Sequence[subprocess.Popen[str]]) -> list[dict[str, Any]]:
        for process in some:
            assert process.stdin is not None
            process.stdin.write(json.dumps(order) + "\n")
            process.stdin.flush()
        return [json.loads(_line(process)) for process in some]


@contextmanager
def started(journal: str, count: int, *, backbone: str = BACKBONE) -> Iterator[Writers]:
    """So many writers of a journal that has begun, ready to work, each on one thread.

    Raises RuntimeError if one of them fails.
    """
    environment = os.environ | _THREADS
    commands = [[sys.executable, "-m", __name__, journal, str(number), backbone] for number in range(count)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": environment}
    processes = [subprocess.Popen(command, **pipes) for command in commands]
    try:
        for process in processes:
            _line(process)
        yield Writers(processes)
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"a writer ended with exit code {process.wait()}; its message is above.")
    return line


def make_encoder(backbone: str = BACKBONE, pixels: int = PIXELS) -> Any:
    """A real encoder with random weights: what it costs does not depend on what it has learnt."""
    from newfound.backbone import create
    from newfound.features import Encoder
    from newfound.views import Views

    model = create(backbone, weights="random", image_size=pixels)
    return Encoder(model, Views(model.spec), batch=BLOCK)


def main(where: str, number: int, backbone: str) -> None:
    """Follow orders until standard input ends."""
    import torch

    from newfound.journal import Journal
    from newfound.journal.answers import Image
    from newfound.journal.keeper import Keeper

    torch.set_num_threads(1)
    encoder, rng = make_encoder(backbone), np.random.default_rng(number)
    pictures = list(rng.integers(0, 256, (BLOCK, PIXELS, PIXELS, 3), dtype=np.uint8))
    encoder.features(pictures)  # the first time is slower
    keeper = Keeper(Journal.open(where, wait=120))
    print("ready", flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        laps: dict[str, list[float]] = {"encode": [], "enter": []}
        if order.get("catch_up"):
            _ = keeper.book
        for _ in range(order.get("blocks", 0)):
            start = time.perf_counter()
            features = encoder.features(pictures)
            encoded = time.perf_counter()
            if order["enter"]:
                keeper.enter([Image(f"{number}.jpg", rng.bytes(16)) for _ in pictures], features)
            laps["encode"].append(encoded - start)
            laps["enter"].append(time.perf_counter() - encoded)
        print(json.dumps(laps), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
