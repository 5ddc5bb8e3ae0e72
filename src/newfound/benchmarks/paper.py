"""The LTC paper's own figures, with their misprints marked, and its claims.

They stand in `paper.json` as printed; here accuracies are fractions, as everywhere else. A figure may be set beside a
result only where both are of the same thing: `beside` says when, and `find` looks one up.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from importlib import resources
from typing import Any

from newfound import presets
from newfound.benchmarks.result_settings import resolved
from newfound.benchmarks.store import Result
from newfound.errors import SettingsError
from newfound.evaluation.score import Accuracy

TABLES = {
    "table1": "Table 1: all methods under both protocols, seven data sets",
    "table2": "Table 2: numbers of categories and accuracies on CUB and Stanford Cars",
    "table3": "Table 3: LTC without each of its parts, on Oxford Pets and Stanford Cars",
    "table4": "Table 4: LTC with other creators, on Oxford Pets",
    "backbones": "Appendix, comparison of variants: SMILE, PHE and LTC with DINO and with CLIP",
}
# How a run is trained, which every machine has to choose for itself. Creation in token space is part of the short form.
_TRAINING = frozenset({
    "epochs", "batch_size", "optimizer", "momentum", "lr", "weight_decay", "head_lr", "head_weight_decay",
    "warmup_epochs", "warmup_lr", "final_lr", "cached", "views", "min_scale", "flip", "jitter", "space",
})  # fmt: skip
_TAU_INIT = (0.6, 0.7)  # the paper starts from one or the other by data set (Sec. 4.1)


@dataclass(frozen=True)
class Misprint:
    """Something in the paper that cannot be right.

    Args:
        where: the place in the paper.
        printed: what stands there.
        wrong: what is wrong with it, and what it should be if that is known.
        found_here: found when these figures were checked against each other, not pointed out before.
        touches: the entries that it concerns, by table, method, backbone, protocol and score; what is left out may have
            any value. None for something in a caption or in the text alone.
    """

    name: str
    where: str
    printed: str
    wrong: str
    found_here: bool
    touches: tuple[dict[str, str], ...] = field(default=(), hash=False)

    def concerns(self, entry: Published, score: str) -> bool:
        """Whether it is in an entry's figures of one score, "strict" or "greedy"."""
        return any(
            touched.get("score", score) == score
            and all(getattr(entry, name) == value for name, value in touched.items() if name != "score")
            for touched in self.touches
        )


@dataclass(frozen=True)
class Published:
    """A row of a table, for one data set.

    Args:
        printed: what the row is called in the paper.
        settings: those that differ from the paper's own.
        backbone_from: how the backbone is known; the paper does not state it for every row.
        known: how many classes were known in the stream that the figures are of.
        categories: the number of categories found.
        seconds: time to create 128 samples; with `under`, the paper only says that it is below this.
    """

    table: str
    printed: str
    protocol: str
    backbone: str
    backbone_from: str
    method: str
    settings: dict[str, Any] = field(hash=False)
    known: int
    greedy: Accuracy | None = None
    strict: Accuracy | None = None
    categories: int | None = None
    seconds: float | None = None
    under: bool = False


@dataclass(frozen=True)
class Claim:
    """Something the paper says that a reproduction can test.

    Args:
        says: the claim, in our words.
        where: where the paper makes it.
        study: the study of `newfound.benchmarks.studies` that tests it.
        note: how far the paper's own figures bear it out; None if it has no figures in print.
    """

    name: str
    says: str
    where: str
    study: str
    note: str | None


def published(table: str | None = None) -> list[Published]:
    """All entries that have a figure, or those of one of `TABLES`, in the paper's order.

    Raises:
        SettingsError: there is no such table.
    """
    if table is not None and table not in TABLES:
        raise SettingsError(f"the paper has no figures for {table!r}; choose one of {', '.join(TABLES)}.")
    return [one for one in _entries() if table in (None, one.table)]


def misprints() -> list[Misprint]:
    """All that is known; each can tell whether it `concerns` an entry."""
    return [Misprint(**{**one, "touches": tuple(one["touches"])}) for one in _paper()["misprints"]]


def claims() -> list[Claim]:
    """What a reproduction is to find out."""
    return [Claim(**one) for one in _paper()["claims"]]


