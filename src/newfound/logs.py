"""TensorBoard, where it is installed; the CSV log is always written by the run itself."""

from __future__ import annotations

from pathlib import Path


class TensorBoardLog:
    """Writes an epoch's row as scalars under `folder`/tensorboard; does nothing without a folder or TensorBoard."""

    def __init__(self, folder: Path | None) -> None:
        self._writer = None
        if folder is None:
            return
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            return
        self._writer = SummaryWriter(str(folder / "tensorboard"))

    def write(self, row: dict[str, float]) -> None:
        if self._writer is not None:
            for key, value in row.items():
                if key != "epoch":
                    self._writer.add_scalar(key, value, int(row["epoch"]))

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
