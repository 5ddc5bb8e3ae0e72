"""To and from the tools people use: what was found as files they read, what they put right as events of the journal.

One file a format, each with `write(findings, out, options)` and `read(path, findings)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from newfound.errors import DataError, SettingsError

if TYPE_CHECKING:
    from newfound.curator import Curator
    from newfound.labels._files import Options
    from newfound.labels.corrections import Step

_MODULES = {
    "coco": "coco", "csv": "tables", "fiftyone": "fiftyone", "labelstudio": "labelstudio", "camtrap": "camtrap",
    "folders": "folders",
}  # fmt: skip
FORMATS = tuple(_MODULES)
_IN_FOLDERS = ("fiftyone", "labelstudio", "camtrap", "folders")


@dataclass(frozen=True)
class Exported:
    """What was written: how many things, how many were left out and why, and what else there is to say."""

    things: int
    left_out: dict[str, int]
    notes: list[str]


@dataclass(frozen=True)
class Review:
    """What a tool's file says, and what would make it so.

    Attributes:
        told: How many sightings it speaks of.
        unknown: Images it names that the journal does not have.
        steps: What to change, each an event or several of the journal; none if all is so already.
        stuck: Sightings that stay where they are in spite of what it says: their images could not be read again when
            the journal was carried to another run.
    """

    told: int
    unknown: list[str]
    steps: list[Step]
    stuck: list[int]

    def lines(self) -> list[str]:
        """What would change, for people."""
        return [line for step in self.steps for line in step.lines()]

    def apply(self, curator: Curator) -> None:
        """Change it. What was done before an error stays done; to review the file again tells what is left."""
        for step in self.steps:
            step.apply(curator)


def export_labels(
    curator: Curator,
    format: str,
    out: Path,
    *,
    ignored: bool = False,
    overwrite: bool = False,
    options: Options | None = None,
) -> Exported:
    """Write what a journal has found, as it stands now, for another tool.

    Args:
        out: a file for coco and csv, else a folder.
        ignored: with the categories that people ignore.
        overwrite: replace what is there; `folders` only ever adds.

    Raises:
        SettingsError: A format that there is not.
        DataError: `out` is there already, or cannot be written.
    """
    from newfound.labels._files import Options
    from newfound.labels.findings import Findings

    module = _module(format)
    if out.exists() and not (out.is_file() or out.is_dir()):  # a device, which a file must not take the place of
        raise DataError(f"{out} is neither a file nor a folder: name another")
    if format in _IN_FOLDERS and out.is_file():
        raise DataError(f"{out} is a file; {format} needs a folder of its own")
    if format not in _IN_FOLDERS and out.is_dir():
        raise DataError(f"{out} is a folder; {format} is one file, such as {out / 'labels'}.{_ending(format)}")
    if out.exists() and format != "folders" and not overwrite and (out.is_file() or any(out.iterdir())):
        raise DataError(f"{out} is there already: --overwrite replaces it, or name another")
    with Findings(curator, ignored=ignored) as findings:
        nameless = findings.left_out.total()
        module.write(findings, out, options or Options())
        written = len(findings) - (findings.left_out.total() - nameless)
        return Exported(written, dict(findings.left_out), findings.notes)


def review_labels(curator: Curator, format: str, path: Path) -> Review:
    """What a file, as a tool has left it, says that the journal does not; nothing is changed.

    Raises:
        SettingsError: A format that there is not.
        DataError: The file is not there, is not of this format, or is of another journal.
    """
    from newfound.labels.corrections import plan
    from newfound.labels.findings import Findings
    from newfound.labels.told import matched

    module = _module(format)
    with Findings(curator, ignored=True) as findings:
        said, names = module.read(path, findings)
        corrections = matched(findings, said, names)
        steps, stuck = plan(findings, corrections, curator.categories(merged=True))
    return Review(len(corrections.told), list(corrections.unknown), steps, stuck)


def _module(format: str) -> Any:
    if format not in _MODULES:
        raise SettingsError(f"{format!r} is no format of labels; there are {', '.join(FORMATS)}.")
    return import_module(f"newfound.labels.{_MODULES[format]}")


def _ending(format: str) -> str:
    return "csv" if format == "csv" else "json"


__all__ = ["FORMATS", "Exported", "Review", "export_labels", "review_labels"]
