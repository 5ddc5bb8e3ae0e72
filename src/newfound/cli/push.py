"""`newfound push`: a run goes to the Hugging Face hub, with a model card."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from newfound.cli._common import AsJson, RunFolder, TrunkWeights, print_json
from newfound.errors import DataError


def push(
    run: RunFolder,
    repo: Annotated[str, typer.Argument(metavar="ORG/NAME", help="What it is called on the hub; made if needed.")],
    private: Annotated[bool, typer.Option("--private", help="Make the repository one that only owners see.")] = False,
    bundle: Annotated[bool, typer.Option("--bundle", help="Publish the backbone's weights with it.")] = False,
    card: Annotated[bool, typer.Option("--card/--no-card", help="Write the model card, or leave it as it is.")] = True,
    scores: Annotated[
        Path | None, typer.Option(metavar="FILE.json", help="For the card: what `newfound evaluate --out` wrote.")
    ] = None,
    dataset: Annotated[
        list[str] | None, typer.Option(metavar="ORG/DATA", help="For the card: the data on the hub; can be repeated.")
    ] = None,
    license: Annotated[str | None, typer.Option(metavar="NAME", help="For the card: such as apache-2.0.")] = None,
    weights: TrunkWeights = None,
    as_json: AsJson = False,
) -> None:
    """Publish a run on the Hugging Face hub.

    \bnewfound push runs/birds anna/birds
    newfound push runs/birds anna/birds --scores birds.json --license apache-2.0

    Images, journals and paths stay here. `newfound.load("anna/birds")` reads it
    anywhere. The token is that of `hf auth login`, or HF_TOKEN.
    """  # fmt: skip
    figures = _read(scores) if scores is not None else None
    from newfound.loading import load

    page = load(run, weights=weights).push_to_hub(
        repo, private=private, bundle=bundle, card=card, scores=figures, datasets=dataset or (), license=license
    )
    if as_json:
        print_json({"run": str(run), "repo": repo, "page": page})
    else:
        typer.echo(page)


def _read(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"the scores in {path} cannot be read: {error}") from error
