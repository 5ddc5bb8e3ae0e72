"""A batch on the processor, in parts side by side, a thread each.

A forward pass on several threads waits for the slowest of them after every operation. Whatever else wants a core for a
moment (decoding, a service's requests, other programs) then holds all of them up. Parts on a thread each wait for each
other once, at the end: as fast on an idle machine, and much faster on a busy one.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor

from newfound.backbone import CPU_CHUNK

_FEWEST = 2  # samples of a part: fewer are computed as fast together


class SideBySide:
    """Computes batches in parts, on as many threads as PyTorch has been given."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._workers = 0

    def __call__(self, work: Callable[[Tensor], Tensor], batch: Tensor) -> Tensor:
        """What ``work`` makes of a batch, row by row, without gradients."""
        threads = torch.get_num_threads()
        if threads == 1 or len(batch) < threads * _FEWEST:
            return _without_gradients(work, batch)
        pool = self._pool_of(threads)
        rounds = -(-len(batch) // (threads * CPU_CHUNK))
        parts = torch.split(batch, -(-len(batch) // (threads * rounds)))
        torch.set_num_threads(1)  # for all of PyTorch: some of its libraries have one number for all threads
        try:
            return torch.cat(list(pool.map(_without_gradients, [work] * len(parts), parts)))
        finally:
            torch.set_num_threads(threads)

    def _pool_of(self, threads: int) -> ThreadPoolExecutor:
        if self._pool is None or self._workers != threads:
            if self._pool is not None:
                self._pool.shutdown(wait=False)
            # A thread begins when it is first needed, with one thread of PyTorch's: the others have their cores.
            self._pool = ThreadPoolExecutor(threads, "newfound-encoder", torch.set_num_threads, (1,))
            self._workers = threads
        return self._pool


def _without_gradients(work: Callable[[Tensor], Tensor], batch: Tensor) -> Tensor:
    with torch.inference_mode():  # of this thread alone
        return work(batch)
