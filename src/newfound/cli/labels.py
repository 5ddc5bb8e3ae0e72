"""`newfound labels`: what was found goes to the tools people label with, and comes back put right."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from newfound._words import counted
from newfound.cli._common import AsJson, CarefulGroup, RunFolder, print_json, say
from newfound.cli._journal import Actor, Where, curating
from newfound.labels import FORMATS, export_labels, review_labels
from newfound.outputs import LINKS

app = typer.Typer(cls=CarefulGroup, no_args_is_help=True)

Format = Annotated[str, typer.Option(metavar="|".join(FORMATS), help="Of the tool.")]
_SHOWN = 40  # changes; the rest is counted


@app.callback()
def labels() -> None:
    """Take what was found to labelling tools, and take corrections back.

    \bnewfound labels export runs/birds --format labelstudio --out tasks/
    newfound labels import runs/birds project-1.json --format labelstudio
    newfound labels import runs/birds project-1.json --format labelstudio --apply
    """


@app.command("export")
def export(
    run: RunFolder,
    format: Format,
    out: Annotated[Path, typer.Option(metavar="PATH", help="A file for coco and csv, else a folder.")],
    journal: Where = None,
    ignored: Annotated[bool, typer.Option("--ignored", help="Also what is in ignored categories.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")] = False,
    root: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", show_default="labelstudio, camtrap: the folder that all lie in; else none",
            help="Write paths relative to DIR.",
        ),
    ] = None,
    url: Annotated[
        str, typer.Option(metavar="PREFIX", help="Put this before relative paths, such as https://my.org/photos/.")
    ] = "",
    link: Annotated[
        str, typer.Option(metavar="|".join(LINKS), help="folders: how; a copy where no link is possible.")
    ] = LINKS[0],
    deployments: Annotated[
        Path | None,
        typer.Option(metavar="FILE.csv", help="camtrap: deploymentID (a folder of images), latitude, longitude, ..."),
    ] = None,
    utc_offset: Annotated[
        str | None, typer.Option(metavar="+HH:MM", help="camtrap: of the cameras' clocks, where images do not say.")
    ] = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Write every image and the category it is in now, as a tool reads it.

    \bnewfound labels export runs/birds --format coco --out birds.json
    newfound labels export runs/birds --format folders --out sorted/
    newfound labels export runs/cams --format camtrap --out package/
    """
    from newfound.labels._files import Options, Places

    options = Options(Places(str(root or ""), url), link, deployments, utc_offset)
    with curating(run, journal, looking=True) as curator:
        done = export_labels(curator, format, out, ignored=ignored, overwrite=overwrite, options=options)
    if as_json:
        print_json({"things": done.things, "left_out": done.left_out, "notes": done.notes})
    say(f"{counted(done.things, 'image')} in {out}")
    for why, count in done.left_out.items():
        say(f"{counted(count, 'image was', 'images were')} left out: {why}")
    for note in done.notes:
        say(note)


@app.command("import")
def import_(
    run: RunFolder,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What the tool has written, or its folder.")],
    format: Format,
    apply: Annotated[bool, typer.Option("--apply", help="Change it; without this, say what would change.")] = False,
    journal: Where = None,
    by: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Take over what was put right in a tool: names, and where images belong.

    \bnewfound labels import runs/birds birds.json --format coco
    newfound labels import runs/birds birds.json --format coco --apply

    All that is in a category has a new label: it is renamed. It has that of
    another category: the two are merged. Only some of it has: those are moved,
    or become a new category. Each change is an event of the journal, by the
    tool's name or --by, and `newfound categories RUN undo` takes it back.
    """
    with curating(run, journal, by or format, looking=not apply) as curator:
        review = review_labels(curator, format, file)
        if apply:
            review.apply(curator)
    lines = review.lines()
    if as_json:
        told = {"told": review.told, "unknown": review.unknown, "stuck": review.stuck}
        print_json(told | {"changes": lines, "applied": apply})
    else:
        for line in lines[:_SHOWN]:
            typer.echo(line)
        if len(lines) > _SHOWN:
            typer.echo(f"and {len(lines) - _SHOWN} more")
    if review.unknown:
        count = counted(len(review.unknown), "image is", "images are")
        say(f"{count} not in the journal, such as {review.unknown[0]}")
    if review.stuck:
        count = counted(len(review.stuck), "image stays where it is", "images stay where they are")
        say(f"{count}, not to be read again since the run was continued, such as sighting {review.stuck[0]}")
    if not lines and not review.told:
        say(f"nothing to change: {file} gives no label to any image of the journal")
    elif not lines:
        say(f"nothing to change: {counted(review.told, 'image has its label', 'images have their labels')}")
    elif apply:
        say(f"{counted(len(lines), 'change')} made; `newfound categories {run} undo` takes back the last")
    else:
        say(f"{counted(len(lines), 'change')}; --apply makes {'it' if len(lines) == 1 else 'them'}")
