"""`newfound bench`: the paper's tables and figures, its data sets, and what newfound's stages cost."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from newfound.cli import bench_decisions, bench_growth, bench_scale, bench_serve, bench_studies
from newfound.cli._common import AsJson, print_json, print_table, say, watcher
from newfound.files import write_text

app = typer.Typer()


bench_studies.add_to(app)
app.command(rich_help_panel="Beyond the paper")(bench_decisions.decisions)
app.command()(bench_scale.scale)
app.command()(bench_growth.growth)
app.command()(bench_serve.serve)


@app.command()
def data(
    download: Annotated[
        str | None, typer.Option(metavar="NAME", help="Fetch this data set, where a program can.")
    ] = None,
    root: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where data sets are.", show_default="NEWFOUND_DATA")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write the table there as Markdown, CSV and LaTeX.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """The data sets of the paper: classes, sizes, and which of them are here.

    \bNEWFOUND_DATA=/data newfound bench data
    newfound bench data --download pets --root /data
    newfound bench data --out results/
    """
    from newfound.benchmarks import data as sets
    from newfound.benchmarks.tables import plain_csv, plain_latex, plain_markdown

    if download is not None:
        say(f"{download}: {sets.download(download, root)}")
    rows = sets.statistics_table(sets.statistics(root))
    if out is not None:
        for ending, text in (("md", plain_markdown), ("csv", plain_csv), ("tex", plain_latex)):
            write_text(out / f"data.{ending}", text(rows))
    if as_json:
        header, *body = rows
        print_json([dict(zip(["name", *header[1:]], row, strict=True)) for row in body])
        return
    print_table(rows)


@app.command()
def speed(
    only: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Measure this stage; repeatable. Default: all.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Keep the figures there, and compare with those kept before.")
    ] = None,
    hardware: Annotated[
        bool | None,
        typer.Option("--hardware/--no-hardware", show_default="unless --only", help="Measure the machine itself too."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Time every stage against a named baseline, both in the same run, and the machine itself.

    \bnewfound bench speed
    newfound bench speed --only observe --json
    newfound bench speed --out results/
    """
    from newfound.benchmarks.hardware import measure
    from newfound.benchmarks.speed import run_speed
    from newfound.benchmarks.speed_history import SpeedHistory, verdict

    history = SpeedHistory(out) if out is not None else None
    before = history.before() if history else {}
    limits = measure() if (hardware if hardware is not None else not only) else []
    rows = run_speed(only or None, watcher(), keep=history.keep if history else None)
    if as_json:
        kept = {"hardware": [asdict(limit) for limit in limits], "stages": [row.as_dict() for row in rows]}
        print_json(kept)
        return
    for limit in limits:
        rate = f"{limit.value:,.4g} ({limit.low:,.4g} to {limit.high:,.4g}) {limit.unit}"
        typer.echo(f"{limit.name}: {rate}, {limit.detail}")
    header = ("stage", "ratio", "target", "ours", "baseline", "before")
    cells = [
        (r.stage, f"{r.ratio:.2f}", r.target, f"{r.ours:.4g} {r.unit}", f"{r.baseline:.4g} {r.unit}",
         verdict(r, before.get(r.stage)))
        for r in rows
    ]  # fmt: skip
    print_table([header, *cells])
    for row in rows:
        typer.echo(f"{row.stage}: {row.detail}")
