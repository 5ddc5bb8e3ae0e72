"""The parts of a running service, and how they are started and stopped together."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from pathlib import Path

from newfound.journal.journal import Journal
from newfound.run import Run
from newfound.service.batching import Batcher
from newfound.service.courtesy import Courtesy
from newfound.service.doubting import margin_of
from newfound.service.idempotency import Idempotency
from newfound.service.images_store import ImageStore
from newfound.service.live import Follower
from newfound.service.metrics import Metrics
from newfound.service.overview import Overview
from newfound.service.settings import Settings
from newfound.service.shelf import Shelves
from newfound.service.space import Space, space_of


@dataclass(frozen=True)
class About:
    """What does not change while a service runs."""

    run: str
    method: str
    preset: str
    backbone: str
    classes: int
    began: float  # when the journal was, in seconds since 1970: no other has the same


class Service:
    """A run and its journal, as a service sees them.

    Args:
        run: what recognises; it was loaded from a folder, which uploaded images are kept in.
        journal: a file or a URL, as `Run.discoverer` takes it.

    Raises:
        JournalError: The journal cannot be used, or was written with another model.
    """

    def __init__(self, run: Run, journal: str | os.PathLike, settings: Settings) -> None:
        folder = Path(run.folder or ".").absolute()
        self.settings = settings
        self.discoverer = run.discoverer(journal)
        began = self.journal.models()[0][0].time
        self.about = About(folder.name, **run.about(), classes=len(run.classes), began=began)
        self.metrics = Metrics()
        self.store = ImageStore(folder, self.journal)
        self.courtesy = Courtesy()
        self.overview = Overview(self.journal, margin_of(self.discoverer.dictionary), self.courtesy)
        self.shelves = Shelves(self.discoverer, self.overview)
        self.batcher = Batcher(self.discoverer, settings.limits, self.metrics)
        self.idempotency = Idempotency()
        self.follower = Follower(self.journal, self.overview, self.courtesy)
        self._space: tuple[object, Space] | None = None
        self._space_turn = threading.Lock()

    @property
    def journal(self) -> Journal:
        return self.discoverer.keeper.journal

    def space(self) -> Space:
        """Where the categories lie as things stand."""
        with self._space_turn:
            position = self.journal.position()
            if self._space is None or self._space[0] != position:
                with self.shelves.still() as book:
                    self._space = (book.position, space_of(book.dictionary))
            return self._space[1]

    def start(self) -> None:
        self.batcher.start()
        self.follower.start()

    def stop(self) -> None:
        """Answer what waits, and close the journal."""
        self.follower.stop()
        self.batcher.stop()
        self.discoverer.close()
