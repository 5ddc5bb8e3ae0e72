"""`newfound discover`: a stream of images in, a line of JSON for each out."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from newfound.cli._common import INTERRUPTED, PARTLY, RunFolder, Threshold, TrunkWeights, counted, say
from newfound.errors import DataError

if TYPE_CHECKING:
    from newfound.discovery import Sighting

_STDIN = "-"


def discover(
    run: RunFolder,
    source: Annotated[
        list[str],
        typer.Argument(metavar="SOURCE", help="Images, folders of images, or - for paths on standard input."),
    ],
    threshold: Threshold = None,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE.jsonl", help="Write the lines here instead of standard output.")
    ] = None,
    block: Annotated[
        int, typer.Option(min=1, metavar="N", help="Encode N images at a time: more is faster, fewer is sooner.")
    ] = 64,
    predict: Annotated[
        bool, typer.Option("--predict", help="Only recognise; no new category is kept for the images that follow.")
    ] = False,
    weights: TrunkWeights = None,
) -> None:
    """Recognise known classes and discover new ones in a stream of images, in order.

    \bnewfound discover runs/birds incoming/ > found.jsonl
    newfound discover runs/birds a.jpg b.jpg more/
    find /data -name '*.jpg' | newfound discover runs/birds - | jq -r .name

    Every image gives a line of JSON as soon as it is decided: image, category
    (its id), name, is_new (it founded the category), score (how well it fits its
    best category), cut (below it, it fits none), runners_up and, where the run
    weighs evidence, how probable the answer is and that the image is of no
    category there was. Paths on standard input are answered N at a time
    (--block 1: each at once).

    An image that cannot be read, or is not there, gives a line with image and
    error; the stream goes on, and the exit code is 3. It is 0 when everything
    was read, and 1 when there was no image at all.
    """
    from newfound.run import load

    discoverer = load(run, weights=weights).discoverer(threshold=threshold)
    decide = discoverer.predict if predict else discoverer.observe
    tally = _Tally(known=len(discoverer.categories()))
    interrupted = False
    with _lines(output) as file, _progress(file) as done, _ctrl_c() as asked:

        def write(line: dict[str, Any]) -> None:
            file.write(json.dumps(line) + "\n")
            file.flush()  # whoever reads the pipe sees it now
            done(1)

        def refuse(name: str, error: DataError) -> None:
            tally.add_error(str(error))
            write({"image": name, "error": str(error)})

        try:
            for images in _streams(source, block, refuse, asked):
                for sighting in decide(images, block=block):
                    tally.add(sighting)
                    line = sighting.as_dict()
                    write({key: line[key] for key in ("image", "error")} if sighting.error else line)
        except KeyboardInterrupt:
            interrupted = True
    if interrupted or asked.is_set():
        say(f"interrupted after {tally.describe(predict)}")
        raise typer.Exit(INTERRUPTED)
    if not tally.images and not tally.errors:
        raise DataError(f"there is no image in {' '.join(source)}: give images, folders of images, or paths on stdin.")
    say(tally.describe(predict))
    if tally.errors:
        raise typer.Exit(PARTLY)


@dataclass
class _Tally:
    """What the stream has been so far."""

    known: int  # classes that the run was taught
    images: int = 0
    recognised: int = 0  # images of those classes
    new: int = 0  # images that founded a category, or would have
    errors: int = 0
    first_error: str = ""

    def add(self, sighting: Sighting) -> None:
        if sighting.error:
            self.add_error(sighting.error)
            return
        self.images += 1
        self.new += sighting.is_new
        self.recognised += sighting.category is not None and sighting.category < self.known

    def add_error(self, error: str) -> None:
        self.errors += 1
        self.first_error = self.first_error or error

    def describe(self, predict: bool) -> str:
        found = "unlike any of them"
        if not predict:
            found = f"in {counted(self.new, 'new category', 'new categories')}"
        images = counted(self.images, "image", "images")
        text = f"{images}: {self.recognised} in known classes, {self.images - self.recognised} {found}"
        return text + (f"; {self.errors} could not be read, the first: {self.first_error}" if self.errors else "")


@contextmanager
def _ctrl_c() -> Iterator[threading.Event]:
    """Remembers that Ctrl-C was pressed, besides raising KeyboardInterrupt.

    Python drops an exception that is raised while an object is being cleaned up, as finished streams and their threads
    are after every block; the press must not be lost with it.
    """
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():  # where no handler can be set
        yield asked
        return

    def remember(_signal: int, _frame: Any) -> None:
        asked.set()
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, remember)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)


def _streams(
    sources: list[str], block: int, refuse: Callable[[str, DataError], None], asked: threading.Event
) -> Iterator[Iterator[Any]]:
    """The images in order, as iterators to be decided on one after the other.

    Folders and files make one stream, read ahead of the encoder. Standard input makes one for every `block` paths:
    reading ahead there would wait for paths that whoever writes them may only send after an answer.
    """
    for stdin, group in groupby(sources, lambda source: source == _STDIN):
        if not stdin:
            yield _images(group, refuse)
            continue
        paths = _paths_from_stdin(asked)
        while chunk := list(islice(paths, block)):
            yield _images(chunk, refuse)


def _images(sources: Iterable[str], refuse: Callable[[str, DataError], None]) -> Iterator[Any]:
    from newfound.datasets import iter_source

    for source in sources:
        try:
            yield from iter_source(source)
        except DataError as error:  # a folder that may not be looked into
            refuse(source, error)


def _paths_from_stdin(asked: threading.Event) -> Iterator[str]:
    while not asked.is_set() and (line := sys.stdin.buffer.readline()):
        path = os.fsdecode(line.rstrip(b"\r\n"))
        if path.strip():
            yield path


@contextmanager
def _lines(output: Path | None) -> Iterator[IO[str]]:
    if output is None:
        yield sys.stdout
        return
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        file = output.open("w", encoding="utf-8")
    except OSError as error:
        raise DataError(f"cannot write {output}: {error.strerror}") from error
    with file:
        yield file


@contextmanager
def _progress(file: IO[str]) -> Iterator[Callable[[int], None]]:
    """A bar for a person who does not see the lines go by."""
    from newfound.progress import BarReporter, Reporter

    watching = sys.stderr.isatty() and not file.isatty()
    with (BarReporter() if watching else Reporter()).stage("discovering") as done:
        yield done
