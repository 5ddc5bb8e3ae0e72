"""`newfound bench decisions`: every dictionary on the same features."""

from __future__ import annotations

from typing import Annotated

import typer

from newfound.cli._common import FAILED, AsJson, print_json, print_table, say, watcher
from newfound.cli.bench_studies import (
    ClassSeed,
    Data,
    Known,
    Measure,
    Orders,
    Out,
    Protocol,
    Seeds,
    Short,
    Weights,
    seed_list,
    setup_of,
)

Features = Annotated[
    list[str] | None,
    typer.Option("--features", metavar="NAME", help="Only the features of frozen, ltc or phe; repeatable."),
]
Backbone = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Any timm image model.", show_default="tf_efficientnet_lite0"),
]


def decisions(
    out: Out,
    data: Data = None,
    protocol: Protocol = None,
    known: Known = None,
    seeds: Seeds = "0,1,2",
    orders: Orders = 3,
    class_seed: ClassSeed = None,
    features: Features = None,
    backbone: Backbone = None,
    weights: Weights = None,
    short: Short = True,
    measure: Measure = True,
    as_json: AsJson = False,
) -> None:
    """Every dictionary on frozen features, LTC's and PHE's: thresholds rehearsed, probabilities checked.

    \bnewfound bench decisions pets/ --protocol pets --out results/
    """
    from newfound.benchmarks.decisions import FEATURES, FOLDER, caption, run_decisions, table_rows, write
    from newfound.benchmarks.figure_style import require_matplotlib

    require_matplotlib()  # rather now than after hours
    setup = setup_of(protocol, known, data, backbone, class_seed, orders, short, weights)
    results = run_decisions(
        setup, out, seeds=seed_list(seeds), features=features or tuple(FEATURES), measure=measure, reporter=watcher()
    )
    if not results:
        say("nothing is measured yet: leave out --no-measure.")
        raise typer.Exit(FAILED)
    files = write(results, out / FOLDER)
    if as_json:
        print_json({"results": results, "files": [str(path) for path in files]})
        return
    print_table(table_rows(results), left=2)
    typer.echo(caption(results))
    for path in files:
        say(f"written: {path}")
