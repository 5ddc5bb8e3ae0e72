"""How fast a folder becomes sightings, and one image an answer, against the parts that do the work, each alone."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from newfound.backbone import DEFAULT, InputSpec
from newfound.benchmarks._timing import SpeedRow, percentiles, spread, timed
from newfound.discoverer import Discoverer
from newfound.discovery import PrototypeDictionary
from newfound.images import open_image
from newfound.journal import Journal
from newfound.journal.answers import Image as Entry

_KNOWN = 100  # categories that the dictionary starts from
_SIZE = (500, 375)  # of the photos: as data sets of photos have them


@dataclass(frozen=True)
class Parts:
    """A folder of photos, and what makes sightings of them."""

    paths: list[Path]
    encoder: Any
    folder: Path

    def decode(self, path: Path) -> Any:
        return self.encoder.views.centre(open_image(path))

    def encode(self, pixels: Any) -> np.ndarray:
        """The bare backbone: no threads that decode, no rounding, no cache."""
        import torch

        with torch.inference_mode():
            return self.encoder.backbone(pixels).numpy()

    @contextmanager
    def discoverer(self) -> Iterator[Discoverer]:
        """One with an SQLite journal in which nothing has happened."""
        known = np.random.default_rng(0).standard_normal((_KNOWN, self.encoder.dimension), dtype=np.float32)
        known /= np.linalg.norm(known, axis=1, keepdims=True)
        dictionary = PrototypeDictionary(known, threshold=0.7)
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            journal = Journal.open(Path(folder) / "journal.db")
            discoverer = Discoverer(self.encoder, dictionary, [f"class {i}" for i in range(_KNOWN)], journal)
            try:
                yield discoverer
            finally:
                discoverer.close()


def pipeline(images: int = 128, *, block: int = 32, repeats: int = 5, backbone: str = DEFAULT) -> SpeedRow:
    """A folder of JPEG files through a `Discoverer` with a journal, against decoder, encoder and journal, each alone.

    What the parts allow if nothing is lost between them is 1 / (1/decoder + 1/encoder + 1/journal): all want the same
    cores. That holds only while the parts have the cores to themselves, so the row says how much of them they had.
    """
    import torch

    cores = os.cpu_count() or 1
    ratios, ours, allowed, shares = [], [], [], []
    with _parts(images, backbone) as parts, ThreadPoolExecutor(cores) as pool:
        starts = range(0, images, block)

        def encode() -> np.ndarray:
            return np.concatenate([parts.encode(torch.stack(pixels[at : at + block])) for at in starts])

        for turn in range(repeats + 1):
            pixels, decoding = timed(lambda: list(pool.map(parts.decode, parts.paths)))
            busy = time.process_time()
            features, encoding = timed(encode)
            busy = time.process_time() - busy
            entering = _entering(parts, features, block)
            with parts.discoverer() as discoverer:
                whole = timed(lambda: discoverer.observe(parts.paths, block=block))[1]
            if turn:  # the first warms up
                ours.append(images / whole)
                allowed.append(images / (decoding + encoding + entering))
                ratios.append(ours[-1] / allowed[-1])
                shares.append(busy / (encoding * torch.get_num_threads()))
    return SpeedRow(
        "pipeline", statistics.median(ours), statistics.median(allowed), "images/s", *spread(ratios),
        "at least 0.95 of what the parts allow",
        f"{images} JPEG files of {_SIZE[0]} x {_SIZE[1]} pixels, {backbone} with random weights, blocks of {block}, an "
        f"SQLite journal; the encoder alone had {100 * statistics.median(shares):.0f} % of {torch.get_num_threads()} "
        f"cores: far below 100 % the machine is busy and the ratio says nothing",
    )  # fmt: skip


def one_image(images: int = 100, *, backbone: str = DEFAULT) -> SpeedRow:
    """`predict` on one file in a warm process, against decoding it and the bare encoder."""
    return _one_image("one-image", Discoverer.predict, images, backbone)


def one_image_observed(images: int = 100, *, backbone: str = DEFAULT) -> SpeedRow:
    """The same with `observe`, which also commits."""
    return _one_image("one-image-observe", Discoverer.observe, images, backbone)


def _one_image(stage: str, verb: Callable, images: int, backbone: str, warm: int = 5) -> SpeedRow:
    whole, bare, decoding = [], [], []
    with _parts(images + warm, backbone) as parts, parts.discoverer() as discoverer:
        for path in parts.paths:
            pixels, seconds = timed(parts.decode, path)
            decoding.append(seconds)
            bare.append(timed(parts.encode, pixels[None])[1])
            whole.append(timed(verb, discoverer, [path])[1])
    whole, bare, decoding = whole[warm:], bare[warm:], decoding[warm:]
    allowed = [a + b for a, b in zip(bare, decoding, strict=True)]
    middle, least = statistics.median(whole), statistics.median(allowed)
    quarters = np.quantile([a / b for a, b in zip(whole, allowed, strict=True)], [0.25, 0.75])
    return SpeedRow(
        stage, 1000 * middle, 1000 * least, "ms", middle / least, float(quarters[0]), float(quarters[1]),
        "at most 1.1 of decoding and the bare encoder, at the median",
        f"{images} files, one at a time, {backbone} with random weights; p50 / p99: ours {percentiles(whole)}, the "
        f"bare encoder {percentiles(bare)}, decoding {percentiles(decoding)} ms; the range is the middle half's",
    )  # fmt: skip


def decoder(images: int = 64, *, repeats: int = 7, backbone: str = DEFAULT) -> SpeedRow:
    """`open_image` and the centre view, against Pillow alone up to the same pixels."""
    with _parts(images, backbone) as parts:

        def bare() -> None:
            for path in parts.paths:
                bare_view(path, parts.encoder.views.spec)

        def ours() -> None:
            for path in parts.paths:
                parts.decode(path)

        pairs = [(timed(ours)[1], timed(bare)[1]) for _ in range(repeats + 1)][1:]
    fast, slow = (images / statistics.median(times) for times in zip(*pairs, strict=True))
    return SpeedRow(
        "decoder", fast, slow, "images/s", *spread([b / a for a, b in pairs]), "none; bare Pillow is 1",
        f"{images} JPEG files of {_SIZE[0]} x {_SIZE[1]} pixels on one thread; both decode, scale and crop, ours also "
        "checks, turns upright and normalises",
    )  # fmt: skip


def bare_view(path: Path, spec: InputSpec) -> Image.Image:
    """What a model should see of a photo, in Pillow's own words: nothing is checked, turned or normalised."""
    short = max(spec.size, int(spec.size / spec.crop_pct))
    long = int(short * max(_SIZE) / min(_SIZE))
    left, top = round((long - spec.size) / 2), round((short - spec.size) / 2)
    with Image.open(path) as image:
        scaled = image.convert("RGB").resize((long, short), Image.Resampling[spec.interpolation.upper()])
    return scaled.crop((left, top, left + spec.size, top + spec.size))


