"""The page that goes with a published run: what it knows, how it decides, how well, and where it ends."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from newfound.errors import DataError

if TYPE_CHECKING:
    from newfound.evaluation import StreamResult
    from newfound.run import Run

_LISTED = 50  # class names on the page; classes.json has all
_PROTOCOLS = ("strict", "greedy", "named")
_PARTS = ("all", "old", "new")
_TAGS = ["newfound", "category-discovery", "novelty-detection", "open-world", "image-classification"]


def model_card(
    run: Run,
    name: str,
    *,
    scores: StreamResult | Mapping[str, Any] | None = None,
    datasets: Sequence[str] = (),
    license: str | None = None,
) -> str:
    """The page as Markdown, with the metadata that model hubs read in front.

    Args:
        name: what the model is called, such as "org/name".
        scores: what `run.evaluate` returned, or what `newfound evaluate --out` wrote.
        datasets: ids of the data on the hub.
        license: of the model, as the hub abbreviates it ("apache-2.0").

    Raises:
        DataError: scores that are neither.
    """
    found = None if scores is None else _figures(scores)
    parts = [
        _front(run, name, found, list(datasets), license), f"# {_plain(name)}\n", _what(run), _use(name), _data(run),
        _decisions(run), _scores(found), _limits(run),
    ]  # fmt: skip
    return "\n".join(parts)


def _front(run: Run, name: str, found: dict[str, Any] | None, datasets: list[str], license: str | None) -> str:
    fields: dict[str, Any] = {"library_name": "newfound", "pipeline_tag": "image-classification"}
    fields["tags"] = [*_TAGS, run.config["method"]]
    if license:
        fields["license"] = license
    if datasets:
        fields["datasets"] = datasets
    backbone = run.config["backbone"]
    if backbone["weights"] == "pretrained" and "." in backbone["name"]:  # the name and tag that timm has on the hub
        fields["base_model"] = f"timm/{backbone['name']}"
    if found:
        fields["metrics"] = ["accuracy"]
        fields["model-index"] = [{"name": name, "results": [_result(found, datasets)]}]
    # Every JSON value is a YAML value, and its quotes keep class names and the like from being read as anything else.
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in fields.items()]
    return "\n".join(["---", *lines, "---", ""])


def _result(found: dict[str, Any], datasets: list[str]) -> dict[str, Any]:
    source = found.get("data", {}).get("source") or "a labelled stream"
    metrics = [
        {"type": "accuracy", "name": f"{protocol.capitalize()} {part.capitalize()}", "value": round(100 * value, 2)}
        for protocol in _PROTOCOLS
        for part in _PARTS
        if (value := (found["mean"].get(protocol) or {}).get(part)) is not None
    ]
    return {
        "task": {"type": "image-classification", "name": "On-the-fly category discovery"},
        "dataset": {"type": datasets[0] if datasets else "custom", "name": _last(source)},
        "metrics": metrics,
    }


def _what(run: Run) -> str:
    return (
        f"Recognises {len(run.classes)} classes and discovers others, one image at a time. Trained with "
        f"newfound {run.config.get('newfound', '')}: method {_plain(run.label)}, backbone "
        f"{_plain(run.config['backbone']['name'])}.\n"
    )


def _use(name: str) -> str:
    return f"""## Use

