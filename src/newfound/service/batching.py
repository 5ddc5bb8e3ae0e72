"""One queue for the images of all clients: encoded together, committed together, answered in the order of arrival."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from newfound.discoverer import Discoverer
from newfound.service.metrics import Metrics
from newfound.service.settings import Limits
from newfound.sightings import Sighting


class QueueFull(Exception):
    """More images wait than the limit; the client should come again."""


class Stopped(Exception):
    """The service is stopping and takes nothing in any more."""


@dataclass
class Job:
    """The images of one request, and what becomes of them.

    Jobs that are alike in `again` and `commit` go through the encoder together. Once there is an answer, `times` has
    the moments, by number, at which its sightings were entered.
    """

    items: Sequence[Any]
    commit: bool = True
    again: bool = False
    answer: Future[list[Sighting]] = field(default_factory=Future)
    times: Mapping[int, float] = field(default_factory=dict)

    @property
    def kind(self) -> tuple[bool, bool]:
        return self.commit, self.again


class Batcher:
    """A thread that takes what waits, up to a full batch, and answers each request after the commit."""

    def __init__(self, discoverer: Discoverer, limits: Limits, metrics: Metrics) -> None:
        self._discoverer, self._limits, self._metrics = discoverer, limits, metrics
        self._jobs: deque[Job] = deque()
        self._waiting = 0  # images
        self._expected = 0  # requests that are being read
        self._changed = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._work, name="newfound-batches", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @contextmanager
    def expecting(self) -> Iterator[Callable[[], None]]:
        """For as long as a request is being read: a batch that is not full waits for it, for a moment.

        Gives what says that its images are in the queue; leaving the block says so too.
        """
        here = True
        with self._changed:
            self._expected += 1

        def arrived() -> None:
            nonlocal here
            with self._changed:
                self._expected -= here
                here = False
                self._changed.notify_all()

        try:
            yield arrived
        finally:
            arrived()

    def submit(self, job: Job) -> Future[list[Sighting]]:
        """Queue the images of a request.

        Raises:
            QueueFull: Too many wait already; a request is taken whole or not at all.
            Stopped: The service is stopping.
        """
        with self._changed:
            self.check_room(len(job.items))
            self._jobs.append(job)
            self._count(len(job.items))
            self._changed.notify_all()
        return job.answer

    def check_room(self, images: int) -> None:
        """Raise what `submit` of so many images would raise now."""
        with self._changed:
            if self._stopping:
                raise Stopped
            if self._waiting + images > self._limits.queue:
                raise QueueFull

    def stop(self) -> None:
        """Answer what waits, and end the thread."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self._thread.join()

    def _work(self) -> None:
        while batch := self._next():
            self._answer(batch)

    def _next(self) -> list[Job]:
        """The jobs that go together next, in order; none when the service stops and all is answered."""
        with self._changed:
            self._changed.wait_for(lambda: self._jobs or self._stopping)
            until = time.monotonic() + self._limits.wait
            while self._waiting < self._limits.batch and self._expected and not self._stopping:
                left = until - time.monotonic()
                if left <= 0:
                    break
                self._changed.wait(left)
            batch: list[Job] = []
            images = 0
            while self._jobs and (not batch or self._jobs[0].kind == batch[0].kind):
                images += len(self._jobs[0].items)
                if batch and images > self._limits.batch:
                    break
                batch.append(self._jobs.popleft())
                self._count(-len(batch[-1].items))
            return batch

    def _answer(self, batch: list[Job]) -> None:
        batch = [job for job in batch if job.answer.set_running_or_notify_cancel()]  # its client may have gone
        items = [item for job in batch for item in job.items]
        if not items:
            return
        self._metrics.batch_size.observe(len(items))
        try:
            decided = self._decide(batch[0], items)
            times = self._times(decided)
            sightings = iter(decided)
            answers = [[next(sightings) for _ in job.items] for job in batch]
        except BaseException as error:
            for job in batch:
                job.answer.set_exception(error)
            return
        for job, answer in zip(batch, answers, strict=True):
            job.times = times
            job.answer.set_result(answer)

    def _decide(self, like: Job, items: list[Any]) -> list[Sighting]:
        if like.commit:
            return list(self._discoverer.observe(items, block=len(items), again=like.again))
        return list(self._discoverer.predict(items, block=len(items)))

    def _times(self, sightings: list[Sighting]) -> dict[int, float]:
        """When these were entered: asked for all of a batch at once, as each question takes longer than its answer."""
        numbers = [sighting.number for sighting in sightings if sighting.number is not None]
        rows = self._discoverer.keeper.journal.sightings(numbers) if numbers else []
        return {row.number: row.time for row in rows}

    def _count(self, images: int) -> None:
        self._waiting += images
        self._metrics.queue_length.set(self._waiting)
