"""The folder that `newfound export` writes.

    encoder.onnx     pixels to unit features
    known.npz        prototypes, or the model and sums of evidence: what the dictionary starts from
    settings.json    the names of the classes, how an image becomes pixels, how a category is decided on
    discover.py      a script that needs these files, onnxruntime, numpy and Pillow, and nothing else
    rule.py          the part of it that decides on a category
    README.md        what all of it is
"""

from __future__ import annotations

import io
import json
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from newfound.discovery import BayesianDictionary, Dictionary, PrototypeDictionary
from newfound.errors import DataError, ImageError, MissingFileError
from newfound.export.card import card
from newfound.export.onnx import OPSET, identity, quantise, write_encoder
from newfound.files import IMAGE_SUFFIXES, write_bytes, write_text
from newfound.images import open_image

if TYPE_CHECKING:
    from newfound.features import Encoder
    from newfound.run import Run

ENCODER, KNOWN, SETTINGS, CARD = "encoder.onnx", "known.npz", "settings.json", "README.md"
SCRIPT, RULE = "discover.py", "rule.py"
_FORMAT = 1
_MEASURED, _BATCH = 128, 16  # images that the ranges of 8-bit integers are measured on, and how many at a time
_DECIDES: dict[type, tuple[str, ...]] = {  # what a script has to know of a dictionary besides its threshold
    PrototypeDictionary: ("update",),
    BayesianDictionary: ("cap", "alone", "reconsider_every", "reconsider_at", "memory"),
}
_UNKNOWN: dict[type, tuple[str, ...]] = {  # what no script knows: settings that have to be off
    PrototypeDictionary: ("merge_every",),
    BayesianDictionary: ("merge_at", "concentration", "learn_known"),
}


@dataclass(frozen=True)
class Exported:
    """What was written: the folder, "float32" or "int8", and why there is no script, if there is none."""

    folder: Path
    precision: str
    unscripted: str | None


def export_run(
    run: Run, folder: str | os.PathLike[str], *, opset: int = OPSET, int8: Sequence[Any] | None = None
) -> Exported:
    """Write a run as ONNX, with a script that decides on images as it does.

    The script gives the ids that `Run.discoverer` gives to the same images in the same order, and starts from the
    classes that were taught. Where a run decides in a way that the script does not know, there is none.

    Args:
        run: what to write.
        folder: where to; files of an earlier export are replaced.
        opset: of ONNX.
        int8: images, such as labelled ones, to measure the ranges of 8-bit integers on: the encoder is then written in
            these, which is smaller and less exact. At most 128 of them are used.

    Raises:
        SettingsError: a package is missing (`pip install 'newfound[onnx]'`), the opset is none, or the backbone cannot
            be written.
        DataError: the folder cannot be written to, or has files of the same names that are no export's.
    """
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise DataError(f"{target} is a file; an export needs a folder of its own.") from error
    except OSError as error:
        raise DataError(f"cannot make the folder {target}: {error.strerror}") from error
    _refuse_files_of_others(target)
    precision = "float32" if int8 is None else "int8"
    encoder = target / ENCODER
    write_encoder(run.encoder.backbone, encoder, opset)
    if int8 is not None:
        quantise(encoder, encoder, _pixels(run.encoder, int8))
    kind, unscripted = _kind(run.dictionary())
    settings = _settings(run, kind) | {"precision": precision, "opset": opset}
    write_text(target / SETTINGS, json.dumps(settings, indent=2, ensure_ascii=False) + "\n")
    arrays = io.BytesIO()
    np.savez(arrays, **{name: np.asarray(value) for name, value in run.known.items()})  # type: ignore[arg-type]
    write_bytes(target / KNOWN, arrays.getvalue())
    for name, source in ((SCRIPT, SCRIPT), (RULE, f"{kind}.py")):
        if kind is None:
            (target / name).unlink(missing_ok=True)
        else:
            text = (resources.files("newfound.export") / "standalone" / source).read_text("utf-8")
            write_text(target / name, text)
    write_text(target / CARD, card(run, settings, unscripted))
    return Exported(target, precision, unscripted)


def read_settings(folder: Path) -> dict[str, Any]:
    """The settings of an export.

    Raises:
        MissingFileError: there is no export in the folder.
        DataError: its settings are damaged, or of a newer newfound.
    """
    path = folder / SETTINGS
    if not path.is_file() or not (folder / ENCODER).is_file():
        raise MissingFileError(f"{folder} holds no export: it is a folder that `newfound export` wrote.")
    try:
        settings: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if settings["format"] <= _FORMAT:
            return {"encoder": settings["encoder"], "precision": settings["precision"]} | settings
    except KeyError as error:
        raise DataError(f"{path} is damaged: it has no {error}") from error
    except (OSError, ValueError, TypeError) as error:
        raise DataError(f"{path} is damaged: {error}") from error
    raise DataError(f"{folder} was exported by a newer newfound; update newfound.")


def _refuse_files_of_others(folder: Path) -> None:
    """Raise DataError if an export would replace somebody's README.md or the like."""
    there = [name for name in (CARD, SCRIPT, RULE, SETTINGS, KNOWN) if (folder / name).exists()]
    if there and not (folder / ENCODER).is_file():
        raise DataError(f"{folder} has a {there[0]} that is not of an export: give a folder of its own.")


def _kind(dictionary: Dictionary) -> tuple[str | None, str | None]:
    """Which script decides as a dictionary does; None and the reason if none does."""
    if type(dictionary) not in _DECIDES:
        return None, f"it does not know the rules of {type(dictionary).__name__}"
    state = dictionary.state()
    for name in _UNKNOWN[type(dictionary)]:
        if state[name] not in (None, False):
            return None, f"it does not know {name}, which this run sets to {state[name]}"
    return "prototypes" if isinstance(dictionary, PrototypeDictionary) else "evidence", None


def _settings(run: Run, kind: str | None) -> dict[str, Any]:
    spec, dictionary = run.encoder.views.spec, run.dictionary()
    state = dictionary.state()
    if state.get("alone", 0.0) is None:  # as a script reads it: what fits nothing founds a category at once
        state["alone"] = dictionary.threshold
    return {
        "format": _FORMAT,
        "run": run.fingerprint(),
        "encoder": identity(run.encoder),
        "classes": run.classes,
        "size": spec.size,
        "resize": max(spec.size, math.floor(spec.size / spec.crop_pct)),
        "interpolation": {"random": "BICUBIC", "nearest-exact": "NEAREST"}.get(
            spec.interpolation, spec.interpolation.upper()
        ),
        "mean": list(spec.mean),
        "std": list(spec.std),
        "endings": sorted(IMAGE_SUFFIXES),
        "dictionary": kind or type(dictionary).__name__,
        "threshold": dictionary.threshold,
        **{name: state[name] for name in _DECIDES.get(type(dictionary), ())},
    }


def _pixels(encoder: Encoder, items: Sequence[Any]) -> Iterator[np.ndarray]:
    """Batches of what the encoder would see of some of the images, taken evenly; unreadable ones are left out."""
    chosen = [items[i] for i in np.unique(np.linspace(0, len(items) - 1, min(_MEASURED, len(items))).astype(int))]
    batch: list[np.ndarray] = []
    for item in chosen:
        try:
            batch.append(encoder.views.centre(open_image(item)).numpy())
        except (ImageError, MissingFileError):
            continue
        if len(batch) == _BATCH:
            yield np.stack(batch)
            batch = []
    if batch:
        yield np.stack(batch)
