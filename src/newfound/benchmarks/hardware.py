"""What the machine itself can do, measured in the same run as the stages that are held against it."""

from __future__ import annotations

import io
import os
import statistics
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from newfound.benchmarks._timing import timed


@dataclass(frozen=True)
class Limit:
    """One limit of the hardware; the median, and the range over the repeats."""

    name: str
    value: float
    low: float
    high: float
    unit: str
    detail: str


def measure(repeats: int = 5) -> list[Limit]:
    """Matrix product, memory bandwidth, JPEG decoder, bare encoder and durable writes of this machine."""
    return [
        _product(repeats),
        _bandwidth(repeats),
        _decoder(repeats),
        _encoder(repeats),
        _durable_write(repeats),
    ]


def _limit(name: str, work: Callable[[], object], amount: float, unit: str, detail: str, repeats: int) -> Limit:
    work()  # a first time for pages and caches
    rates = [amount / timed(work)[1] for _ in range(repeats)]
    return Limit(name, statistics.median(rates), min(rates), max(rates), unit, detail)


def _product(repeats: int, rows: int = 1024, columns: int = 4096, dimension: int = 512) -> Limit:
    rng = np.random.default_rng(0)
    a = rng.standard_normal((rows, dimension), dtype=np.float32)
    b = rng.standard_normal((columns, dimension), dtype=np.float32)
    out = np.empty((rows, columns), np.float32)
    work = 2e-9 * rows * columns * dimension
    detail = f"float32, {rows:,} x {dimension} times {dimension} x {columns:,}"
    return _limit("matrix product", lambda: np.matmul(a, b.T, out=out), work, "GFLOP/s", detail, repeats)


def _bandwidth(repeats: int, size: int = 1 << 28) -> Limit:
    source, target = np.ones(size, np.uint8), np.empty(size, np.uint8)
    detail = f"copying {size >> 20} MiB, read and written bytes counted"
    return _limit("memory", lambda: np.copyto(target, source), 2e-9 * size, "GB/s", detail, repeats)


def _decoder(repeats: int, count: int = 32) -> Limit:
    from PIL import Image

    noise = np.random.default_rng(0).integers(0, 255, (47, 63, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(noise).resize((500, 375), Image.Resampling.BICUBIC).save(file, "JPEG", quality=90)

    def decode() -> None:
        for _ in range(count):
            Image.open(io.BytesIO(file.getvalue())).load()

    detail = f"a JPEG of 500 x 375 pixels, {len(file.getvalue()) >> 10} KiB, in Pillow, one thread"
    return _limit("JPEG decoder", decode, count, "images/s", detail, repeats)


def _encoder(repeats: int, batch: int = 32) -> Limit:
    import torch

    from newfound import backbone
    from newfound._memory import keep_large_allocations

    keep_large_allocations()
    model = backbone.create(weights="random")
    pixels = torch.zeros(batch, 3, model.spec.size, model.spec.size)

    def encode() -> None:
        with torch.inference_mode():
            model.model(pixels)

    return _limit("encoder", encode, batch, "images/s", f"{model.name}, float32, batches of {batch}", repeats)


def _durable_write(repeats: int, count: int = 20, size: int = 1 << 18) -> Limit:
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "file").open("wb") as file:

        def write() -> None:
            for _ in range(count):
                file.write(bytes(size))
                file.flush()
                os.fsync(file.fileno())

        return _limit("durable writes", write, count, "writes/s", f"{size >> 10} KiB and fsync", repeats)
