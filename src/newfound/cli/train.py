"""`newfound train`: from labelled images to a run."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from newfound._words import counted
from newfound.cli._common import AsJson, Labelled, Seed, command, print_json, say, warn, watcher

if TYPE_CHECKING:
    from newfound.run import Run

_MODEL, _LEARNING, _MACHINE = "What learns", "How it learns", "Machine (Lightning Fabric)"


def train(
    ctx: typer.Context,
    data: Labelled,
    out: Annotated[Path, typer.Option(metavar="RUN", help="The folder of the run.")],
    method: Annotated[
        str,
        typer.Option(
            help="ltc, baseline, known-hinge, closed, frozen, smile, phe, diffgre-smile, diffgre-phe, rankstat, wta, "
            "slc or mldg.",
            rich_help_panel=_MODEL,
        ),
    ] = "ltc",
    backbone: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Any timm image model.", show_default="tf_efficientnet_lite0",
                     rich_help_panel=_MODEL),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="A local weight file, or 'random'.", show_default="pretrained",
                     rich_help_panel=_MODEL),
    ] = None,
    tune_blocks: Annotated[
        int,
        typer.Option(min=1, metavar="N", help="How many of the backbone's last blocks learn.", rich_help_panel=_MODEL),
    ] = 1,
    image_size: Annotated[
        int | None,
        typer.Option(min=32, metavar="N", help="Input size in pixels: 224 takes half the time of 320, and sees less.",
                     show_default="the backbone's own; by default 320", rich_help_panel=_MODEL),
    ] = None,
    preset: Annotated[str, typer.Option(help="default, paper or released.", rich_help_panel=_LEARNING)] = "default",
    short: Annotated[
        bool | None,
        typer.Option("--short/--full", help="15 epochs on cached views, or the whole training.",
                     show_default="short without a GPU", rich_help_panel=_LEARNING),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="Passes over the data.", show_default="the preset's",
                     rich_help_panel=_LEARNING),
    ] = None,
    continues: Annotated[
        Path | None,
        typer.Option("--continue", metavar="RUN", help="Also learn what was promoted in this run's journal.",
                     rich_help_panel=_LEARNING),
    ] = None,
    journal: Annotated[
        str | None,
        typer.Option(metavar="FILE|URL", help="With --continue: the journal.", show_default="RUN/journal.db",
                     rich_help_panel=_LEARNING),
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", rich_help_panel=_LEARNING,
                     help="Any setting of the method, such as lr=0.0003, threshold=10 or creator=mixup; repeatable."),
    ] = None,
    seed: Seed = 0,
    bundle: Annotated[bool, typer.Option("--bundle", help="Put the backbone's frozen weights into RUN too.")] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a run, or another unfinished training, in RUN.")
    ] = False,
    accelerator: Annotated[str, typer.Option(help="auto, cpu, cuda, mps.", rich_help_panel=_MACHINE)] = "auto",
    devices: Annotated[str, typer.Option(help="How many, or which (0,1).", rich_help_panel=_MACHINE)] = "1",
    num_nodes: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many machines.", rich_help_panel=_MACHINE)
    ] = 1,
    strategy: Annotated[str, typer.Option(help="auto or ddp.", rich_help_panel=_MACHINE)] = "auto",
    precision: Annotated[
        str, typer.Option(help="32-true, bf16-mixed, 16-mixed, ...", rich_help_panel=_MACHINE)
    ] = "32-true",
    as_json: AsJson = False,
) -> None:
    """Learn the classes of a labelled data set, so that they are recognised and others discovered.

    \bnewfound train birds/ --out runs/birds
    newfound train labelled.csv --out runs/paper --preset paper --full
    newfound train birds/ --out runs/quick --method frozen --set threshold=10
    newfound train birds/ --out runs/fast --devices 4
    newfound train birds/ --out runs/birds-2 --continue runs/birds

    With several devices a process for each learns its share of every batch;
    the run is the same but for rounding. On several machines give the same
    command on each, by torchrun or with MASTER_ADDR, MASTER_PORT and NODE_RANK.

    With --continue, what was promoted in a run's journal is learnt too, from the
    journal's own images. Method, preset and backbone are that run's unless given,
    and so are the blocks that learn and the input size, but for another backbone;
    the size but for another preset, too. All else, such as --weights and --set, is
    as the command says.

    A training that was interrupted goes on when the same command is given
    again. Images that cannot be read are left out and listed in
    RUN/skipped.csv.
    """  # fmt: skip
    import inspect

    from newfound._oddities import oddities
    from newfound.backbone import DEFAULT
    from newfound.cli._settings import parse_settings
    from newfound.datasets import load_dataset
    from newfound.fitting import fit
    from newfound.launching import leads

    learnt: Any = data
    if continues is not None:
        before = _asked_before(ctx, continues)
        method, preset, backbone = (before[name] for name in ("method", "preset", "backbone"))
        tune_blocks, image_size = before["tune_blocks"], before["image_size"]
        learnt = _with_promoted(data, continues, journal)
    if weights is not None and (file := Path(weights).expanduser()).is_file():
        weights = str(file.absolute())  # the run must find it from any folder
    settings = parse_settings(setting or (), method, inspect.signature(fit).parameters)
    started = time.perf_counter()
    learnt = load_dataset(learnt)
    if os.environ.get("LOCAL_RANK", "0") == "0":  # of several processes one says it
        for oddity in oddities(learnt):
            warn(oddity)
    try:
        run = fit(
            learnt, method=method, backbone=backbone or DEFAULT, out=out, epochs=epochs, seed=seed, preset=preset,
            short=short, weights=weights, tune_blocks=tune_blocks, image_size=image_size, bundle=bundle,
            overwrite=overwrite, accelerator=accelerator, devices=int(devices) if devices.isdecimal() else devices,
            num_nodes=num_nodes, strategy=strategy, precision=precision, reporter=watcher(), **settings,
        )  # fmt: skip
    except KeyboardInterrupt:
        if leads() and (out / "checkpoint.safetensors").is_file():
            say("the epochs so far are kept: the same command goes on from there")
        raise
    seconds = time.perf_counter() - started
    if not leads():
        return
    if as_json:
        print_json(_summary(run, out, seconds))
    else:
        _print_summary(run, out, seconds)


def _asked_before(ctx: typer.Context, run: Path) -> dict[str, Any]:
    """What a run was trained with, where the command does not say otherwise, nor makes it another's."""
    from newfound.errors import MissingFileError
    from newfound.image_size import own_size
    from newfound.run_files import read_backbone, read_config

    if not (run / "config.json").is_file():
        raise MissingFileError(f"there is no run in {run} to continue.")
    config = read_config(run)
    told = read_backbone(run, config)
    before = {
        "method": config["method"], "preset": config["preset"].removesuffix(" (short)"), "backbone": told.name,
        "tune_blocks": told.tune_blocks, "image_size": told.image_size or own_size(told.name),
    }  # fmt: skip
    given = {name for name in before if str(ctx.get_parameter_source(name)).endswith("COMMANDLINE")}
    other = {name for name in given if ctx.params[name] != before[name]}
    if "backbone" in other:  # what suits one, or can be done with it, need not suit another
        given |= {"tune_blocks", "image_size"}
    if "preset" in other:  # a preset says how images are shown: the paper's, as in the paper
        given.add("image_size")
    return before | {name: ctx.params[name] for name in given}


