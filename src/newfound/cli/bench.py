"""`newfound bench`: the paper's comparison, and what newfound's stages cost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from newfound.cli._common import FAILED, AsJson, print_json, print_table, say, watcher, write_text
from newfound.errors import SettingsError

app = typer.Typer(no_args_is_help=True)


@app.callback()
def bench() -> None:
    """Measure newfound on this machine.

    \bnewfound bench data
    newfound bench table1 pets/ --protocol pets --out results/
    newfound bench speed
    """


@app.command()
def table1(
    protocol: Annotated[
        str,
        typer.Option(
            help="The benchmark: cub, cars, pets, food101, cifar10, cifar100, imagenet100, inat2017_animalia, "
            "inat2017_arachnida, inat2017_fungi or inat2017_mollusca."
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where results are kept; those there are not run again.")],
    data: Annotated[
        str | None,
        typer.Argument(metavar="DATA", help="Its folder, as published or with one folder a class.",
                       show_default="looked for in the folder that NEWFOUND_DATA names"),
    ] = None,
    seeds: Annotated[str, typer.Option(metavar="N,N,...", help="Training seeds.")] = "0,1,2",
    orders: Annotated[int, typer.Option(min=1, metavar="N", help="Random stream orders for each seed.")] = 3,
    method: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this method's rows; repeatable. Default: all.")
    ] = None,
    backbone: Annotated[
        str | None, typer.Option(metavar="NAME", help="Any timm image model.", show_default="tf_efficientnet_lite0")
    ] = None,
    weights: Annotated[
        str | None, typer.Option(metavar="PATH", help="A local weight file.", show_default="pretrained")
    ] = None,
    class_seed: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="Another draw of the known classes, to choose settings on.",
                     show_default="the official classes"),
    ] = None,
    short: Annotated[bool, typer.Option("--short/--full", help="15 epochs on cached views, or all of it.")] = True,
    as_json: AsJson = False,
) -> None:
    """Train and score LTC and all it is compared with on one data set: Table 1.

    \bnewfound bench table1 pets/ --protocol pets --out results/
    newfound bench table1 cub/ --protocol cub --out results/ --method ltc --method smile --seeds 0

    Each method is trained at each seed on the same labelled images and scored
    on the same stream in several orders. Every result is kept as a file, so an
    interrupted table goes on when the command is given again. The table of the
    methods and seeds that were asked for is written as Markdown, CSV and LaTeX
    beside the results. `newfound --threads N bench ...` limits the threads.
    """  # fmt: skip
    from newfound.backbone import DEFAULT
    from newfound.benchmarks import tables
    from newfound.benchmarks.table1 import Bench, run_table1

    bench = Bench(protocol, data, backbone or DEFAULT, class_seed, orders, short, weights)
    results, missing = run_table1(bench, out, seeds=_seeds(seeds), methods=method, reporter=watcher())
    if results:
        folder = bench.folder(out)
        for suffix, text in (("md", tables.markdown), ("csv", tables.as_csv), ("tex", tables.latex)):
            write_text(folder / f"table1.{suffix}", text(results))
    if as_json:
        print_json({"results": results, "missing": missing})
    elif results:
        print_table(tables.rows_of(results))
        typer.echo(tables.caption(results))
    if missing:
        say(f"not in the table: {'; '.join(missing)}")
    if not results:
        raise typer.Exit(FAILED)


def _seeds(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise SettingsError(f"--seeds {text}: give whole numbers with commas between them, such as 0,1,2.") from None


@app.command()
def data(
    download: Annotated[
        str | None, typer.Option(metavar="NAME", help="Fetch this data set, where a program can.")
    ] = None,
    root: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where data sets are.", show_default="NEWFOUND_DATA")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """The data sets of the paper: classes, sizes, and which of them are here.

    \bNEWFOUND_DATA=/data newfound bench data
    newfound bench data --download pets --root /data
    """
    from newfound.benchmarks import data as sets

    if download is not None:
        say(f"{download}: {sets.download(download, root)}")
    rows = sets.statistics_table(sets.statistics(root))
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
