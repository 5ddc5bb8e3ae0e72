"""What a journal has found, as other tools see it: pictures, and in each the things that were recognised."""

from __future__ import annotations

import os
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from newfound import __version__
from newfound.crops import Box, fragment, parted
from newfound.curator import Curator
from newfound.journal.keeper import NOWHERE
from newfound.journal.rows import SightingRow, as_text
from newfound.sightings import Category

_FRAME = re.compile(r"#(t|time)=[^/#]*$")  # how frames of videos and cameras are named
_COLUMNS = ("file", "box", "number", "category", "score", "cut", "probability", "placed_by", "placed_at", "time")


@dataclass(frozen=True, slots=True)
class Finding:
    """One sighting as it stands now.

    Score, cut and probability are those of the answer, and None where they say nothing of the category: where the
    sighting has been moved since, and for the score and the cut also where it founded its category, because then they
    say how little it is like the others.
    """

    number: int
    box: Box | None  # None for the whole picture
    category: int
    label: str
    score: float | None
    cut: float | None
    probability: float | None
    placed_by: str | None  # the person, or the tool, that put it there
    placed_at: float | None  # and when
    time: float  # of the sighting


@dataclass(frozen=True, slots=True)
class Picture:
    """An image file, or a frame of a video, and what was found in it."""

    path: str  # or a URL
    things: list[Finding]

    def reference(self, thing: Finding) -> str:
        """What the journal calls a thing in this picture."""
        return self.path if thing.box is None else self.path + fragment(thing.box)


