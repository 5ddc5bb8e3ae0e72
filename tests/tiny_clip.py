"""A CLIP of the true classes that is small enough for tests."""

from __future__ import annotations

import json
from pathlib import Path

NAME = "newfound-tiny"


def make_tiny_clip(folder: Path) -> tuple[str, Path]:
    """Make a tiny CLIP known to open_clip; returns its name there and a file with random weights of it."""
    import open_clip
    import torch
    from safetensors.torch import save_file

    config = {
        "embed_dim": 16,
        "vision_cfg": {"image_size": 32, "layers": 1, "width": 32, "head_width": 16, "patch_size": 16},
        "text_cfg": {"context_length": 24, "vocab_size": 49408, "width": 16, "heads": 1, "layers": 1},
    }
    (folder / f"{NAME}.json").write_text(json.dumps(config))
    open_clip.add_model_config(folder / f"{NAME}.json")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(4)
        state = open_clip.create_model(NAME).state_dict()
    save_file(state, folder / "weights.safetensors")
    return NAME, folder / "weights.safetensors"
