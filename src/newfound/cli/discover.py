"""`newfound discover`: a stream of images in, an answer for each out."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from pathlib import Path
from typing import Annotated

import typer

from newfound.cli._common import (
    INTERRUPTED,
    PARTLY,
    AsJson,
    Device,
    RunFolder,
    Runtime,
    Threshold,
    TrunkWeights,
    finite,
    print_json,
    say,
)
from newfound.cli._deciding import STDIN, batches, decide, how_many
from newfound.cli._journal import Where, may_be_there, where_is
from newfound.errors import DataError, MissingFileError, SettingsError
from newfound.outputs import FORMATS, LINKS, Answers, Sorter, Tally, open_output
from newfound.sources import FolderWatch, Stop, is_live
from newfound.sources.megadetector import ANIMAL, from_megadetector

_BLOCK = 64


def discover(
    run: RunFolder,
    source: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE",
            help="Images, folders, URLs (s3://birds/2026/*.jpg), @FILE with a path or URL a line, or - for paths or "
            "JSON lines on standard input.",
        ),
    ],
    journal: Where = None,
    no_journal: Annotated[
        bool, typer.Option("--no-journal", "--in-memory", help="Start from the known classes and keep nothing.")
    ] = False,
    predict: Annotated[
        bool, typer.Option("--predict", help="Only recognise: found no category, and write nothing to the journal.")
    ] = False,
    repeat: Annotated[
        bool, typer.Option("--repeat", help="Also give the answers of images that were seen before.")
    ] = False,
    watching: Annotated[
        bool, typer.Option("--watch", help="Each SOURCE is a folder: go on with the images that arrive in it.")
    ] = False,
    settle: Annotated[
        float,
        typer.Option(min=0, metavar="SECONDS", callback=finite, help="With --watch: how long a file must not change."),
    ] = 1.0,
    video: Annotated[
        bool, typer.Option("--video", help="Each SOURCE is a video, a camera's number (0), or an address (rtsp://...).")
    ] = False,
    fps: Annotated[float, typer.Option(metavar="N", help="With --video: frames to look at in a second.")] = 1.0,
    megadetector: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.json",
            help="Look at what MegaDetector found, in place of whole images; SOURCE is where FILE's paths start from.",
        ),
    ] = None,
    confidence: Annotated[
        float, typer.Option(min=0, max=1, metavar="X", help="With --megadetector: what a detection needs at least.")
    ] = 0.2,
    pad: Annotated[
        float, typer.Option(min=0, metavar="X", help="With --megadetector: add so much of the box on each side.")
    ] = 0.0,
    detections: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", show_default=ANIMAL, help="With --megadetector: what to look at; repeatable."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the answers here instead of to standard output.")
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(metavar="|".join(FORMATS), show_default="by FILE's ending, else jsonl", help="Of the answers."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace FILE if it is there.")] = False,
    sort_into: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Also put each image into DIR/ID-NAME, by category.")
    ] = None,
    link: Annotated[
        str, typer.Option(metavar="|".join(LINKS), help="With --sort-into: how; a copy where no link is possible.")
    ] = LINKS[0],
    threshold: Threshold = None,
    block: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", show_default=f"{_BLOCK}; 1 for a camera",
            help="Encode N images at a time: more is faster, fewer is sooner.",
        ),
    ] = None,
    weights: TrunkWeights = None,
    runtime: Runtime = "torch",
    device: Device = "auto",
    ray: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Encode on a Ray cluster: its address, auto, or local to start one here."),
    ] = None,
    encoders: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", show_default="by its free processors", help="With --ray: how many processes encode."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Recognise known classes and discover new ones in a stream of images, in order.

    \bnewfound discover runs/birds incoming/ > found.jsonl
    newfound discover runs/birds incoming/ --watch --output found.csv
    newfound discover runs/birds feeder.mp4 --video --fps 2 --sort-into sorted/
    find /data -name '*.jpg' | newfound discover runs/birds - | jq -r .name

    Every image gives a line of JSON as soon as it is decided: image, category
    (its id), name, is_new (it founded the category), score (how well it fits its
    best category), cut (below it, it fits none), runners_up and, where the run
    weighs evidence, how probable the answer is, each of the runners-up, and
    that the image is of no category there was. Lines on standard input are
    answered N at a time (--block 1: each at once); one such as
    {"image": "a.jpg", "id": 7} gets back what else is in it.

    What is found is kept in the journal: the same command, given again, goes on
    where it was, and images that were seen before, by content, are only counted.
    FILE is then added to (Parquet goes on in FILE-2.parquet); in any other case
    a FILE that is there is an error, unless --overwrite is given.

    Ctrl-C, SIGTERM and a terminal that is closed finish the block in hand,
    commit it, and leave with a summary and exit code 130; a second Ctrl-C stops
    at once. An image that cannot be read, or is not there, gives a line with
    image and error; the stream goes on, and the exit code is 3. It is 0 when
    everything was read, and 1 when there was no image.
    """
    _check(source, watching, video, fps, as_json, output)
    if encoders is not None and ray is None:
        raise SettingsError("--encoders is for --ray: give the address of a cluster, or --ray local.")
    if ray is not None and runtime != "torch":
        raise SettingsError(f"--runtime {runtime} is for this machine; encoders of --ray run on torch.")
    if ray is not None and device != "auto":
        raise SettingsError(f"--device {device} is for this machine; encoders of --ray choose on theirs.")
    if sort_into is not None:
        _check_apart(sort_into, source)
    sorter = None if sort_into is None else Sorter(sort_into, link)
    size = block or (1 if video and any(map(is_live, source)) else _BLOCK)
    folders = FolderWatch(source, settle=settle) if watching else None
    crops = None
    if megadetector is not None:
        if watching or video or STDIN in source:
            raise SettingsError("--megadetector is for images in folders: leave out --watch, --video and -.")
        kinds = detections or [ANIMAL]
        crops = from_megadetector(megadetector, source, confidence=confidence, pad=pad, kinds=kinds)

    from newfound.journal.engines import may_write
    from newfound.loading import load
    from newfound.remote import RayEncoder

    where = _journal(run, journal, no_journal, predict)
    with ExitStack() as stack:
        loaded = load(run, weights=weights, runtime=runtime, device=device)
        encoder = None if ray is None else stack.enter_context(RayEncoder(loaded, ray, encoders=encoders))
        cut, looking = None if predict else threshold, predict and not may_write(where)
        discoverer = loaded.discoverer(where, threshold=cut, encoder=encoder, read_only=looking)
        stop = stack.enter_context(Stop())
        stack.callback(discoverer.close)  # after Stop: a Ctrl-C must not come out of the middle of this
        categories = discoverer.categories()
        tally = Tally(predict, {category.id for category in categories if category.origin == "known"})
        resumed = not predict and any(category.count for category in categories)
        writer = stack.enter_context(open_output(output, format, resumed=resumed, overwrite=overwrite, say=say))
        listed = not (watching or video or crops is not None)
        done = stack.enter_context(_progress(output, source if listed else [STDIN]))
        if ray is not None:  # which tells on standard output that an encoder has died, in between the answers
            stack.enter_context(redirect_stdout(sys.stderr))
        answers = Answers(writer, sorter, tally, done, repeat=repeat or predict)
        try:
            for batch in [crops] if crops is not None else batches(source, folders, video, fps, size, stop):
                decide(discoverer, batch, size, answers, stop, threshold)
                if stop.asked:
                    break
        except KeyboardInterrupt:  # a second Ctrl-C
            stop.asked = True
    tally.incomplete = folders.waiting if folders else 0
    if as_json:
        print_json(tally.as_dict() | {"interrupted": stop.asked})
    if not stop.asked and not tally.met:
        raise DataError(f"there is no image in {' '.join(source)}: give images, folders of images, or paths on stdin.")
    say(f"interrupted after {tally.describe()}" if stop.asked else tally.describe())
    if stop.asked or tally.errors or tally.unsorted:
        raise typer.Exit(INTERRUPTED if stop.asked else PARTLY)


