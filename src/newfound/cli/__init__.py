"""The command `newfound`: one file a command; neither it nor anything heavy is imported before it is asked for."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Annotated, ClassVar

import typer

from newfound import __version__
from newfound._memory import keep_large_allocations
from newfound._threads import spin_briefly
from newfound.cli._common import FAILED, debugging, flush_quietly, in_one_line, say, use_threads
from newfound.cli._later import MARKUP, Later, LaterGroup

_START, _USE, _MEASURE = "Start here", "Learn and discover", "Measure"


class _Commands(LaterGroup):
    listed: ClassVar[Mapping[str, Later]] = {
        name: Later(f"newfound.cli.{where}", panel, told)
        for name, where, panel, told in (
            ("demo", "demo:demo", _START,
             "See newfound learn half of the classes and discover the others; offline, in a few minutes."),
            ("doctor", "doctor:doctor", _START,
             "Say what works on this machine: devices, cache, and which backbones can be had."),
            ("train", "train:train", _USE,
             "Learn the classes of a labelled data set, so that they are recognised and others discovered."),
            ("discover", "discover:discover", _USE,
             "Recognise known classes and discover new ones in a stream of images, in order."),
            ("serve", "serve:serve", _USE,
             "Serve a run over HTTP, with a page that shows categories as they are discovered."),
            ("push", "push:push", _USE, "Publish a run on the Hugging Face hub."),
            ("export", "export:export", _USE,
             "Write a run as ONNX, with what it knows and a script that needs only onnxruntime, numpy and Pillow."),
            ("categories", "categories:app", _USE,
             "Look at the categories of a run's journal; name, merge, split and move them."),
            ("labels", "labels:app", _USE, "Take what was found to labelling tools, and take corrections back."),
            ("promote", "journal:promote", _USE, "Turn named discoveries into classes to be taught."),
            ("replay", "journal:replay", _USE,
             "Play the recorded stream again, without touching an image; nothing is changed."),
            ("journal", "journal:app", _USE,
             "What was seen and decided, in order: check it, carry it to another model, erase from it."),
            ("split", "split:split", _MEASURE, "Split a labelled data set for on-the-fly category discovery."),
            ("evaluate", "evaluate:evaluate", _MEASURE,
             "Score a run on a labelled stream of classes that it knows (old) and others (new)."),
            ("bench", "bench_group:app", _MEASURE,
             "Measure newfound on this machine, and the paper's tables and figures on your data."),
        )
    }  # fmt: skip


app = typer.Typer(
    name="newfound",
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=MARKUP,
    pretty_exceptions_enable=False,  # what a person should read is one line; the rest is a bug, shown as it is
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"newfound {__version__}")
        raise typer.Exit


@app.callback()
def newfound(
    threads: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Use N processor threads (default: as many as there are).")
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Recognise the classes you teach and discover, one image at a time, the ones you did not.

    \bnewfound demo                                        the whole story, offline
    newfound train labelled/ --out runs/birds            one folder a class
    newfound discover runs/birds incoming/ > found.jsonl

    Exit codes: 0 done, 1 failed, 2 the command or a setting is wrong, 3 some
    images could not be read, 130 interrupted. NEWFOUND_DEBUG=1 shows the
    traceback of an error.
    """
    if threads is not None:
        use_threads(threads)


def main() -> None:
    """Run the command; ends the process with its exit code."""
    keep_large_allocations()
    spin_briefly()
    try:
        app(prog_name="newfound")
    except OSError as error:  # standard output is full: the list of commands is printed before one of them is called
        if debugging():
            raise
        say(f"newfound: {in_one_line(error)}")
        sys.exit(FAILED)
    finally:
        flush_quietly()


__all__ = ["app", "main"]
