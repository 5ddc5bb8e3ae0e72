"""`newfound bench table1` and its like: one command a table or figure of the paper, a list of them, and the report."""

from __future__ import annotations

import shutil
import sys
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from newfound.benchmarks.studies import STUDIES, Choice, Study
from newfound.benchmarks.tables import by_reason
from newfound.cli._common import FAILED, PARTLY, AsJson, print_json, print_table, say, watcher
from newfound.cli._settings import parse_settings
from newfound.errors import DataError, SettingsError
from newfound.files import write_text

if TYPE_CHECKING:
    from newfound.benchmarks.cells import Setup

_PAPER, _HOW = "The paper's tables and figures", "How it is run"
_WIDE = 200  # columns of a terminal that has room for oracles, costs and presets too
_EXAMPLES = {
    "table1": "table1 pets/ --protocol pets --out results/\n"
    "newfound bench table1 photos/ --known known.txt --out results/",
    "backbones": "backbones pets/ --protocol pets --out results/ --backbone tf_efficientnet_lite0",
    "sensitivity": "sensitivity pets/ --protocol pets --out results/ --grid small --seeds 0",
}


class GridSize(str, Enum):
    """Typer shows these as the choices."""

    full = "full"
    small = "small"


Out = Annotated[Path, typer.Option(metavar="FOLDER", help="Where results are kept; those there are not run again.")]
Data = Annotated[
    str | None,
    typer.Argument(metavar="DATA", help="Its folder, as published or with one folder a class.",
                   show_default="looked for in the folder that NEWFOUND_DATA names"),
]  # fmt: skip
Protocol = Annotated[
    str | None,
    typer.Option(help="The benchmark: cub, cars, pets, food101, cifar10, cifar100, imagenet100, inat2017_animalia, "
                 "inat2017_arachnida, inat2017_fungi or inat2017_mollusca."),
]  # fmt: skip
Known = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="For data of your own: a file with the known classes, one a line, or JSON."),
]
Seeds = Annotated[str, typer.Option(metavar="N,N,...", help="Training seeds.")]
Orders = Annotated[int, typer.Option(min=1, metavar="N", help="Random stream orders for each seed.")]
ClassOrder = Annotated[
    bool, typer.Option("--class-order", help="Show the stream in class order, as much published code reads it.")
]
ClassSeed = Annotated[
    int | None,
    typer.Option(min=0, metavar="N", help="Another draw of the known classes, to choose settings on; with --known, of "
                 "the labelled images.", show_default="the official classes"),
]  # fmt: skip
Methods = Annotated[
    list[str] | None,
    typer.Option("--method", metavar="NAME", help="Only this method's lines; repeatable. Default: all."),
]
Backbones = Annotated[
    list[str] | None,
    typer.Option("--backbone", metavar="NAME", help="Any timm image model; repeatable for `backbones`.",
                 show_default="tf_efficientnet_lite0"),
]  # fmt: skip
ImageSize = Annotated[
    int | None,
    typer.Option(min=32, metavar="N", help="Input size in pixels.", show_default="what the backbone was trained at"),
]
Weights = Annotated[str | None, typer.Option(metavar="PATH", help="A local weight file.", show_default="pretrained")]
Short = Annotated[bool, typer.Option("--short/--full", help="15 epochs on cached views, or all of it.")]
Preset = Annotated[
    str, typer.Option(metavar="NAME", help="What LTC starts from where it is varied: paper, released or default.")
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A setting of LTC where it is varied, or pipeline=PATH for all "
                 "lines that create with Stable Diffusion; repeatable."),
]  # fmt: skip
GridOption = Annotated[GridSize, typer.Option(help="Every value of each axis, or a few.")]
Jobs = Annotated[int, typer.Option(min=1, metavar="N", help="Processes; they share the threads.", rich_help_panel=_HOW)]
Keep = Annotated[Path | None, typer.Option(metavar="FOLDER", help="Keep trained runs here.", rich_help_panel=_HOW)]

Measure = Annotated[
    bool,
    typer.Option(
        "--measure/--no-measure", help="Measure what is missing, or show what is there.", rich_help_panel=_HOW
    ),
]


def add_to(app: typer.Typer) -> None:
    """Give the command a subcommand for each study, `list` and `report`."""
    app.command("list", rich_help_panel=_PAPER)(show_list)
    for study in STUDIES.values():
        app.command(study.name, help=_help(study), rich_help_panel=_PAPER)(_command(study))
    app.command(rich_help_panel=_PAPER)(report)


def show_list(as_json: AsJson = False) -> None:
    """The tables and figures of the paper, and how many trainings each takes.

    \bnewfound bench list
    """
    rows = [["command", "paper", "shows", "trainings a seed", "with --grid small"]]
    for study in STUDIES.values():
        counts = [str(len(study.lines(Choice(grid=grid)))) for grid in ("full", "small")]
        rows.append([study.name, study.title, study.about, *counts])
    rows.append(["decisions", "", "every dictionary on frozen features, LTC's and PHE's", "3", "3"])
    rows.append(["data", "Data sets", "classes and sizes of the data sets", "0", "0"])
    rows.append(["report", "", "one page of all that was measured", "0", "0"])
    if as_json:
        keys = ("command", "paper", "shows", "trainings", "trainings_small")
        print_json([dict(zip(keys, row, strict=True)) for row in rows[1:]])
        return
    print_table(rows, left=3)


