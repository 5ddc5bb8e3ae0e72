"""`newfound export`: a run as ONNX, with a script that needs no newfound."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from newfound.cli._common import AsJson, RunFolder, TrunkWeights, print_json, say


def export(
    run: RunFolder,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where to; an earlier export there is replaced.")],
    opset: Annotated[int | None, typer.Option(metavar="N", show_default="17", help="Of ONNX, from 14 to 20.")] = None,
    int8: Annotated[
        str | None,
        typer.Option(metavar="DATA", help="Write 8-bit integers, measured on some images of DATA (folder or CSV)."),
    ] = None,
    weights: TrunkWeights = None,
    as_json: AsJson = False,
) -> None:
    """Write a run as ONNX, with what it knows and a script that needs only onnxruntime, numpy and Pillow.

    \bnewfound export runs/birds --out birds-onnx
    python birds-onnx/discover.py incoming/              the ids that newfound gives
    newfound export runs/birds --out birds-int8 --int8 labelled/
    newfound evaluate runs/birds stream.csv --runtime birds-int8

    Needs `pip install 'newfound[onnx]'`. What is exported is what was taught:
    what a journal holds stays there.
    """
    from newfound.datasets import load_dataset
    from newfound.export import export_run
    from newfound.export.onnx import OPSET
    from newfound.loading import load

    images = None if int8 is None else load_dataset(int8).items
    written = export_run(load(run, weights=weights), out, opset=OPSET if opset is None else opset, int8=images)
    script = None if written.unscripted else written.folder / "discover.py"
    if as_json:
        print_json({
            "folder": str(written.folder), "precision": written.precision, "script": script and str(script),
            "unscripted": written.unscripted,
        })  # fmt: skip
        return
    say(f"newfound: wrote the encoder ({written.precision}) and what it knows to {written.folder}")
    usage = f"python {script} IMAGE_OR_FOLDER..." if script else f"no discover.py: {written.unscripted}"
    say(f"newfound: {usage}")
