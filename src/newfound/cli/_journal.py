"""What the commands on a journal share: where it is, and opening it without loading a model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from newfound.errors import JournalError, MissingFileError

if TYPE_CHECKING:
    from newfound.curator import Curator
    from newfound.journal import Journal

FILE = "journal.db"

Where = Annotated[
    str | None,
    typer.Option(
        "--journal", metavar="FILE|URL", show_default=f"RUN/{FILE}",
        help="The journal: a file, or postgresql://user@host/database.",
    ),
]  # fmt: skip
Actor = Annotated[str | None, typer.Option("--by", metavar="NAME", help="Who does this.", show_default="the user")]


def where_is(run: Path, journal: str | None) -> str:
    """The journal of a run, unless another is named."""
    return journal or str(run / FILE)


def may_be_there(where: str) -> bool:
    """Whether a journal is in a file that is there, or on a server, which only opening it can ask."""
    from newfound.journal.engines import parse

    place = parse(where)
    return place.is_file() if isinstance(place, Path) else place is not None


@contextmanager
def opened(run: Path, journal: str | None, *, looking: bool = False) -> Iterator[Journal]:
    """A journal that is there.

    Args:
        looking: nothing will be written, so that a journal which may only be read will do. One that can be written
            is opened for that all the same: it is brought up to date if it is an older newfound's.

    Raises:
        MissingFileError: there is none.
        JournalError: it cannot be used, or nothing was entered yet.
    """
    from newfound.journal import Journal
    from newfound.journal.engines import may_write

    where = where_is(run, journal)
    if not may_be_there(where):
        if not journal and not run.is_dir():
            raise MissingFileError(f"there is no run folder {run}.")
        raise MissingFileError(
            f"there is no journal {where}: `newfound discover {run} IMAGES` keeps one, or name it with --journal."
        )
    with Journal.open(where, read_only=looking and not may_write(where)) as found:
        if found.empty:
            raise JournalError(f"{found.name} is empty: nothing has been discovered with it yet.")
        yield found


@contextmanager
def curating(run: Path, journal: str | None, by: str | None = None, *, looking: bool = False) -> Iterator[Curator]:
    """The categories of a journal; arguments as in `opened`."""
    from newfound.curator import Curator

    with opened(run, journal, looking=looking) as found:
        yield Curator(found, actor=by)


def clock(seconds: float) -> str:
    """A time for people, to the second, in their own zone."""
    return datetime.fromtimestamp(seconds).isoformat(" ", "seconds")


def named_images(images: list[str]) -> list[Any]:
    """Images as a person names them: paths, or numbers of sightings."""
    return [int(image) if image.isdecimal() and not Path(image).exists() else image for image in images]
