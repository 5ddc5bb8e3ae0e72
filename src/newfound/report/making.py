"""How it was made: what someone needs to judge the figures, or to get them again."""

from __future__ import annotations

from newfound.report.markup import Markup, element, join, number
from newfound.report.story import Story
from newfound.report.threshold import rule

_IMAGENET = (
    "The backbone tf_efficientnet_lite0 was trained on ImageNet's labels. Classes that resemble ImageNet's are new to "
    "the model that was taught here, but not to its backbone: figures on them flatter what it would do with things "
    "that are new to both."
)


def making(story: Story) -> Markup:
    config = story.run.config
    rows = [element("tr", element("th", name, scope="row"), element("td", value)) for name, value in _facts(story)]
    table = element("table", element("caption", "The run"), element("tbody", rows), class_="facts")
    notes = list(story.notes)
    if config["backbone"]["name"].startswith("tf_efficientnet_lite0") and config["backbone"]["weights"] != "random":
        notes.insert(0, _IMAGENET)
    listed = element("ul", [element("li", note) for note in notes], class_="notes") if notes else None
    return join(table, listed, _settings(config))


def _facts(story: Story) -> list[tuple[str, str]]:
    config = story.run.config
    data, backbone, cut = config["data"], config["backbone"], config["threshold"]
    size = f", {backbone['image_size']} pixels" if backbone["image_size"] else ""
    tuned = f", last {number(backbone['tune_blocks'], 'block')} trained" if config["settings"]["epochs"] else ", frozen"
    taught = f"{number(data['images'], 'image')} of {number(data['classes'], 'class', 'classes')} from {data['source']}"
    if data["skipped"]:
        taught += f"; {data['skipped']:,} more could not be read"
    return [
        ("Method", config["method"]),
        ("Preset", config["preset"]),
        ("Backbone", f"{backbone['name']}, weights: {backbone['weights']}{size}{tuned}"),
        ("Seed", str(config["seed"])),
        ("Taught from", taught),
        ("Streamed", number(len(story.items), "image")),
        ("Threshold", f"{cut['value']:.3f}, {rule(cut)}"),
        ("newfound", config["newfound"]),
    ]


def _settings(config: dict) -> Markup:
    settings = sorted(config["settings"].items())
    items = [element("div", element("dt", name), element("dd", str(value))) for name, value in settings]
    return element("details", element("summary", "All settings"), element("dl", items))
