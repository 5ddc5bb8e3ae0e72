"""The way of images into a service: no more in memory at once than there is room for, then the disk, then the queue."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial

from anyio import CapacityLimiter, to_thread

from newfound.service.batching import Job, QueueFull, Stopped
from newfound.service.core import Service
from newfound.service.images_store import Hand, Kept
from newfound.service.problems import Problem
from newfound.service.uploads import Uploads
from newfound.sightings import Sighting

_WRITERS = 4  # threads that keep images on the disk: it is busy with fewer, and more would wake each other for nothing
_FETCHERS = 8  # threads that fetch images from elsewhere: slow places must not take those that answer


@dataclass(frozen=True)
class Turn:
    """A request whose images are on their way in.

    Attributes:
        arrived: says that they are in the queue, as `Batcher.expecting` has it.
        let_go: says that they are in memory no more, and lets another request in.
    """

    arrived: Callable[[], None]
    let_go: Callable[[], None]


class Intake:
    """Takes in the images of requests."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._reads = asyncio.Semaphore(service.settings.limits.reads)
        self._writers, self._fetchers = CapacityLimiter(_WRITERS), CapacityLimiter(_FETCHERS)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[Turn]:
        """To read the body of a request in. Raises Problem if there is no room for a single image: then why read it."""
        await self._reads.acquire()
        held = True

        def let_go() -> None:
            nonlocal held
            if held:
                held = False
                self._reads.release()

        try:
            with self._refusals():
                self._service.batcher.check_room(1)
            with self._service.batcher.expecting() as arrived:
                yield Turn(arrived, let_go)
        finally:
            let_go()

    async def fetch(self, given: Uploads) -> None:
        """Fetch what a request has addresses of."""
        if not given.complete:
            await to_thread.run_sync(given.fetch, self._service.settings, limiter=self._fetchers)

    async def keep(self, given: Uploads, mark: str | None, hand: Hand) -> list[Kept]:
        """Write images to the disk; see `ImageStore.keep`.

        Raises:
            Problem: The queue has no room for them: what is refused leaves no files behind.
            NotKept: The disk is full, or may not be written to.
        """
        readable = given.readable()
        with self._refusals():
            self._service.batcher.check_room(len(readable))
        return await to_thread.run_sync(self._service.store.keep, readable, mark, hand, limiter=self._writers)

    async def entered(self, kept: Sequence[Kept], job: Job, arrived: Callable[[], None]) -> list[Sighting]:
        """What is decided on images that were kept, or was when the request came before."""
        answers = iter(await self.decided(job, arrived))
        if all(image.entered is None for image in kept):
            return list(answers)
        shelf = await to_thread.run_sync(partial(self._service.shelves.now, fresh=True))
        rows = [(image.path, image.entered) for image in kept]
        job.times = {**job.times, **{row.number: row.time for _, row in rows if row is not None}}
        return [
            next(answers) if row is None else Sighting.of(row, path, shelf.name(row.category)) for path, row in rows
        ]

    async def decided(self, job: Job, arrived: Callable[[], None]) -> list[Sighting]:
        """What is decided on images. Raises Problem if the queue has no room for them."""
        if not job.items:
            return []
        with self._refusals():
            answer = self._service.batcher.submit(job)
            arrived()
            return await asyncio.wrap_future(answer)

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """What the queue refuses, as a client is told of it."""
        try:
            yield
        except QueueFull:
            self._service.metrics.rejected.inc()
            waiting = self._service.settings.limits.queue
            raise Problem(429, f"{waiting} images wait already: come again in a second.", Retry_After="1") from None
        except Stopped:
            raise Problem(503, "the service is stopping.", Retry_After="5") from None
