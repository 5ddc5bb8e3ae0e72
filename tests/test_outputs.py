"""Answers as JSON lines, CSV and Parquet: closed properly, and never lost when the command is given again."""

from __future__ import annotations

import csv
import io
import json
import sys
from contextlib import ExitStack

import pytest

from newfound.cli._common import make_streams_usable
from newfound.errors import DataError, SettingsError
from newfound.files import part_of
from newfound.outputs import COLUMNS, Tally, open_output

LINE = {
    "image": "a,b.png", "category": 3, "name": "new-1", "is_new": True, "score": 0.5, "cut": 0.25,
    "runners_up": [[1, 0.125], [0, -2.0]], "runners_up_probability": [0.25, 0.0], "number": 7, "id": 9,
}  # fmt: skip
ERROR = {"image": "bad.png", "error": "cannot read bad.png"}


def write(path, *lines, **options) -> list[str]:
    """Write lines; returns what was said."""
    said: list[str] = []
    with open_output(path, say=said.append, **options) as writer:
        for line in lines:
            writer.write(line)
    return said


def test_json_lines_are_the_answers_as_they_are(tmp_path):
    write(tmp_path / "deep" / "found.jsonl", LINE, ERROR)
    assert [json.loads(x) for x in (tmp_path / "deep" / "found.jsonl").read_text().splitlines()] == [LINE, ERROR]


def test_json_lines_have_names_as_people_write_them_and_are_read_back_as_they_were(tmp_path):
    path, name = tmp_path / "found.jsonl", "Kr\u00e4he \U0001f426"
    # No line may end within a name, and all has to be UTF-8.
    odd = LINE | {"name": "a\u2028b\x85c\x7fd\ne", "image": "caf\udce9.png"}
    write(path, LINE | {"name": name}, odd)
    text = path.read_text(encoding="utf-8")
    assert name in text
    assert [json.loads(line) for line in text.splitlines()] == [LINE | {"name": name}, odd]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_json_lines_on_standard_output_are_json_in_any_encoding(monkeypatch, encoding):
    raw, odd = io.BytesIO(), LINE | {"name": "Kr\u00e4he \U0001f426", "image": "caf\udce9.png"}
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding=encoding))
    make_streams_usable()
    write(None, odd)
    assert json.loads(raw.getvalue().decode(encoding)) == odd


@pytest.mark.parametrize("name", ["found.xlsx", "found.TSV"])
def test_answers_are_not_written_under_the_name_of_another_kind_of_table(tmp_path, name):
    with pytest.raises(SettingsError, match=r"ends in \.csv"), open_output(tmp_path / name):
        pass
    assert list(tmp_path.iterdir()) == []
    with open_output(tmp_path / name, "csv") as writer:
        writer.write(LINE)
    assert (tmp_path / name).read_text().startswith("image,category,")


def test_a_summary_says_nothing_of_classes_where_no_image_was_read():
    tally = Tally(predict=False, known={0})
    tally.add_error("there is no file a.png")
    assert tally.describe() == "1 could not be read, the first: there is no file a.png"
    tally.images = tally.recognised = 2
    assert tally.describe().startswith("2 images: 2 in known classes, none in new categories; 1 could not be read")


def test_csv_has_a_header_and_json_where_a_cell_holds_more(tmp_path):
    write(tmp_path / "found.csv", LINE, ERROR)
    with (tmp_path / "found.csv").open(newline="") as file:
        first, second = csv.DictReader(file)
    assert tuple(first) == COLUMNS
    assert (first["image"], first["category"], first["is_new"], first["probability"]) == ("a,b.png", "3", "true", "")
    for name in ("runners_up", "runners_up_probability"):
        assert json.loads(first[name]) == LINE[name]
        assert second[name] == ""
    assert json.loads(first["extra"]) == {"id": 9}
    assert (second["error"], second["score"]) == (ERROR["error"], "")


def test_parquet_has_types_and_more_than_one_group_of_rows(tmp_path, monkeypatch):
    parquet = pytest.importorskip("pyarrow.parquet", reason="newfound[parquet] is not installed")
    monkeypatch.setattr("newfound.outputs.parquet._GROUP", 2)
    path = tmp_path / "found.parquet"
    odd = ERROR | {"image": "caf\udce9.png"}  # a name that is no UTF-8
    write(path, LINE, ERROR, odd)
    file = parquet.ParquetFile(path)
    assert file.num_row_groups == 2
    first, second, third = file.read().to_pylist()
    assert tuple(first) == COLUMNS
    assert first["runners_up"] == [{"category": 1, "score": 0.125}, {"category": 0, "score": -2.0}]
    assert (first["runners_up_probability"], second["runners_up_probability"]) == ([0.25, 0.0], None)
    assert (first["category"], first["is_new"], first["number"], json.loads(first["extra"])) == (3, True, 7, {"id": 9})
    assert (second["category"], second["error"]) == (None, ERROR["error"])
    assert third["image"] == "caf\ufffd.png"
    assert [p.name for p in tmp_path.iterdir()] == ["found.parquet"]


