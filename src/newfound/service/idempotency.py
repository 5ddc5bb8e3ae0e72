"""A request that is sent again with the same key gets the same answer, and is carried out once."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from newfound.service.problems import Answer, Problem

_KEEP = 24 * 3600.0  # seconds
_MOST = 10_000  # keys
_LONGEST = 200  # characters of a key


@dataclass
class _Entry:
    body: bytes  # its hash
    time: float
    answer: asyncio.Future[Answer]


class Idempotency:
    """Answers by key, in memory. After a restart an image is still entered once: the journal knows its content.

    Images that are to be entered again although they were seen carry the mark of their request in the names of their
    files, and so in the journal: committed with the sighting, it tells that the request has been carried out.
    """

    def __init__(self) -> None:
        self._entries: OrderedDict[str, _Entry] = OrderedDict()

    async def once(
        self,
        key: str | None,
        body: Callable[[], bytes],
        work: Callable[[], Awaitable[Answer]],
        idle: Callable[[], None] = lambda: None,
    ) -> Answer:
        """Do the work, or give the answer that the same key has had; an error that invites a retry is not kept.

        Args:
            body: what tells the request from others, asked for only if there is a key.
            idle: called if another request does the work, and this one only waits for its answer.

        Raises:
            Problem: The key is too long, or came with another body before.
        """
        if key is None:
            return await work()
        if len(key) > _LONGEST:
            raise Problem(422, f"an Idempotency-Key has at most {_LONGEST} characters.")
        self._drop_old()
        digest = hashlib.sha256(body()).digest()
        entry = self._entries.get(key)
        if entry is not None:
            if entry.body != digest:
                raise Problem(422, "this Idempotency-Key came with other images before: use a new key for new images.")
            idle()
            return await asyncio.shield(entry.answer)
        entry = self._entries[key] = _Entry(digest, time.monotonic(), asyncio.get_running_loop().create_future())
        # A task of its own: a client that goes away must not take the answer from the one that comes again.
        task = asyncio.ensure_future(work())
        task.add_done_callback(lambda done: self._settle(key, entry, done))
        return await asyncio.shield(entry.answer)

    def _settle(self, key: str, entry: _Entry, task: asyncio.Future[Answer]) -> None:
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if error is None and task.result().status_code < 500:
            entry.answer.set_result(task.result())
            return
        self._entries.pop(key, None)
        if error is None:
            entry.answer.set_result(task.result())
        elif task.cancelled():
            entry.answer.cancel()
        else:
            entry.answer.set_exception(error)
            entry.answer.exception()  # it may be that nobody waits any more

    def _drop_old(self) -> None:
        oldest = time.monotonic() - _KEEP
        while self._entries:
            key, entry = next(iter(self._entries.items()))
            if entry.time > oldest and len(self._entries) < _MOST:
                return
            del self._entries[key]
