"""Every dictionary on the same features: what deciding is worth, apart from learning.

Features are learnt once for each method and seed; every rule then reads categories off the same features, with its
threshold and open settings rehearsed on the same draws of the labelled set. The stream selects nothing.
"""

from __future__ import annotations

import copy
import dataclasses
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import newfound
from newfound import backbone as backbone_models
from newfound import presets
from newfound._scenes import Scene, with_settings
from newfound.benchmarks import pretraining, reliability_figure
from newfound.benchmarks.cells import Setup, commit, digest, given
from newfound.benchmarks.decisions_csv import as_csv
from newfound.benchmarks.running import in_a_path
from newfound.benchmarks.store import Result, Store
from newfound.benchmarks.tables import Column, Values, plain_latex, plain_markdown, seeds_in_words, unread_in_words
from newfound.cache import TokenCache
from newfound.datasets import LabelledImages
from newfound.discovery import events_of, standing
from newfound.errors import SettingsError
from newfound.evaluation import by_name, named_right, reliability, score, stream_order, unheard_of
from newfound.features import Encoder
from newfound.files import write_text
from newfound.launching import launch
from newfound.method import Method, get_method
from newfound.progress import Reporter
from newfound.rehearsal import choose, draws_for, play, shares_for
from newfound.teaching import readable, train
from newfound.training import blend_tail
from newfound.views import Augmentation, Views

FOLDER = "decisions"
FEATURES = {"frozen": "frozen", "ltc": "baseline", "phe": "baseline"}  # learnt by, and read with the settings of
_PLAIN: dict[str, Any] = {"dictionary": "bayesian", "alone": None, "reconsider_every": None}
RULES: dict[str, dict[str, Any]] = {
    "prototypes, fixed (the paper's)": {"dictionary": "prototypes", "update": "fixed", "centre": False},
    "prototypes, running means, centred": {"dictionary": "prototypes", "update": "running", "centre": True},
    "online prototypes (TALON's idea)": {"dictionary": "online", "centre": True},
    "three-way (PACO's idea)": {"dictionary": "three-way", "centre": True},
    "Gaussian expansion (AGE's idea)": {"dictionary": "gaussian", "centre": True},
    "evidence, at once": _PLAIN,
    "evidence, at once, Chinese restaurant": _PLAIN | {"concentration": 1.0},
    "evidence, second thoughts": {"dictionary": "bayesian"},
    "evidence, second thoughts and merging": {"dictionary": "bayesian", "merge_at": 0.0},
}


@dataclass(frozen=True)
class Learnt:
    """The features that a method learnt at a seed: of rehearsed draws, and of the labelled set and the stream."""

    reader: Method  # what reads them; its weights are not used
    scenes: dict[float, list[Scene]]
    known: LabelledImages  # that can be read
    labelled: dict[float, np.ndarray]
    stream: dict[float, tuple[np.ndarray, list[str]]]  # with the labels of the images that can be read

    def measure(self, rule: str, setup: Setup, seed: int) -> dict[str, Any]:
        """Choose the rule's settings in rehearsal, and score it on the stream."""
        offered = shares_for(with_settings(self.reader, RULES[rule]).settings)
        chosen = choose({share: self.scenes[share] for share in offered}, RULES[rule])
        method = with_settings(self.reader, {**RULES[rule], **chosen.settings})
        labelled, (features, seen) = self.known, self.stream[chosen.share]
        with torch.inference_mode():
            known = method.teach(torch.from_numpy(self.labelled[chosen.share]), torch.from_numpy(labelled.targets))
            readings = method.read(torch.from_numpy(features), known).float().numpy()
        found: dict[str, Any] = {"scores": [], "standing": [], "calibration": []}
        for k in range(setup.orders):
            order = stream_order(len(readings), seed, k)
            labels = [seen[i] for i in order]
            dictionary = method.dictionary(known, chosen.threshold)
            out = dictionary.observe(readings[order])
            now = standing(dictionary, out.category, events_of(dictionary))
            answers, discovered = by_name(out.category, labelled.classes)
            found["scores"].append(score(labels, answers, labelled.classes, discovered).as_dict())
            later, later_discovered = by_name(now, labelled.classes)
            found["standing"].append(score(labels, later, labelled.classes, later_discovered).as_dict())
            if out.probability is not None:
                right = named_right(labels, answers, labelled.classes, discovered)
                new = unheard_of(labels, answers, labelled.classes, discovered)
                found["calibration"].append(
                    {**_curve(out.probability, right), "new": _curve(out.new_probability, new)}
                )
        return found | {
            "threshold": {"value": chosen.threshold, "rule": chosen.describe(), "flat": list(chosen.flat)},
            "share": chosen.share,
            "rehearsed": chosen.settings,
            "unread": {"labelled": len(setup.split[0]) - len(labelled), "stream": len(setup.split[1]) - len(seen)},
        }


