"""The table of docs/choosing.md that tells how many labelled images are enough.

    NEWFOUND_DATA=FOLDER python benchmarks/few_images.py [--no-measure]

Of the 37 classes of Oxford Pets some are known, with a few labelled images each; all are streamed, 20 images of each.
Draws are random; none is the split of the protocol. Each draw is measured once, so it can be stopped and given again.
"""

from __future__ import annotations

import json
import random
import statistics
import sys
from typing import Any

from publish import RESULTS, ROOT, put

import newfound as nf
from newfound.benchmarks.cells import commit
from newfound.benchmarks.data import load
from newfound.benchmarks.store import read_lines
from newfound.benchmarks.tables import plain_markdown
from newfound.datasets import LabelledImages

STORE = RESULTS / "few_images.jsonl"
CLASSES, IMAGES, DRAWS, STREAMED, ORDERS = (2, 4, 8, 16), (3, 10, 30), (1, 2, 3), 20, 2
KINDS: dict[str, dict[str, Any]] = {"as it comes": {}, "cosines": {"dictionary": "prototypes"}}


def drawn(data: LabelledImages, known: int, each: int, seed: int) -> tuple[LabelledImages, LabelledImages]:
    """A labelled set and a stream."""
    rng = random.Random(f"{known} {each} {seed}")
    names = rng.sample(data.classes, len(data.classes))
    labelled: list[tuple[Any, str]] = []
    stream: list[tuple[Any, str]] = []
    for place, name in enumerate(names):
        own = [item for item, label in zip(data.items, data.labels, strict=True) if label == name]
        rng.shuffle(own)
        shown = each if place < known else 0
        labelled += [(item, name) for item in own[:shown]]
        stream += [(item, name) for item in own[shown : shown + STREAMED]]
    first, second = (LabelledImages(*map(list, zip(*pairs, strict=True))) for pairs in (labelled, stream))
    return first, second


def measured(data: LabelledImages, known: int, each: int, seed: int, settings: dict[str, Any]) -> dict[str, Any]:
    labelled, stream = drawn(data, known, each, seed)
    run = nf.fit(labelled, method="frozen", seed=seed, **settings)
    scores = run.score_stream(*run.read_stream(stream), orders=ORDERS).scores
    return {
        "backbone": run.config["backbone"]["name"], "commit": commit(),
        "strict": statistics.mean(one.strict.all for one in scores),
        "named": statistics.mean(one.named.all for one in scores),
        "old": statistics.mean(one.named.old for one in scores),
        "categories": statistics.mean(one.categories for one in scores),
    }  # fmt: skip


def main() -> None:
    done = {result["key"] for result in read_lines(STORE)} if STORE.exists() else set()
    data = None
    for known, each, seed, kind in ((k, n, s, kind) for k in CLASSES for n in IMAGES for s in DRAWS for kind in KINDS):
        key = f"{known} x {each}, {kind}, {seed}"
        if key in done or "--no-measure" in sys.argv:
            continue
        data = data or load("pets")
        result = {"key": key, "kind": kind, "known": known, "each": each} | measured(
            data, known, each, seed, KINDS[kind]
        )
        with STORE.open("a", encoding="utf-8") as file:
            file.write(json.dumps(result) + "\n")
        print(result, flush=True)
    put(ROOT / "docs" / "choosing.md", table(list(read_lines(STORE))), "few images")


def table(results: list[dict[str, Any]]) -> str:
    rows = [("known classes", "labelled images of each", *(
        f"{kind}: {what}" for kind in KINDS for what in ("Strict / Named / Named Old", "categories")
    ))]  # fmt: skip
    for known in CLASSES:
        for each in IMAGES:
            cells = []
            for kind in KINDS:
                of = [r for r in results if (r["known"], r["each"], r["kind"]) == (known, each, kind)]
                if not of:
                    cells += ["-", "-"]
                    continue
                means = [statistics.mean(r[name] for r in of) for name in ("strict", "named", "old")]
                cells += [" / ".join(f"{100 * mean:.0f}" for mean in means)]
                cells += [f"{statistics.mean(r['categories'] for r in of):.0f}"]
            rows.append((str(known), str(each), *cells))
    commits = ", ".join(sorted({result["commit"] for result in results}))
    return (
        f"{plain_markdown(rows)}\n"
        f"Oxford Pets, 37 classes, {STREAMED} images of each streamed; `--method frozen`, {results[0]['backbone']}; "
        f"per cent, means over {len(DRAWS)} draws of classes and images and {ORDERS} stream orders; commit {commits}; "
        "`python benchmarks/few_images.py`.\n"
    )


if __name__ == "__main__":
    main()
