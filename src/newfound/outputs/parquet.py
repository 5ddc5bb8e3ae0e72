"""Parquet: written in groups of rows, and there under its name once it is complete."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from newfound.errors import DataError, SettingsError
from newfound.files import part_of
from newfound.outputs.tables import COLUMNS, as_row

_GROUP = 4096  # rows

_TYPES = {
    "category": "int64", "number": "int64", "is_new": "bool_", "repeated": "bool_",
    "score": "float64", "cut": "float64", "probability": "float64", "new_probability": "float64",
}  # fmt: skip


class Parquet:
    """A Parquet file; `runners_up` is a list of {category, score}, with a list of probabilities, `extra` JSON text.

    It is written beside FILE and gets its name when it is closed: a Parquet file without its end cannot be read, and
    must not be taken for one. Of two writers of one FILE, the last to be closed has written all of it.

    Raises SettingsError if pyarrow is not installed, and DataError if the file cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path, self._part = path, part_of(path)
        self._arrow, parquet = _pyarrow()
        self._rows: list[dict[str, Any]] = []
        self._schema = _schema(self._arrow)
        self._file: Any = None
        try:
            self._file = parquet.ParquetWriter(self._part, self._schema)
        except OSError as error:
            raise self._given_up(error) from error

    def write(self, line: dict[str, Any]) -> None:
        row = as_row(line)
        if row["runners_up"] is not None:
            row["runners_up"] = [{"category": c, "score": s} for c, s in row["runners_up"]]
        # A name that is no UTF-8 would be refused.
        self._rows.append({k: _utf8(v) if isinstance(v, str) else v for k, v in row.items()})
        if len(self._rows) == _GROUP:
            self._write_group()

    def close(self) -> None:
        if self._file is None:
            return  # it was given up, and that was told
        try:
            self._write_group()
            self._file.close()
            os.replace(self._part, self.path)
        except OSError as error:
            raise self._given_up(error) from error
        finally:
            self._remove()  # also after a Ctrl-C in the middle of this

    def _write_group(self) -> None:
        if not self._rows:
            return
        try:
            self._file.write_table(self._arrow.Table.from_pylist(self._rows, schema=self._schema))
        except OSError as error:
            raise self._given_up(error) from error
        self._rows = []

    def _given_up(self, error: OSError) -> DataError:
        """Leave nothing behind: without its end, for which there is no room either, no row of it could be read."""
        file, self._file = self._file, None
        with suppress(OSError, ValueError):  # ValueError: Arrow has closed it by itself
            if file is not None:
                file.close()
        self._remove()
        return DataError(
            f"cannot write {self.path}: {error.strerror or error}; without its end a Parquet file cannot be read, so "
            "none is kept. Give the command again, with --repeat for the answers that the journal has already."
        )

    def _remove(self) -> None:
        with suppress(OSError):  # where not even that can be done, nothing was written
            self._part.unlink(missing_ok=True)


def _utf8(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _schema(arrow: ModuleType) -> Any:
    pair = arrow.struct([("category", arrow.int64()), ("score", arrow.float64())])
    types = {name: getattr(arrow, _TYPES.get(name, "string"))() for name in COLUMNS}
    lists = {"runners_up": arrow.list_(pair), "runners_up_probability": arrow.list_(arrow.float64())}
    return arrow.schema(list((types | lists).items()))


def _pyarrow() -> tuple[ModuleType, ModuleType]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise SettingsError("Parquet needs pyarrow, which is not installed: pip install 'newfound[parquet]'") from None
    return pyarrow, pyarrow.parquet
