"""Where images come from: paths, lines and signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from newfound.sources import Item, Stop, chunks, from_lines, from_paths


def items(*lines: bytes) -> list[Item]:
    rest = iter(lines)
    return list(from_lines(lambda: next(rest, b"")))


def test_a_line_is_a_path_or_json():
    plain, spaced, json_line = items(b"a.png\n", b"\n", b"  \r\n", b"b c.png\r\n", b' {"image": "d.png", "id": 7}\n')
    assert [plain.name, spaced.name, json_line.name] == ["a.png", "b c.png", "d.png"]
    assert json_line.extra == {"id": 7}
    assert plain.extra == {}


def test_a_path_of_any_bytes_comes_through():
    (item,) = items(b"caf\xe9.png\n")
    assert os.fsencode(item.image) == b"caf\xe9.png"


@pytest.mark.parametrize(
    "line",
    [
        b'{"image": 7}', b"{}", b'{"image": " "}', b"{", b'{"image": "a", "x": NaN}', b'{"image": "a", "x": 1e999}',
        b'{"image": "half\\ud800.png"}', b'{"\xff": 1}', b"nosuchprotocol://bucket/a.png",
    ],
)  # fmt: skip
def test_a_line_that_names_no_image_is_an_error_and_not_the_end(line):
    wrong, good = items(line + b"\n", b"a.png\n")
    assert wrong.error
    assert good.image == "a.png"


@pytest.mark.parametrize("line", [b"a.png\r\n", b'{"image": "a.png"}\n'])
def test_the_mark_that_some_editors_start_a_file_with_is_no_part_of_a_path(line):
    assert [item.image for item in items(b"\xef\xbb\xbf" + line, b"b.png\n")] == ["a.png", "b.png"]


def test_a_path_that_is_empty_does_not_stand_for_the_working_folder():
    (item,) = from_paths([""])
    assert item.error == "the path is empty"


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@settings(max_examples=30)
@given(st.dictionaries(st.text().filter(lambda key: key != "image"), values))
def test_all_that_stands_beside_an_image_is_kept(extra):
    (item,) = items(json.dumps({"image": "a.png", **extra}).encode() + b"\n")
    assert (item.image, item.extra) == ("a.png", extra)


def test_a_line_is_read_only_when_its_turn_comes():
    read = []
    rest = iter([b"a\n", b"b\n", b"c\n"])

    def read_line() -> bytes:
        read.append(line := next(rest, b""))
        return line

    blocks = chunks(from_lines(read_line), 2)
    assert [item.name for item in next(blocks)] == ["a", "b"]
    assert read == [b"a\n", b"b\n"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_is_remembered_and_raises_nothing(number):
    before = signal.getsignal(number)
    with Stop() as stop:
        os.kill(os.getpid(), number)
        time.sleep(0)
        assert stop.asked
        assert stop.wait(lambda: "not waited for") is None
    assert signal.getsignal(number) is before


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="this system knows no hang-up")
def test_a_terminal_that_is_closed_ends_the_stream_unless_nohup_said_to_go_on():
    before = signal.getsignal(signal.SIGHUP)
    try:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        with Stop() as stop:
            signal.raise_signal(signal.SIGHUP)
            assert not stop.asked
        signal.signal(signal.SIGHUP, ours := lambda *_: None)
        with Stop() as stop:
            signal.raise_signal(signal.SIGHUP)
            assert stop.asked
        assert signal.getsignal(signal.SIGHUP) is ours
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_second_ctrl_c_stops_at_once_but_a_second_sigterm_does_not():
    with Stop() as stop:
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
        assert stop.asked
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_a_third_ctrl_c_ends_the_process_without_a_word():
    code = """
import signal
from newfound.sources import Stop
with Stop():
    signal.raise_signal(signal.SIGINT)
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        print("closing", flush=True)
        signal.raise_signal(signal.SIGINT)
        print("closed")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "closing\n", "")


def test_a_signal_ends_a_wait():
    with Stop() as stop:
        timer = threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGTERM))
        timer.start()
        began = time.monotonic()
        assert stop.wait(lambda: time.sleep(30)) is None
        assert time.monotonic() - began < 10
        timer.join()


def test_in_another_thread_no_handler_is_set():
    before = signal.getsignal(signal.SIGINT)
    seen = []

    def enter() -> None:
        with Stop() as stop:
            seen.append((signal.getsignal(signal.SIGINT), stop.wait(lambda: 7)))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert seen == [(before, 7)]
