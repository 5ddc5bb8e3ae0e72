"""`newfound split`: a labelled data set becomes a labelled part to learn from and a stream to discover in."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from newfound._words import counted
from newfound.cli._common import AsJson, Labelled, Seed, command, print_json, warn
from newfound.errors import DataError, MissingFileError, SettingsError

if TYPE_CHECKING:
    from newfound.datasets import LabelledImages


def split(
    data: Labelled,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where labelled.csv and stream.csv go.")],
    known: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="The known classes: cat,dog,... or a file with one name a line, or JSON.",
                     show_default="a seeded draw of half of them"),
    ] = None,
    protocol: Annotated[
        str | None, typer.Option(metavar="NAME", help="Take the known classes of a benchmark: pets, cub, cars, ...")
    ] = None,
    fraction: Annotated[
        float | None,
        typer.Option(min=0, max=1, metavar="F", show_default="0.5",
                     help="How much of the known classes' images is labelled."),
    ] = None,
    seed: Seed = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a split that is in DIR.")] = False,
    as_json: AsJson = False,
) -> None:
    """Split a labelled data set for on-the-fly category discovery.

    \bnewfound split pets/ --out splits/pets --protocol pets
    newfound split birds/ --out splits/birds --known heron,owl,wren

    Half of the images of the known classes become DIR/labelled.csv, to train
    on. All the rest, with every image of the other classes, becomes
    DIR/stream.csv, to evaluate on.
    """  # fmt: skip
    from newfound._oddities import copies, oddities
    from newfound.benchmarks.splits import known_classes, labelled_fraction
    from newfound.datasets import load_dataset, split_protocol, write_csv

    if known is not None and protocol is not None:
        raise SettingsError("give either --known or --protocol: both say which classes are known.")
    files = {"labelled": out / "labelled.csv", "stream": out / "stream.csv"}
    there = next((file for file in files.values() if file.exists()), None)
    if there is not None and not overwrite:
        raise DataError(f"{there} is there already: --overwrite replaces the split in {out}, or name another folder.")
    dataset = load_dataset(data)
    for oddity in oddities(dataset):
        warn(oddity)
    names = known_classes(protocol, dataset.classes) if protocol is not None else _names(known, dataset.classes)
    share = labelled_fraction() if fraction is None else fraction
    labelled, stream = split_protocol(dataset, names, fraction=share, seed=seed)
    for oddity in copies(labelled, stream):
        warn(oddity)
    if not len(stream):
        raise DataError(f"all {len(dataset)} images of {dataset.source} would be labelled: nothing is left to stream.")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"the folder {out} cannot be made: {error.strerror}") from error
    write_csv(labelled, files["labelled"])
    write_csv(stream, files["stream"])
    if as_json:
        print_json(
            {"protocol": protocol, "fraction": share, "seed": seed, "known": labelled.classes}
            | {name: _sizes(part, files[name]) for name, part in (("labelled", labelled), ("stream", stream))}
        )
        return
    known = counted(len(labelled.classes), "known class", "known classes")
    others = counted(len(set(stream.classes) - set(labelled.classes)), "other class", "other classes")
    typer.echo(f"{files['labelled']}: {counted(len(labelled), 'image')} of {known}")
    typer.echo(f"{files['stream']}: {counted(len(stream), 'image')} of these and {others}")
    typer.echo("\nnext:")
    typer.echo(command("train", files["labelled"], "--out", "RUN"))
    typer.echo(command("evaluate", "RUN", files["stream"]))


def _names(known: str | None, classes: Collection[str]) -> list[str] | None:
    """The names in a comma-separated list, or in a file. Raises MissingFileError if that is not there."""
    if known is None:
        return None
    if Path(known).is_file():
        from newfound.benchmarks.data import known_names

        return known_names(Path(known))
    if known not in classes and Path(known).suffix in (".txt", ".json"):
        raise MissingFileError(f"there is no file {known} to read the names of the known classes from.")
    return [name.strip() for name in known.split(",") if name.strip()]


def _sizes(part: LabelledImages, file: Path) -> dict[str, Any]:
    return {"file": str(file), "images": len(part), "classes": len(part.classes)}
