"""`newfound journal`: check it, carry it to another model, erase from it. `newfound replay`, `newfound promote`."""

from __future__ import annotations

import math
from collections import Counter
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from newfound._words import counted
from newfound.cli._common import (
    FAILED,
    PARTLY,
    AsJson,
    CarefulGroup,
    RunFolder,
    TrunkWeights,
    print_json,
    print_table,
    say,
    watcher,
)  # fmt: skip
from newfound.cli._journal import Actor, Where, clock, curating, named_images, opened, where_is
from newfound.errors import SettingsError

app = typer.Typer(cls=CarefulGroup, no_args_is_help=True)


@app.callback()
def journal() -> None:
    """What was seen and decided, in order: check it, carry it to another model, erase from it."""


@app.command()
def info(run: RunFolder, journal: Where = None, as_json: AsJson = False) -> None:
    """How much a journal holds, since when, and of which model."""
    with opened(run, journal, looking=True) as found:
        position, model = found.position(), found.model()
        ends = found.sightings([0, position.sightings - 1]) if position.sightings else []
        told: dict[str, Any] = {
            "journal": found.name,
            "sightings": position.sightings,
            "events": position.events,
            "first": ends[0].time if ends else None,
            "last": ends[-1].time if ends else None,
            "model": model.fingerprint,
            **{name: model.about.get(name) for name in ("method", "preset", "backbone")},
        }
    if as_json:
        print_json(told)
        return
    times = {name: clock(told[name]) for name in ("first", "last") if told[name] is not None}
    rows = [(name, str(value)) for name, value in (told | times).items() if value is not None]
    print_table(rows, left=2, header=False)


@app.command()
def verify(run: RunFolder, journal: Where = None, as_json: AsJson = False) -> None:
    """Play the journal again from its start, and compare every answer, event, place and state.

    The exit code is 0 if all is as the journal says, and 1 if not.
    """
    from newfound.journal.replaying import verify as replayed

    with opened(run, journal, looking=True) as found:
        told = replayed(found)
    if as_json:
        print_json(vars(told) | {"fine": told.fine})
    else:
        played = f"{counted(told.sightings, 'sighting')} and {counted(told.events, 'edit')}"
        wrong = counted(len(told.differences), "difference")
        say(f"{played} played again: {'all as the journal says' if told.fine else wrong}")
        if told.skipped:
            say(f"rebuilt after {counted(told.skipped, 'sighting')}, the journal is taken as it stood then")
        for difference in told.differences[:20]:
            say(f"  {difference}")
    if not told.fine:
        raise typer.Exit(FAILED)


@app.command()
def forget(
    run: RunFolder,
    images: Annotated[list[str], typer.Argument(metavar="IMAGE...", help="Image files, or numbers of sightings.")],
    journal: Where = None,
    by: Actor = None,
) -> None:
    """Erase images from the journal for good: names, features, answers.

    A tombstone keeps their place, every id stays valid, and what was learnt
    from them is unlearnt. What the service keeps of them in RUN goes too:
    uploads and small copies. This cannot be undone. Image files elsewhere are
    not touched. In PostgreSQL, VACUUM clears the old rows from the disk.
    """
    from newfound.service.images_store import erase

    with curating(run, journal, by) as curator:
        event = curator.forget(named_images(images), also=partial(erase, run))
    say(f"{counted(len(event.details['sightings']), 'image is', 'images are')} forgotten")


@app.command()
def reencode(
    run: RunFolder,
    new_run: Annotated[Path, typer.Argument(metavar="NEW_RUN", help="The run to carry the journal to.")],
    journal: Where = None,
    to: Annotated[
        str | None, typer.Option(metavar="FILE|URL", help="The new journal.", show_default="NEW_RUN/journal.db")
    ] = None,
    weights: TrunkWeights = None,
) -> None:
    """Carry a journal to another model: images are encoded again, ids kept.

    Nothing is decided anew: every image stays where it is. The old journal is
    not changed. The exit code is 3 if some images are gone or have changed.
    """
    from newfound.carrying import carry
    from newfound.journal import Journal
    from newfound.loading import load

    loaded = load(new_run, weights=weights)
    with opened(run, journal, looking=True) as old, Journal.open(where_is(new_run, to)) as new:
        done = carry(old, new, loaded, watcher())
        say(f"{counted(done.sightings, 'sighting')} carried to {new.name}")
    if done.missing:
        are = counted(len(done.missing), "image is gone or has", "images are gone or have")
        say(f"{are} changed, and not encoded; the first: {done.missing[0]}")
        raise typer.Exit(PARTLY)


