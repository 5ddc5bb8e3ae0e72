"""Logs of a training: log.csv always, a row an epoch, as it goes; TensorBoard where it is installed."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from newfound.run_files import not_written, replace


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a CSV file and put it in place as a whole; what is no valid text, such as some file names, is escaped."""

    def write(part: Path) -> None:
        with part.open("w", newline="", encoding="utf-8", errors="backslashreplace") as file:
            csv.writer(file).writerows([header, *rows])

    replace(path, write)


def write_log(folder: Path, log: list[dict[str, float]]) -> None:
    """Write `folder`/log.csv, a row an epoch; a column that some epochs lack is empty there."""
    columns = list(dict.fromkeys(key for row in log for key in row)) or ["epoch"]
    write_csv(folder / "log.csv", columns, [[row.get(column, "") for column in columns] for row in log])


class TensorBoardLog:
    """Writes an epoch's row as scalars under `folder`/tensorboard; does nothing without a folder or TensorBoard.

    Raises RunError if that cannot be written: TensorBoard's own error does not say where.
    """

    def __init__(self, folder: Path | None) -> None:
        self._writer = None
        if folder is None:
            return
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            return
        self._folder = folder / "tensorboard"
        try:
            self._writer = SummaryWriter(str(self._folder))
        except OSError as error:
            raise not_written("the log for TensorBoard", self._folder, error) from error

    def write(self, row: dict[str, float]) -> None:
        if self._writer is None:
            return
        try:
            for key, value in row.items():
                if key != "epoch":
                    self._writer.add_scalar(key, value, int(row["epoch"]))
        except OSError as error:
            raise not_written("the log for TensorBoard", self._folder, error) from error

    def close(self) -> None:
        if self._writer is not None:
            with suppress(OSError):  # log.csv has it all, and why training ended must not be lost over this
                self._writer.close()