def find(table: str, protocol: str, backbone: str, method: str, settings: Mapping[str, Any]) -> Published | None:
    """The entry for a data set, a backbone with its own weights, a method and its settings; None if there is none.

    Args:
        settings: what differs from the preset `paper`. How a run is trained (rates, epochs, views, ...) is passed over,
            for it says what was spent and not what was tried, and so is which of its two tau_init a run of LTC has. Any
            other difference must be the row's own: LTC with gamma_mm=0 is not the LTC of Table 1.

    LTC without creation is known-hinge by another name (Sec. 4.3): both are Table 3's row without MKEE.

    Raises:
        SettingsError: there is no such method.
    """
    usual = asdict(presets.resolve(method, "paper", short=False, overrides={}))
    changes = {name: value for name, value in settings.items() if _matters(name, value)}
    unlike = {name: value for name, value in changes.items() if name not in usual or usual[name] != value}
    if method == "known-hinge":
        method, unlike = "ltc", unlike | {"creator": None}
    wanted = (table, protocol, backbone, method)
    entries = (one for one in _entries() if (one.table, one.protocol, one.backbone, one.method) == wanted)
    return next((one for one in entries if one.settings == unlike), None)


def beside(table: str, result: Result) -> Published | None:
    """The entry that a result may be compared with: the same data, backbone, weights and method; None if there is none.

    How it was trained may differ: `unlike_paper` tells.

    The result must be of the official known classes and of the backbone's own weights: nobody here can tell what a file
    of weights has seen. `paper` and `released` are both the authors' account; of any other preset, all that differs
    from `paper` counts as in `find`. A short form passes, for its label says that it is one.

    Raises:
        SettingsError: the result is of a method, preset or setting that there no longer is.
    """
    data, method = result["data"], result["method"]
    if data["class_seed"] is not None or result["weights"] != "pretrained" or "image_size" in result:
        return None
    preset = result["preset"].removesuffix(" (short)")
    changes = {name: value for name, value in result["settings"].items() if _matters(name, value)}
    account = "released" if preset == "released" else "paper"
    theirs = asdict(presets.resolve(method, account, short=False, overrides={}))
    ours = asdict(presets.resolve(method, preset, short=False, overrides=changes))
    unlike = {name: value for name, value in ours.items() if theirs[name] != value}
    found = find(table, data["protocol"], result["backbone"], method, unlike)
    return found if found is not None and found.known == data["known"] else None


def unlike_paper(result: Result) -> dict[str, tuple[Any, Any]]:
    """Settings in which a result differs from the whole preset `paper` of its method: its own value, and the preset's.

    How it was trained is among them, which `beside` passes over.

    Raises:
        DataError: the result is of a preset that there no longer is.
        SettingsError: it is of a method or setting that there no longer is.
    """
    theirs = asdict(presets.resolve(result["method"], "paper", short=False, overrides={}))
    ours = asdict(resolved(result))
    return {name: (ours[name], value) for name, value in theirs.items() if ours[name] != value}


def _matters(name: str, value: Any) -> bool:
    return name not in _TRAINING and not (name == "tau_init" and value in _TAU_INIT)


@lru_cache(maxsize=1)
def _entries() -> tuple[Published, ...]:
    return tuple(
        entry
        for table, rows in _paper()["tables"].items()
        for row in rows
        for protocol in row.get("greedy") or row["strict"]
        if (entry := _entry(table, row, protocol)) is not None
    )


def _entry(table: str, row: dict[str, Any], protocol: str) -> Published | None:
    scores = {score: row.get(score, {}).get(protocol) for score in ("greedy", "strict")}
    if not any(scores.values()):
        return None
    about = {name: row[name] for name in ("printed", "backbone", "backbone_from", "method", "settings")}
    seconds = str(row["seconds"]) if "seconds" in row else None  # "283.96" or "<1"
    return Published(
        table=table, protocol=protocol, known=_paper()["known"][protocol], **about,
        greedy=_accuracy(scores["greedy"]), strict=_accuracy(scores["strict"]),
        categories=row.get("categories", {}).get(protocol),
        seconds=float(seconds.lstrip("<")) if seconds else None, under=bool(seconds and seconds.startswith("<")),
    )  # fmt: skip


def _accuracy(percent: list[float] | None) -> Accuracy | None:
    return Accuracy(*(round(value / 100, 4) for value in percent)) if percent else None


@lru_cache(maxsize=1)
def _paper() -> dict[str, Any]:
    return json.loads(resources.files("newfound.benchmarks").joinpath("paper.json").read_text(encoding="utf-8"))
