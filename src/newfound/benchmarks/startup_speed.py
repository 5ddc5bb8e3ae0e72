"""How soon newfound is ready, and what keeping large allocations is worth: measured in processes of their own."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from newfound.backbone import DEFAULT
from newfound.benchmarks._timing import SpeedRow, spread

_NOTHING = ("-c", "pass")

# The least that anyone needs to have the model of a run: the libraries, the architecture, and its tensors.
_WEIGHTS = """
import sys, timm
from safetensors.torch import load_file
tensors = load_file(sys.argv[1])
model = timm.create_model(sys.argv[2], num_classes=0)
state = {name.split(".", 1)[1]: tensor for name, tensor in tensors.items() if name.startswith(("trunk.", "tail."))}
missing = model.load_state_dict(state, strict=False).missing_keys
print(f"{len(missing)} tensors are missing")
"""

_FORWARD = """
import sys, time
from newfound._memory import keep_large_allocations
kept = keep_large_allocations()
import torch
from newfound.backbone import create
torch.set_num_threads(int(sys.argv[2]))
model = create(sys.argv[1], weights="random").model
pixels = torch.randn(int(sys.argv[3]), 3, *model.pretrained_cfg["input_size"][1:])
print(int(kept), flush=True)
for line in sys.stdin:
    start = time.perf_counter()
    with torch.inference_mode():
        for _ in range(int(line)):
            model(pixels)
    print(time.perf_counter() - start, flush=True)
"""


def importing(repeats: int = 7) -> SpeedRow:
    """`import newfound` against a Python that does nothing."""
    return _more_than_nothing("import", ("-c", "import newfound"), "`import newfound`", repeats)


def helping(repeats: int = 7) -> SpeedRow:
    """`newfound --help` against a Python that does nothing."""
    return _more_than_nothing("help", ("-m", "newfound", "--help"), "`newfound --help`", repeats)


def _more_than_nothing(stage: str, command: Sequence[str], name: str, repeats: int) -> SpeedRow:
    pairs = [(_ended(command), _ended(_NOTHING)) for _ in range(repeats + 1)][1:]  # the first fills the disk's cache
    ours, nothing = (statistics.median(times) for times in zip(*pairs, strict=True))
    return SpeedRow(
        stage, ours, nothing, "s", *spread([a - b for a, b in pairs]), "at most 0.4 s more",
        f"{name} against `python -c pass`, {repeats} times in turn; the ratio is the seconds that it takes more",
    )  # fmt: skip


def starting(repeats: int = 3, *, backbone: str = DEFAULT) -> SpeedRow:
    """`newfound discover` until its first answer, against timm's model with the run's weights loaded into it."""
    with tempfile.TemporaryDirectory() as folder:
        image = write_run(Path(folder) / "run", backbone)
        ours = ("-m", "newfound", "discover", str(Path(folder) / "run"), str(image), "--in-memory")
        bare = ("-c", _WEIGHTS, str(Path(folder) / "run" / "model.safetensors"), backbone)
        pairs = [(_first_line(ours)[1], _first_line(bare)) for _ in range(repeats + 1)][1:]
    told = {line for _, (line, _) in pairs}
    times = [(a, b) for a, (_, b) in pairs]
    fast, slow = (statistics.median(column) for column in zip(*times, strict=True))
    return SpeedRow(
        "start", fast, slow, "s", *spread([a / b for a, b in times]), "at most 2 times loading the weights",
        f"{backbone} in a bundled run, one image, nothing kept, {repeats} times in turn; loading the weights alone is "
        f"`import timm`, the model and its tensors ({', '.join(sorted(told))})",
    )  # fmt: skip


def allocator(repeats: int = 5, *, backbone: str = DEFAULT, batch: int = 32, passes: int = 2) -> SpeedRow:
    """A full forward pass with large allocations kept, against the C library's defaults (NEWFOUND_MALLOC=0)."""
    import torch

    threads = torch.get_num_threads()
    command = [sys.executable, "-c", _FORWARD, backbone, str(threads), str(batch)]
    with ExitStack() as stack:
        kept, plain = (
            stack.enter_context(
                subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                    env=os.environ | {"NEWFOUND_MALLOC": setting},
                )
            )
            for setting in ("1", "0")
        )  # fmt: skip
        agreed = (_line(kept), _line(plain)) == ("1", "0")
        pairs = [(_passes(kept, passes), _passes(plain, passes)) for _ in range(repeats + 1)][1:]
        for process in (kept, plain):
            process.communicate()  # the end of its input ends it
    fast, slow = (batch * passes / statistics.median(times) for times in zip(*pairs, strict=True))
    return SpeedRow(
        "allocator", fast, slow, "images/s", *spread([b / a for a, b in pairs]), "at least 2 times the defaults",
        f"{backbone} with random weights, batches of {batch}, {threads} threads, two processes in turn, {repeats} "
        f"times; one agreed to keep allocations and the other was told not to: {agreed}",
    )  # fmt: skip


def write_run(folder: Path, backbone: str) -> Path:
    """Write a run that has its weights with it, and return an image that it has not seen."""
    import numpy as np
    from PIL import Image

    from newfound.fitting import fit

    pictures = list(np.random.default_rng(0).integers(0, 256, (9, 64, 64, 3), dtype=np.uint8))
    labels = ["one", "two"] * 4
    fit(
        (pictures[:8], labels), method="frozen", backbone=backbone, weights="random", out=folder,
        threshold=0.7, dictionary="prototypes", cached=False,
    )  # fmt: skip
    Image.fromarray(pictures[8]).save(folder / "image.png")
    return folder / "image.png"


def _ended(arguments: Sequence[str]) -> float:
    """Seconds until a Python with these arguments ends. Raises CalledProcessError if it fails."""
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    return time.perf_counter() - start


def _first_line(arguments: Sequence[str]) -> tuple[str, float]:
    """The first line that a Python with these arguments prints, and the seconds until then."""
    start = time.perf_counter()
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, *arguments], **pipes) as process:
        line = _line(process)
        seconds = time.perf_counter() - start
        process.communicate()
    return line, seconds


def _passes(process: subprocess.Popen[str], count: int) -> float:
    """Seconds that a process takes for so many forward passes."""
    assert process.stdin is not None
    process.stdin.write(f"{count}\n")
    process.stdin.flush()
    return float(_line(process))


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        why = process.stderr.read().strip() if process.stderr else "its message is above"
        raise RuntimeError(f"a measured process ended with exit code {process.wait()}: {why}")
    return line.strip()
