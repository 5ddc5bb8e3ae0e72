"""`newfound bench scale`: what every stage from image to journal costs here, and how several writers get on.

The constants are medians of short repeats on one thread. What depends on the number of categories or on the rows of a
block is measured at several sizes and kept as a line, ``fixed + each * size``, fitted by least squares.
"""

from __future__ import annotations

import io
import os
import platform
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from newfound.benchmarks import postgres
from newfound.benchmarks._streams import KINDS, Stream
from newfound.benchmarks._timing import timed
from newfound.benchmarks.cells import commit
from newfound.benchmarks.journal_speed import begun, image, writers_stream
from newfound.benchmarks.writers import BACKBONE, BLOCK, make_encoder, started
from newfound.discovery import _compiled
from newfound.journal import Journal
from newfound.journal.book import Book
from newfound.journal.keeper import Keeper
from newfound.progress import Reporter

Figures = dict[str, Any]
PICTURE = (500, 375)  # pixels of the JPEG that is decoded
_FEW = 10  # categories where the decision shall cost nothing


@dataclass(frozen=True)
class Sizes:
    """How much is measured; the defaults take about ten minutes on two idle cores."""

    images: int = 64
    pixels: int = 224
    backbone: str = BACKBONE
    dimension: int = 512
    categories: tuple[int, ...] = (1000, 4000, 16000)
    blocks: tuple[int, ...] = (64, 256, 1024)
    writers: tuple[int, ...] = (1, 2, 4)
    writer_blocks: int = 10
    repeats: int = 5
    memory: int = 5000  # sightings before the first measured decision: what second thoughts look at


def measure(sizes: Sizes | None = None, reporter: Reporter | None = None) -> Figures:
    """All constants, the writers' throughput, and where and when they were measured.

    Raises SettingsError if no PostgreSQL server is installed.
    """
    sizes = sizes or Sizes()
    _compiled.load()  # what a long stream would have loaded by itself
    with (reporter or Reporter()).stage("measuring", 5) as progress, one_thread(), postgres.server() as url:
        figures: Figures = {"images": _images(sizes)}
        progress(1)
        figures["dictionaries"] = {kind: _dictionary(kind, sizes) for kind in KINDS}
        progress(1)
        with tempfile.TemporaryDirectory() as folder:
            figures["sqlite"] = _journal(Path(folder) / "journal.db", sizes)
        progress(1)
        figures["postgres"] = _journal(in_schema(url, "blocks"), sizes)
        progress(1)
        figures["writers"] = _writers(in_schema(url, "writers"), sizes)
        progress(1)
    machine = f"{os.cpu_count()} cores, {platform.machine()}"
    now = time.strftime("%Y-%m-%d %H:%M", time.gmtime())
    return figures | {"dimension": sizes.dimension, "machine": machine, "commit": commit(), "time": now}


def in_schema(url: str, name: str) -> str:
    """The URL of a new schema on a server."""
    import psycopg

    with psycopg.connect(url) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    return f"{url}?options=-csearch_path%3D{name}"


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch and NumPy's products on one thread: constants are those of a core."""
    import torch
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(before)


