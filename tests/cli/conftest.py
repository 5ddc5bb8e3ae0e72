"""A tiny labelled data set, a run trained on part of it, and two ways to call the command."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

# Small enough for a busy machine: few images, small inputs, two stored views, no rehearsal; a cut that is a cosine.
_QUICK = ["--short", "--image-size", "32", "--epochs", "1", "--set", "views=2"]
_QUICK += ["--set", "dictionary=prototypes", "--set", "threshold=0.6"]
_COLOURS = {"blue": (30, 40, 220), "green": (40, 200, 60), "red": (220, 40, 30), "yellow": (230, 220, 40)}


def _paint(folder: Path, colour: tuple[int, int, int], count: int, seed: int = 0) -> list[Path]:
    """Noisy patches of one colour as PNG files."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng((seed, *colour))
    paths = [folder / f"{index}.png" for index in range(count)]
    for path in paths:
        noise = rng.normal(colour, 25, (40, 40, 3))
        Image.fromarray(np.clip(noise, 0, 255).astype(np.uint8)).save(path)
    return paths


@pytest.fixture(scope="session", autouse=True)
def _surroundings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of their own, no network, and one thread: on images this small more threads only wait for each other."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        patch.setenv("NEWFOUND_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.delenv("NEWFOUND_DEBUG", raising=False)
        yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Blue, green and red, four images each."""
    root = tmp_path_factory.mktemp("labelled")
    for name in ("blue", "green", "red"):
        _paint(root / name, _COLOURS[name], 4)
    return root


@pytest.fixture(scope="session")
def stream(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Other images of two known classes and of one that is not known."""
    root = tmp_path_factory.mktemp("stream")
    for name in ("blue", "red", "yellow"):
        _paint(root / name, _COLOURS[name], 3, seed=1)
    return root


@pytest.fixture(scope="session")
def paint() -> Callable[..., list[Path]]:
    return _paint


@pytest.fixture(scope="session")
def quick() -> list[str]:
    return list(_QUICK)


@pytest.fixture(scope="session")
def invoke() -> Callable[..., Any]:
    """Call the command in this process; gives exit_code, stdout, stderr."""
    from typer.testing import CliRunner

    from newfound.cli import app

    def call(*args: object, stdin: str | bytes | None = None) -> Any:
        return CliRunner().invoke(app, [str(arg) for arg in args], input=stdin, prog_name="newfound")

    return call


def _start(*args: object, env: dict[str, str] | None = None, **options: Any) -> subprocess.Popen[str]:
    """Start the command as a process of its own, with pipes."""
    return subprocess.Popen(
        [sys.executable, "-m", "newfound", *map(str, args)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | (env or {}), **options,
    )  # fmt: skip


@pytest.fixture(scope="session")
def start() -> Callable[..., subprocess.Popen[str]]:
    return _start


@pytest.fixture(scope="session")
def run(
    labelled: Path, invoke: Callable[..., Any], quick: list[str], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "colours"
    result = invoke("train", labelled, "--out", folder, *quick)
    assert result.exit_code == 0, result.stderr
    return folder
