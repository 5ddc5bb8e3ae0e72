"""A journal carried to another model: every image is encoded again, every id, name and correction stays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from newfound.errors import JournalError
from newfound.images import content_of
from newfound.journal.book import Book, feature_bytes, stored
from newfound.journal.catalogue import Catalogue
from newfound.journal.journal import Journal
from newfound.journal.keeper import NOWHERE, Keeper
from newfound.journal.rebuilding import Rebuilding, known_categories
from newfound.journal.rows import SightingRow
from newfound.progress import Reporter

if TYPE_CHECKING:
    from newfound.run import Run

_CHUNK = 1_000


@dataclass(frozen=True)
class Carried:
    """How many sightings a journal has, and which could not be encoded again: their images are gone or have changed."""

    sightings: int
    missing: list[str]


def carry(old: Journal, new: Journal, run: Run, reporter: Reporter | None = None) -> Carried:
    """Write a journal for another run, with all that is in an old one.

    Nothing is decided anew: sightings stay in the categories they are in. A class of the run that was known or
    promoted keeps that category's id. A sighting whose image cannot be had any more stays in the journal, without a
    feature: what was learnt from it is lost.

    Raises:
        JournalError: ``new`` is not empty.
    """
    if not new.empty:
        raise JournalError(f"{new.name} holds a journal already; name a new one to carry {old.name} to.")
    position = old.position()
    book = Book.from_bytes(Keeper(old).book.to_bytes())  # a copy: classes are entered below
    categories = known_categories(book.catalogue, run.classes)
    taught = Book(run.dictionary(), Catalogue(run.classes))
    genesis = taught.to_bytes()
    rebuilding, rows, missing = Rebuilding(book, taught, categories), [], []
    with (reporter or Reporter()).stage("encoding again", position.sightings) as progress:
        for chunk in old.stream(0, position.sightings, _CHUNK):
            again = list(_encoded(run, chunk))
            missing += [str(o.image) for o, n in zip(chunk, again, strict=True) if o.feature and not n.feature]
            there = [row.number for row in again if row.feature is not None]
            rebuilding.admit(again, old.place(there), old.pinned(there))
            rows += [replace(row, part=rebuilding.places.get(row.number, (NOWHERE, True))[0]) for row in again]
            progress(len(chunk))
    with new.writing() as writer:
        for model, knew in old.models():
            writer.add_model(model.fingerprint, model.about, knew)
        writer.add_model(run.fingerprint(), {"classes": run.classes, **run.about()}, genesis)
        pinned = {number: place for number, place in rebuilding.places.items() if place[1]}
        writer.append(rows, old.events()[: position.events], pinned)
        writer.snapshot(rebuilding.book(position).to_bytes(), genesis=True)
    return Carried(len(rows), missing)


def _encoded(run: Run, rows: list[SightingRow]) -> Iterator[SightingRow]:
    """The rows with the run's own features; without one where the image that was seen is not there."""
    same = [row for row in rows if row.feature is not None and row.image and content_of(row.image) == row.content]
    features, readable, _ = run.encoder.readable([row.image for row in same])
    half = feature_bytes(stored(features)) if len(readable) else []
    found = dict(zip((same[i].number for i in readable), half, strict=True))
    for row in rows:
        yield replace(row, feature=found.get(row.number))


def promoted_images(journal: Journal) -> tuple[list[str], list[str], list[str]]:
    """The images of promoted categories that are still there, the names of their categories, and those that are not."""
    keeper = Keeper(journal)
    catalogue = keeper.book.catalogue
    images: list[str] = []
    labels: list[str] = []
    missing: list[str] = []
    for category, entry in catalogue.entries.items():
        if not entry.promoted or entry.under is not None:
            continue
        for row in keeper.rows(category):
            if row.image and row.content is not None and content_of(row.image) == row.content:
                images.append(row.image)
                labels.append(catalogue.name(category))
            elif row.image:
                missing.append(row.image)
    return images, labels, missing
