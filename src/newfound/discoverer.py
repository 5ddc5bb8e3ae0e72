"""From images to sightings: an encoder, and a journal that remembers what was found."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

from newfound._arguments import whole_or_none
from newfound.curator import EXEMPLARS, Curator, reference
from newfound.datasets import is_finite, iter_source
from newfound.discovery import Dictionary
from newfound.errors import JournalError
from newfound.journal import Journal, editing
from newfound.journal.answers import Image
from newfound.journal.book import Book
from newfound.journal.catalogue import Catalogue
from newfound.journal.rows import SightingRow
from newfound.sightings import Sighting

if TYPE_CHECKING:
    from newfound.features import Block

_AHEAD = 16  # blocks of images seen before that wait for an answer until one that is new is encoded


class Encodes(Protocol):
    """What makes features of images: the `Encoder` of a run, or one that has others do it."""

    batch: int

    def stream(self, items: Iterable[Any], block: int | None = None) -> Iterator[Block]: ...

    def contents(self, items: Sequence[Any]) -> list[bytes | None]: ...


class Discoverer(Curator):
    """Recognises and discovers on a stream of images, and remembers it in a journal: in memory, a file or a database.

    `observe` may found categories, `predict` never changes anything. Both take a path, a folder, a PIL image, an
    array, a list of these, or an iterator. A finite source gives a list; an iterator gives an iterator that works as
    it is read. An image that cannot be read gives a sighting with its error, and the stream goes on.

    **What was answered is committed.** A journal that is opened again goes on where it stopped, whatever happened;
    others may write to it at the same time, and all see one order. An image whose content is in the journal is not
    entered twice, so that giving a folder again is safe.

    Args:
        encoder: what makes features of images.
        dictionary: what a journal that is empty starts from.
        classes: the names of its known categories.
        journal: where to remember; None for memory.
        fingerprint: of the model, so that a journal is not continued with another.
        about: further facts about the model, kept in the journal.
        threshold: hold scores against this from now on.
        actor: who renames, merges and moves; without it, the user's name.
    """

    def __init__(
        self,
        encoder: Encodes,
        dictionary: Dictionary,
        classes: Sequence[str],
        journal: Journal | None = None,
        *,
        fingerprint: str = "",
        about: dict[str, Any] | None = None,
        threshold: float | None = None,
        actor: str | None = None,
    ) -> None:
        self.encoder = encoder
        journal = Journal.open(None) if journal is None else journal
        if journal.empty:
            genesis = Book(dictionary, Catalogue(classes)).to_bytes()
            journal.begin(fingerprint, {"classes": list(classes), **(about or {})}, genesis)
        model = journal.model()
        if model.fingerprint != fingerprint:
            raise JournalError(
                f"{journal.name} was written with another model than this run's: its features cannot be compared. "
                "Carry it to this run with `newfound journal reencode`, or give another journal."
            )
        super().__init__(journal, actor=actor)
        if threshold is not None and threshold != self.dictionary.threshold:
            self.keeper.edit(lambda book, _: editing.recut(book.dictionary.threshold, float(threshold)))

    @property
    def dictionary(self) -> Dictionary:
        """The dictionary as the journal stands now; to be looked at, not to be changed."""
        return self.keeper.book.dictionary

    def observe(
        self,
        source: Any,
        *,
        block: int | None = None,
        again: bool = False,
        stop: Callable[[], bool] | None = None,
    ) -> list[Sighting] | Iterator[Sighting]:
        """Decide on images in order; what is new founds a category that later images can join.

        Args:
            source: images in any form; see the class.
            block: images encoded and committed together: 64 of a finite source, and one of an iterator, so that each
                is answered before the next is asked for. A larger block is faster; the decisions are taken one by one
                in any case.
            again: enter images anew that are in the journal already.
            stop: asked after every block; if it says so, that was the last one.
        """
        sightings = self._observed(source, whole_or_none(block, "block", 1), again, stop)
        return list(sightings) if is_finite(source) else sightings

    def predict(
        self,
        source: Any,
        *,
        block: int | None = None,
        threshold: float | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> list[Sighting] | Iterator[Sighting]:
        """Decide on images against the categories as they are, or with another cut; nothing changes."""
        sightings = self._predicted(source, whole_or_none(block, "block", 1), threshold, stop)
        return list(sightings) if is_finite(source) else sightings

    def _observed(
        self, source: Any, block: int | None, again: bool, stop: Callable[[], bool] | None
    ) -> Iterator[Sighting]:
        items = iter_source(source)
        size = block or (self.encoder.batch if is_finite(source) else 1)
        plan: deque[_Planned] = deque()  # what was read, in order, and not answered yet
        more = True

        def fresh() -> Iterator[Any]:
            """Images to encode; ends early when all, or most, of what was read so far has been seen before."""
            nonlocal more
            while chunk := list(islice(items, size)):
                contents = self.encoder.contents(chunk)
                earlier = {} if again else self.keeper.journal.find([c for c in contents if c is not None])
                for item, content in zip(chunk, contents, strict=True):
                    row = None if content is None else earlier.get(content)
                    plan.append(_Planned(item, content, row))
                    if row is None:
                        yield item
                seen_before = sum(planned.earlier is not None for planned in plan)
                if seen_before == len(plan) or seen_before >= _AHEAD * size:
                    return
            more = False

        while more:
            for encoded in self.encoder.stream(fresh(), size):
                yield from self._entered(encoded, plan, again)
                if stop is not None and stop():
                    return
            yield from self._recorded([(one.item, one.earlier) for one in plan])  # after the last image that was new
            plan.clear()
            if stop is not None and stop():
                return

    def _entered(self, encoded: Block, plan: deque[_Planned], again: bool) -> list[Sighting]:
        """Enter a block, and answer all that was read up to its last image.

        What is entered is what was encoded: a file that was replaced since it was looked up is the new picture, which
        may have been seen before; the one that is gone was not decided on, and stays unseen.
        """
        planned: list[_Planned] = []
        new: list[_Planned] = []
        while len(new) < len(encoded.items):
            planned.append(plan.popleft())
            new += [planned[-1]] if planned[-1].earlier is None else []
        images = [
            Image(reference(one.item), read or one.content)
            for one, row, read in zip(new, encoded.rows, encoded.contents, strict=True)
            if row is not None
        ]
        entered = self.keeper.enter(images, encoded.features, again=again) if images else []
        book = self.keeper.current
        answers: list[Sighting | None] = []
        before: list[tuple[Any, SightingRow | None]] = []  # those that are in the journal already
        results = iter(zip(encoded.rows, encoded.errors, strict=True))
        for one in planned:
            row, error = next(results) if one.earlier is None else (None, None)
            if error is not None:
                cut = book.dictionary.threshold
                answers.append(Sighting(one.item, None, None, False, None, cut, error=str(error)))
            elif row is None or entered[row].repeated:
                before.append((one.item, one.earlier if row is None else entered[row].row))
                answers.append(None)
            else:
                answers.append(self._answered(one.item, entered[row].row, book.catalogue))
        earlier = iter(self._recorded(before))
        return [next(earlier) if answer is None else answer for answer in answers]

    def _answered(self, item: Any, row: SightingRow, catalogue: Catalogue) -> Sighting:
        if not isinstance(item, (str, os.PathLike)) and self._shown[row.category] < EXEMPLARS:
            self._items[row.number] = item
            self._shown[row.category] += 1
        return Sighting.of(row, item, catalogue.name(row.category))

    def _recorded(self, images: list[tuple[Any, SightingRow | None]]) -> list[Sighting]:
        """What was decided on images before, and where they are now."""
        rows = [row for _, row in images if row is not None]
        now = self.keeper.standing([row.number for row in rows]) if rows else []
        name = self.keeper.current.catalogue.name
        return [
            Sighting.of(row, item, name(category), category=category, is_new=False, repeated=True)
            for (item, _), row, category in zip(images, rows, now, strict=True)
        ]

    def _predicted(
        self, source: Any, block: int | None, threshold: float | None, stop: Callable[[], bool] | None
    ) -> Iterator[Sighting]:
        size = block if block or is_finite(source) else 1
        for encoded in self.encoder.stream(iter_source(source), size):
            rows = self.keeper.predict(encoded.features, threshold) if len(encoded.features) else []
            book = self.keeper.current  # as it was for these: to look at the journal again would cost more than telling
            cut, catalogue = book.dictionary.threshold if threshold is None else threshold, book.catalogue
            for item, row, error in zip(encoded.items, encoded.rows, encoded.errors, strict=True):
                if row is None:
                    yield Sighting(item, None, None, False, None, cut, error=str(error))
                    continue
                category = rows[row].category
                yield Sighting.of(rows[row], item, catalogue.name(category) if category >= 0 else None)
            if stop is not None and stop():
                return


@dataclass(frozen=True)
class _Planned:
    """An image that was looked up: the hash of its content then, and its sighting if it was seen before."""

    item: Any
    content: bytes | None
    earlier: SightingRow | None