def test_a_parquet_file_is_complete_even_if_the_stream_fails(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="newfound[parquet] is not installed")

    def fail() -> None:
        with open_output(tmp_path / "found.parquet") as writer:
            writer.write(LINE)
            assert not (tmp_path / "found.parquet").exists()  # half of one cannot be read
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert parquet.read_table(tmp_path / "found.parquet").num_rows == 1


@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_a_resumed_stream_adds_to_its_file(tmp_path, ending):
    path, whole = tmp_path / f"found.{ending}", tmp_path / f"whole.{ending}"
    assert write(path, LINE, resumed=True) == []
    assert write(path, ERROR, resumed=True) == [f"adding to {path}"]
    write(whole, LINE, ERROR)
    assert path.read_text() == whole.read_text()


def test_a_resumed_stream_goes_on_in_another_parquet_file(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="newfound[parquet] is not installed")
    for name in ("found", "found-2", "found-3"):
        write(tmp_path / "found.parquet", LINE | {"image": name}, resumed=True)
        assert parquet.read_table(tmp_path / f"{name}.parquet")["image"].to_pylist() == [name]


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_a_file_of_another_stream_is_kept_unless_it_may_be_replaced(tmp_path, ending):
    pytest.importorskip("pyarrow", reason="newfound[parquet] is not installed")
    path = tmp_path / f"found.{ending}"
    write(path, LINE)
    before = path.read_bytes()
    with pytest.raises(DataError, match="--overwrite"):
        write(path, ERROR)
    assert path.read_bytes() == before
    write(path, overwrite=True)
    assert path.read_bytes() != before


@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_a_line_that_a_crash_cut_off_is_removed_and_said(tmp_path, ending):
    path = tmp_path / f"found.{ending}"
    write(path, LINE)
    before = path.read_text()
    path.write_text(before + before.splitlines()[-1][:20])
    said = write(path, resumed=True)
    assert "was cut off (20 bytes)" in said[0]
    assert path.read_text() == before


@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_a_whole_line_without_its_end_is_kept(tmp_path, ending):
    path, whole = tmp_path / f"found.{ending}", tmp_path / f"whole.{ending}"
    write(path, LINE)
    path.write_text(path.read_text().rstrip("\n"))
    write(path, ERROR, resumed=True)
    write(whole, LINE, ERROR)
    assert path.read_text() == whole.read_text()


@pytest.mark.parametrize("break_", ["\r", "\n", "\r\n"])
def test_a_line_break_in_a_name_is_no_end_of_a_row(tmp_path, break_):
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "found.csv"
    write(path, LINE | {"image": f"a{break_}b.png"}, ERROR)
    with path.open(newline="") as file:
        assert [row["image"] for row in csv.DictReader(file)] == [f"a{break_}b.png", "bad.png"]
    assert pandas.read_csv(path)["image"].tolist() == [f"a{break_}b.png", "bad.png"]


@pytest.mark.parametrize("cut", [3, 5, 9, 30])
def test_a_row_with_a_line_break_in_it_is_removed_as_a_whole_if_a_crash_cut_it_off(tmp_path, cut):
    path = tmp_path / "found.csv"
    write(path, LINE)
    before = path.read_text()
    write(path, LINE | {"image": "ab\ncd\nef.png"}, resumed=True)
    path.write_text(path.read_text()[: len(before) + cut])
    said = write(path, ERROR, resumed=True)
    assert f"was cut off ({cut} bytes)" in said[0]
    with path.open(newline="") as file:
        assert [row["image"] for row in csv.DictReader(file)] == ["a,b.png", "bad.png"]


@pytest.mark.parametrize(("content", "ending"), [("path,label\n", "csv"), ("image,category\n", "jsonl")])
def test_a_file_of_another_kind_is_not_added_to(tmp_path, content, ending):
    path = tmp_path / f"found.{ending}"
    path.write_text(content)
    with pytest.raises(DataError, match="does not start like"):
        write(path, LINE, resumed=True)
    assert path.read_text() == content


def test_the_format_can_be_told_and_must_be_one(tmp_path, capsys):
    write(tmp_path / "found.txt", LINE, format="csv")
    assert (tmp_path / "found.txt").read_text().startswith("image,category")
    write(None, LINE)
    assert json.loads(capsys.readouterr().out) == LINE
    with pytest.raises(SettingsError, match="'xml' is no format"):
        write(tmp_path / "found.xml", format="xml")
    with pytest.raises(SettingsError, match="standard output"):
        write(None, format="parquet")


