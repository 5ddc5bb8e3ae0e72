"""What is packed is what is needed: the wheel carries everything and works from its own files."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.slow
def test_the_wheel_holds_the_package_whole_and_runs_from_its_own_files(tmp_path):
    subprocess.run([sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path), str(ROOT)], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    unpacked = tmp_path / "unpacked"
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        archive.extractall(unpacked)
    sources = {str(p.relative_to(ROOT / "src")) for p in (ROOT / "src/newfound").rglob("*.py")}
    others = {"benchmarks/splits.json", "benchmarks/paper.json", "benchmarks/page.css", "report/style.css", "py.typed"}
    assert sources | {f"newfound/{name}" for name in others} <= names
    assert not any(name.endswith((".pth", ".safetensors", ".jpg", ".png")) for name in names)
    asked = "import newfound; print(newfound.__file__)"
    out = subprocess.run(
        [sys.executable, "-c", asked], env=os.environ | {"PYTHONPATH": str(unpacked)}, cwd=tmp_path,
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert out.stdout.strip().startswith(str(unpacked))


def test_the_version_is_said_once_and_the_same_everywhere():
    import newfound

    assert newfound.__version__ == importlib.metadata.version("newfound")