def run_decisions(
    setup: Setup,
    out: str | os.PathLike,
    *,
    seeds: Sequence[int] = (0, 1, 2),
    features: Iterable[str] = tuple(FEATURES),
    measure: bool = True,
    reporter: Reporter | None = None,
) -> list[Result]:
    """Measure what is missing of the table under `out`, and give all of its results.

    Raises:
        SettingsError: features that are not in the table.
        DataError: data that is not there or not the data set's; nothing can be written to `out`.
    """
    reporter, wanted = reporter or Reporter(), list(features)
    for name in wanted:
        if name not in FEATURES:
            raise SettingsError(f"there are no features of {name!r}; choose among {', '.join(FEATURES)}.")
    for oddity in setup.oddities:
        reporter.say(f"warning: {oddity}")
    store = Store(Path(out) / FOLDER)
    for name in wanted:
        for seed in seeds:
            open_rules = [rule for rule in RULES if _key(setup, name, rule, seed) not in store.results()]
            if measure and open_rules:
                with store.claim(_key(setup, name, "", seed), wait=True):
                    _fill(store, setup, name, seed, reporter)
    keys = [_key(setup, name, rule, seed) for name in wanted for rule in RULES for seed in seeds]
    results = store.results()
    return [results[key] for key in keys if key in results]


