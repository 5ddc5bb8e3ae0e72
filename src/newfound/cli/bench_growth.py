"""`newfound bench growth`: how the time of a sighting grows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from newfound.cli._common import AsJson, print_json, print_table, say, watcher, write_json
from newfound.files import write_text


def growth(
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Where growth.json, .md, .png and .svg go.")] = None,
    categories: Annotated[int, typer.Option(help="The most categories; 1000000 needs some 6 GB.")] = 100_000,
    images: Annotated[int, typer.Option(help="The most images.")] = 100_000,
    as_json: AsJson = False,
) -> None:
    """Time sightings against the number of categories and of images, and fit how they grow.

    \bnewfound bench growth --out benchmarks/results
    """
    from newfound.benchmarks import figure_style
    from newfound.benchmarks.growth import draw, measure, table
    from newfound.benchmarks.tables import plain_markdown

    measured = measure(categories, images, watcher())
    told = table(measured)
    if out is not None:
        figure_style.require_matplotlib()
        fitted = "\n".join(f"- {name}: {value:.2f}" for name, value in measured.exponents.items())
        write_json(out / "growth.json", measured.as_dict())
        write_text(out / "growth.md", f"{plain_markdown(told)}\n\nFitted exponents:\n\n{fitted}\n")
        figure_style.save(draw(measured).figure, out / "growth")
        say(f"written to {out}")
    if as_json:
        print_json(measured.as_dict())
        return
    print_table(told)
    for name, value in measured.exponents.items():
        typer.echo(f"{name}: exponent {value:.2f}")
