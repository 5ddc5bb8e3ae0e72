"""`newfound bench`: what newfound's stages cost."""

from __future__ import annotations

from typing import Annotated

import typer

from newfound.cli._common import AsJson, print_json, print_table, watcher

app = typer.Typer(no_args_is_help=True)


@app.callback()
def bench() -> None:
    """Measure newfound on this machine.

    \bnewfound bench speed
    """


@app.command()
def speed(
    only: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Measure this stage; repeatable. Default: all.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Time every stage against a named baseline, both in the same run.

    \bnewfound bench speed
    newfound bench speed --only observe --json
    """
    from newfound.benchmarks.speed import run_speed

    rows = run_speed(only or None, watcher())
    if as_json:
        print_json([row.as_dict() for row in rows])
        return
    header = ("stage", "ratio", "target", "ours", "baseline")
    figures = [(f"{row.ours:.4g} {row.unit}", f"{row.baseline:.4g} {row.unit}") for row in rows]
    print_table([header, *((r.stage, f"{r.ratio:.2f}", r.target, *f) for r, f in zip(rows, figures, strict=True))])
    for row in rows:
        typer.echo(f"{row.stage}: {row.detail}")
