"""`newfound evaluate`: a labelled stream in several orders, scored under all protocols."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from newfound._words import counted
from newfound.cli._common import (
    AsJson,
    Device,
    Labelled,
    RunFolder,
    Runtime,
    Seed,
    Threshold,
    TrunkWeights,
    print_json,
    print_table,
    say,
    warn,
    watcher,
    write_json,
)

if TYPE_CHECKING:
    from newfound.datasets import LabelledImages
    from newfound.evaluation import StreamResult
    from newfound.run import Run


def evaluate(
    run: RunFolder,
    data: Labelled,
    orders: Annotated[int, typer.Option(min=1, metavar="N", help="Stream the images in N random orders.")] = 3,
    seed: Seed = 0,
    class_order: Annotated[
        bool, typer.Option("--class-order", help="One order, class after class, as much published code does.")
    ] = False,
    threshold: Threshold = None,
    max_clusters: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Keep the N largest clusters in Strict and Greedy; the rest is wrong."),
    ] = None,
    weights: TrunkWeights = None,
    runtime: Runtime = "torch",
    device: Device = "auto",
    out: Annotated[Path | None, typer.Option(metavar="FILE.json", help="Write the result here too.")] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Write a report: pictures by category, charts, scores.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Score a run on a labelled stream of classes that it knows (old) and others (new).

    \bnewfound evaluate runs/birds stream.csv
    newfound evaluate runs/birds birds-test/ --orders 5 --json
    newfound evaluate runs/birds birds-test/ --report birds.html

    \bStrict    one matching of categories and classes over all images
    Greedy    one over the old images and one over the new
    Named     an old image is right under its own class's name, a new one in a
              discovered category that is matched with its class
    """  # fmt: skip
    from newfound.cache import TokenCache
    from newfound.datasets import load_dataset
    from newfound.loading import load

    stream = load_dataset(data)
    cache = TokenCache()  # a stream is often evaluated again, at another threshold or in more orders
    loaded = load(run, weights=weights, cache=cache, runtime=runtime, device=device)
    about = _describe(loaded, run, stream, threshold)
    for warning in about["warnings"]:
        warn(warning)
    result = loaded.evaluate(
        stream, orders=orders, seed=seed, class_order=class_order, threshold=threshold, max_clusters=max_clusters,
        reporter=watcher(),
    )  # fmt: skip
    cache.trim()
    about["data"]["skipped"] = len(stream) - result.scores[0].samples
    if as_json:  # before anything is written: a file that cannot be must not take the result of long work with it
        print_json(about | result.as_dict())
    else:
        _print(about, result)
    if out is not None:
        write_json(out, about | result.as_dict())
    if report is not None:
        _report(report, loaded, stream, result, threshold, seed)


def _report(
    path: Path, run: Run, stream: LabelledImages, result: StreamResult, threshold: float | None, seed: int
) -> None:
    from newfound.report import tell, write_report

    how = "in the first of its orders" if not result.class_order else "in a random order"
    notes = [f"The pictures, the charts and the matrix show the stream {how}."]
    if threshold is not None:
        notes.append(f"The cut was set to {threshold:.2f} by hand; the run's own is {run.threshold:.2f}.")
    title = f"{Path(stream.source).name or stream.source}: {len(run.classes)} classes taught"
    story = tell(
        run, stream, title=title, table=[(run.label, result)], seed=seed, threshold=threshold, notes=notes,
        reporter=watcher(),
    )  # fmt: skip
    say(f"report: {write_report(path, story)}")


def _print(about: dict[str, Any], result: StreamResult) -> None:
    of = about["data"]
    old, new = counted(of["old_images"], "image"), counted(of["new_images"], "image")
    old += f" of {counted(of['old_classes'], 'known class', 'known classes')}"
    new += f" of {counted(of['new_classes'], 'other')}"
    left_out = f"; {of['skipped']} could not be read" if of["skipped"] else ""
    typer.echo(f"run   {about['run']} ({about['label']}; {about['backbone']}; threshold {about['threshold']:.2f})")
    typer.echo(f"data  {of['source']}: {old} (old), {new} (new){left_out}")
    print_table(result.table())
    how = "one random order" if result.orders == 1 else f"mean ± standard deviation over {result.orders} random orders"
    how = "class after class" if result.class_order else how
    typer.echo(f"{how}; per cent, but Categories and Discovered are counts")


def _describe(run: Run, folder: Path, stream: LabelledImages, threshold: float | None) -> dict[str, Any]:
    """What was evaluated on what, and what about it should make one wonder."""
    from newfound._oddities import oddities

    counts, known = stream.counts(), set(run.classes)
    old = {name: count for name, count in counts.items() if name in known}
    warnings = oddities(stream)
    if not old:
        warnings.append(
            f"{stream.source} has no class of this run, so Old says nothing. Its classes are {_some(stream.classes)}; "
            f"the run's are {_some(run.classes)}."
        )
    if len(old) == len(counts):
        warnings.append(f"{stream.source} has only classes of this run, so New says nothing: all of it is known.")
    warnings += _taught_too(run, stream)
    return {
        "run": str(folder),
        "label": run.label,
        "backbone": run.config["backbone"]["name"],
        "threshold": run.threshold if threshold is None else threshold,
        "data": {
            "source": stream.source,
            "old_images": sum(old.values()),
            "old_classes": len(old),
            "new_images": len(stream) - sum(old.values()),
            "new_classes": len(counts) - len(old),
        },
        "warnings": warnings,
    }


def _taught_too(run: Run, stream: LabelledImages) -> list[str]:
    """A warning if images of the stream were taught, as far as that can be told: if what was taught is still there."""
    from newfound._oddities import shared_images
    from newfound.datasets import load_dataset
    from newfound.errors import NewfoundError

    learnt = {"source": "", "images": 0, "skipped": 0} | run.config.get("data", {})
    try:
        taught = load_dataset(learnt["source"] or ())
    except NewfoundError:  # it was in memory, or is no longer there
        return []
    if taught.classes != run.classes or len(taught) != learnt["images"] + learnt["skipped"]:
        return []  # something else is in its place
    both = shared_images(stream, taught)
    if not both:
        return []
    count = counted(len(both), "image is", "images are")
    return [
        f"of {stream.source}, {count} also in {taught.source}, from which this run learnt, such as {both[0]}: what it "
        "was taught says little of what it will meet."
    ]


def _some(names: list[str], count: int = 3) -> str:
    return ", ".join(names[:count]) + (", ..." if len(names) > count else "")