def _command(study: Study):
    def command(
        out: Out,
        data: Data = None,
        protocol: Protocol = None,
        known: Known = None,
        seeds: Seeds = "0,1,2",
        orders: Orders = 3,
        class_order: ClassOrder = False,
        class_seed: ClassSeed = None,
        method: Methods = None,
        backbone: Backbones = None,
        weights: Weights = None,
        image_size: ImageSize = None,
        short: Short = True,
        preset: Preset = "paper",
        settings: Set = None,
        grid: GridOption = GridSize.full,
        jobs: Jobs = 1,
        keep: Keep = None,
        measure: Measure = True,
        as_json: AsJson = False,
    ) -> None:
        from newfound.benchmarks.running import folder_of, run_study

        names, varied = tuple(backbone or ()), parse_settings(settings or [], "ltc", ())
        pipeline = varied.pop("pipeline", None)  # where weights are, as --weights says it of the backbone
        if len(names) > 1 and study.name != "backbones":
            raise SettingsError(f"{study.name} takes one --backbone; `newfound bench backbones` compares several.")
        if not study.varies and (preset != Choice.preset or varied):
            raise SettingsError(f"{study.name} compares fixed lines: --preset and --set are for studies that vary LTC.")
        if image_size is not None and study.name == "sizes":
            raise SettingsError("sizes compares input sizes itself: --image-size is for the other studies.")
        if class_order and study.kind != "table":
            raise SettingsError(f"--class-order is for tables; {study.name} is none.")
        choice = Choice(preset, varied, grid.value, tuple(method or ()), names if study.name == "backbones" else ())
        first = names[0] if names else None
        setup = setup_of(protocol, known, data, first, class_seed, orders, short, weights, image_size, pipeline)
        record, results = run_study(
            study,
            setup,
            out,
            seeds=seed_list(seeds),
            choice=choice,
            jobs=jobs,
            keep=keep,
            measure=measure,
            reporter=watcher(),
        )
        folder, nothing = folder_of(study, choice, setup, out), not results and study.kind != "picture"
        files = [] if nothing else [folder / name for name in record.files]
        table = None
        if results and study.kind == "table":
            table = record.table({r["key"]: r for found in results.values() for r in found}, class_order=class_order)
            if not table.lines:
                raise DataError(f"nothing here was scored in class order: {'; '.join(set(table.missing.values()))}.")
            if class_order:
                texts = {"md": table.markdown(), "csv": table.csv(), "tex": table.latex()}
                by_class = {folder / f"{study.name}-class-order.{ending}": text for ending, text in texts.items()}
                for path, text in by_class.items():
                    write_text(path, text)
                files += by_class
        if as_json:
            told = {"results": results, "missing": record.missing, "figures": record.figures}
            print_json(told | {"files": list(map(str, files))})
        elif table is not None:
            print_table(table.rows(brief=sys.stdout.isatty() and shutil.get_terminal_size().columns < _WIDE))
            typer.echo(table.caption())
        else:
            for name, caption in record.figures.items():
                typer.echo(f"{name}: {caption}")
        for path in files:
            say(f"written: {path}")
        for why, lines in by_reason(record.missing).items():
            say(f"not measured: {lines}: {why}")
        if nothing:
            raise typer.Exit(FAILED)
        if record.missing:
            raise typer.Exit(PARTLY)

    return command


def report(
    results: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where tables and figures were measured into.")],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The page.", show_default="report.html in that folder")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """One page of all tables and figures that were measured, with the paper's figures beside ours.

    \bnewfound bench report results/
    """
    from newfound.benchmarks.page import write_page

    path = write_page(results, out or results / "report.html")
    if as_json:
        print_json({"report": str(path)})
    else:
        typer.echo(str(path))


def setup_of(
    protocol: str | None, known: Path | None, data: str | None, backbone: str | None, class_seed: int | None,
    orders: int, short: bool, weights: str | None, image_size: int | None = None, pipeline: str | None = None,
) -> Setup:  # fmt: skip
    """What the options of a benchmark say of data, backbone and orders."""
    from newfound.backbone import DEFAULT
    from newfound.benchmarks.cells import OWN, Setup

    if (protocol is None) == (known is None):
        raise SettingsError(
            "give one of the two: --protocol NAME for a benchmark, or --known FILE for data of your own."
        )
    return Setup(
        protocol or OWN, data, backbone or DEFAULT, class_seed, orders, short, weights, str(known) if known else None,
        image_size=image_size, pipeline=pipeline,
    )  # fmt: skip


def seed_list(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise SettingsError(f"--seeds {text}: give whole numbers with commas between them, such as 0,1,2.") from None


def _help(study: Study) -> str:
    example = _EXAMPLES.get(study.name, f"{study.name} pets/ --protocol pets --out results/")
    varied = "LTC starts from --preset and --set. " if study.varies else ""
    return (
        f"{study.title}: {study.about}.\n\n"
        f"\bnewfound bench {example}\n\n"
        f"{varied}Every method is trained at each seed on the same labelled images and scored on the same stream in "
        "several orders. Each result is kept, so an interrupted command goes on when it is given again, and studies "
        "that need the same training share it. `newfound --threads N bench ...` limits the threads."
    )
