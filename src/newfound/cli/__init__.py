"""The command `newfound`: one file a command; nothing heavy is imported before a command needs it."""

from __future__ import annotations

from typing import Annotated

import typer

from newfound import __version__
from newfound._memory import keep_large_allocations
from newfound.cli import (
    bench_group,
    categories,
    demo,
    discover,
    doctor,
    evaluate,
    export,
    journal,
    labels,
    push,
    serve,
    split,
    train,
)
from newfound.cli._common import CarefulGroup, flush_quietly, use_threads

app = typer.Typer(
    name="newfound",
    cls=CarefulGroup,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
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


_START, _USE, _MEASURE = "Start here", "Learn and discover", "Measure"
app.command(rich_help_panel=_START)(demo.demo)
app.command(rich_help_panel=_START)(doctor.doctor)
app.command(rich_help_panel=_USE)(train.train)
app.command(rich_help_panel=_USE)(discover.discover)
app.command("serve", rich_help_panel=_USE)(serve.serve)
app.command(rich_help_panel=_USE)(push.push)
app.command(rich_help_panel=_USE)(export.export)
app.add_typer(categories.app, name="categories", rich_help_panel=_USE)
app.add_typer(labels.app, name="labels", rich_help_panel=_USE)
app.command(rich_help_panel=_USE)(journal.promote)
app.command(rich_help_panel=_USE)(journal.replay)
app.add_typer(journal.app, name="journal", rich_help_panel=_USE)
app.command(rich_help_panel=_MEASURE)(split.split)
app.command(rich_help_panel=_MEASURE)(evaluate.evaluate)
app.add_typer(bench_group.app, name="bench", rich_help_panel=_MEASURE)


def main() -> None:
    """Run the command; ends the process with its exit code."""
    keep_large_allocations()
    try:
        app(prog_name="newfound")
    finally:
        flush_quietly()


__all__ = ["app", "main"]