```python
import newfound as nf

run = nf.load({json.dumps(name)})
finder = run.discoverer("journal.db")
for sighting in finder.observe("incoming/"):
    print(sighting.image, sighting.name, sighting.is_new)
```
"""


def _data(run: Run) -> str:
    data = run.config.get("data", {})
    names = ", ".join(_plain(name) for name in run.classes[:_LISTED])
    more = f" and {len(run.classes) - _LISTED} more, listed in `classes.json`" if len(run.classes) > _LISTED else ""
    source = f" from {_plain(_last(data['source']))}" if data.get("source") else ""
    skipped = f"; {data['skipped']} more could not be read" if data.get("skipped") else ""
    created = run.config.get("created")
    made = f" It also learnt from {created['images']} images that the method made itself." if created else ""
    return (
        f"## Data\n\n{data.get('images', 'An unknown number of')} labelled images{source}{skipped}.{made}\n\n"
        f"Classes: {names}{more}.\n"
    )


def _decisions(run: Run) -> str:
    evidence = run.config["settings"].get("dictionary") == "bayesian"
    kind = "a log ratio of evidence" if evidence else "a score"
    rule = run.config["threshold"].get("rule", "")
    chosen = f" ({_plain(rule)})" if rule else ""
    if not run.method.discovers:
        return "## Decisions\n\nEvery image gets its best class: this method discovers nothing.\n"
    return (
        f"## Decisions\n\nAn image whose best score, {kind}, is below the threshold of {run.threshold:.2f} fits no "
        f"category there is{chosen}. `run.discoverer(threshold=...)` sets another.\n"
    )


def _scores(found: dict[str, Any] | None) -> str:
    if found is None:
        return "## Scores\n\nNot evaluated: `newfound evaluate` scores it on a labelled stream.\n"
    mean, std = found["mean"], found.get("std") or {}
    rows = ["| per cent | All | Old | New |", "|---|---|---|---|"]
    for protocol in _PROTOCOLS:
        means, spreads = mean.get(protocol) or {}, std.get(protocol) or {}
        cells = [_cell(means.get(part), spreads.get(part), found.get("orders", 1)) for part in _PARTS]
        rows.append(f"| {protocol.capitalize()} | {' | '.join(cells)} |")
    data = found.get("data", {})
    of = f" on {_plain(_last(data['source']))}" if data.get("source") else ""
    cut = f", at the threshold {found['threshold']:.2f}" if "threshold" in found else ""
    orders = found.get("orders", 1)
    how = f"mean ± standard deviation over {orders} orders of the stream" if orders > 1 else "one order of the stream"
    counted = f" {mean['categories']:.1f} categories were in use." if mean.get("categories") is not None else ""
    return (
        f"## Scores\n\nOn-the-fly category discovery{of}{cut}; {how}. Old are images of the classes above, new all "
        f"others.{counted}\n\n" + "\n".join(rows) + "\n\nStrict: one matching of categories and classes over all "
        "images. Greedy: one over the old and one over the new. Named: an old image is right under its class's own "
        "name, a new one in a discovered category that is matched with its class.\n"
    )


def _limits(run: Run) -> str:
    return (
        "## Limits\n\n"
        "- A category is a group of images that look alike to the backbone. It need not be a class that a person would "
        "make: look at what was discovered before relying on it.\n"
        "- Answers depend on the order of the stream, and early ones on little evidence.\n"
        "- The threshold and all scores hold for images like those above. With another camera, season or place, "
        "evaluate again.\n"
        f"- An image of none of the {len(run.classes)} classes can be taken for one of them, and the other way round.\n"
    )


def _figures(scores: Any) -> dict[str, Any]:
    found = scores.as_dict() if hasattr(scores, "as_dict") else scores
    if not isinstance(found, Mapping) or not isinstance(found.get("mean"), Mapping):
        raise DataError("scores are what run.evaluate returns, or the JSON that `newfound evaluate --out` wrote.")
    return dict(found)


def _cell(mean: float | None, spread: float | None, orders: int) -> str:
    if mean is None:
        return "-"
    return f"{100 * mean:.1f}" + (f" ± {100 * spread:.1f}" if spread is not None and orders > 1 else "")


def _last(source: str) -> str:
    """The last part of a path: where somebody keeps their data is nobody's business."""
    return re.split(r"[\\/]", source.rstrip("\\/"))[-1] or source


def _plain(text: str) -> str:
    """Text that Markdown shows as it is."""
    one_line = " ".join(str(text).split())
    return re.sub(r"([\\`*_\[\]<>|#~])", r"\\\1", one_line)


__all__ = ["model_card"]
