"""A journal of real image files, made without a model: what an encoder would have said is given."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Pillow

from newfound.crops import Box, Crop
from newfound.curator import Curator
from newfound.discovery import PrototypeDictionary
from newfound.images import content_of
from newfound.journal import Journal
from newfound.journal.book import Book
from newfound.journal.catalogue import Catalogue
from newfound.journal.keeper import Image

CLASSES = ["heron", "owl"]
KINDS = 8
WIDTH, HEIGHT = 40, 20


@pytest.fixture
def photo(tmp_path) -> Callable[..., Path]:
    """photo(name): a new PNG file of WIDTH x HEIGHT, unlike all others."""

    def make(name: str, **options) -> Path:
        path = tmp_path / "photos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        rng = np.random.default_rng(list(name.encode()))
        picture = rng.integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)
        Pillow.fromarray(picture).save(path, **options)
        return path

    return make


@pytest.fixture
def run(tmp_path) -> Path:
    """A folder with a journal that knows heron (0) and owl (1), and has seen nothing."""
    folder = tmp_path / "run"
    folder.mkdir()
    taught = Book(PrototypeDictionary(np.eye(KINDS)[:2], 0.8), Catalogue(CLASSES))
    with Journal.open(folder / "journal.db") as journal:
        journal.begin("0123456789abcdef", {"method": "ltc"}, taught.to_bytes())
    return folder


@pytest.fixture
def curator(run):
    """curator(by="ada"): the categories of that journal, for someone; closed at the end of the test."""
    opened: list[Curator] = []

    def open_(by: str = "ada") -> Curator:
        opened.append(Curator(Journal.open(run / "journal.db"), actor=by))
        return opened[-1]

    yield open_
    for one in opened:
        one.close()


@pytest.fixture
def observe(curator):
    """observe((image, kind), ...): enter images, paths or crops, that look like a kind: 0 heron, 1 owl, else new."""

    def enter(*images: tuple[Path | Crop, int]) -> list[int]:
        entered = curator().keeper.enter(
            [Image(str(image), content_of(image)) for image, _ in images], np.eye(KINDS)[[kind for _, kind in images]]
        )
        return [one.row.category for one in entered]

    return enter


@pytest.fixture
def birds(photo, observe) -> list[Path]:
    """Eight photos, by number of sighting: 0, 1 heron; 2 owl; 3, 4, 5 in category 2 (new-1); 6, 7 in 3 (new-2)."""
    paths = [photo(f"cam{number % 2}/{number}.png") for number in range(8)]
    found = observe(*zip(paths, (0, 0, 1, 4, 4, 4, 5, 5), strict=True))
    assert found == [0, 0, 1, 2, 2, 2, 3, 3]
    return paths


@pytest.fixture
def boxed(photo, observe) -> tuple[Path, list[Box]]:
    """A frame of which two boxes were observed: an owl (0), and something new (1) in category 2."""
    path = photo("cam0/frame.png")
    boxes = [Box(0.1, 0.2, 0.3, 0.5), Box(0.5, 0.0, 0.5, 1.0)]
    observe((Crop(str(path), boxes[0]), 1), (Crop(str(path), boxes[1]), 4))
    return path, boxes


@pytest.fixture
def standing(curator):
    """standing(): the name of the category that each sighting is in now, by number."""

    def ask() -> dict[int, str]:
        return {sighting.number: sighting.name for sighting in curator().sightings()}

    return ask
