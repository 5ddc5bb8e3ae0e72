"""The script of an export as somebody meets it who has never heard of newfound."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest
from PIL import Image

pytest.importorskip("onnx", reason="newfound[onnx] is not installed")
pytest.importorskip("onnxruntime", reason="newfound[onnx] is not installed")


@pytest.fixture(scope="module")
def exported(fit_tiny, pictures, tmp_path_factory) -> Path:
    run = fit_tiny(pictures(kinds=3), method="frozen", preset="default", dictionary="prototypes", threshold=0.5)
    return run.export(tmp_path_factory.mktemp("exported")).folder


@pytest.fixture
def incoming(tmp_path, picture) -> Path:
    """incoming/ with two pictures, one more in a folder, one that is hidden, and a note."""
    folder = tmp_path / "incoming"
    for name in ("b.png", "a.PNG", "later/a.jpg", ".hidden/c.png"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture(1, len(name))).save(folder / name)
    (folder / "notes.txt").write_text("no image")
    return folder


def call(exported: Path, *places: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(exported / "discover.py"), *map(str, places)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def images(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [json.loads(line)["image"] for line in done.stdout.splitlines()]


def test_without_images_it_says_how_it_is_used(exported):
    done = call(exported)
    assert (done.returncode, done.stdout) == (1, "")
    assert "python discover.py IMAGE_OR_FOLDER..." in done.stderr
    assert "Traceback" not in done.stderr


def test_folders_are_read_in_the_order_of_newfound_and_files_as_they_are_given(exported, incoming):
    from newfound.images import find_images

    done = call(exported, incoming / "b.png", incoming)
    assert done.returncode == 0, done.stderr
    assert images(done) == [str(incoming / "b.png"), *map(str, find_images(incoming))]
    assert len(images(done)) == 4


def test_what_cannot_be_read_is_named_and_the_others_are_answered(exported, incoming):
    (incoming / "a0.png").write_bytes((incoming / "b.png").read_bytes()[:60])
    (incoming / "empty").mkdir()
    done = call(exported, incoming, incoming / "gone.png", incoming / "empty")
    assert done.returncode == 1
    assert [path.rpartition("incoming/")[2] for path in images(done)] == ["a.PNG", "b.png", "later/a.jpg"]
    told = done.stderr.splitlines()
    assert len(told) == 3
    for line, name in zip(told, ("a0.png", "gone.png", "empty"), strict=True):
        assert line.startswith(f"skipped {incoming / name}: ")


def test_a_reader_that_goes_away_ends_it_without_a_complaint(exported, incoming):
    command = [sys.executable, str(exported / "discover.py"), *[str(incoming / "b.png")] * 50]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as script:
        assert json.loads(script.stdout.readline())["name"] == "kind1"
        script.stdout.close()  # as `| head -1` does
        assert script.stderr.read() == ""
    assert script.returncode != 0


def test_every_file_of_it_fits_a_screen_or_two():
    """It is there to be read, and taken apart."""
    for script in (resources.files("newfound.export") / "standalone").iterdir():
        if script.name.endswith(".py"):
            assert len(script.read_text().splitlines()) <= (55 if script.name != "evidence.py" else 80), script.name