class Findings:
    """All that a journal holds, put in order of pictures on disk, so that a large journal needs no more memory.

    Left out are images that came without a name, what was forgotten and, unless `ignored`, categories that a person
    ignores. A file that was observed again, because it had changed, is told of once: as it was seen last.

    Args:
        curator: of the journal.
        ignored: with what is in ignored categories.
    """

    def __init__(self, curator: Curator, *, ignored: bool = False) -> None:
        self._curator = curator
        with curator.keeper.still() as book:
            self.named = {c for c, entry in book.catalogue.entries.items() if entry.name is not None}
            self.taught = book.catalogue.taught  # how many categories were known from the start
        self.categories: dict[int, Category] = {c.id: c for c in curator.categories() if ignored or not c.ignored}
        self.left_out: Counter[str] = Counter()  # why, and how many images
        self.notes: list[str] = []  # what else a person should know of what was written
        self.fixed: set[int] = set()  # sightings that cannot be moved: their images could not be read again
        model = curator.keeper.journal.model()
        self.model = f"newfound {__version__} {model.fingerprint[:8]}".strip()
        self._base = sqlite3.connect("")  # a file that only SQLite knows, and that goes away by itself
        self._base.execute(
            "CREATE TABLE things (file TEXT, box TEXT, number INTEGER, category INTEGER, score REAL, cut REAL, "
            "probability REAL, placed_by TEXT, placed_at REAL, time REAL, PRIMARY KEY (file, box)) WITHOUT ROWID"
        )
        self._fill()

    def __enter__(self) -> Findings:
        return self

    def __exit__(self, *_: object) -> None:
        self._base.close()

    def __len__(self) -> int:
        return int(self._base.execute("SELECT count(*) FROM things").fetchone()[0])

    @property
    def has_boxes(self) -> bool:
        """Whether any thing is a part of its picture."""
        return bool(self._base.execute("SELECT EXISTS (SELECT 1 FROM things WHERE box != '')").fetchone()[0])

    @property
    def has_wholes(self) -> bool:
        """Whether any thing is all of its picture."""
        return bool(self._base.execute("SELECT EXISTS (SELECT 1 FROM things WHERE box = '')").fetchone()[0])

    def pictures(self, *, frames: bool = False) -> Iterator[Picture]:
        """All pictures by path; without `frames` those of videos, which are no files, are left out and counted."""
        rows = self._base.execute(f"SELECT {', '.join(_COLUMNS)} FROM things ORDER BY file, box")
        for path, group in groupby(rows, lambda row: row[0]):
            picture = Picture(path, [self._thing(row) for row in group])
            if not frames and _FRAME.search(path):
                self.leave_out(picture, "a frame of a video, which is no file")
            else:
                yield picture

    def leave_out(self, picture: Picture, why: str) -> None:
        """Count what a format cannot hold."""
        self.left_out[why] += len(picture.things)

    def folder(self) -> str:
        """The deepest folder that all files lie in; empty if there is none, as for URLs."""
        first, last = self._base.execute("SELECT min(file), max(file) FROM things").fetchone()
        if first is None or not (os.path.isabs(first) and os.path.isabs(last)):
            return ""
        common = os.path.commonpath([os.path.dirname(first), os.path.dirname(last)])
        return common if common != os.path.dirname(common) else ""

    def numbers(self) -> Iterator[tuple[int, int]]:
        """The number and the category of every thing."""
        return self._base.execute("SELECT number, category FROM things ORDER BY number")

    def at(self, path: str) -> list[Finding]:
        """The things in the picture that has this path, ends with it, or does so but for its own ending."""
        path = as_text(path)
        for where, value in self._searches(path if "/" in path else path.replace("\\", "/")):
            files = [row[0] for row in self._base.execute(f"SELECT DISTINCT file FROM things WHERE {where}", value)]
            if len(files) == 1:
                rows = self._base.execute(f"SELECT {', '.join(_COLUMNS)} FROM things WHERE file = ?", files)
                return [self._thing(row) for row in rows]
        return []

    def numbered(self, number: int) -> tuple[str, Finding] | None:
        """The path and the thing of a sighting, if it is there."""
        self._base.execute("CREATE INDEX IF NOT EXISTS by_number ON things (number)")
        row = self._base.execute(f"SELECT {', '.join(_COLUMNS)} FROM things WHERE number = ?", (number,)).fetchone()
        return None if row is None else (row[0], self._thing(row))

    def alike(self, content: bytes, category: int | None = None) -> Finding | None:
        """The thing whose image has this content; of several the last, or the last in a category if there is one."""
        rows = self._curator.keeper.journal.alike([content])
        things = [found[1] for row in reversed(rows) if (found := self.numbered(row.number)) is not None]
        return next((thing for thing in things if thing.category == category), next(iter(things), None))

    def _searches(self, path: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        yield "file = ?", (path,)
        self._index_names()
        tail = "/" + path.removeprefix("./").lstrip("/")
        name = tail.rpartition("/")[2]
        yield "name_of(file) = ? AND substr(file, -length(?)) = ?", (name, tail, tail)
        yield "stem_of(file) = ? AND substr(file, 1, length(file) - length(ending_of(file))) LIKE ? ESCAPE '!'", (
            name,
            "%" + re.sub("([!%_])", r"!\1", tail),
        )

    def _index_names(self) -> None:
        """For files that are looked up by the end of their path, as tools that moved them give it."""
        if self._base.execute("SELECT 1 FROM sqlite_master WHERE name = 'by_name'").fetchone():
            return
        for name, function in (("name_of", os.path.basename), ("stem_of", _stem), ("ending_of", _ending)):
            self._base.create_function(name, 1, function, deterministic=True)
        self._base.execute("CREATE INDEX by_name ON things (name_of(file))")
        self._base.execute("CREATE INDEX by_stem ON things (stem_of(file))")

    def _thing(self, row: tuple[Any, ...]) -> Finding:
        _, box, number, category, *rest = row
        return Finding(number, parted(box)[1], category, self.categories[category].name, *rest)

    def _fill(self) -> None:
        keeper, journal = self._curator.keeper, self._curator.keeper.journal
        placed = _placed(self._curator)
        places = ", ".join("?" * len(_COLUMNS))
        for rows in journal.stream(0, journal.position().sightings, features=False):
            told = [row for row in rows if row.image is not None]
            self.left_out["no name, as for pictures in memory"] += sum(
                row.image is None and not row.forgotten for row in rows
            )
            numbers = [row.number for row in told]
            now, pinned = keeper.standing(numbers), journal.pinned(numbers)
            resolve = keeper.current.catalogue.resolve
            self._base.executemany(
                f"INSERT OR REPLACE INTO things VALUES ({places})",
                (
                    _packed(row, category, resolve(row.category) == category,
                            placed.get(row.number, ("someone", None)) if row.number in pinned else (None, None))
                    for row, category in zip(told, now, strict=True)
                ),
            )  # fmt: skip
            self.fixed |= {row.number for row in told if row.part == NOWHERE}
        # Only now: a file that was seen last in what is not told of, is not told of as it was seen before.
        self._base.create_function("is_told", 1, self.categories.__contains__)
        ignored = self._base.execute("DELETE FROM things WHERE NOT is_told(category)").rowcount
        self.left_out["in ignored categories (--ignored takes them along)"] += ignored
        self.left_out = +self.left_out


def unnamed(category: int, taught: int) -> str:
    """What a category goes by until a person names it, as the journal's catalogue says it."""
    return f"new-{category - taught + 1}"


def _packed(
    row: SightingRow, category: int, stands: bool, placed: tuple[str | None, float | None]
) -> tuple[Any, ...]:  # fmt: skip
    if row.created or not stands:
        row = replace(row, score=None, cut=None, probability=row.probability if stands else None)
    path, box = parted(row.image or "")
    boxed = "" if box is None else fragment(box)
    return path, boxed, row.number, category, row.score, row.cut, row.probability, *placed, row.time


def _placed(curator: Curator) -> dict[int, tuple[str, float]]:
    """Who placed each of the sightings that were not left where they were found, and when."""
    found: dict[int, tuple[str, float]] = {}
    for event in curator.keeper.journal.events(derived=False):
        for change in event.details.get("changes", ()):
            if change["op"] == "place":
                found |= dict.fromkeys(change["sightings"], (event.actor, event.time))
    return found


def _stem(path: str) -> str:
    return os.path.splitext(os.path.basename(path))[0]


def _ending(path: str) -> str:
    return os.path.splitext(path)[1]
