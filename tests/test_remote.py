"""Encoding on Ray: the same answers as without it, whoever dies."""

from __future__ import annotations

import json
import operator
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from newfound.cli import app
from newfound.errors import NewfoundError, SettingsError
from newfound.images import content_of, find_images
from newfound.remote import RayEncoder
from newfound.remote_files import find_remote


def test_without_ray_it_says_what_to_install(tiny_run, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SettingsError, match=r'pip install "newfound\[ray\]"'):
        RayEncoder(tiny_run)


def test_encoders_without_ray_are_a_wrong_setting(run_folder):
    result = CliRunner().invoke(app, ["discover", str(run_folder), "a.png", "--encoders", "2"])
    assert result.exit_code == 2
    assert "--encoders is for --ray" in result.output


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "127.0.0.1:many"])
def test_an_address_where_nobody_is_is_a_wrong_setting_and_soon_known(tiny_run, monkeypatch, address):
    pytest.importorskip("ray", reason="newfound[ray] is not installed")
    monkeypatch.setattr("ray.is_initialized", lambda: False)
    with pytest.raises(SettingsError, match=f"cannot join a Ray cluster at '{address}'.*--ray local"):
        RayEncoder(tiny_run, address)


@pytest.fixture(scope="module")
def folder(write_folder, tmp_path_factory):
    """30 images of five kinds, two of them new, one after the other; and one that is cut off."""
    folder = write_folder(tmp_path_factory.mktemp("stream"), kinds=5, each=6)
    whole = (folder / "kind1" / "0.png").read_bytes()
    (folder / "kind1" / "cut.png").write_bytes(whole[: len(whole) // 2])
    return folder


@pytest.fixture(scope="module")
def encoder(tiny_run):
    """Two encoders on a Ray of their own; starting it takes most of these tests' time."""
    pytest.importorskip("ray", reason="newfound[ray] is not installed")
    with RayEncoder(tiny_run, encoders=2) as encoder:
        yield encoder


@pytest.fixture
def both(encoder):
    """The process ids of both encoders, once both are there."""
    until = time.monotonic() + 300
    while len(pids := encoder.pids()) < 2:
        assert time.monotonic() < until, "the second encoder does not come up"
        time.sleep(0.2)
    return pids


@pytest.fixture(scope="module")
def plain(tiny_run, folder):
    """What is answered without Ray."""
    return told(tiny_run.discoverer().observe(iter(find_images(folder)), block=3))


def told(sightings) -> list[tuple]:
    return [(s.image, s.category, s.is_new, s.score, s.error) for s in sightings]


@pytest.mark.slow
@pytest.mark.usefixtures("both")
def test_answers_errors_and_scores_equal_those_without_ray(encoder, tiny_run, folder, plain):
    discoverer = tiny_run.discoverer(encoder=encoder)
    assert told(discoverer.observe(iter(find_images(folder)), block=3)) == plain
    assert sum(new for _, _, new, _, _ in plain) >= 2
    assert sum(error is not None for *_, error in plain) == 1
    again = discoverer.observe(iter(find_images(folder)), block=3)
    assert all(s.repeated for s in again if s.error is None)
    assert len(discoverer.sightings()) == 30


@pytest.mark.slow
def test_an_encoder_killed_in_the_middle_changes_nothing(encoder, both, tiny_run, folder, plain):
    discoverer = tiny_run.discoverer(encoder=encoder)
    stream = discoverer.observe(iter(find_images(folder)), block=3)
    answers = [next(stream) for _ in range(4)]
    os.kill(both[0], signal.SIGKILL)
    answers += stream
    assert told(answers) == plain
    assert len(discoverer.sightings()) == 30


@pytest.mark.slow
def test_blocks_that_an_encoder_takes_to_its_grave_are_done_by_another(encoder, both, tiny_run, folder):
    """Stopped, it finishes nothing that it is given; only then is it killed."""
    paths = find_images(folder)
    expected = list(tiny_run.encoder.stream(paths, 3))
    os.kill(both[0], signal.SIGSTOP)
    killer = threading.Timer(2.0, os.kill, (both[0], signal.SIGKILL))
    killer.start()
    blocks = list(encoder.stream(paths, 3))
    assert not killer.is_alive(), "nothing was given to the one that was stopped"
    assert [block.items for block in blocks] == [block.items for block in expected]
    for block, other in zip(blocks, expected, strict=True):
        np.testing.assert_array_equal(block.features, other.features)
        assert block.rows == other.rows
        assert list(map(str, block.errors)) == list(map(str, other.errors))


@pytest.mark.slow
@pytest.mark.usefixtures("both")
def test_a_block_ahead_for_each_encoder_and_another_but_not_the_whole_stream(encoder, folder):
    asked = []
    paths = find_images(folder)
    stream = encoder.stream((asked.append(path) or path for path in paths), 2)
    next(stream)
    assert len(asked) == 2 * 2 * 2  # two encoders, two blocks each, two images a block
    stream.close()
    singly = encoder.stream((asked.append(path) or path for path in paths), 1)
    next(singly)
    assert len(asked) == 8 + 1


@pytest.mark.slow
def test_a_file_that_is_replaced_before_an_encoder_reads_it_is_the_new_picture(encoder, folder, tmp_path):
    first, second, latest = folder / "kind0" / "0.png", folder / "kind1" / "0.png", tmp_path / "latest.png"
    latest.write_bytes(first.read_bytes())
    assert encoder.contents([latest]) == [content_of(first)]
    latest.write_bytes(second.read_bytes())
    (block,) = encoder.stream([latest])
    assert block.contents == [content_of(second)]


@pytest.mark.slow
def test_urls_are_read_by_the_encoders(encoder, tiny_run, folder, plain):
    files = find_remote(f"file://{folder}/kind*/?.png")
    sightings = tiny_run.discoverer(encoder=encoder).observe(iter(files), block=3)
    readable = [category for _, category, _, _, error in plain if error is None]
    assert [s.category for s in sightings] == readable


@pytest.mark.slow
def test_relative_paths_lead_where_they_do_for_the_caller(encoder, tiny_run):
    gone = tiny_run.discoverer(encoder=encoder).observe(["gone.png"])
    assert [s.error for s in gone] == [s.error for s in tiny_run.discoverer().observe(["gone.png"])]


@pytest.mark.slow
def test_an_error_that_is_no_images_surfaces_as_it_is(encoder):
    broken = SimpleNamespace(read=partial(operator.floordiv, 1, 0))
    with pytest.raises(ZeroDivisionError):
        list(encoder.stream([broken], 2))
    with pytest.raises(ZeroDivisionError):
        encoder.contents([broken])


class Deadly(str):
    """A path that ends the process that is given it."""

    __slots__ = ()

    def __reduce__(self):
        return os._exit, (1,)


@pytest.mark.slow
@pytest.mark.usefixtures("both")
def test_images_that_kill_every_encoder_are_named_and_no_other(encoder, folder):
    paths = [str(path) for path in find_images(folder)[:6]]
    stream = encoder.stream([*paths[:4], Deadly("deadly.png"), *paths[4:]], 2)
    assert [block.items for block in (next(stream), next(stream))] == [paths[:2], paths[2:4]]
    with pytest.raises(NewfoundError, match=r"3 encoders have died.*: deadly.png, \S+$") as error:
        next(stream)
    assert paths[4] in str(error.value)
    assert paths[5] not in str(error.value)
    assert len(list(encoder.stream(paths, 2))) == 3, "the encoders work on"


@pytest.mark.slow
def test_the_command_gives_the_same_lines_and_no_chatter(run_folder, folder, tmp_path):
    pytest.importorskip("ray", reason="newfound[ray] is not installed")
    (tmp_path / "list.txt").write_text(f"{folder}/kind3\nfile://{folder}/kind4/*.png\n")
    command = [sys.executable, "-m", "newfound", "--threads", "1", "discover", str(run_folder), str(folder / "kind0")]
    command += [f"@{tmp_path / 'list.txt'}", "--in-memory", "--block", "4"]
    without, on_ray = (
        subprocess.run([*command, *options], capture_output=True, text=True, timeout=300)
        for options in ([], ["--ray", "local", "--encoders", "1"])
    )
    assert on_ray.returncode == without.returncode == 0, on_ray.stderr
    assert [json.loads(line) for line in on_ray.stdout.splitlines()] == [
        json.loads(line) for line in without.stdout.splitlines()
    ]
    assert len(on_ray.stdout.splitlines()) == 18
    assert on_ray.stderr == without.stderr


@pytest.mark.slow
@pytest.mark.skipif(not os.path.isdir("/proc"), reason="finds the encoder's process in /proc")
def test_the_command_outlives_its_encoder_and_leaves_in_good_order(run_folder, folder, tmp_path):
    """The encoder is killed, then all processes are interrupted, as Ctrl-C in a terminal does."""
    pytest.importorskip("ray", reason="newfound[ray] is not installed")
    image = folder / "kind0" / "0.png"
    (tmp_path / "list.txt").write_text(f"{image}\n" * 200_000)
    command = [sys.executable, "-m", "newfound", "--threads", "1", "discover", str(run_folder)]
    command += [f"@{tmp_path / 'list.txt'}", "--predict", "--block", "4", "--ray", "local", "--encoders", "1"]
    with (tmp_path / "stderr").open("w+") as stderr, subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=stderr, text=True, start_new_session=True
    ) as process:  # fmt: skip
        told = [process.stdout.readline()]
        (encoder,) = encoders_in(process.pid)
        os.kill(encoder, signal.SIGKILL)
        while encoders_in(process.pid) in ([], [encoder]):  # until there is another
            told.append(process.stdout.readline())
        os.killpg(process.pid, signal.SIGINT)
        told += process.stdout  # not communicate(), which passes over what readline() has read ahead
        process.wait(timeout=120)
        stderr.seek(0)
        said = stderr.read().splitlines()
    assert process.returncode == 130, said
    assert {json.loads(line)["image"] for line in told} == {str(image)}
    assert said[-1].startswith(f"interrupted after {len(told)} images")


def encoders_in(session: int) -> list[int]:
    found = []
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        with suppress(OSError):  # it has ended
            if os.getsid(pid) == session and Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"ray::_Worker"):
                found.append(pid)
    return found