def _check(sources: list[str], watching: bool, video: bool, fps: float, as_json: bool, output: Path | None) -> None:
    """Raise SettingsError for options that do not go together."""
    if watching and video:
        raise SettingsError("--watch is for folders of images and --video for videos; give one of them.")
    if (watching or video) and STDIN in sources:
        raise SettingsError(f"- reads lines from standard input; it cannot be {'watched' if watching else 'a video'}.")
    if not 0 < fps < float("inf"):
        raise SettingsError(f"--fps {fps}: give a number of frames a second above 0.")
    if as_json and output is None:
        raise SettingsError("--json prints a summary on standard output: give --output FILE for the answers.")


def _check_apart(target: Path, sources: Iterable[str]) -> None:
    """Raise SettingsError if sorted images would be taken for new ones."""
    for source in filter(os.path.isdir, sources):
        if target.resolve().is_relative_to(Path(source).resolve()):
            raise SettingsError(f"--sort-into {target} lies in {source}, where its images would be found again.")


def _journal(run: Path, journal: str | None, no_journal: bool, predict: bool) -> str | None:
    """Which journal to open; None for none, as where `--predict` would have to make one."""
    if no_journal:
        if journal is not None:
            raise SettingsError(f"--journal {journal} and --no-journal exclude each other.")
        return None
    where = where_is(run, journal)
    if predict and not may_be_there(where):
        if journal:
            raise MissingFileError(f"there is no journal {journal}")
        return None
    return where


@contextmanager
def _progress(output: Path | None, sources: list[str]) -> Iterator[Callable[[int], None]]:
    """A bar for a person who does not see the lines go by; with how many images there are, where that can be told."""
    from newfound.progress import BarReporter, Reporter

    seen = (output is None and sys.stdout.isatty()) or not sys.stderr.isatty()
    total = None if seen else how_many(sources)
    with (Reporter() if seen else BarReporter()).stage("discovering", total) as done:
        yield done
