"""How many images a second the service takes in from many clients, against its parts alone; and how long one waits."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from newfound.backbone import DEFAULT
from newfound.benchmarks._timing import SpeedRow, quantiles, spread, timed
from newfound.benchmarks._timing import percentiles as percentiles
from newfound.benchmarks.service_clients import Sent
from newfound.errors import SettingsError

if TYPE_CHECKING:
    from newfound.run import Run

CLIENTS = 64
_BATCH = 64  # images that the parts are given at once: the service's own full batch
_ALONE = 20  # requests of a client that has the service to itself


@dataclass(frozen=True)
class Parts:
    """Seconds that each part of the service takes for the same images when nothing else runs."""

    images: int
    decoding: float
    encoding: float
    entering: float
    cores_had: float  # of those the encoder wanted, the share that it got

    @property
    def rate(self) -> float:
        """Images a second if nothing is lost between the parts: all want the same cores."""
        return self.images / (self.decoding + self.encoding + self.entering)


@dataclass(frozen=True)
class Round:
    """The parts alone, then all clients at once."""

    parts: Parts
    sent: Sent

    @property
    def rate(self) -> float:
        return len(self.sent.latencies) / self.sent.seconds

    @property
    def ratio(self) -> float:
        return self.rate / self.parts.rate

    @property
    def clients_share(self) -> float:
        """The share of all cores that the clients themselves took."""
        return self.sent.processor / (self.sent.seconds * (os.cpu_count() or 1))

    @property
    def corrected(self) -> float:
        """The ratio to what the parts allow on the cores that the clients left."""
        return self.ratio / (1 - min(self.clients_share, 0.99))


@dataclass
class Measured:
    """Everything that a run of the benchmark has found."""

    backbone: str
    clients: int
    rounds: list[Round] = field(default_factory=list)
    alone: list[float] = field(default_factory=list)  # seconds of requests that had the service to themselves

    def middle(self, name: str) -> float:
        """The median of an attribute of the rounds."""
        return statistics.median(getattr(one, name) for one in self.rounds)

    @property
    def loaded(self) -> list[float]:
        """Seconds of all requests of all clients."""
        return [seconds for one in self.rounds for seconds in one.sent.latencies]

    @property
    def refused(self) -> int:
        return sum(len(one.sent.refused) for one in self.rounds)

    def as_dict(self) -> dict[str, Any]:
        """Everything but the single requests, for machines."""
        told = ("rate", "ratio", "clients_share", "corrected")
        rounds = [asdict(one.parts) | {name: getattr(one, name) for name in told} for one in self.rounds]
        return {
            "backbone": self.backbone, "clients": self.clients, "rounds": rounds, "refused": self.refused,
            "loaded": quantiles(self.loaded), "alone": quantiles(self.alone),
        }  # fmt: skip


def serving(images: int = 256, *, clients: int = CLIENTS, repeats: int = 3, backbone: str = DEFAULT) -> SpeedRow:
    """Many clients of a real server that post JPEGs, against decoder, encoder and journal, each alone.

    Raises SettingsError if the service cannot be started here.
    """
    found = measure(images, clients=clients, repeats=repeats, backbone=backbone)
    parts = [one.parts for one in found.rounds]
    had = statistics.median(one.cores_had for one in parts)
    return SpeedRow(
        "serve", found.middle("rate"), statistics.median(one.rate for one in parts), "images/s",
        *spread([one.ratio for one in found.rounds]), "at least 0.85 of what the parts allow",
        f"{clients} clients on loopback post {images} JPEG files, {backbone} with random weights, {repeats} rounds in "
        f"turn with the parts; the clients took {100 * found.middle('clients_share'):.0f} % of {os.cpu_count()} cores, "
        f"of what the parts allow on the rest it is {found.middle('corrected'):.2f}; p50 / p99 of a request "
        f"{percentiles(found.loaded)} ms under load, {percentiles(found.alone)} ms alone; {found.refused} refused; the "
        f"encoder alone had {100 * had:.0f} % of its cores: far below 100 % the machine is busy and the ratio says "
        "nothing",
    )  # fmt: skip


def measure(images: int = 256, *, clients: int = CLIENTS, repeats: int = 3, backbone: str = DEFAULT) -> Measured:
    """Rounds of the parts alone and of all clients at once, and one client by itself."""
    from newfound.benchmarks.pipeline_speed import photo
    from newfound.benchmarks.startup_speed import write_run
    from newfound.loading import load

    found = Measured(backbone, clients)
    with tempfile.TemporaryDirectory() as kept:
        folder = Path(kept)
        write_run(folder / "run", backbone)
        photos = [photo(folder / f"{number:05d}.jpg", number) for number in range(images)]
        run = load(folder / "run")
        with server(folder / "run") as address, sender(address, photos) as send:
            send(clients, clients)  # warms up
            for turn in range(repeats + 1):
                parts = alone(run, photos, folder)
                if turn:  # the first warms up
                    found.rounds.append(Round(parts, send(clients, images)))
            found.alone = send(1, _ALONE).latencies
    return found


def alone(run: Run, photos: list[Path], folder: Path) -> Parts:
    """The decoder, the encoder and the journal of a run, one after the other."""
    import torch

    from newfound.images import open_image
    from newfound.journal.answers import Image

    encoder: Any = run.encoder
    starts = range(0, len(photos), _BATCH)
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        pixels, decoding = timed(lambda: list(pool.map(lambda p: encoder.views.centre(open_image(p)), photos)))
    with torch.inference_mode():
        busy = time.process_time()
        features, encoding = timed(
            lambda: [encoder.backbone(torch.stack(pixels[at : at + _BATCH])).numpy() for at in starts]
        )
        busy = time.process_time() - busy
    unit = [block / np.linalg.norm(block, axis=1, keepdims=True) for block in features]
    images = [Image(str(path), number.to_bytes(16, "big")) for number, path in enumerate(photos)]
    with tempfile.TemporaryDirectory(dir=folder) as kept:
        discoverer = run.discoverer(Path(kept) / "journal.db")

        def enter() -> None:
            for at, block in zip(starts, unit, strict=True):
                discoverer.keeper.enter(images[at : at + _BATCH], block)

        entering = timed(enter)[1]
        discoverer.close()
    return Parts(len(photos), decoding, encoding, entering, busy / (encoding * torch.get_num_threads()))


@contextmanager
def server(run: Path) -> Iterator[tuple[str, int]]:
    """`newfound serve` as a process of its own; its address. Raises SettingsError if it does not start."""
    import torch

    command = ["--threads", str(torch.get_num_threads()), "serve", str(run), "--port", "0"]
    process = subprocess.Popen([sys.executable, "-m", "newfound", *command], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        told = ""
        for line in process.stderr:
            told += line
            if " at http://" in line:
                break
        else:
            raise SettingsError(f"the service does not start: {told.strip()}")
        host, _, port = line.split(" at http://")[1].split()[0].rpartition(":")
        yield host, int(port)
    finally:
        process.terminate()
        process.communicate()


@contextmanager
def sender(address: tuple[str, int], photos: list[Path]) -> Iterator[Any]:
    """send(clients, images): has a process of clients post images, and gives what it has Sent."""
    host, port = address
    command = [sys.executable, "-m", "newfound.benchmarks.service_clients", host, str(port), *map(str, photos)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        asked, told = process.stdin, process.stdout  # the end of its input ends it
        told.readline()  # ready

        def send(clients: int, images: int) -> Sent:
            asked.write(f"{clients} {images}\n")
            asked.flush()
            line = told.readline()
            if not line:
                raise RuntimeError("the clients have failed; their message is above.")
            return Sent(**json.loads(line))

        yield send
