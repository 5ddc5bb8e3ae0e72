"""`newfound bench serve`: what the service makes of many clients, and of a large journal."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from newfound.cli._common import AsJson, print_json, print_table


def serve(
    clients: Annotated[int, typer.Option(min=1, metavar="N", help="Clients that post images at once.")] = 64,
    images: Annotated[int, typer.Option(min=1, metavar="N", help="Images they post in a round, between them.")] = 256,
    rounds: Annotated[int, typer.Option(min=1, metavar="N", help="Rounds, each after the parts alone.")] = 3,
    backbone: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Any timm image model, with random weights.",
                     show_default="tf_efficientnet_lite0"),
    ] = None,
    large: Annotated[
        bool, typer.Option("--large", help="Instead, show a journal of a million sightings in 10,000 categories.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Post images to a real server from many clients, and hold it against its decoder, encoder and journal alone.

    \bnewfound bench serve
    newfound bench serve --clients 8 --json
    newfound bench serve --large
    """
    if large:
        _pages(as_json)
        return
    from newfound.backbone import DEFAULT
    from newfound.benchmarks.service_speed import measure, percentiles

    found = measure(images, clients=clients, repeats=rounds, backbone=backbone or DEFAULT)
    if as_json:
        print_json(found.as_dict())
        return
    header = ("round", "images/s", "parts allow", "ratio", "clients' share of cores", "ratio on the rest")
    rows = [
        (str(number), f"{one.rate:.1f}", f"{one.parts.rate:.1f}", f"{one.ratio:.2f}",
         f"{100 * one.clients_share:.1f} %", f"{one.corrected:.2f}")
        for number, one in enumerate(found.rounds, 1)
    ]  # fmt: skip
    print_table([header, *rows])
    typer.echo(f"a request, p50 / p99: {percentiles(found.loaded)} ms under load, {percentiles(found.alone)} ms alone")
    typer.echo(f"refused: {found.refused}")


def _pages(as_json: bool) -> None:
    from newfound.benchmarks.service_pages import measure

    found = measure()
    if as_json:
        print_json(asdict(found))
        return
    rows = [(view, f"{1000 * found.first[view]:.0f}", f"{1000 * found.again[view]:.0f}") for view in found.first]
    print_table([("view", "first, ms", "later, ms"), *rows])
    typer.echo(f"{found.sightings:,} sightings in {found.categories:,} categories; open after {found.opening:.1f} s")
    typer.echo(f"the whole journal was known {found.look:.1f} s after that; `first` is asked for before")
