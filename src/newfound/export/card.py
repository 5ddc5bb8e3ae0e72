"""The page that goes with an export: what it is, how it decides, and where it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from newfound.run import Run

_RULES = {
    "prototypes": (
        "An image goes to the prototype with the highest cosine. If that is below {threshold:.3f}, it founds a "
        "category of its own."
    ),
    "evidence": (
        "An image goes to the category that explains it best under a two-covariance model. If the log ratio against a "
        "category never seen is below {threshold:.3f}, it waits for a second one of its kind, or founds a category."
    ),
}


def card(run: Run, settings: dict[str, Any], unscripted: str | None) -> str:
    """A page in Markdown about an export with these settings; `unscripted` says why it has no script, if so."""
    classes, data, size = settings["classes"], run.config.get("data", {}), settings["size"]
    names = ", ".join(f"`{name}`" for name in classes[:20]) + (" and others" if len(classes) > 20 else "")
    rule = _RULES.get(settings["dictionary"], "Decisions are made by newfound's {dictionary}.").format(**settings)
    parts = [
        f"# {run.folder.name if run.folder else 'A recogniser'}, exported from newfound",
        f"It recognises {len(classes)} classes and discovers others, one image at a time: {names}.",
        _use(unscripted),
        "## What is in it",
        f"- `encoder.onnx`: `{run.encoder.backbone.name}`, {settings['precision']}, opset {settings['opset']}. Input "
        f"`pixels` [n, 3, {size}, {size}], float32, scaled to 0..1, less the mean, divided by the deviation; output "
        f"`feature` [n, {run.encoder.backbone.dim}], of unit length.\n"
        "- `known.npz`: what is known of the classes at the start.\n"
        "- `settings.json`: classes, image size, mean and deviation, and how a category is decided on."
        + ("\n- `discover.py`: from images to answers. `rule.py`: from a feature to a category." * (not unscripted)),
        "## How it decides",
        f"{rule} Known categories have the ids 0 to {len(classes) - 1}, discovered ones the next, in the order of "
        f"their founding. The method is {run.label}, taught on {data.get('images', '?')} images.",
        "## Limits",
        "- It starts from what was taught: what a journal of newfound has found since is not in it, and the script "
        "keeps nothing when it ends.\n"
        "- Greyscale images of 16 bits and more are clipped to 8, where newfound scales them.\n"
        "- Scores are what they are on images like those it was taught on."
        + ("\n- 8-bit integers give other features than those it was taught with." * (settings["precision"] == "int8")),
    ]
    return "\n\n".join(parts) + "\n"


def _use(unscripted: str | None) -> str:
    if unscripted is not None:
        return f"There is no script beside it: {unscripted}."
    return (
        "```\npip install onnxruntime numpy pillow\npython discover.py incoming/ other.jpg\n```\n\n"
        "prints a line of JSON for each image, with the ids that `newfound discover` gives to them in this order. What "
        "cannot be read is named on standard error and skipped, and the exit code is 1."
    )
