"""`newfound export` and `--runtime` as a person types them."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from newfound.cli import app

pytest.importorskip("onnx", reason="newfound[onnx] is not installed")
pytest.importorskip("onnxruntime", reason="newfound[onnx] is not installed")


def newfound(*args):
    return CliRunner().invoke(app, [str(arg) for arg in args], prog_name="newfound")


def test_an_int8_export_is_written_and_evaluated(run_folder, write_folder, tmp_path):
    data = write_folder(tmp_path / "data", kinds=4, each=3)
    done = newfound("export", run_folder, "--out", tmp_path / "out", "--int8", data, "--json")
    assert done.exit_code == 0, done.stderr
    about = json.loads(done.stdout)
    assert (about["precision"], about["script"]) == ("int8", str(tmp_path / "out" / "discover.py"))
    scored = newfound("evaluate", run_folder, data, "--runtime", tmp_path / "out", "--orders", 1, "--json")
    assert scored.exit_code == 0, scored.stderr
    assert json.loads(scored.stdout)["data"]["old_classes"] == 3


def test_discover_gives_the_same_categories_on_another_runtime(run_folder, write_folder, tmp_path):
    stream = write_folder(tmp_path / "stream", kinds=5, each=2)
    found = []
    for runtime in ("torch", "onnx"):
        done = newfound("discover", run_folder, stream, "--no-journal", "--runtime", runtime)
        assert done.exit_code == 0, done.stderr
        found.append([json.loads(line)["category"] for line in done.stdout.splitlines()])
    assert found[0] == found[1]
    assert len(found[0]) == 10


def test_a_wrong_runtime_is_a_mistake_of_the_command_line(run_folder, tmp_path):
    done = newfound("discover", run_folder, tmp_path, "--runtime", "tensorrt")
    assert done.exit_code == 2
    assert "no runtime 'tensorrt'" in done.stderr
