"""`newfound bench scale`: what bounds discovery on many machines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from newfound.cli._common import AsJson, print_json, print_table, say, watcher, write_json
from newfound.errors import SettingsError

Results = Annotated[
    Path, typer.Option(metavar="FILE", help="Where what was measured is written, and what is simulated from.")
]


def scale(
    simulate: Annotated[
        bool, typer.Option("--simulate", help="Measure nothing: tell what follows from what was measured.")
    ] = False,
    results: Results = Path("benchmarks/results/scale.json"),
    as_json: AsJson = False,
) -> None:
    """Measure what every stage costs on this machine, and work out a billion images and a million categories.

    Needs a PostgreSQL server's programs, and some minutes on an idle machine. The simulation is held against what
    several writers reached here before it goes on to numbers that nobody measured, and ends there, with exit code 3, if
    it does not reproduce that.

    \bnewfound bench scale
    newfound bench scale --simulate
    """
    from newfound.benchmarks.scale import measure
    from newfound.benchmarks.scale_tables import TOLERANCE, missed, tables

    if simulate:
        figures = _read(results)
    else:
        figures = measure(reporter=watcher())
        write_json(results, figures)
        say(f"written to {results}")
    told = tables(figures)
    if as_json:
        rows = {title: [dict(zip(header, row, strict=True)) for row in body] for title, (header, *body) in told.items()}
        print_json({"measured": figures, "tables": rows})
    else:
        for title, table in told.items():
            typer.echo(title)
            print_table(table, left=2)
    if wrong := missed(figures):
        say(
            f"the simulation is more than {TOLERANCE:.0%} off what was measured (writers: "
            f"{', '.join(map(str, wrong))}), so nothing is said of sizes that nobody measured; measure again on an "
            "idle machine."
        )
        raise typer.Exit(3)


def _read(path: Path) -> dict:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SettingsError(f"{path} is not there: measure first, with `newfound bench scale`.") from None
    except (OSError, ValueError) as error:
        raise SettingsError(f"{path} cannot be read ({error}); measure again, with `newfound bench scale`.") from None