def test_a_place_that_cannot_be_written_is_a_clear_error(tmp_path):
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "file" / "found.jsonl"):
        with pytest.raises(DataError, match="cannot write"):
            write(path, LINE)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /dev/full")
def test_a_full_disk_is_a_clear_error():
    from pathlib import Path

    with pytest.raises(DataError, match="cannot write /dev/full: No space left"):
        write(Path("/dev/full"), LINE)


@pytest.mark.parametrize("last", [0, 1])
def test_of_two_writers_of_one_parquet_file_the_last_to_finish_has_written_all_of_it(tmp_path, monkeypatch, last):
    parquet = pytest.importorskip("pyarrow.parquet", reason="newfound[parquet] is not installed")
    monkeypatch.setattr("newfound.outputs.parquet._GROUP", 2)
    path = tmp_path / "found.parquet"
    lines = [[LINE | {"number": 10 * who + i} for i in range(5)] for who in range(2)]
    with ExitStack() as first, ExitStack() as second:
        ends = [first, second]
        writers = [end.enter_context(open_output(path, overwrite=True)) for end in ends]
        for pair in zip(*lines, strict=True):
            for writer, line in zip(writers, pair, strict=True):
                writer.write(line)
        ends[1 - last].close()
    assert parquet.read_table(path)["number"].to_pylist() == [line["number"] for line in lines[last]]
    assert [p.name for p in tmp_path.iterdir()] == ["found.parquet"]


def test_a_parquet_file_that_cannot_be_finished_leaves_nothing_behind(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow", reason="newfound[parquet] is not installed")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("newfound.outputs.parquet.os.replace", full)
    with pytest.raises(DataError, match=r"cannot write .*found\.parquet: No space left"):
        write(tmp_path / "found.parquet", LINE)
    assert list(tmp_path.iterdir()) == []


class FullDisk:
    """Stands for pyarrow's writer where a disk takes `groups` groups of rows; it closes its file by itself then."""

    def __init__(self, groups: int) -> None:
        self.groups, self.tried = groups, 0

    def __call__(self, part, schema):
        part.touch()
        return self._or_full()

    def write_table(self, table) -> None:
        self._or_full()

    def close(self) -> None:
        if self.tried > self.groups:
            raise ValueError("Operation on closed file")
        self._or_full()

    def _or_full(self):
        self.tried += 1
        if self.tried > self.groups:
            raise OSError(28, "No space left on device")
        return self


@pytest.mark.parametrize("groups", [0, 1, 2, 3])
def test_a_disk_that_fills_while_parquet_is_written_is_one_clear_error_and_leaves_nothing(
    tmp_path, monkeypatch, groups
):
    pytest.importorskip("pyarrow.parquet", reason="newfound[parquet] is not installed")
    monkeypatch.setattr("newfound.outputs.parquet._GROUP", 1)
    monkeypatch.setattr("pyarrow.parquet.ParquetWriter", FullDisk(groups))
    with pytest.raises(DataError, match=r"cannot write .*found\.parquet: No space left.*--repeat"):
        write(tmp_path / "found.parquet", LINE, LINE)
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_writer_left_of_a_parquet_file_is_told_of(tmp_path):
    pytest.importorskip("pyarrow.parquet", reason="newfound[parquet] is not installed")
    path, other = tmp_path / "found[1].parquet", tmp_path / "found[1].parquet.mine.part"
    other.touch()
    assert write(path, LINE) == []
    left = part_of(path)
    left.touch()
    (told,) = write(path, LINE, overwrite=True)
    assert str(left) in told
    assert "--repeat" in told
    assert left.exists(), "another command may be writing it"


@pytest.mark.parametrize("format", ["jsonl", "csv"])
def test_two_writers_of_one_text_file_leave_each_others_lines_whole(tmp_path, format):
    path = tmp_path / "found"
    short, long = LINE | {"image": "a.png"}, LINE | {"image": "a" * 300 + ".png"}
    with open_output(path, format) as first:
        first.write(long)
        with open_output(path, format, overwrite=True) as second:
            second.write(short)
            first.write(long)
            second.write(short)
    lines = path.read_text().splitlines()[format == "csv" :]
    images = [json.loads(line)["image"] if format == "jsonl" else next(csv.reader([line]))[0] for line in lines]
    assert images == [short["image"], long["image"], short["image"]]


def test_without_pyarrow_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(SettingsError, match=r"newfound\[parquet\]"):
        write(tmp_path / "found.parquet", LINE)