def _with_promoted(data: str, run: Path, journal: str | None) -> Any:
    from newfound.carrying import continued
    from newfound.cli._journal import opened

    with opened(run, journal, looking=True) as found:
        labelled, missing = continued(data, found)
    if missing:
        are = counted(len(missing), "promoted image is gone or has", "promoted images are gone or have")
        warn(f"{are} changed; the first: {missing[0]}")
    return labelled


def _summary(run: Run, out: Path, seconds: float) -> dict[str, Any]:
    config = run.config
    return {
        "run": str(out),
        "label": run.label,
        "method": config["method"],
        "preset": config["preset"],
        "backbone": config["backbone"]["name"],
        "seed": config["seed"],
        "classes": run.classes,
        "images": config["data"]["images"],
        "skipped": [{"image": image, "error": reason} for image, reason in run.skipped],
        "threshold": config["threshold"],
        "last_epoch": run.log[-1] if run.log else None,
        "seconds": round(seconds, 2),
    }


def _print_summary(run: Run, out: Path, seconds: float) -> None:
    data, threshold = run.config["data"], run.config["threshold"]
    left_out = f", {len(run.skipped)} left out (see {out / 'skipped.csv'})" if run.skipped else ""
    rows = {
        "run": f"{out} ({run.label}; {seconds:.0f} s)",
        "backbone": run.config["backbone"]["name"],
        "learnt": f"{len(run.classes)} classes from {data['images']} images{left_out}",
        "threshold": _in_words(threshold["value"], threshold["rule"]),
    }
    for name, value in rows.items():
        typer.echo(f"{name:<10} {value}")
    typer.echo("\nnext, discover what is new among other images:")
    typer.echo(command("discover", out, "FOLDER"))


def _in_words(threshold: float, rule: str) -> str:
    value = f"{threshold:.2f}"
    if rule.startswith(f"threshold {value}"):  # a rehearsal's rule says the value itself
        return rule.removeprefix("threshold ")
    return f"{value}, {rule}"
