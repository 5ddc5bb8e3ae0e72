"""What `newfound discover` does with its sources: cut into batches, decided on, answered in order."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any

from newfound.errors import DataError
from newfound.outputs import Answers
from newfound.remote_files import with_lists
from newfound.sources import FolderWatch, Item, Stop, chunks, from_lines, from_paths, from_video, is_live, watch

if TYPE_CHECKING:
    from newfound.discoverer import Discoverer

STDIN = "-"


def batches(
    sources: list[str], folders: FolderWatch | None, video: bool, fps: float, block: int, stop: Stop
) -> Iterator[Iterable[Item]]:
    """What to decide on, each batch before the next is asked for.

    Files make one batch, read ahead of the encoder. What comes from a pipe or a camera is cut into blocks: reading
    ahead there would wait for what its sender may only send after an answer.
    """
    if folders is not None:
        yield from watch(folders, stop)
    elif video:
        for live, group in groupby(sources, is_live):
            frames = chain.from_iterable(from_video(s, fps=fps, asked=lambda: stop.asked) for s in group)
            yield from chunks(frames, block) if live else [frames]
    else:
        for stdin, group in groupby(sources, lambda source: source == STDIN):
            if stdin:
                yield from chunks(from_lines(lambda: stop.wait(sys.stdin.buffer.readline)), block)
            else:
                yield from_paths(with_lists(group))


def how_many(sources: list[str]) -> int | None:
    """How many images there are in files and folders; None for what only reading tells, as of a pipe or a bucket."""
    from newfound.images import find_images

    if not all(map(os.path.exists, sources)):
        return None
    try:
        return sum(len(find_images(source)) if os.path.isdir(source) else 1 for source in sources)
    except DataError:  # told of when its turn comes
        return None


def decide(
    discoverer: Discoverer, batch: Iterable[Item], block: int, answers: Answers, stop: Stop, threshold: float | None
) -> None:
    """Decide on a batch and hand the answers on, in order; when asked to stop, only those of the block in hand.

    Sightings of a block are committed before the first is given, and none of them may go untold.
    """
    read: deque[Item] = deque()  # and not told of yet; for each without an error the discoverer gives a sighting

    def images() -> Iterator[Any]:
        for item in batch:
            read.append(item)
            if item.error is None:
                yield item.image

    def refuse() -> None:
        while read and (error := read[0].error) is not None:
            answers.refuse(read.popleft(), error)

    def asked() -> bool:
        return stop.asked

    if answers.tally.predict:
        sightings = discoverer.predict(images(), block=block, threshold=threshold, stop=asked)
    else:
        sightings = discoverer.observe(images(), block=block, stop=asked)
    for sighting in sightings:
        refuse()
        answers.add(read.popleft(), sighting)
    if not stop.asked:
        refuse()
