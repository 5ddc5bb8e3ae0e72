"""The loop closes: what was promoted is learnt, and the journal carried to the new model, with every id and name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from newfound.datasets import LabelledImages, load_dataset
from newfound.errors import JournalError, SettingsError
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
    keeper = Keeper(old)
    book = Book.from_bytes(keeper.book.to_bytes())  # a copy: classes are entered below
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
            lost = [row.number for row in again if row.feature is None]
            stays = dict(zip(lost, keeper.standing(lost), strict=True))  # no part will tell where these are
            rows += [
                replace(
                    row,
                    part=rebuilding.places.get(row.number, (NOWHERE, True))[0],
                    category=stays.get(row.number, row.category),
                )
                for row in again
            ]
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
            if row.image and row.content is not None and content_of(row.image) == row.content:
                items.append(row.image)
                labels.append(catalogue.name(category))
            else:
                missing.append(row.image or f"sighting {row.number}")
    if len(items) == len(labelled):
        raise SettingsError(f"none of the images of what was promoted is there any more, such as {missing[0]}.")
    return LabelledImages(items, labels, source=f"{labelled.source} and {journal.name}"), missing
