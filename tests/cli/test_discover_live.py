"""`newfound discover` on what does not end by itself: watched folders, long streams that are stopped, videos."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import time

import numpy as np
import pytest

import newfound


def lines(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture(scope="module")
def watched(start, run, stream, tmp_path_factory):
    """A real process that watches a folder while files arrive in it whole, in pieces and under other names."""
    place = tmp_path_factory.mktemp("watched")
    folder, journal = place / "in", place / "j.db"
    folder.mkdir()
    red, blue, yellow = ((stream / name / "0.png").read_bytes() for name in ("red", "blue", "yellow"))
    (folder / "under").mkdir()
    (folder / "under" / "yellow.png.part").write_bytes(yellow)
    (folder / "red.png").write_bytes(red)
    process = start("discover", run, folder, "--watch", "--settle", "0.2", "--journal", journal)
    answers = [json.loads(process.stdout.readline())]
    (folder / "blue.png").write_bytes(blue[:1000])
    (folder / "under" / "yellow.png.part").rename(folder / "under" / "yellow.png")
    # Later, and later in the order of names: when it is answered, half of blue has been looked at.
    answers.append(json.loads(process.stdout.readline()))
    with (folder / "blue.png").open("ab") as file:
        file.write(blue[1000:])
    answers.append(json.loads(process.stdout.readline()))
    (folder / "half.png").write_bytes(red[:1000])
    (folder / "last.png").write_bytes((stream / "red" / "1.png").read_bytes())
    answers.append(json.loads(process.stdout.readline()))  # so has the half that stays one
    process.send_signal(signal.SIGTERM)
    rest, err = process.communicate(timeout=60)
    return folder, journal, answers, rest, err, process.returncode


@pytest.mark.timeout(300)
def test_files_that_arrive_are_answered_once_and_only_when_they_are_whole(watched):
    folder, _, answers, rest, *_ = watched
    told = [os.path.relpath(answer["image"], folder) for answer in answers]
    assert told == ["red.png", os.path.join("under", "yellow.png"), "blue.png", "last.png"]
    assert not any("error" in answer for answer in answers)
    assert rest == ""


def test_sigterm_ends_watching_with_a_summary_and_all_is_in_the_journal(watched, run):
    _, journal, answers, _, err, code = watched
    assert code == 130
    assert err.startswith("interrupted after 4 images: ")
    assert err.rstrip().endswith("; 1 not complete yet")
    with newfound.load(run).discoverer(journal) as kept:
        assert [s.image for s in kept.sightings()] == [answer["image"] for answer in answers]


@pytest.mark.timeout(300)
def test_a_stream_that_is_stopped_tells_all_it_committed_and_goes_on_where_it_was(start, invoke, run, paint, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="newfound[parquet] is not installed")
    images = [str(path) for path in paint(tmp_path / "many", (230, 220, 40), 60)]
    journal, target = tmp_path / "j.db", tmp_path / "found.parquet"
    args = ("discover", run, tmp_path / "many", "--journal", journal, "--output", target)
    process = start(*args, "--block", "2")
    while _committed(journal) == 0:
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert err.startswith("interrupted after ")
    first = parquet.read_table(target)["image"].to_pylist()
    assert len(first) == _committed(journal) < len(images)
    again = invoke(*args)
    assert again.exit_code == 0, again.stderr
    assert f"{len(first)} seen before" in again.stderr
    second = parquet.read_table(tmp_path / "found-2.parquet")["image"].to_pylist()
    assert sorted(first + second) == sorted(images)


def _committed(journal) -> int:
    if not journal.exists():
        return 0
    try:
        with sqlite3.connect(f"file:{journal}?mode=ro", uri=True) as connection:
            return connection.execute("select count(*) from sightings").fetchone()[0]
    except sqlite3.OperationalError:  # its tables are just being made
        return 0


def test_frames_of_a_video_are_answered_and_sorted(invoke, run, tmp_path):
    av = pytest.importorskip("av", reason="newfound[video] is not installed")
    clip = tmp_path / "clip.mp4"
    rng = np.random.default_rng(0)
    with av.open(str(clip), "w") as container:
        video = container.add_stream("mpeg4", rate=4)
        video.width, video.height, video.pix_fmt = 48, 48, "yuv420p"
        for colour in np.repeat([(220, 40, 30), (30, 40, 220)], 4, axis=0):  # a second of red, a second of blue
            pixels = np.clip(rng.normal(colour, 25, (48, 48, 3)), 0, 255).astype(np.uint8)
            container.mux(video.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(video.encode())
    args = ("--video", "--fps", "2", "--in-memory", "--threshold", "-1", "--sort-into", tmp_path / "sorted")
    result = invoke("discover", run, clip, tmp_path / "none.mp4", *args)
    assert result.exit_code == 3, result.stderr
    error, *told = sorted(lines(result.stdout), key=lambda line: "category" in line)
    assert error["image"].endswith("none.mp4")
    assert [line["image"] for line in told] == [f"{clip}#t={t}" for t in ("0.000", "0.500", "1.000", "1.500")]
    assert [line["name"] for line in told] == ["red", "red", "blue", "blue"]
    assert (tmp_path / "sorted" / "2-red" / "clip.mp4#t=0.500.png").is_file()
