"""`newfound discover`: a line for each image, whatever the image."""

from __future__ import annotations

import json
import signal

import pytest

import newfound
from newfound.cli._deciding import how_many
from newfound.images import find_images


def lines(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def test_the_lines_are_the_sightings_of_the_run(invoke, run, stream):
    result = invoke("discover", run, stream, "--in-memory")
    assert result.exit_code == 0, result.stderr
    sightings = newfound.load(run).discoverer().observe(stream)
    assert lines(result.stdout) == [json.loads(json.dumps(s.as_dict())) for s in sightings]
    assert "9 images:" in result.stderr


def test_files_folders_and_stdin_make_one_stream_in_order(invoke, run, stream, labelled):
    red, blue = stream / "red", stream / "blue" / "1.png"
    result = invoke(
        "discover", run, blue, "-", red, "--in-memory", "--repeat", stdin=f"{labelled / 'green'}\n\n{blue}\r\n"
    )
    assert result.exit_code == 0, result.stderr
    expected = [blue, *find_images(labelled / "green"), blue, *find_images(red)]
    assert [line["image"] for line in lines(result.stdout)] == [str(path) for path in expected]


def test_the_block_size_does_not_change_what_is_decided(invoke, run, stream):
    cut = ["--threshold", "0.93", "--in-memory"]
    one, many = (lines(invoke("discover", run, stream, *cut, "--block", n).stdout) for n in (1, 64))
    assert [line["category"] for line in one] == [line["category"] for line in many]
    assert any(line["is_new"] for line in one)


def test_an_unreadable_image_a_missing_one_and_a_closed_folder_do_not_stop_the_stream(
    invoke, run, stream, tmp_path, monkeypatch
):
    from newfound.errors import DataError

    bad, closed = tmp_path / "bad.png", tmp_path / "closed"
    bad.write_bytes((stream / "red" / "0.png").read_bytes()[:100])
    closed.mkdir()

    def find(folder):
        if str(folder) == str(closed):
            raise DataError(f"cannot look into the folder {folder}")
        return find_images(folder)

    monkeypatch.setattr("newfound.datasets.find_images", find)
    result = invoke("discover", run, bad, tmp_path / "nowhere", closed, stream / "red", "--in-memory")
    assert result.exit_code == 3
    told = {line["image"]: line for line in lines(result.stdout)}
    assert set(told[str(bad)]) == {"image", "error"}
    assert "cannot read" in told[str(bad)]["error"]
    assert "there is no file" in told[str(tmp_path / "nowhere")]["error"]
    assert "cannot look into" in told[str(closed)]["error"]
    assert sum("category" in line for line in told.values()) == 3
    assert "3 could not be read, the first: " in result.stderr


def test_a_dead_link_in_a_folder_gives_an_error_line_and_loses_nothing_else(invoke, run, stream, tmp_path):
    (tmp_path / "a.png").symlink_to(stream / "red" / "0.png")
    (tmp_path / "b.png").symlink_to(tmp_path / "nowhere.png")
    (tmp_path / "c.png").symlink_to(stream / "blue" / "0.png")
    result = invoke("discover", run, tmp_path, "--in-memory")
    assert result.exit_code == 3
    first, dead, last = lines(result.stdout)
    assert dead["image"] == str(tmp_path / "b.png")
    assert "it is a link to" in dead["error"]
    assert "category" in first
    assert "category" in last
    assert "1 could not be read" in result.stderr


def test_what_names_no_image_is_answered_in_its_place(invoke, run, stream):
    red, blue = stream / "red" / "0.png", stream / "blue" / "0.png"
    result = invoke("discover", run, "-", "--in-memory", stdin=f"{red}\n{{no JSON\n{blue}\n{{}}\n")
    assert result.exit_code == 3
    assert [line["image"] for line in lines(result.stdout)] == [str(red), "{no JSON", str(blue), "{}"]


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_what_a_sender_calls_as_an_answer_does_is_never_taken_for_one(invoke, run, stream, tmp_path, ending):
    if ending == "parquet":
        pytest.importorskip("pyarrow", reason="newfound[parquet] is not installed")
    red, target = str(stream / "red" / "0.png"), tmp_path / f"found.{ending}"
    sent = [
        {"image": red, "probability": "high", "error": "of before", "id": 1},
        {"image": "none.png", "category": "x", "id": 2},
    ]
    stdin = "\n".join(map(json.dumps, sent))
    result = invoke("discover", run, "-", "--in-memory", "--output", target, stdin=stdin)
    assert result.exit_code == 3, result.stderr
    kind = {"jsonl": "json", "csv": "csv", "parquet": "parquet"}[ending]
    pandas = pytest.importorskip("pandas")
    table = getattr(pandas, f"read_{kind}")(target, **({"lines": True} if kind == "json" else {}))
    table = table.reindex(columns=[*table.columns, *({"probability", "category"} - set(table.columns))])
    assert table["probability"].isna().all()
    assert table["error"].isna().tolist() == [True, False]
    assert table["category"].isna().tolist() == [False, True]
    told = table["id"].tolist() if kind == "json" else [json.loads(text)["id"] for text in table["extra"]]
    assert told == [1, 2]


def test_predict_keeps_nothing_new(invoke, run, stream):
    result = invoke("discover", run, stream, "--predict", "--in-memory", "--threshold", "1")
    told = lines(result.stdout)
    assert all(line["is_new"] and line["category"] is None for line in told)
    assert "9 images: 0 in known classes, 9 unlike any of them" in result.stderr
    observed = invoke("discover", run, stream, "--in-memory", "--threshold", "1")
    assert "9 images: 0 in known classes, 9 in 9 new categories" in observed.stderr


def test_output_writes_the_lines_to_a_file(invoke, run, stream, tmp_path):
    target = tmp_path / "new folder" / "found.jsonl"
    result = invoke("discover", run, stream, "--in-memory", "--output", target)
    assert result.stdout == ""
    assert target.read_text() == invoke("discover", run, stream, "--in-memory").stdout
    assert invoke("discover", run, stream, "--in-memory", "--output", tmp_path).exit_code == 1


def test_nothing_to_look_at_is_an_error(invoke, run, tmp_path):
    for args, stdin in (([tmp_path], None), (["-"], "\n")):
        result = invoke("discover", run, *args, "--in-memory", stdin=stdin)
        assert result.exit_code == 1
        assert "there is no image in" in result.stderr


@pytest.mark.parametrize(("args", "code"), [(["--threshold", "high"], 2), (["--block", "0"], 2), ([], 1)])
def test_wrong_options_and_a_folder_that_is_no_run_are_refused(invoke, stream, args, code):
    result = invoke("discover", stream, stream, *args)
    assert result.exit_code == code
    assert result.stdout == ""


@pytest.fixture(scope="module")
def conversation(start, run, stream, tmp_path_factory):
    """Paths written to a real process one by one, each only after the answer to the one before; then Ctrl-C."""
    bad = tmp_path_factory.mktemp("bad") / "ünreadable.png"
    bad.write_bytes(b"\x89PNG, but no more than that")
    process = start("discover", run, "-", "--block", "1", "--in-memory")
    answers = []
    for path in (stream / "red" / "0.png", bad, stream / "blue" / "0.png"):
        process.stdin.write(f"{path}\n")
        process.stdin.flush()
        answers.append(json.loads(process.stdout.readline()))
    process.send_signal(signal.SIGINT)
    rest, err = process.communicate(timeout=60)
    return answers, rest, err, process.returncode, bad


@pytest.mark.timeout(300)
def test_a_path_on_stdin_is_answered_before_the_next_is_written(conversation):
    answers, rest, *_ = conversation
    assert [answers[0]["name"], answers[2]["name"]] == ["red", "blue"]
    assert rest == ""


def test_a_bar_is_told_how_many_images_files_and_folders_hold(stream):
    assert how_many([str(stream), str(stream / "blue" / "0.png")]) == 10
    for other in ("-", "@images.txt", "s3://birds/2026", "nowhere"):
        assert how_many([str(stream), other]) is None


def test_a_bad_image_in_the_middle_of_stdin_gives_one_error_line(conversation):
    answers, *_, bad = conversation
    assert answers[1] == {"image": str(bad), "error": answers[1]["error"]}
    assert "header is damaged" in answers[1]["error"]


def test_ctrl_c_ends_the_stream_with_a_summary(conversation):
    _, _, err, code, _ = conversation
    assert code == 130
    assert err.startswith("interrupted after 2 images: 2 in known classes, none in new categories; 1 could not be read")
    assert err.count("\n") == 1