def _fill(store: Store, setup: Setup, name: str, seed: int, reporter: Reporter) -> None:
    rules = [rule for rule in RULES if _key(setup, name, rule, seed) not in store.results()]
    if not rules:
        return  # another process has done it meanwhile
    made_at, learnt = commit(), learn(setup, name, seed, reporter)
    with reporter.stage(f"deciding on the features of {name}, seed {seed}", len(rules)) as progress:
        for rule in rules:
            started = time.perf_counter()
            found = learnt.measure(rule, setup, seed)
            store.add(
                {"key": _key(setup, name, rule, seed), **_identity(setup, name, rule, seed), **found,
                 "seconds": round(time.perf_counter() - started, 1), "commit": made_at,
                 "newfound": newfound.__version__, "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
            )  # fmt: skip
            progress(1)


def learn(setup: Setup, name: str, seed: int, reporter: Reporter) -> Learnt:
    """Learn the features of a method, on the whole labelled set and on rehearsed draws of it."""
    labelled, stream = setup.split
    method_class = get_method(name)
    settings, reading = (
        presets.resolve(which, "default", short=setup.short, overrides={}) for which in (name, FEATURES[name])
    )
    model = backbone_models.create(setup.backbone, tune_blocks=1, weights=setup.weights, image_size=None)
    fabric = launch()
    model.to(fabric.device)
    augmentation = Augmentation(settings.min_scale, settings.flip, settings.jitter)
    encoder = Encoder(model, Views(model.spec, augmentation), cache=TokenCache(None))
    labelled, _ = readable(labelled, encoder, fabric, reporter)
    items = list(labelled.items)
    if settings.cached and settings.epochs:
        with reporter.stage("caching views", len(items)) as progress:
            encoder.cached_views(items, settings.views, seed=0, progress=progress)
    shares = shares_for(reading)
    with reporter.stage(f"rehearsing with {name}, seed {seed}") as progress:
        scenes = play(
            encoder, items, labelled.targets, method_class, settings, shares, seed=seed, fabric=fabric,
            draws=draws_for(settings), progress=progress,
        )  # fmt: skip
    before = copy.deepcopy(encoder.backbone.tail_state())
    with reporter.stage(f"learning with {name}, seed {seed}", settings.epochs * len(items) or None) as progress:
        train(encoder, items, labelled.targets, method_class, settings, seed=seed, fabric=fabric, progress=progress)
    after = copy.deepcopy(encoder.backbone.tail_state())
    known, seen = {}, {}
    with reporter.stage("encoding", len(shares) * (len(items) + len(stream))) as progress:
        for share in shares:
            encoder.backbone.model.load_state_dict(after, strict=False)
            blend_tail(encoder.backbone, before, share)
            known[share] = encoder.features(items, progress)
            features, positions, _ = encoder.readable(stream.items, progress)
            seen[share] = features, stream.subset(positions).labels
    reader_class = get_method(FEATURES[name])
    with torch.random.fork_rng(devices=[]):
        reader = reader_class(encoder.backbone.dim, len(labelled.classes), reading)
    played = {
        share: [dataclasses.replace(scene, method=reader, read={}) for scene in draws]
        for share, draws in scenes.items()
    }
    return Learnt(reader, played, labelled, known, seen)


def table_rows(results: Sequence[Result]) -> list[list[str]]:
    """The table: a row for each rule and features, the header first."""
    columns = [
        Column("Strict", _parts("scores", "strict", ("all", "old", "new"))),
        Column("Named", _parts("scores", "named", ("all", "old", "new"))),
        Column("categories", (("", lambda r: [s["categories"] for s in r["scores"]]),), scale=1, digits=0),
        Column("Strict, in the end", _parts("standing", "strict", ("all",))),
        Column("Named, in the end", _parts("standing", "named", ("all",))),
        Column(
            "categories, in the end", (("", lambda r: [s["categories"] for s in r["standing"]]),), scale=1, digits=0
        ),
        Column("ECE", (("", lambda r: [c["ece"] for c in r["calibration"]]),)),
        Column("ECE, new", (("", lambda r: [c["new"]["ece"] for c in r["calibration"] if "new" in c]),)),
    ]
    rows = [["features", "decided by", *(column.title for column in columns), "seeds"]]
    for features, rule in _lines(results):
        found = [r for r in results if (r["features"], r["rule"]) == (features, rule)]
        rows.append([features, rule, *(column.cell(found) for column in columns), str(len(found))])
    return rows


def caption(results: Sequence[Result]) -> str:
    """What the figures mean and where they come from."""
    first, tried = results[0], seeds_in_words((r["seed"] for r in results), results[0]["orders"])
    data, commits = first["data"], ", ".join(sorted({r["commit"] for r in results}))
    drawn = "" if data["class_seed"] is None else f", class seed {data['class_seed']}"
    told = (
        f"{data['protocol']}{drawn} ({data['known']} of {data['classes']} classes known), {first['backbone']}, "
        f"features learnt by the preset {first['preset']}, {tried}; mean of All / Old / New and the "
        "spread of All over seeds and orders, in per cent. Thresholds and settings are rehearsed on the labelled set. "
        '"In the end": the answers after second thoughts. ECE: of the probability of the answer given at once, and of '
        f"the probability that a sample is of a class without a category. Commits {commits}."
    )
    seen = pretraining.in_words(first["backbone"], data["protocol"], first["weights"])
    return " ".join([told, seen, *unread_in_words(results)])


def write(results: Sequence[Result], folder: Path) -> list[Path]:
    """The table as Markdown, CSV and LaTeX, and the reliability curves beside it; returns the files.

    Raises:
        SettingsError: there is no matplotlib.
        DataError: the folder cannot be written.
    """
    rows, name, written = table_rows(results), _file_name(results[0]), []
    told = caption(results)
    texts = {
        "md": f"{plain_markdown(rows)}\n{told}\n", "csv": as_csv(results), "tex": f"{plain_latex(rows)}% {told}\n",
    }  # fmt: skip
    for ending, text in texts.items():
        path = folder / f"{name}.{ending}"
        write_text(path, text)
        written.append(path)
    return written + reliability_figure.draw(results, folder / f"{name}-reliability")


def _file_name(result: Result) -> str:
    """Another one for all that is asked but seeds and features: a table of other classes replaces none."""
    data, short = result["data"], presets.label("default", short=True)
    parts = ["decisions", data["protocol"]]
    parts += [data["hash"][:8]] if data["protocol"].startswith("own ") else []  # of other known classes too
    parts += [f"class-seed-{data['class_seed']}"] if data["class_seed"] is not None else []
    parts += [result["backbone"]] if result["backbone"] != backbone_models.DEFAULT else []
    parts += [result["weights"]] if result["weights"] != "pretrained" else []
    parts += ["full"] if result["preset"] != short else []
    parts += [f"{result['orders']}-orders"] if result["orders"] != Setup.orders else []
    return in_a_path("-".join(parts))


def _lines(results: Sequence[Result]) -> Iterator[tuple[str, str]]:
    there = {(r["features"], r["rule"]) for r in results}
    return ((name, rule) for name in FEATURES for rule in RULES if (name, rule) in there)


def _parts(when: str, protocol: str, kinds: Sequence[str]) -> tuple[tuple[str, Values], ...]:
    def part(kind: str) -> Values:
        return lambda result: [value for s in result[when] if (value := s[protocol][kind]) is not None]

    return tuple((kind.capitalize(), part(kind)) for kind in kinds)


def _identity(setup: Setup, features: str, rule: str, seed: int) -> dict[str, Any]:
    learnt, read = (
        given(presets.resolve(name, "default", short=setup.short, overrides={}))
        for name in (features, FEATURES[features])
    )
    return {
        "data": setup.about, "backbone": setup.backbone, "weights": setup.source, "features": features, "rule": rule,
        "resolved": digest([learnt, read]),
        "settings": RULES.get(rule, {}), "preset": presets.label("default", short=setup.short), "seed": seed,
        "orders": setup.orders,
    }  # fmt: skip


def _key(setup: Setup, features: str, rule: str, seed: int) -> str:
    return digest(_identity(setup, features, rule, seed))


def _curve(probability: np.ndarray | None, came_true: np.ndarray) -> dict[str, Any]:
    assert probability is not None, "a dictionary has all probabilities or none"
    curve = reliability(probability, came_true)
    return {
        "ece": curve.ece, "brier": curve.brier, "count": curve.count.tolist(),
        "confidence": _numbers(curve.confidence), "accuracy": _numbers(curve.accuracy),
    }  # fmt: skip


def _numbers(values: np.ndarray) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]