def _images(sizes: Sizes) -> Figures:
    """Seconds that an image takes to decode, with its view, and to encode."""
    import torch
    from PIL import Image

    from newfound.images import open_image

    encoder = make_encoder(sizes.backbone, sizes.pixels)
    rng, file = np.random.default_rng(0), io.BytesIO()
    coarse = rng.integers(0, 256, (PICTURE[1] // 25, PICTURE[0] // 25, 3), dtype=np.uint8)
    Image.fromarray(coarse).resize(PICTURE, Image.Resampling.BICUBIC).save(file, "JPEG", quality=90)
    views = torch.stack([encoder.views.centre(open_image(file.getvalue()))] * sizes.images)
    decode = _median(8 * sizes.repeats, lambda: encoder.views.centre(open_image(file.getvalue())))
    encode = _median(sizes.repeats, lambda: encoder.tail(list(encoder._trunk(views))))
    about = {"backbone": sizes.backbone, "pixels": sizes.pixels, "jpeg": list(PICTURE)}
    return about | {"decode": decode, "encode": encode / sizes.images}


def _dictionary(kind: str, sizes: Sizes) -> Figures:
    """How deciding, the bytes of a snapshot, writing and reading them, and memory grow with the categories."""
    block = 256
    at: dict[str, list[float]] = {name: [] for name in ("decide", "state", "save", "load", "memory")}
    for count in sizes.categories:
        stream = Stream(kind, count, sizes.dimension)
        book = stream.book()
        before = stream.features(sizes.memory)
        told = book.dictionary.predict(before).category
        book.dictionary.admit(before[told >= 0], told[told >= 0])
        blocks = [stream.features(block) for _ in range(sizes.repeats)]
        # Second thoughts come every 250 sightings, so a mean over blocks it is.
        at["decide"].append(sum(timed(book.observe, one, 2)[1] for one in blocks) / len(blocks) / block)
        state = book.to_bytes()
        at["state"].append(len(state))
        at["save"].append(_median(sizes.repeats, book.to_bytes))
        at["load"].append(_median(sizes.repeats, Book.from_bytes, state))
        at["memory"].append(_bytes_of(Book.from_bytes, state))
    return {name: _line(sizes.categories, values) for name, values in at.items()}


def _journal(where: Any, sizes: Sizes) -> Figures:
    """Seconds to enter a block and to take in another's, and the bytes of a sighting, where deciding costs nothing."""
    stream, number = Stream("prototypes", _FEW, sizes.dimension), 0
    enter, catch_up = [], []
    with begun(where, stream) as journal, Journal.open(where) as other:
        keeper, follower = Keeper(journal, actor="bench"), Keeper(other, actor="bench")
        for block in sizes.blocks:
            entered, followed = [], []
            for _ in range(sizes.repeats):
                images = [image(number + i) for i in range(block)]
                features, number = stream.features(block), number + block
                entered.append(timed(keeper.enter, images, features)[1])
                followed.append(timed(lambda: follower.book)[1])
            enter.append(statistics.median(entered))
            catch_up.append(statistics.median(followed))
        size = _journal_bytes(journal)
    return {
        "enter": _line(sizes.blocks, enter),
        "catch_up": _line(sizes.blocks, catch_up),
        "bytes": size / number,
    }


def _journal_bytes(journal: Journal) -> int:
    """What the sightings and their indexes take on disk."""
    with journal._reading() as connection:
        if connection.dialect.name == "postgresql":
            return int(connection.exec_driver_sql("SELECT pg_total_relation_size('sightings')").scalar_one())
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        snapshots = connection.exec_driver_sql("SELECT sum(length(state)) FROM snapshots").scalar_one()
        return int(pages * connection.exec_driver_sql("PRAGMA page_size").scalar_one() - snapshots)


def _writers(where: str, sizes: Sizes) -> Figures:
    """Images a second of several writers at once, and what a block costs each of its stages.

    ``cores`` is how many times the speed of one the most writers reach when they only encode: what the machine has to
    give, whatever it calls a core.
    """
    most, blocks = max(sizes.writers), sizes.writer_blocks
    rates: dict[int, list[float]] = {count: [] for count in sizes.writers}
    alone: list[float] = []
    together: list[float] = []
    stages: dict[str, list[float]] = {"encode": [], "serial": [], "catch_up": []}
    stream = writers_stream(sizes.backbone)
    with begun(where, stream) as journal, started(where, most, backbone=sizes.backbone) as processes:
        follower = Keeper(journal, actor="bench")
        processes.work(most, 1)
        for _ in range(sizes.repeats):
            alone.append(processes.work(1, blocks, enter=False).rate)
            together.append(processes.work(most, blocks, enter=False).rate)
            for count in sizes.writers:
                _ = follower.book
                done = processes.work(count, blocks)
                rates[count].append(done.rate)
                if count == 1:
                    stages["encode"] += done.encode
                    stages["serial"] += done.enter
                    stages["catch_up"].append(timed(lambda: follower.book)[1] / blocks)
    return {
        "block": BLOCK,
        "cores": max(1.0, statistics.median(together) / statistics.median(alone)),
        **{name: statistics.median(values) for name, values in stages.items()},
        "rates": {str(count): _spread(values) for count, values in rates.items()},
    }


def _spread(values: list[float]) -> dict[str, float]:
    return {"median": statistics.median(values), "low": min(values), "high": max(values)}


def _line(sizes: tuple[int, ...], values: list[float]) -> dict[str, Any]:
    """``fixed + each * size``, nearest to what was measured in relation to it, with the measured points."""
    x, y = np.array(sizes, float), np.array(values, float)
    each, fixed = np.polyfit(x, y, 1, w=1 / y)
    if fixed < 0:  # noise: nothing takes less than no time
        fixed, each = 0.0, float(np.mean(y / x))
    elif each < 0:
        fixed, each = float(np.mean(y)), 0.0
    return {"fixed": float(fixed), "each": float(each), "at": dict(zip(map(str, sizes), map(float, y), strict=True))}


def _median(repeats: int, work: Callable[..., Any], *given: Any) -> float:
    work(*given)  # the first time is slower
    return statistics.median(timed(work, *given)[1] for _ in range(repeats))


def _bytes_of(make: Callable[..., Any], *given: Any) -> int:
    """The memory that an object takes."""
    tracemalloc.start()
    try:
        kept = make(*given)
        return tracemalloc.get_traced_memory()[0] if kept is not None else 0
    finally:
        tracemalloc.stop()
