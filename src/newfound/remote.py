"""Features from many machines: Ray actors encode, one process decides and commits.

Decisions need one order and next to no time, features need no order and nearly all of the time. So blocks of images go
to encoders, as many as there are processors, and their features come back in the order of the stream.
"""

from __future__ import annotations

import copy
import os
import socket
import tempfile
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from newfound.datasets import item_name
from newfound.errors import NewfoundError, SettingsError

if TYPE_CHECKING:
    from newfound.features import Block
    from newfound.run import Run

LOCAL = "local"
_DEATHS = 3  # of encoders over the same block, after which the block is to blame
_PATIENCE = 600.0  # seconds to wait for a first encoder: a cluster may have to start machines
_ANSWER = 10.0  # seconds in which a cluster must answer at all
_READERS = 8  # threads of an encoder that read images for their hashes, beside the one that encodes
_STORE = 100_000_000  # bytes of a local Ray's object store, besides two copies of the run
_SPARE = 2  # processors that a local Ray is told of beyond its encoders: it must never wait for one


class RayEncoder:
    """Encodes on Ray actors, and takes the place of a run's `Encoder` in a `Discoverer`.

    The run goes to the encoders whole, backbone included: they need newfound, and to see the images under the same
    paths or URLs. Two blocks an encoder are under way. If an encoder dies, another does its blocks and a new one is
    started: features and their order are the same as if nothing had happened.

    Args:
        run: what encodes.
        address: of a Ray cluster; "auto" for the one of this machine, "local" to start one that ends with this.
            Where this process has joined one already, that is used, and left as it is.
        encoders: how many; None for as many as there are free processors, less two, or in a local one as there are
            processors. The work begins when the first is ready.

    Raises:
        SettingsError: Ray is not installed, or there is no cluster at the address.
        NewfoundError: no encoder can be started.
    """

    def __init__(self, run: Run, address: str = LOCAL, *, encoders: int | None = None) -> None:
        self._ray = _ray()
        self.batch, self.dimension = run.encoder.batch, run.encoder.dimension
        self._ready: dict[int, Any] = {}  # actors by number
        self._starting: dict[Any, tuple[int, Any]] = {}  # the same, by what tells that they are ready
        self._begun = 0
        self._open: list[_Job] = []  # not answered yet
        files = _bundled(run)
        self._joined = not self._ray.is_initialized()
        if self._joined:
            _join(self._ray, address, encoders or os.cpu_count() or 1, sum(map(len, files.values())))
        try:
            self.encoders = encoders or max(1, int(self._ray.available_resources().get("CPU", 1)) - _SPARE)
            self._files = self._ray.put(files)
            for _ in range(self.encoders):
                self._start()
            self._welcome()
        except BaseException:
            self.close()
            raise

    def stream(self, items: Iterable, block: int | None = None) -> Iterator[Block]:
        """Features of a stream, block by block, in order; two blocks an encoder ahead, and none in blocks of one.

        Raises NewfoundError if a block has cost several encoders their lives, and what else went wrong in one as it is.
        """
        size = block or self.batch
        depth = 2 * self.encoders if size > 1 else 1
        rest = iter(items)
        waiting: deque[_Job] = deque()
        try:
            while chunk := list(islice(rest, size)):
                waiting.append(self._submit(_Job("encode", chunk)))
                if len(waiting) == depth:
                    yield self._encoded(waiting.popleft())
            while waiting:
                yield self._encoded(waiting.popleft())
        finally:  # the consumer may stop early
            for job in waiting:
                self._open.remove(job)

    def contents(self, items: Sequence) -> list[bytes | None]:
        """The hashes of images' contents, read by all encoders together; None for one that cannot be read."""
        self._welcome()
        share = max(1, -(-len(items) // len(self._ready)))
        jobs = [
            self._submit(_Job("contents", list(items[start : start + share])), number)
            for start, number in zip(range(0, len(items), share), self._ready, strict=False)
        ]
        return [content for job in jobs for content in self._answer(job)]

    def pids(self) -> list[int]:
        """The process ids of the encoders that are ready, each on its own machine."""
        self._welcome()
        return self._ray.get([actor.pid.remote() for actor in self._ready.values()])

    def close(self) -> None:
        """End the encoders, and leave the cluster, unless this process had joined it before."""
        for actor in [*self._ready.values(), *(actor for _, actor in self._starting.values())]:
            self._ray.kill(actor)
        self._ready, self._starting = {}, {}
        if self._joined:
            self._ray.shutdown()
            self._joined = False

    def __enter__(self) -> RayEncoder:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _start(self) -> None:
        """Start an encoder; it gets work once it is ready."""
        switches = ("NEWFOUND_MAX_PIXELS", "NEWFOUND_MALLOC")
        passed_on = {name: os.environ[name] for name in switches if name in os.environ}
        actor = self._ray.remote(
            num_cpus=1,
            max_restarts=0,  # tasks for an actor that restarts would fail: a new one is started instead
            concurrency_groups={"reading": 1},
            runtime_env={"env_vars": {"OMP_NUM_THREADS": "1", **passed_on}},
        )(_Worker).remote(self._files, os.getcwd())
        self._starting[actor.pid.remote()] = (self._begun, actor)
        self._begun += 1

    def _welcome(self) -> None:
        """Take in the encoders that have become ready; if there is no other, wait for one."""
        failure = "none has been ready for a long time; has the cluster free processors?"
        while self._starting:
            done, _ = self._ray.wait(list(self._starting), timeout=0 if self._ready else _PATIENCE)
            if not done:
                break
            number, actor = self._starting.pop(done[0])
            try:
                self._ray.get(done[0])
                self._ready[number] = actor
            except self._ray.exceptions.RayError as error:
                failure = str(error).strip().rpartition("\n")[2]  # the line below the traceback
        if not self._ready:
            raise NewfoundError(f"no encoder could be started on Ray: {failure}")

    def _submit(self, job: _Job, number: int | None = None) -> _Job:
        """Give a job to an encoder: without a number, to the one with the fewest that are not done."""
        if number is None:
            self._welcome()
            refs = [other.ref for other in self._open if other is not job]
            done = set(self._ray.wait(refs, num_returns=len(refs), timeout=0, fetch_local=False)[0] if refs else ())
            load = Counter(other.number for other in self._open if other is not job and other.ref not in done)
            number = min(self._ready, key=lambda ready: (load[ready], ready))
        job.number = number
        method = getattr(self._ready[number], job.method)
        job.ref = method.options(concurrency_group="reading" if job.method == "contents" else None).remote(job.items)
        if job not in self._open:
            self._open.append(job)
        return job

    def _encoded(self, job: _Job) -> Block:
        return replace(self._answer(job), items=job.items)

    def _answer(self, job: _Job) -> Any:
        errors = self._ray.exceptions
        lost = (errors.RayActorError, errors.ObjectLostError, errors.OutOfMemoryError, errors.NodeDiedError)
        try:
            while True:
                try:
                    return self._ray.get(job.ref)
                except errors.RayTaskError as error:
                    raise error.cause from None
                except lost as error:
                    self._mourn(job, error)
                    self._submit(job)
        finally:
            self._open.remove(job)

    def _mourn(self, job: _Job, error: Exception) -> None:
        """Replace the encoder that died with a job.

        Encoders do jobs in the order of the stream, and answers are asked for in this order too: the first job to
        notice a death is the one that was being done. Those behind it on the same encoder are not to blame.
        """
        actor = self._ready.pop(job.number, None)
        if actor is None:
            return
        self._ray.kill(actor)  # it may only have been out of reach
        self._start()
        job.deaths += 1
        if job.deaths == _DEATHS:
            names = ", ".join(item_name(item, index) for index, item in enumerate(job.items))
            raise NewfoundError(
                f"{_DEATHS} encoders have died over the same images; is there too little memory, or is one of them "
                f"damaged? Give fewer at a time (--block), or leave it out: {names}"
            ) from error


@dataclass(eq=False)
class _Job:
    """Some images that an encoder is asked about."""

    method: str  # of _Worker
    items: list
    number: int = -1  # of the encoder that has it
    ref: Any = field(default=None, repr=False)
    deaths: int = 0


class _Worker:
    """A Ray actor: the run's own encoder on another machine."""

    def __init__(self, files: dict[str, bytes], folder: str) -> None:
        from newfound.loading import load

        with suppress(OSError):  # so that relative paths lead where they do for the one who asks
            os.chdir(folder)
        with tempfile.TemporaryDirectory() as unpacked:
            for name, data in files.items():
                Path(unpacked, name).write_bytes(data)
            self._encoder = load(unpacked).encoder

    def pid(self) -> int:
        return os.getpid()

    def encode(self, items: list) -> Block:
        """The features of a block; the images themselves are not sent back."""
        (block,) = self._encoder.stream(items, len(items))
        return replace(block, items=[])

    def contents(self, items: list) -> list[bytes | None]:
        from concurrent.futures import ThreadPoolExecutor

        from newfound.images import content_of

        with ThreadPoolExecutor(_READERS) as pool:
            return list(pool.map(content_of, items))


def _bundled(run: Run) -> dict[str, bytes]:
    """The files of a run that needs no weights from elsewhere; the run itself stays as it is."""
    bundle = copy.copy(run)
    bundle.config = dict(run.config)
    with tempfile.TemporaryDirectory() as folder:
        bundle.save(folder, bundle=True)
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def _join(ray: ModuleType, address: str, encoders: int, size: int) -> None:
    local = {"num_cpus": encoders + _SPARE, "object_store_memory": _STORE + 2 * size, "include_dashboard": False}
    try:
        host, _, port = address.rpartition("://")[2].rpartition(":")
        if host:  # Ray itself would try for minutes
            socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER).close()
        ray.init(address=address, log_to_driver=False, logging_level="error", **(local if address == LOCAL else {}))
    except (OSError, ValueError, RuntimeError) as error:  # OSError: also ConnectionError
        raise SettingsError(
            f"cannot join a Ray cluster at {address!r}: {error} (`ray start --head` starts one; --ray local needs none)"
        ) from error


def _ray() -> ModuleType:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
        import ray.exceptions
    except ImportError:
        raise SettingsError('--ray needs Ray, which is not installed: pip install "newfound[ray]"') from None
    return ray


__all__ = ["LOCAL", "RayEncoder"]
