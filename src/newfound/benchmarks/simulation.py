"""A journal with many encoders, simulated: blocks are encoded side by side and decided one after the other.

Events only: between two of them every running piece of work advances at the same speed, 1 as long as there is a core
for each, else the cores' share. Nothing is random, so the same load gives the same answer.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

_ROUNDS = 12  # blocks an encoder, of which the first third fills the queue and is not counted


@dataclass(frozen=True)
class Load:
    """What a block costs, in seconds on a core of its own.

    Attributes:
        images: in a block.
        encode: reading, decoding and encoding it; done by all at once.
        serial: deciding and committing it under the journal's lock; one at a time.
        catch_up: for whoever decides, to take in a block that another has committed; under the lock too.
        ahead: how many blocks an encoder may have encoded that are not committed yet. A writer, which commits its own
            blocks, has 1; an encoder that hands them to another process has 2.
    """

    images: int
    encode: float
    serial: float
    catch_up: float = 0.0
    ahead: int = 1

    def bound(self, encoders: int) -> float:
        """Images a second that nobody can exceed: the encoders' own speed, or the lock's (Amdahl's serial part).

        With the lock always taken, each of N writers finds N - 1 blocks of others when its turn comes.
        """
        alone = self.encode + (self.serial if self.ahead == 1 else 0.0)
        return self.images / max(alone / encoders, self.serial + (encoders - 1) * self.catch_up)

    def best(self) -> int:
        """The number of encoders beyond which more of them give nothing, or take something away."""
        encoders = 1
        while self.bound(encoders + 1) > self.bound(encoders) * (1 + 1e-9):
            encoders += 1
        return encoders


def simulate(load: Load, encoders: int, cores: float | None = None, rounds: int = _ROUNDS) -> float:
    """Images a second that so many encoders of one journal reach together.

    Args:
        cores: that they share, with whoever holds the lock; None: there are enough.
    """
    encoding = {one: load.encode * (one + 1) / encoders for one in range(encoders)}  # seconds left; not in step
    waiting: deque[int] = deque()  # whose block is next; an encoder is there once for each of its blocks
    pending = [0] * encoders  # blocks that are encoded and not committed
    seen = [0] * encoders  # blocks that each has taken in
    holder, left = -1, 0.0  # of the lock
    now, committed, goal = 0.0, 0, rounds * encoders
    counted_from, warm = 0.0, goal // 3
    while committed < goal:
        if holder < 0 and waiting:
            holder = waiting.popleft()
            left = load.serial + load.catch_up * (committed - seen[holder])
        running = len(encoding) + (holder >= 0)
        speed = min(1.0, cores / running) if cores else 1.0
        step = min([*encoding.values(), *([left] if holder >= 0 else [])])
        now += step / speed
        left -= step
        encoding = {one: rest - step for one, rest in encoding.items()}
        for one in [one for one, rest in encoding.items() if rest <= 1e-12]:
            waiting.append(one)
            pending[one] += 1
            del encoding[one]
            if pending[one] < load.ahead:
                encoding[one] = load.encode
        if holder >= 0 and left <= 1e-12:
            committed += 1
            seen[holder] = committed
            pending[holder] -= 1
            encoding.setdefault(holder, load.encode)
            holder = -1
            if committed == warm:
                counted_from = now
    return load.images * (committed - warm) / (now - counted_from)
