"""What an encoder runs on: PyTorch, or its ONNX export on ONNX Runtime or OpenVINO, which are faster on processors."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from newfound.backbone import Backbone
from newfound.errors import SettingsError
from newfound.export.archive import ENCODER, read_settings
from newfound.export.onnx import PIXELS, cached_encoder, identity, required
from newfound.features import Encoder
from newfound.views import Views

TORCH, ONNX, OPENVINO, AUTO = "torch", "onnx", "openvino", "auto"
RUNTIMES = (TORCH, ONNX, OPENVINO, AUTO)
_PACKAGES = {OPENVINO: "openvino", ONNX: "onnxruntime"}  # the faster first
_CHUNK = 16  # images at a time, so that memory is bounded and runtimes meet few shapes

Session = Callable[[np.ndarray], np.ndarray]  # pixels to unit features


class RuntimeEncoder(Encoder):
    """An encoder whose backbone runs elsewhere, from pixels to features in one go: nothing of it is cached.

    `alters` is empty where features are those of PyTorch but for their last bits, else a hash of what makes them.
    """

    def __init__(
        self, backbone: Backbone, views: Views, session: Session, runtime: str, *, alters: str = "", batch: int = 64
    ) -> None:
        super().__init__(backbone, views, batch=batch)
        self.runtime, self.alters, self._session = runtime, alters, session
        self._one_at_a_time = threading.Lock()

    def _tokens(self, pixels: Tensor) -> list[Tensor]:
        return list(pixels)

    def _unit_features(self, tokens: Tensor) -> Tensor:
        with self._one_at_a_time:
            return torch.from_numpy(in_chunks(self._session, tokens.numpy()))


def faster(encoder: Encoder, runtime: str | os.PathLike[str]) -> Encoder:
    """The same encoder on another runtime.

    Args:
        encoder: of a run; the weights are taken as they are now.
        runtime: "torch" for itself; "onnx" or "openvino"; "auto" for the fastest that is installed; or a folder that
            `newfound export` wrote for this run, which is how an encoder in 8-bit integers is used.

    Raises:
        SettingsError: there is no such runtime, its package is not installed, or the folder is of another run.
        MissingFileError: the folder holds no export.
    """
    chosen = _fastest(encoder) if runtime == AUTO else os.fspath(runtime)
    if chosen == TORCH:
        return encoder
    if chosen in _SESSIONS:
        session = open_session(chosen, cached_encoder(encoder))
        return RuntimeEncoder(encoder.backbone, encoder.views, session, chosen, batch=encoder.batch)
    folder = Path(chosen)
    if not folder.is_dir():
        raise SettingsError(f"there is no runtime {chosen!r}; choose {', '.join(RUNTIMES)} or an export's folder.")
    settings = read_settings(folder)
    if settings["encoder"] != identity(encoder):
        raise SettingsError(f"{folder} was exported from another run than this one: export this one again.")
    exact = settings["precision"] == "float32"
    alters = "" if exact else hashlib.blake2b((folder / ENCODER).read_bytes(), digest_size=16).hexdigest()
    name = ONNX if exact else f"{ONNX}, {settings['precision']}"
    session = open_session(ONNX, folder / ENCODER)
    return RuntimeEncoder(encoder.backbone, encoder.views, session, name, alters=alters, batch=encoder.batch)


def open_session(runtime: str, path: Path) -> Session:
    """An ONNX encoder on "onnx" or "openvino", with as many threads as PyTorch has; not for several threads at once.

    Raises SettingsError if the runtime's package is not installed.
    """
    return _SESSIONS[runtime](path)


def in_chunks(session: Session, pixels: np.ndarray) -> np.ndarray:
    """The features of a batch of any size, a few images at a time."""
    return np.concatenate([session(pixels[at : at + _CHUNK]) for at in range(0, len(pixels), _CHUNK)])


def available() -> dict[str, bool]:
    """Which runtimes can be used here."""
    return {TORCH: True} | {name: find_spec(package) is not None for name, package in _PACKAGES.items()}


def _fastest(encoder: Encoder) -> str:
    if encoder.device.type != "cpu" or find_spec("onnx") is None:
        return TORCH
    return next((name for name, package in _PACKAGES.items() if find_spec(package) is not None), TORCH)


def _on_onnxruntime(path: Path) -> Session:
    onnxruntime = required("onnxruntime", f"the runtime {ONNX}")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = 3
    # Threads that spin while they wait take the processor from those that decode.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda pixels: session.run(None, {PIXELS: pixels})[0]


def _on_openvino(path: Path) -> Session:
    openvino: Any = required("openvino", f"the runtime {OPENVINO}")
    threads = {"INFERENCE_NUM_THREADS": torch.get_num_threads(), "PERFORMANCE_HINT": "LATENCY"}
    # Without the hint, processors with bfloat16 would compute in it.
    model = openvino.Core().compile_model(str(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32", **threads})
    return lambda pixels: model([pixels])[0].copy()  # the output's memory is used again


_SESSIONS: dict[str, Callable[[Path], Session]] = {ONNX: _on_onnxruntime, OPENVINO: _on_openvino}

__all__ = ["RUNTIMES", "RuntimeEncoder", "Session", "available", "faster", "in_chunks", "open_session"]
