"""The command as a whole: help, version, exit codes, and errors that a person can read."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import pytest

from newfound import __version__
from newfound.cli import _common
from newfound.errors import DataError, NewfoundError, SettingsError

COMMANDS = ("demo", "doctor", "train", "discover", "split", "evaluate", "bench")


def test_help_mentions_every_command_and_the_exit_codes(invoke):
    result = invoke("--help")
    assert result.exit_code == 0
    assert all(f" {name} " in result.stdout for name in COMMANDS)
    assert "Exit codes" in result.stdout


@pytest.mark.parametrize("command", [*COMMANDS, "bench speed"])
def test_the_help_of_every_command_has_an_example(invoke, command):
    result = invoke(*command.split(), "--help")
    assert result.exit_code == 0
    examples = [line for line in result.stdout.splitlines() if line.strip().startswith(f"newfound {command}")]
    assert examples
    assert "\b" not in result.stdout


def test_the_command_starts_without_its_heavy_libraries():
    heavy = ("torch", "timm", "numpy", "PIL", "urllib.request", "sqlalchemy")
    code = f"import sys, newfound.cli; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_python_dash_m_prints_the_version():
    done = subprocess.run([sys.executable, "-m", "newfound", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"newfound {__version__}\n")


def test_an_unknown_command_is_a_usage_error(invoke):
    assert invoke("observe").exit_code == 2


def test_an_error_is_one_line_without_a_traceback(start, tmp_path):
    process = start("split", tmp_path / "nowhere", "--out", tmp_path / "out")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert out == ""
    assert err == f"newfound: there is no folder or CSV file {tmp_path / 'nowhere'}\n"


def test_the_traceback_is_shown_when_debugging(start, tmp_path):
    process = start("split", tmp_path / "nowhere", "--out", tmp_path / "out", env={"NEWFOUND_DEBUG": "1"})
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "Traceback" in err
    assert "MissingFileError" in err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NewfoundError("it diverged"), 1),
        (DataError("no images"), 1),
        (SettingsError("no such method"), 2),
        (PermissionError(13, "Permission denied", "/cache"), 1),
    ],
)
def test_the_exit_code_tells_failures_from_wrong_settings(invoke, monkeypatch, error, code):
    def fail(*_args, **_kwargs):
        raise error

    monkeypatch.setattr("newfound.datasets.load_dataset", fail)
    result = invoke("split", "data", "--out", "out")
    assert result.exit_code == code
    assert result.stderr == f"newfound: {error}\n"


def test_an_error_that_nobody_foresaw_is_one_line_and_says_how_to_see_more(invoke, monkeypatch):
    monkeypatch.setattr("newfound.datasets.load_dataset", lambda _: [][0])
    result = invoke("split", "data", "--out", "out")
    assert result.exit_code == 1
    assert result.stderr.startswith("newfound: unexpected IndexError: list index out of range (NEWFOUND_DEBUG=1")
    monkeypatch.setenv("NEWFOUND_DEBUG", "1")
    assert isinstance(invoke("split", "data", "--out", "out").exception, IndexError)


def test_an_interrupt_ends_with_130(invoke, monkeypatch):
    def interrupt(*_args, **_kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("newfound.datasets.load_dataset", interrupt)
    result = invoke("split", "data", "--out", "out")
    assert result.exit_code == 130
    assert result.stderr == "newfound: interrupted\n"


@pytest.mark.parametrize("args", [("--help",), ("split", "{data}", "--out", "{out}", "--json")])
def test_a_reader_that_leaves_is_no_error_message(labelled, tmp_path, args):
    read, write = os.pipe()
    os.close(read)
    filled = [arg.format(data=labelled, out=tmp_path) for arg in args]
    with os.fdopen(write, "w") as closed:
        done = subprocess.run(
            [sys.executable, "-m", "newfound", *filled], stdout=closed, stderr=subprocess.PIPE, text=True
        )
    assert done.stderr == ""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no device that is always full")
@pytest.mark.parametrize(
    "args", [("--help",), (), ("--version",), ("train", "--help"), ("split", "{data}", "--out", "{out}", "--json")]
)
def test_what_cannot_be_written_to_standard_output_is_one_line(labelled, tmp_path, args):
    filled = [arg.format(data=labelled, out=tmp_path) for arg in args]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "newfound", *filled], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert (done.returncode, done.stderr) == (1, "newfound: [Errno 28] No space left on device\n")


@pytest.mark.skipif(os.name == "nt", reason="this needs a shell of Unix")
def test_closed_streams_are_no_error(labelled, tmp_path):
    command = [sys.executable, "-m", "newfound", "split", str(labelled), "--out", str(tmp_path), "--json"]
    closed = ["sh", "-c", 'exec "$@" <&- >&-', "sh", *command]
    done = subprocess.run(closed, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("encoding", "written"), [("utf-8", "日 caf".encode() + b"\xe9"), ("ascii", rb"\u65e5 caf\udce9")]
)
def test_a_name_that_cannot_be_encoded_is_no_error(monkeypatch, encoding, written):
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding=encoding))
    _common.make_streams_usable()
    print("日 caf\udce9", end="", flush=True)
    assert out.getvalue() == written


def test_a_row_of_a_table_is_one_line_whatever_is_in_it(capsys):
    long, odd = "x" * 900, "two\nlines \x1b[31m caf\udce9"
    _common.print_table([("image", "n"), (long, "1"), (odd, "2")])
    *_, first, second, _ = capsys.readouterr().out.splitlines()
    assert first.split() == [long, "1"]
    assert second.split() == ["two\\nlines", "\\x1b[31m", "caf\\udce9", "2"]


def test_the_name_of_a_file_cannot_colour_the_terminal(capsys):
    _common.say("cannot read a\x1b[31m.png\nsecond line")
    assert capsys.readouterr().err == "cannot read a\\x1b[31m.png\nsecond line\n"


@pytest.mark.parametrize("words", [("discover", "r", "s", "--settle", "inf"), ("replay", "r", "--cut", "nan")])
def test_a_number_that_is_not_finite_is_a_wrong_setting(invoke, words):
    result = invoke(*words)
    assert result.exit_code == 2
    assert result.stderr == f"newfound: {words[-2]} {words[-1]}: give a finite number.\n"


def test_threads_limits_pytorch_and_blas():
    code = (
        "import os, sys, newfound.cli as cli; sys.argv = ['newfound', '--threads', '1', 'split', 'x', '--out', 'y']\n"
        "try: cli.main()\n"
        "except SystemExit: import torch; print(torch.get_num_threads(), os.environ['OPENBLAS_NUM_THREADS'])"
    )
    environment = os.environ | {"OMP_NUM_THREADS": "2"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.stdout.split() == ["1", "1"]


def test_long_work_says_once_a_minute_how_far_it_is_where_no_bar_can_be_drawn(monkeypatch, capsys):
    from newfound.cli import _common

    clock = iter([0.0, 30.0, 61.0, 61.0, 70.0])  # start, a step, a step that is told of (and when), a step
    monkeypatch.setattr(_common.time, "monotonic", lambda: next(clock))
    with _common.watcher().stage("learning", 400) as progress:
        for _ in range(3):
            progress(100)
    assert capsys.readouterr().err == "learning: 200 of 400\n"