def replay(
    run: RunFolder,
    cuts: Annotated[
        list[float] | None,
        typer.Option("--cut", metavar="X", help="What if scores had been held against this? As often as you like."),
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="Back to this moment: 2026-05-01, or 2026-05-01T12:30:00.")
    ] = None,
    journal: Where = None,
    as_json: AsJson = False,
) -> None:
    """Play the recorded stream again, without touching an image; nothing is changed.

    \bnewfound replay runs/birds --cut 5 --cut 10      what other cuts would have found
    newfound replay runs/birds --until 2026-05-01    the categories as they were then

    With --cut every stored feature is decided on anew, and what people did is
    left out. Without it, the categories are shown as they stood.
    """
    from newfound.journal.replaying import as_of, what_if

    before = _seconds(until)
    if bad := [cut for cut in cuts or () if not math.isfinite(cut)]:
        raise SettingsError(f"--cut {bad[0]}: give a finite number.")
    with opened(run, journal, looking=True) as found:
        if cuts:
            listed: list[dict[str, Any]] = []
            rows: list[tuple[str, ...]] = [("cut", "images", "categories", "discovered", "largest")]
            for told in (what_if(found, cut, until=before) for cut in cuts):
                sizes = sorted(Counter(c for c in told.categories if c >= told.known).values(), reverse=True)
                listed.append({
                    "cut": told.cut, "sightings": told.sightings, "categories": told.found,
                    "discovered": told.discovered, "sizes": sizes,
                })  # fmt: skip
                largest = ", ".join(map(str, sizes[:8]))
                rows.append((f"{told.cut:g}", str(told.sightings), str(told.found), str(told.discovered), largest))
        else:
            book = as_of(found, float("inf") if before is None else before)
            counts = book.catalogue.counts(book.dictionary)
            name = book.catalogue.name
            listed = [{"id": c, "name": name(c), "count": counts[c]} for c in book.catalogue.living()]
            rows = [("id", "name", "images")]
            rows += [(str(c), name(c), str(counts[c])) for c in book.catalogue.living()]
    if as_json:
        print_json(listed[0] if len(cuts or ()) == 1 else listed)
    else:
        print_table(rows, left=0 if cuts else 2)


def _seconds(moment: str | None) -> float | None:
    if moment is None:
        return None
    try:
        return datetime.fromisoformat(moment).timestamp()
    except ValueError:
        raise SettingsError(f"{moment!r} is no moment: give a date such as 2026-05-01, or 2026-05-01T12:30.") from None


def promote(
    run: RunFolder,
    categories: Annotated[list[int], typer.Argument(metavar="ID...", help="Discovered categories with a name.")],
    stop: Annotated[bool, typer.Option("--stop", help="Take the mark off again.")] = False,
    journal: Where = None,
    by: Actor = None,
) -> None:
    """Turn named discoveries into classes to be taught.

    \bnewfound categories runs/birds rename 7 heron
    newfound promote runs/birds 7
    newfound train labelled/ --continue runs/birds --out runs/birds-2
    newfound journal reencode runs/birds runs/birds-2
    """
    with curating(run, journal, by) as curator:
        curator.promote(*categories, on=not stop)
        before = "" if curator.last_edit is not None else "nothing changed; "
        marked = [f"{c.id} {c.name}" for c in curator.categories() if c.promoted]
    say(f"{before}to be taught by `newfound train --continue`: {', '.join(marked) or 'none'}")