@contextmanager
def _parts(images: int, backbone: str) -> Iterator[Parts]:
    from newfound.backbone import create
    from newfound.features import Encoder
    from newfound.views import Views

    model = create(backbone, weights="random")  # what it costs does not depend on what it has learnt
    with tempfile.TemporaryDirectory() as folder:
        paths = [photo(Path(folder) / f"{number:05d}.jpg", number) for number in range(images)]
        yield Parts(paths, Encoder(model, Views(model.spec)), Path(folder))


def photo(path: Path, number: int) -> Path:
    """Write blotches with some grain: about as many bytes a pixel as a photo has."""
    rng = np.random.default_rng(number)
    width, height = _SIZE
    coarse = Image.fromarray(rng.integers(0, 256, (12, 16, 3), dtype=np.uint8))
    blotches = coarse.resize(_SIZE, Image.Resampling.BICUBIC)
    grain = rng.normal(0, 6, (height, width, 1))
    Image.fromarray(np.clip(np.asarray(blotches) + grain, 0, 255).astype(np.uint8)).save(path, quality=85)
    return path


def _entering(parts: Parts, features: np.ndarray, block: int) -> float:
    """Seconds that the journal alone takes for these features."""
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    entries = [Entry(str(path), number.to_bytes(16, "big")) for number, path in enumerate(parts.paths)]
    with parts.discoverer() as discoverer:
        start = time.perf_counter()
        for at in range(0, len(entries), block):
            discoverer.keeper.enter(entries[at : at + block], unit[at : at + block])
        return time.perf_counter() - start
