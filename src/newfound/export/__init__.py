"""A run as files that need neither newfound nor PyTorch: the encoder in ONNX, what is known, and a script."""

from __future__ import annotations

from newfound.export.archive import Exported, export_run

__all__ = ["Exported", "export_run"]
