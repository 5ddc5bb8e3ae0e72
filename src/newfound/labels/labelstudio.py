"""Label Studio: tasks with predictions, the labelling interface to read them with, and the annotations made of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

from newfound.crops import Box
from newfound.errors import DataError
from newfound.files import new_file
from newfound.labels._files import Options, Places, read_tool_json, write_items
from newfound.labels.findings import Finding, Findings, Picture
from newfound.labels.told import Told, number_in

TASKS, CONFIG = "tasks.json", "config.xml"
LOCAL = "/data/local-files/?d="  # where Label Studio serves files from its document root
_REGION = "newfound-"


def write(findings: Findings, out: Path, options: Options) -> None:
    """Write OUT/tasks.json, to be imported, and OUT/config.xml, the labelling interface of the project.

    Files are served by Label Studio from below their common folder, or the `root` that is given: its document root.
    """
    places = Places(options.places.root or findings.folder(), options.places.url or LOCAL)
    with new_file(out / CONFIG) as file:
        file.write(_config(findings))
    with new_file(out / TASKS) as file:
        write_items(file, (_task(findings, picture, places) for picture in findings.pictures()))


def read(path: Path, findings: Findings) -> tuple[Iterable[Told], dict[int, str]]:
    """What people have annotated, from a project's export as JSON; tasks that nobody has answered say nothing."""
    path = path / TASKS if path.is_dir() else path
    tasks = read_tool_json(path, "Label Studio")
    try:
        return [told for task in tasks for told in _said(task)], {}
    except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
        raise DataError(
            f"{path} is no export of Label Studio as JSON (JSON-MIN is another): it lacks, or has otherwise, {error}"
        ) from error


def _config(findings: Findings) -> str:
    names = dict.fromkeys(category.name for category in findings.categories.values())

    def control(tag: str, name: str, value: str, more: str = "") -> str:
        choices = "".join(f"    <{value} value={quoteattr(label)}/>\n" for label in names)
        return f'  <{tag} name="{name}" toName="image"{more}>\n{choices}  </{tag}>\n'

    text = '<View>\n  <Image name="image" value="$image"/>\n'
    if findings.has_wholes:
        text += control("Choices", "category", "Choice", ' choice="single"')
    if findings.has_boxes:
        text += control("RectangleLabels", "box", "Label")
    return text + "</View>\n"


def _task(findings: Findings, picture: Picture, places: Places) -> dict[str, Any]:
    data: dict[str, Any] = {"image": places.of(picture.path), "path": picture.path}
    for thing in picture.things:
        if thing.box is None:
            data["sighting"] = thing.number
    sure = [certainty for thing in picture.things if (certainty := _certainty(thing)) is not None]
    prediction: dict[str, Any] = {"model_version": findings.model, "result": [_result(t) for t in picture.things]}
    if sure:
        prediction["score"] = min(sure)  # tasks are sorted by it: one doubt is worth a look
    return {"data": data, "predictions": [prediction]}


def _certainty(thing: Finding) -> float | None:
    return thing.score if thing.probability is None else thing.probability


def _result(thing: Finding) -> dict[str, Any]:
    result: dict[str, Any] = {"id": f"{_REGION}{thing.number}", "to_name": "image"}
    if (certainty := _certainty(thing)) is not None:
        result["score"] = certainty
    if thing.box is None:
        return result | {"from_name": "category", "type": "choices", "value": {"choices": [thing.label]}}
    x, y, width, height = (round(100 * share, 4) for share in thing.box)
    value = {"x": x, "y": y, "width": width, "height": height, "rotation": 0, "rectanglelabels": [thing.label]}
    return result | {"from_name": "box", "type": "rectanglelabels", "value": value}


def _said(task: dict[str, Any]) -> Iterator[Told]:
    """What the annotation of a task that was changed last says."""
    data = task["data"]
    answers = [a for a in task.get("annotations") or () if not a.get("was_cancelled")]
    if not answers:
        return
    answer = max(answers, key=lambda annotation: str(annotation.get("updated_at") or ""))
    were = {r.get("id"): _label(r) for p in task.get("predictions") or () if isinstance(p, dict) for r in p["result"]}
    for result in answer["result"]:
        label = _label(result)
        if label is None:
            continue
        value, box = result["value"], None
        number = number_in(data.get("sighting"))
        region = str(result.get("id") or "")
        if "width" in value:
            box = Box(*(float(value[name]) / 100 for name in ("x", "y", "width", "height")))
            number = number_in(region.removeprefix(_REGION)) if region.startswith(_REGION) else None
        was = were.get(region, were.get(f"{_REGION}{number}"))
        file = data.get("path") or data.get("image")
        yield Told(label, None if file is None else str(file), box, number, was)


def _label(result: dict[str, Any]) -> str | None:
    """The one label of a region or a choice; none for what is neither, such as a relation between regions."""
    value = result.get("value") or {}
    chosen = value.get("choices") or value.get("rectanglelabels") or ()
    return str(chosen[0]) if chosen else None
