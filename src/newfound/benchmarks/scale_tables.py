"""From measured constants to a billion images and a million categories: the tables of docs/scaling.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from newfound.benchmarks.simulation import Load, simulate
from newfound.journal.due import Due

Figures = dict[str, Any]
ENCODERS = (16, 64, 256)
CATEGORIES = (10_000, 100_000, 1_000_000)
IMAGES = 1_000_000_000
TOLERANCE = 0.25  # by which a simulated throughput may miss the measured one
_BLOCK = 256


def line(figures: Figures, size: float) -> float:
    """A measured line at a size."""
    return figures["fixed"] + figures["each"] * size


def load_of(
    figures: Figures, kind: str, categories: int, *, writers: bool, store: str = "postgres", block: int = _BLOCK
) -> Load:
    """What a block costs at so many categories.

    Args:
        kind: the dictionary, "prototypes" or "evidence".
        writers: whether every encoder enters its own blocks, and so takes in everybody's; else one process decides.
    """
    known, journal = figures["dictionaries"][kind], figures[store]
    decide = block * line(known["decide"], categories)
    saving = line(known["save"], categories)
    snapshot = saving * decide / Due(saving=saving).after
    return Load(
        images=block,
        encode=block * (figures["images"]["decode"] + figures["images"]["encode"]),
        serial=line(journal["enter"], block) + decide + snapshot,
        catch_up=line(journal["catch_up"], block) + decide if writers else 0.0,
        ahead=1 if writers else 2,
    )


def reproduced(figures: Figures) -> list[tuple[int, float, float, float]]:
    """Of each measured number of writers: images a second as measured, as simulated, and by what share that misses."""
    w = figures["writers"]
    load = Load(w["block"], w["encode"], w["serial"], w["catch_up"])
    rows = []
    for count, measured in ((int(n), rate["median"]) for n, rate in w["rates"].items()):
        simulated = simulate(load, count, w["cores"])
        rows.append((count, measured, simulated, simulated / measured - 1))
    return rows


def missed(figures: Figures) -> list[int]:
    """The numbers of writers whose measured throughput the simulation does not reproduce."""
    return [count for count, *_, off in reproduced(figures) if abs(off) > TOLERANCE]


def tables(figures: Figures) -> dict[str, list[Sequence[str]]]:
    """All tables by title, the header first; what nobody measured only if what was measured is reproduced."""
    told = {
        "What was measured": _constants(figures),
        "Writers: simulated and measured": _reproduced_table(figures),
    }
    if missed(figures):
        return told
    return told | {
        "Images a second, encoders that feed one process": _extrapolated(figures, writers=False),
        "Images a second, writers that each decide": _extrapolated(figures, writers=True),
        "A billion images": _billion(figures),
        "What a number of categories takes": _categories(figures),
    }


def markdown(figures: Figures) -> str:
    """The tables as a block of a document."""
    parts = []
    for title, (header, *body) in tables(figures).items():
        rule = "|".join(["---"] * len(header))
        rows = "\n".join(f"| {' | '.join(row)} |" for row in body)
        parts.append(f"**{title}**\n\n| {' | '.join(header)} |\n|{rule}|\n{rows}")
    where = f"{figures['machine']}, one thread each, commit {figures['commit']}, {figures['time']} UTC"
    return "\n\n".join([*parts, f"{where}; `python benchmarks/scale.py`."])


def _constants(figures: Figures) -> list[Sequence[str]]:
    images, d = figures["images"], figures["dimension"]
    rows: list[Sequence[str]] = [("stage", "costs", "where")]
    jpeg = "x".join(map(str, images["jpeg"]))
    rows.append(("decode", f"{1e3 * images['decode']:.1f} ms an image", f"JPEG of {jpeg} pixels, with its view"))
    rows.append(
        ("encode", f"{1e3 * images['encode']:.1f} ms an image", f"{images['backbone']}, {images['pixels']} pixels")
    )
    for kind, known in figures["dictionaries"].items():
        decide, save, load = known["decide"], known["save"], known["load"]
        rows += [
            ("decide", f"{_us(decide['fixed'])} + {_us(1e3 * decide['each'])} per 1,000 categories", f"{kind}, {d} d"),
            ("snapshot", f"{1e6 * save['each']:.0f} us and {known['state']['each']:,.0f} bytes a category", kind),
            ("opening", f"{1e6 * load['each']:.0f} us a category", kind),
            ("memory", f"{known['memory']['each']:,.0f} bytes a category", kind),
        ]
    for store in ("sqlite", "postgres"):
        one = figures[store]
        rows += [
            ("commit", f"{1e3 * one['enter']['fixed']:.1f} ms a block + {_us(one['enter']['each'])} a sighting", store),
            ("catch up", f"{1e3 * one['catch_up']['fixed']:.1f} ms + {_us(one['catch_up']['each'])} a sighting", store),
            ("disk", f"{one['bytes']:,.0f} bytes a sighting", store),
        ]
    return rows


def _reproduced_table(figures: Figures) -> list[Sequence[str]]:
    rows: list[Sequence[str]] = [("writers", "measured, images/s", "simulated", "off by", f"within {TOLERANCE:.0%}")]
    for count, measured, simulated, off in reproduced(figures):
        fits = "yes" if abs(off) <= TOLERANCE else "no"
        rows.append((str(count), f"{measured:.1f}", f"{simulated:.1f}", f"{off:+.0%}", fits))
    return rows


def _extrapolated(figures: Figures, *, writers: bool) -> list[Sequence[str]]:
    header = ("dictionary", "categories", *(f"{n} encoders" for n in ENCODERS), "serial bound", "most that help")
    rows: list[Sequence[str]] = [header]
    for kind in figures["dictionaries"]:
        for categories in CATEGORIES:
            load = load_of(figures, kind, categories, writers=writers)
            rates = [_rate(simulate(load, count)) for count in ENCODERS]
            rows.append((kind, f"{categories:,}", *rates, _rate(load.images / load.serial), f"{load.best():,}"))
    return rows


def _billion(figures: Figures) -> list[Sequence[str]]:
    images = figures["images"]
    cores = IMAGES * (images["decode"] + images["encode"]) / 3600
    rows: list[Sequence[str]] = [("what", "amount", "with N of them")]
    rows.append(("decode and encode on cores", f"{cores:,.0f} core hours", f"{cores:,.0f} / N hours"))
    rows.append(("decode alone, beside GPUs", f"{IMAGES * images['decode'] / 3600:,.0f} core hours", "/ N"))
    rows.append(("encode on GPUs of r images/s", f"{IMAGES / 3600:,.0f} / r GPU hours", "/ N"))
    for store in ("sqlite", "postgres"):
        rows.append((f"journal in {store}", f"{IMAGES * figures[store]['bytes'] / 1e12:.2f} TB", "one order: no N"))
    for kind in figures["dictionaries"]:
        for categories in CATEGORIES:
            load = load_of(figures, kind, categories, writers=False)
            hours = IMAGES * load.serial / load.images / 3600
            what = f"decide and commit, {kind}, {categories:,} categories"
            rows.append((what, f"{hours:,.0f} hours", "one order: no N; with shards / N"))
    return rows


def _categories(figures: Figures) -> list[Sequence[str]]:
    header = ("dictionary", "categories", "memory", "snapshot", "opening", "lock a block of 256")
    rows: list[Sequence[str]] = [header]
    for kind, known in figures["dictionaries"].items():
        for count in CATEGORIES:
            state = line(known["state"], count)
            lock = load_of(figures, kind, count, writers=False).serial
            memory, opening = _gb(line(known["memory"], count)), f"{line(known['load'], count):.1f} s"
            rows.append((kind, f"{count:,}", memory, _gb(state), opening, f"{1e3 * lock:,.0f} ms"))
    return rows


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _us(seconds: float) -> str:
    return f"{1e6 * seconds:,.0f} us"


def _gb(size: float) -> str:
    return f"{size / 1e9:.2f} GB"
