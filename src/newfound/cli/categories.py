"""`newfound categories`: look at what was found, and name, merge, split and move it."""

from __future__ import annotations

import csv
import sys
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from newfound._words import counted
from newfound.cli import naming
from newfound.cli._common import (
    AsJson,
    CarefulGroup,
    RunFolder,
    command,
    print_json,
    print_table,
    say,
    visible,
)
from newfound.cli._journal import Actor, Where, clock, curating, named_images
from newfound.cli._undone import undone
from newfound.errors import DataError
from newfound.files import new_file

_ANYWHERE = ("--journal", "--by")
_LISTED = 10  # of a list in the history


class _Group(CarefulGroup):
    """Takes the options that all of its commands share wherever they are written, also after a command's own words.

    A run alone, with other options or without, is `list`.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        front: list[str] = []
        rest: list[str] = []
        words = iter(args)
        for word in words:
            if word == "--":
                rest += [word, *words]
            elif word in _ANYWHERE:
                front += [word, *islice(words, 1)]
            else:
                (front if word.startswith(tuple(f"{name}=" for name in _ANYWHERE)) else rest).append(word)
        said = [word for word in rest if not word.startswith("-")]
        if len(said) == 1 and len(rest) > 1 and not {"--", "--help"} & set(rest):
            rest = [*said, "list", *(word for word in rest if word.startswith("-"))]
        return super().parse_args(ctx, front + rest)


app = typer.Typer(cls=_Group, invoke_without_command=True)

Id = Annotated[int, typer.Argument(metavar="ID", help="The category's id.")]
Ids = Annotated[list[int], typer.Argument(metavar="ID...", help="Ids of categories.")]
Images = Annotated[list[str], typer.Argument(metavar="IMAGE...", help="Image files, or numbers of sightings.")]
Stop = Annotated[bool, typer.Option("--stop", help="Take the mark off again.")]


@dataclass
class _Asked:
    """Which journal the commands below `categories RUN` are about, and who gives them."""

    run: Path
    journal: str | None
    by: str | None

    def open(self, *, looking: bool = False) -> Any:
        return curating(self.run, self.journal, self.by, looking=looking)


@app.callback()
def categories(ctx: typer.Context, run: RunFolder, journal: Where = None, by: Actor = None) -> None:
    """Look at the categories of a run's journal; name, merge, split and move them.

    \bnewfound categories runs/birds                       all of them, as `list`
    newfound categories runs/birds rename 7 heron
    newfound categories runs/birds merge 9 12
    newfound categories runs/birds undo

    Every change is an event in the journal, committed when the command
    returns. Ids stay valid for ever: a merged category is found under both.
    """
    ctx.obj = _Asked(run, journal, by)
    if ctx.invoked_subcommand is None:
        list_categories(ctx)


@app.command("list")
def list_categories(
    ctx: typer.Context,
    merged: Annotated[bool, typer.Option("--merged", help="Also those that live on under another id.")] = False,
    ignored: Annotated[bool, typer.Option("--ignored", help="Also those that are ignored.")] = False,
    as_json: AsJson = False,
) -> None:
    """All categories: id, name, origin, and how many images each has."""
    with ctx.obj.open(looking=True) as curator:
        found = [c for c in curator.categories(merged=merged) if ignored or not c.ignored]
    if as_json:
        print_json([category.as_dict() for category in found])
        return
    rows = [("id", "name", "origin", "images", "")]
    rows += [(str(c.id), c.name, c.origin, str(c.count), _remark(c)) for c in found]
    print_table(rows, left=3)


def _remark(category: Any) -> str:
    marks = [name for name in ("ignored", "promoted") if getattr(category, name)]
    if category.merged_into is not None:
        marks.append(f"now {category.merged_into}")
    return ", ".join(marks)


@app.command()
def show(
    ctx: typer.Context,
    category: Id,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="Show so many images.")] = 20,
    as_json: AsJson = False,
) -> None:
    """A category and its images, oldest first, with what each was told."""
    with ctx.obj.open(looking=True) as curator:
        found = curator.category(category)
        sightings = curator.sightings(found.id, limit=limit)
    if as_json:
        lines = [sighting.as_dict(sighting.number or 0) for sighting in sightings]
        print_json(found.as_dict() | {"sightings": lines})
        return
    count = counted(found.count, "image")
    typer.echo(visible(", ".join(filter(None, (f"{found.id} {found.name}: {found.origin}", count, _remark(found))))))
    rows = [("sighting", "image", "score")]
    rows += [(str(s.number), str(s.image or ""), f"{s.score:.3f}") for s in sightings]
    print_table(rows, left=2)
    if len(sightings) == limit < found.count:
        say(f"the first {len(sightings)} of {count}; --limit N shows N")


@app.command()
def rename(ctx: typer.Context, category: Id, name: Annotated[str, typer.Argument(metavar="NAME")]) -> None:
    """Give a category a name."""
    with ctx.obj.open() as curator:
        found = curator.rename(category, name)
        changed = curator.last_edit is not None
        same = [c for c in curator.categories() if c.name == found.name and c.id != found.id]
    if changed:
        say(f"category {found.id} is now {found.name}")
    else:
        say(f"nothing changed: category {found.id} is called {found.name} already")
    if same:
        say(f"category {same[0].id} has that name too, and stays another one")
    if same and "discovered" in (found.origin, same[0].origin):  # known ones stay apart
        where = ["--journal", ctx.obj.journal] if ctx.obj.journal else []
        say("to make one of both:\n" + command("categories", ctx.obj.run, "merge", same[0].id, found.id, *where))


app.command("name")(naming.name)


@app.command()
def merge(ctx: typer.Context, categories: Ids) -> None:
    """Make one category of several: the known one, else the oldest, lives on."""
    with ctx.obj.open() as curator:
        found = curator.merge(categories)
        alone = curator.last_edit is None
    count = counted(found.count, "image")
    if alone:
        say(f"nothing to merge: that is category {found.id} ({found.name}) alone, with {count}")
    else:
        say(f"category {found.id} ({found.name}) has {count} now")


@app.command()
def split(ctx: typer.Context, category: Id, images: Images) -> None:
    """Make a new category of some images of one."""
    with ctx.obj.open() as curator:
        found = curator.split(category, named_images(images))
    say(f"category {found.id} ({found.name}) has {counted(found.count, 'image')}")


@app.command()
def move(ctx: typer.Context, category: Id, images: Images) -> None:
    """Say that images belong to a category. They stay there."""
    with ctx.obj.open() as curator:
        found = curator.move(named_images(images), category)
        changed = curator.last_edit is not None
    if changed:
        say(f"category {found.id} ({found.name}) has {counted(found.count, 'image')} now")
    else:
        say(f"nothing changed: a person has put that into category {found.id} ({found.name}) before")


@app.command()
def ignore(ctx: typer.Context, categories: Ids, stop: Stop = False) -> None:
    """Mark categories as junk: they take in more of their kind, and lists leave them out."""
    with ctx.obj.open() as curator:
        curator.ignore(*categories, on=not stop)
        changed = curator.last_edit is not None
    count = counted(len(set(categories)), "category is", "categories are")
    if changed:
        say(f"{count} {'no longer ' if stop else ''}ignored")
    else:
        say(f"nothing changed: {count} {'not ignored' if stop else 'ignored already'}")


@app.command()
def undo(
    ctx: typer.Context,
    event: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="The edit to take back.", show_default="the last one")
    ] = None,
) -> None:
    """Take back an edit: the last one, or the last of --by; again, the one before.

    `history` has the numbers for --event. An edit stays as long as a later one
    has to do with the same images or categories: that is to be undone first.
    """
    with ctx.obj.open() as curator:
        told = undone(curator, curator.undo(event))
    say(told)


@app.command()
def history(
    ctx: typer.Context,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="The last N events.")] = 20,
    everything: Annotated[bool, typer.Option("--all", help="Also what newfound changed by itself.")] = False,
    as_json: AsJson = False,
) -> None:
    """What happened to categories: when, by whom."""
    with ctx.obj.open(looking=True) as curator:
        events = curator.keeper.journal.events(newest_first=True, limit=limit, derived=everything)[::-1]
    told = [
        {"event": e.number, "time": e.time, "by": e.actor, "kind": e.kind, "after": e.at, "details": e.details}
        for e in events
    ]
    if as_json:
        print_json(told)
        return
    rows = [("event", "when", "by", "what", "")]
    rows += [(str(e.number), clock(e.time), e.actor, e.kind, _told(e.details)) for e in events]
    print_table(rows, left=5)


def _told(details: dict[str, Any]) -> str:
    hidden = ("changes", "back", "parts")
    return ", ".join(f"{name} {_some(value)}" for name, value in details.items() if name not in hidden and value != [])


def _some(value: Any) -> str:
    """A detail; of a long list the first ones: a move may be of thousands of images, and `--json` has them all."""
    if not isinstance(value, list) or len(value) <= _LISTED:
        return str(value)
    return f"[{', '.join(map(str, value[:_LISTED]))} and {len(value) - _LISTED} more]"


@app.command()
def export(
    ctx: typer.Context,
    output: Annotated[
        Path | None, typer.Argument(metavar="FILE.csv", help="Where to write.", show_default="standard output")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace FILE.csv if it is there.")] = False,
) -> None:
    """Every image and the category it belongs to now, as CSV that `newfound train` can learn from."""
    if output is not None and output.is_file() and output.stat().st_size and not overwrite:
        raise DataError(f"{output} is there already: --overwrite replaces it, or name another file.")
    writing, count = nullcontext(sys.stdout) if output is None else new_file(output), 0
    with ctx.obj.open(looking=True) as curator, writing as file:
        table = csv.writer(file)
        table.writerow(("path", "label", "category", "sighting", "score"))
        for sighting in curator.stream():
            if sighting.image is not None:
                table.writerow((sighting.image, sighting.name, sighting.category, sighting.number, sighting.score))
                count += 1
    if output is not None:
        say(f"{counted(count, 'image')} in {output}")
