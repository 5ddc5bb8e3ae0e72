"""The loop closes: what was promoted is learnt, and the journal carried to the new model, with every id and name."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from newfound.datasets import LabelledImages, load_dataset
from newfound.errors import DataError, JournalError, MissingFileError, SettingsError
from newfound.images import content_of
from newfound.journal import editing
from newfound.journal.book import Book, feature_bytes, stored
from newfound.journal.catalogue import Catalogue
from newfound.journal.journal import Journal
from newfound.journal.keeper import NOWHERE, Keeper
from newfound.journal.rebuilding import Rebuilding, known_categories
from newfound.journal.rows import EventRow, Position, SightingRow, as_path
from newfound.journal.undoing import CARRIED
from newfound.journal.writing import Writer
from newfound.progress import Reporter
from newfound.remote_files import find_remote, is_url

if TYPE_CHECKING:
    from newfound.run import Run

_CHUNK = 1_000  # rows held at a time


@dataclass(frozen=True)
class Carried:
    """How many sightings a journal has, and which could not be encoded again: their images are gone or have changed."""

    sightings: int
    missing: list[str]


def carry(old: Journal, new: Journal, run: Run, reporter: Reporter | None = None) -> Carried:
    """Write a journal for another run, with all that is in an old one.

    Nothing is decided anew: sightings stay in the categories they are in. A class of the run that was known or
    promoted keeps that category's id. A sighting whose image cannot be had any more stays in the journal, without a
    feature: what was learnt from it is lost. What is encoded waits in a file beside the system's other temporary ones,
    so that ``new`` holds all or nothing, and is not locked for as long as that takes.

    Raises:
        JournalError: ``new`` is not empty, or was begun meanwhile by somebody else; or somebody wrote to ``old``
            meanwhile, which would be lost. Both journals are as they were.
        SettingsError: An image is behind a URL whose protocol needs something that is not installed.
    """
    if not new.empty:
        raise JournalError(f"{new.name} holds a journal already; name a new one to carry {old.name} to.")
    keeper = Keeper(old)
    book = Book.from_bytes(keeper.book.to_bytes())  # a copy: classes are entered below
    position = book.position
    categories = known_categories(book.catalogue, run.classes)
    taught = Book(run.dictionary(), Catalogue(run.classes))
    genesis = taught.to_bytes()
    rebuilding, missing = Rebuilding(book, taught, categories), list[str]()
    with tempfile.TemporaryDirectory() as folder, Journal.open(Path(folder) / "encoded.db") as encoded:
        with encoded.writing() as writer:
            _add_models(old, writer)
        with (reporter or Reporter()).stage("encoding again", position.sightings) as progress:
            for chunk in old.stream(0, position.sightings, _CHUNK):
                _must_rest(old, position)
                _must_be_unused(new, old)
                again = list(_encoded(run, chunk))
                gone = [o for o, n in zip(chunk, again, strict=True) if o.feature and not n.feature]
                missing += [row.image or f"sighting {row.number}" for row in gone]
                there = [row.number for row in again if row.feature is not None]
                places = rebuilding.admit(again, old.place(there), old.pinned(there))
                lost = [row.number for row in again if row.feature is None]
                stays = dict(zip(lost, keeper.standing(lost), strict=True))  # no part will tell where these are
                rows = [
                    replace(
                        row,
                        part=places.get(row.number, (NOWHERE, True))[0],
                        category=stays.get(row.number, row.category),
                    )
                    for row in again
                ]
                pinned = {number: place for number, place in places.items() if place[1]}
                with encoded.writing() as writer:
                    writer.append(rows, (), pinned)
                progress(len(chunk))
        with new.writing() as writer:
            _must_rest(old, position)
            _must_be_unused(new, old)  # under the lock: from here on nobody can begin it
            _add_models(old, writer)
            writer.add_model(run.fingerprint(), {"classes": run.classes, **run.about()}, genesis)
            for rows in encoded.stream(chunk=_CHUNK):
                kept = encoded.pinned(row.number for row in rows)
                writer.append(rows, (), {row.number: (row.part, True) for row in rows if row.number in kept})
            for since in range(0, position.events, _CHUNK):
                writer.append((), old.events(since=since, limit=min(_CHUNK, position.events - since)))
            noted = {"sightings": position.sightings, "model": run.fingerprint()}
            carried = EventRow(position.events, position.sightings, CARRIED, editing.person(None), time.time(), noted)
            writer.append((), (carried,))  # what was edited before can no longer be taken back
            writer.snapshot(rebuilding.book(writer.position()).to_bytes(), genesis=True)
    return Carried(position.sightings, missing)


def _must_rest(old: Journal, position: Position) -> None:
    if old.position() != position:
        raise JournalError(
            f"{old.name} was written to while it was carried, and that would be lost: end what writes to it, then give "
            "the command again. The new journal is empty."
        )


def _must_be_unused(new: Journal, old: Journal) -> None:
    """Whoever has begun it has decided, or will, with ids that are not those of the old journal."""
    if not new.empty:
        raise JournalError(
            f"{new.name} was begun by another program while {old.name} was carried to it, such as `newfound discover` "
            "or `newfound serve` with the new run. Both journals are as they were. End that program, move its journal "
            "away or name another one with --to, and give the command again."
        )


def _add_models(old: Journal, writer: Writer) -> None:
    for model, knew in old.models():
        writer.add_model(model.fingerprint, model.about, knew)


def _encoded(run: Run, rows: list[SightingRow]) -> Iterator[SightingRow]:
    """The rows with the run's own features; without one where the image that was seen is not there."""
    sources = {row.number: _source(row) for row in rows if row.feature is not None}
    same = [number for number, source in sources.items() if source is not None]
    features, readable, _ = run.encoder.readable([sources[number] for number in same])
    half = feature_bytes(stored(features)) if len(readable) else []
    found = dict(zip((same[i] for i in readable), half, strict=True))
    for row in rows:
        yield replace(row, feature=found.get(row.number))


def _source(row: SightingRow) -> Any:
    """What the image of a sighting can be read from: its path or what is behind its URL; None if it is not the same.

    Raises:
        SettingsError: A URL whose protocol needs something that is not installed.
    """
    if not row.image or row.content is None:
        return None
    source: Any = as_path(row.image)
    if is_url(row.image):
        try:
            source = next(iter(find_remote(row.image)), None)
        except (MissingFileError, DataError):
            return None
    return source if source is not None and content_of(source) == row.content else None


def continued(data: Any, journal: Journal) -> tuple[LabelledImages, list[str]]:
    """A labelled data set with the images of promoted categories, and those of them that are gone or have changed.

    Args:
        data: what `load_dataset` takes: what the run was taught from.
        journal: of the run.

    Raises:
        SettingsError: nothing is promoted, or none of its images is there any more.
    """
    keeper = Keeper(journal)
    catalogue = keeper.book.catalogue
    promoted = [c for c, entry in catalogue.entries.items() if entry.promoted and entry.under is None]
    if not promoted:
        raise SettingsError(f"nothing in {journal.name} is promoted: `newfound promote RUN ID` says what to teach.")
    labelled = load_dataset(data)
    items, labels, missing = list(labelled.items), list(labelled.labels), []
    for category in promoted:
        for row in keeper.rows(category):
            if (source := _source(row)) is not None:
                items.append(source)
                labels.append(catalogue.name(category))
            else:
                missing.append(row.image or f"sighting {row.number}")
    if len(items) == len(labelled):
        raise SettingsError(f"none of the images of what was promoted is there any more, such as {missing[0]}.")
    return LabelledImages(items, labels, source=f"{labelled.source} and {journal.name}"), missing
