"""`newfound demo`: the whole story on data and weights that come with the installation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from newfound.cli._common import AsJson, Seed, print_json, print_table, watcher


def demo(
    data: Annotated[
        str | None,
        typer.Option(metavar="FOLDER", help="Your own folder of class folders.", show_default="scikit-learn's digits"),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the report goes.")] = Path("newfound-demo"),
    seed: Seed = 0,
    everything: Annotated[bool, typer.Option("--everything", help="All images of the folder, however many.")] = False,
    as_json: AsJson = False,
) -> None:
    """See newfound learn half of the classes and discover the others; offline, in a few minutes.

    \bnewfound demo
    newfound demo --data birds/ --out birds-demo

    Prints how well it did next to the frozen backbone and to a control that
    discovers nothing, and writes DIR/report.html: the images by category, what
    was discovered when, how the threshold moved, and who was taken for whom.
    """
    from newfound.demo import run_demo

    result = run_demo(data, out, seed=seed, reporter=watcher(), everything=everything)
    if as_json:
        print_json(result.as_dict())
        return
    print_table(result.table())
    typer.echo(f"report: {result.report}")
