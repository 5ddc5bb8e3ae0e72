"""Where PyTorch can compute on this machine."""

from __future__ import annotations

import torch

from newfound.errors import SettingsError

AUTO = "auto"  # the first GPU of CUDA if there is one, else the processor


def devices() -> list[str]:
    """The devices that are here, as PyTorch names them: the processor, then GPUs."""
    gpus = [f"cuda:{index}" for index in range(torch.cuda.device_count())]
    return ["cpu", *gpus, *["mps"] * torch.backends.mps.is_available()]


def check_device(name: str) -> None:
    """Raise SettingsError, with what is here, for a device that is not; of kinds not listed above PyTorch decides."""
    here = devices()
    try:
        asked = torch.device(name)
    except RuntimeError:
        found = False
    else:
        number = f":{asked.index or 0}" if asked.type == "cuda" else ""
        found = asked.type not in ("cuda", "mps") or f"{asked.type}{number}" in here
    if not found:
        raise SettingsError(f"there is no device {name!r} here; take one of {', '.join([*here, AUTO])}.")
