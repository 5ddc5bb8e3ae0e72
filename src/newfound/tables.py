"""Labelled images as tables: CSV or TSV files of path and label."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path
from typing import IO, TYPE_CHECKING

from newfound.errors import DataError, MissingFileError
from newfound.files import is_file_or_dead_link

if TYPE_CHECKING:
    from newfound.datasets import LabelledImages

SEPARATORS = {".csv": ",", ".tsv": "\t"}
_PATH_COLUMNS = ("path", "file", "filename", "image")
_LABEL_COLUMNS = ("label", "class", "category")


def read_table(path: Path) -> tuple[list[Path], list[str]]:
    """The images and labels that a table lists; :func:`newfound.datasets.load_dataset` says in what form.

    Raises :class:`DataError` or :class:`MissingFileError` with the line of the table.
    """
    rows = _read_rows(path)
    path_column, label_column = 0, 1
    header = [cell.strip().lower() for cell in rows[0][1]] if rows else []
    path_names = [name for name in _PATH_COLUMNS if name in header]
    label_names = [name for name in _LABEL_COLUMNS if name in header]
    if path_names and label_names:
        path_column, label_column = header.index(path_names[0]), header.index(label_names[0])
        rows = rows[1:]
    if not rows:
        raise DataError(f"{path} lists no images; it needs one row of path,label for each")
    items, labels = [], []
    for line, cells in rows:
        if len(cells) <= max(path_column, label_column):
            raise DataError(f"{path}, line {line}: a path and a label are needed, but there is only {cells}")
        name, label = cells[path_column], cells[label_column].strip()
        if not name.strip() or not label:
            raise DataError(f"{path}, line {line}: the {'label' if name.strip() else 'path'} is empty")
        spellings = (name, name.strip(), name.strip().replace("\\", "/"))  # the last as Windows writes paths
        candidates = [path.parent / spelling for spelling in spellings]
        item = next((candidate for candidate in candidates if is_file_or_dead_link(candidate)), None)
        if item is None:
            hint = "" if Path(name).is_absolute() else f"; paths start from the folder of {path.name}"
            hint += "; a header must name the columns path and label" if line == 1 else ""
            raise MissingFileError(f"{path}, line {line}: there is no file {candidates[0]}{hint}")
        items.append(item)
        labels.append(label)
    return items, labels


def _read_rows(path: Path) -> list[tuple[int, list[str]]]:
    """Return the rows that are not blank, each with the number of the line it starts on."""
    rows, line = [], 1
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, delimiter=_separator(path, file), strict=True)
            for cells in reader:
                if any(cell.strip() for cell in cells):
                    rows.append((line, cells))
                line = reader.line_num + 1
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text ({error.reason}); save it as 'CSV UTF-8'") from None
    except csv.Error as error:
        raise DataError(f"{path}, line {line}: {error}") from None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error
    return rows


def _separator(path: Path, file: IO[str]) -> str:
    """What stands between the cells of a table: in a .csv also semicolons, as spreadsheets of many countries write."""
    usual = SEPARATORS[path.suffix.lower()]
    first = next((line for line in file if line.strip()), "")
    file.seek(0)
    return ";" if usual == "," and "," not in first and ";" in first else usual


def write_csv(data: LabelledImages, path: str | os.PathLike[str]) -> None:
    """Write ``data`` as a table that :func:`load_dataset` reads; paths below its folder are written relative.

    Raises :class:`DataError` for images in memory, which have no path to write, for a name that does not end
    in .csv or .tsv, and for a file that cannot be written.
    """
    target = Path(path)
    if target.suffix.lower() not in SEPARATORS:
        raise DataError(f"{target} must end in .csv or .tsv, so that it can be read again")
    folder = target.parent.absolute()
    text = io.StringIO(newline="")
    table = csv.writer(text, delimiter=SEPARATORS[target.suffix.lower()])
    table.writerow((_PATH_COLUMNS[0], _LABEL_COLUMNS[0]))
    for index, (item, label) in enumerate(zip(data.items, data.labels, strict=True)):
        if not isinstance(item, (str, os.PathLike)):
            raise DataError(f"image {index} of {data.source} is in memory; a CSV can only list files")
        file = Path(item).absolute()
        # Not os.path.relpath: its '..' would lead elsewhere if the folder is reached through a link.
        shown = file.relative_to(folder) if file.is_relative_to(folder) else file
        table.writerow((shown.as_posix(), label))
    try:
        target.write_bytes(text.getvalue().encode("utf-8"))
    except UnicodeEncodeError as error:
        raise DataError(f"a path or label of {data.source} is not valid Unicode: {error.object!r}") from None
    except OSError as error:
        raise DataError(f"cannot write {target}: {error.strerror}") from error
