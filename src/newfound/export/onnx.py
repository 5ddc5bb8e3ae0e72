"""An encoder as an ONNX file: pixels [n, 3, h, w], normalised as the backbone's `spec` says, to unit features."""

from __future__ import annotations

import logging
import os
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from newfound.cache import default_folder
from newfound.errors import CacheError, DataError, SettingsError
from newfound.features import Encoder, unit
from newfound.weights import tensors_hash

if TYPE_CHECKING:
    from newfound.backbone import Backbone

OPSET = 17  # the first with layer norms; every ONNX Runtime from 1.12 on reads it
_OPSETS = range(14, 21)  # attention needs 14, and the exporter knows none above 20
_FORMAT = 1  # raise when the meaning of a file in the cache changes
PIXELS, FEATURE = "pixels", "feature"
# In 8 bits: what takes the time, and what follows it, without which ranges would be those before the activation.
# With all that ONNX Runtime can quantise, features of the default backbone were further from those of float32.
_INTEGERS = ["Conv", "MatMul", "Gemm", "Clip", "Relu", "Add"]


class _Whole(nn.Module):
    """Trunk and tail in one graph, with what lies between them rounded as the cache of trunk outputs does."""

    def __init__(self, backbone: Backbone) -> None:
        super().__init__()
        self.backbone = backbone

    def forward(self, pixels: Tensor) -> Tensor:
        tokens = self.backbone.trunk(pixels)
        rounded = tokens.half().float()
        return unit(self.backbone.tail(torch.where(rounded.isinf(), tokens, rounded)))


def identity(encoder: Encoder) -> str:
    """32 hex digits that change with the weights, the architecture and the view: with what an export is made from."""
    about = (_FORMAT, encoder.backbone.name, encoder.views.centre_key())
    return tensors_hash([(repr(about), torch.zeros(0)), *sorted(encoder.backbone.model.state_dict().items())])


def write_encoder(backbone: Backbone, path: Path, opset: int = OPSET) -> None:
    """Write a backbone as an ONNX model for batches of any size.

    Raises:
        SettingsError: the opset is not one that can be written, a package is missing, or the backbone has an
            operation that ONNX has none for.
        DataError: the file cannot be written.
    """
    if opset not in _OPSETS:
        raise SettingsError(f"opset={opset}: choose one from {_OPSETS[0]} to {_OPSETS[-1]}.")
    required("onnx", "export")
    size = backbone.spec.size
    device = next(backbone.parameters()).device
    example = torch.randn(2, 3, size, size, generator=torch.Generator().manual_seed(0)).to(device)
    dynamic = {PIXELS: {0: "n"}, FEATURE: {0: "n"}}
    backbone.eval()
    try:
        with _quietly(), torch.no_grad(), _appearing(path) as part:
            # The exporter that traces: the newer one takes twenty times as long, which every first start would wait.
            torch.onnx.export(
                _Whole(backbone), (example,), str(part), input_names=[PIXELS], output_names=[FEATURE],
                dynamic_axes=dynamic, opset_version=opset, dynamo=False,
            )  # fmt: skip
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror or error}") from error
    except (torch.onnx.errors.OnnxExporterError, RuntimeError) as error:
        reason = str(error).strip().split("\n")[0]
        raise SettingsError(f"{backbone.name} cannot be written as ONNX with opset {opset}: {reason}") from error


def cached_encoder(encoder: Encoder) -> Path:
    """The encoder's ONNX file in newfound's cache, written there if it is not.

    Raises:
        CacheError: the cache cannot be written.
        SettingsError: as `write_encoder`.
    """
    path = default_folder() / "onnx" / f"{identity(encoder)}.onnx"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_file():
            os.utime(path)  # the cache drops first what was used least recently
            return path
        write_encoder(encoder.backbone, path)
    except (OSError, DataError) as error:
        raise CacheError(f"the cache {path.parent} cannot be used ({error}); set NEWFOUND_CACHE to another.") from error
    return path


def quantise(source: Path, target: Path, batches: Iterable[np.ndarray]) -> None:
    """Write an ONNX encoder in 8-bit integers, their ranges measured on batches of pixels.

    Weights have a scale for each channel and 7 bits: processors without VNNI add pairs of products in 16 bits, which 8
    could overflow.

    Raises:
        SettingsError: there is no batch, or a package is missing.
        DataError: the file cannot be written.
    """
    required("onnx", "int8")
    quantization = required("onnxruntime.quantization", "int8")
    given = iter(batches)
    first = next(given, None)
    if first is None:
        raise SettingsError("int8 needs images to measure on, and there is none that can be read.")

    class Reader(quantization.CalibrationDataReader):  # type: ignore[misc, name-defined]
        waiting: np.ndarray | None = first

        def get_next(self) -> dict[str, np.ndarray] | None:
            batch, self.waiting = self.waiting, next(given, None)
            return None if batch is None else {PIXELS: batch}

    try:
        with _quietly(), _appearing(target) as part:
            quantization.quantize_static(
                str(source), str(part), Reader(), quant_format=quantization.QuantFormat.QDQ, per_channel=True,
                reduce_range=True, activation_type=quantization.QuantType.QUInt8,
                weight_type=quantization.QuantType.QInt8, op_types_to_quantize=_INTEGERS,
            )  # fmt: skip
    except OSError as error:
        raise DataError(f"cannot write {target}: {error.strerror or error}") from error


def required(module: str, what: str) -> Any:
    """An optional module. Raises SettingsError that says what needs it and how to get it."""
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        extra = "openvino" if package == "openvino" else "onnx"
        hint = f"pip install 'newfound[{extra}]'"
        raise SettingsError(f"{what} needs {package}, which is not installed: {hint}") from error


@contextmanager
def _appearing(path: Path) -> Iterator[Path]:
    """A file to write that appears under its name when it is whole; several processes may write the same one."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".onnx-") as folder:
        part = Path(folder) / path.name
        yield part
        os.replace(part, path)


@contextmanager
def _quietly() -> Iterator[None]:
    """Without what the exporters tell their own developers."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
