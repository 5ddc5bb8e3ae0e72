"""`newfound serve`: the service and its page."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from newfound.cli._common import Device, RunFolder, Runtime, TrunkWeights, say
from newfound.cli._journal import Where, where_is
from newfound.errors import SettingsError


def serve(
    run: RunFolder,
    journal: Where = None,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Listen here; another than this machine's own needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="0 takes any that is free.")] = 8460,
    token: Annotated[
        str | None, typer.Option(metavar="TOKEN", envvar="NEWFOUND_TOKEN", help="Who has it may read and write.")
    ] = None,
    read_token: Annotated[
        str | None, typer.Option(metavar="TOKEN", envvar="NEWFOUND_READ_TOKEN", help="Who has it may read.")
    ] = None,
    allow_url: Annotated[
        list[str] | None,
        typer.Option(metavar="PREFIX", help="Fetch images from addresses below this one; can be repeated."),
    ] = None,
    weights: TrunkWeights = None,
    runtime: Runtime = "torch",
    device: Device = "auto",
) -> None:
    """Serve a run over HTTP, with a page that shows categories as they are discovered.

    \bnewfound serve runs/birds                            then open http://127.0.0.1:8460
    curl -F images=@heron.jpg http://127.0.0.1:8460/v1/observe
    newfound serve runs/birds --host 0.0.0.0 --token "$(openssl rand -hex 16)"

    Without a token only programs on this machine are answered. What is
    uploaded is kept in RUN/images, what is found in the journal. Ctrl-C
    finishes what has been sent and stops.
    """
    _tell(f"loading {run}")
    try:
        from newfound.service.core import Service
        from newfound.service.server import Server, listen
        from newfound.service.settings import Settings
        from newfound.service.urls import Prefix
    except ModuleNotFoundError as error:
        raise SettingsError(f"the service needs {error.name}: pip install 'newfound[serve]'") from error
    from newfound.loading import load

    prefixes = tuple(Prefix.parse(prefix) for prefix in allow_url or ())
    settings = Settings(host, token, read_token, prefixes)
    with listen(host, port) as bound:
        loaded = load(run, weights=weights, runtime=runtime, device=device)
        _tell("opening its journal")
        service = Service(loaded, where_is(run, journal), settings)
        bound.listen()  # who reads the next line can connect at once
        shown = f"[{host}]" if ":" in host else host
        say(f"newfound: serving {run} at http://{shown}:{bound.getsockname()[1]} (Ctrl-C stops)")
        Server(service, port).run(sockets=[bound])


def _tell(doing: str) -> None:
    """A line for who waits at a terminal. Elsewhere the first line has the address, which programs read."""
    if sys.stderr.isatty():
        say(f"newfound: {doing} ...")
