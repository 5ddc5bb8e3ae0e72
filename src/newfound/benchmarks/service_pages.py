"""How soon a service shows a large journal: every view right after the start, and once the journal is known."""

from __future__ import annotations

import sqlite3
import statistics
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from newfound.benchmarks._timing import SpeedRow, timed
from newfound.errors import SettingsError

SIGHTINGS, CATEGORIES, DIMENSION = 1_000_000, 10_000, 64
_AGAIN = 5
_DOUBT = 50  # one sighting in so many is near the cut
_PATIENCE = 600.0  # seconds that the first look may take

VIEWS = {
    "gallery": "/v1/categories?sort=newest&limit=50",
    "gallery by size": "/v1/categories?sort=size&limit=50",
    "overview": "/v1/status",
    "category": "/v1/categories/{category}",
    "its images": "/v1/categories/{category}/sightings?order=similar&limit=50",
    "sightings": "/v1/sightings?limit=50",
    "doubt": "/v1/doubt?limit=50",
    "map": "/v1/map",
    "timeline": "/v1/timeline",
}


@dataclass(frozen=True)
class Pages:
    """Seconds, by view.

    Attributes:
        opening: until the service could be asked.
        look: from then on until it had looked at the whole journal.
        first: of the first request, which came while it did so.
        again: the median of requests after that.
    """

    sightings: int
    categories: int
    opening: float
    look: float
    first: dict[str, float]
    again: dict[str, float]


def first_pages() -> SpeedRow:
    """The slowest view of a million sightings when it is asked for first, against the slowest one later."""
    found = measure()
    slow, later = max(found.first, key=found.first.__getitem__), max(found.again.values())
    worst = found.first[slow]
    return SpeedRow(
        "serve-pages", worst, later, "s", worst, min(found.first.values()), worst, "at most 2 s for every view",
        f"{found.sightings:,} sightings in {found.categories:,} categories; the slowest of {len(VIEWS)} views right "
        f"after the start is {slow}, the range is that of all views; the service was open after {found.opening:.1f} s "
        f"and had looked at the whole journal {found.look:.1f} s later",
    )  # fmt: skip


def measure(sightings: int = SIGHTINGS, categories: int = CATEGORIES, dimension: int = DIMENSION) -> Pages:
    """Write a journal of made-up sightings and ask a service for each view of it.

    Raises SettingsError if the service's libraries are missing.
    """
    from newfound.benchmarks.journal_speed import write_large

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.db"
        write_large(path, sightings, categories, dimension, features=True)
        _bring_doubt(path, categories - min(100, categories // 2))
        return ask(path)


def ask(journal: Path) -> Pages:
    """Ask a service for each view of a journal that `journal_speed.write_large` wrote."""
    try:
        import httpx

        from newfound.service.core import Service
        from newfound.service.server import in_a_thread
        from newfound.service.settings import Settings
    except ModuleNotFoundError as error:
        raise SettingsError(f"the service needs {error.name}: pip install 'newfound[serve]'") from error
    service, opening = timed(lambda: Service(cast(Any, _Recorded(journal)), journal, Settings()))
    position = service.journal.position()
    categories = len(service.discoverer.dictionary)
    with in_a_thread(service) as url, httpx.Client(base_url=url, timeout=_PATIENCE) as client:
        start = time.perf_counter()

        def get(view: str) -> float:
            answer, seconds = timed(client.get, VIEWS[view].format(category=categories // 2))
            answer.raise_for_status()
            return seconds

        first = {view: get(view) for view in VIEWS}
        while not service.overview.complete:
            if time.perf_counter() - start > _PATIENCE:
                raise RuntimeError(f"the service has not looked at its journal in {_PATIENCE:.0f} s.")
            time.sleep(0.01)
        look = time.perf_counter() - start
        again = {view: statistics.median(get(view) for _ in range(_AGAIN)) for view in VIEWS}
    return Pages(position.sightings, categories, opening, look, first, again)


@dataclass(frozen=True)
class _Recorded:
    """As much of a run as a service needs to show a journal; nothing can be encoded with it."""

    journal: Path
    classes: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        return self.journal.parent

    def about(self) -> dict[str, str]:
        return {"method": "none", "preset": "none", "backbone": "none"}

    def discoverer(self, journal: Path) -> Any:
        from newfound.discoverer import Discoverer
        from newfound.journal import Journal

        opened = Journal.open(journal)
        nothing = cast(Any, None)  # neither images nor an empty journal will be met
        return Discoverer(nothing, nothing, self.classes, opened, fingerprint=opened.model().fingerprint)


def _bring_doubt(path: Path, founders: int) -> None:
    """Say which sightings founded the categories, and bring some of the others near the cut."""
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE sightings SET created = 1 WHERE number < ?", (founders,))
        database.execute("UPDATE sightings SET score = cut + 0.5 WHERE number % ? = 0", (_DOUBT,))
