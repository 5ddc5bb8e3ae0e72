"""CLIP's two towers, through open_clip: pictures and words as unit vectors of one space.

Both towers come from one checkpoint, so that they fit each other. A run's own features would not do: its tail has
learnt to tell classes apart, and has left the space that it once shared with text.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from newfound.errors import SettingsError, WeightsError

if TYPE_CHECKING:
    from PIL import Image

_BATCH = 32

_OPENAI = {"openai": "openai", "metaclip_400m": "metaclip_400m", "metaclip_2pt5b": "metaclip_fullcc"}
_LAION = {"laion400m_e32": "laion400m_e32", "datacompxl": "datacomp_xl_s13b_b90k"}
# The timm architectures that are a CLIP's image tower with its projection: open_clip's name of the whole, and for
# timm's tags open_clip's. The quickgelu variants of timm have the same weights.
_CHECKPOINTS: dict[str, tuple[str, dict[str, str]]] = {
    "vit_base_patch32_clip_224": ("ViT-B-32", _OPENAI | _LAION | {"laion2b": "laion2b_s34b_b79k"}),
    "vit_base_patch16_clip_224": ("ViT-B-16", _OPENAI | _LAION | {"laion2b": "laion2b_s34b_b88k", "dfn2b": "dfn2b"}),
    "vit_large_patch14_clip_224": ("ViT-L-14", _OPENAI | _LAION | {"laion2b": "laion2b_s32b_b82k", "dfn2b": "dfn2b"}),
    "vit_large_patch14_clip_336": ("ViT-L-14-336", {"openai": "openai"}),
    "vit_huge_patch14_clip_224": (
        "ViT-H-14", {"laion2b": "laion2b_s32b_b79k", "dfn5b": "dfn5b", "metaclip_2pt5b": "metaclip_fullcc"},
    ),
    "vit_base_patch16_siglip_224": ("ViT-B-16-SigLIP", {"webli": "webli"}),
}  # fmt: skip


class Towers(Protocol):
    """What pictures and words are compared with."""

    scale: float  # what cosines are multiplied with before the softmax

    def pictures(self, images: Sequence[Image.Image]) -> np.ndarray:
        """Unit rows, float32, one for each RGB image."""

    def words(self, texts: Sequence[str]) -> np.ndarray:
        """Unit rows, float32, one for each text."""


def checkpoint_of(backbone: str) -> str | None:
    """The open_clip checkpoint whose image tower a timm backbone is, as MODEL/TAG; None if there is none."""
    architecture, _, tag = backbone.partition(".")
    model, tags = _CHECKPOINTS.get(architecture.replace("_quickgelu", ""), ("", {}))
    return f"{model}/{tags[tag]}" if tag in tags else None


def load_towers(checkpoint: str, weights: str | os.PathLike[str] | None = None) -> Towers:
    """The towers of an open_clip model.

    Args:
        checkpoint: open_clip's names of the model and of its weights, as in ViT-B-16/openai; with `weights` the first
            is enough.
        weights: a local file with both towers: safetensors, or a plain state dict.

    Raises:
        SettingsError: open_clip is not installed, or knows no such model or weights.
        WeightsError: the weights cannot be had, or are not those of this model.
    """
    try:
        import open_clip
    except ImportError as error:
        raise SettingsError("names from words need open_clip: pip install 'newfound[naming]'.") from error
    name, _, tag = checkpoint.partition("/")
    if name not in open_clip.list_models():
        raise SettingsError(f"open_clip has no model {name!r}; one that it has is ViT-B-16.")
    described = open_clip.get_pretrained_cfg(name, tag) if tag else {}
    if not described and (tag or weights is None):
        tags = ", ".join(open_clip.list_pretrained_tags_by_model(name)) or "none: give a file with --weights"
        raise SettingsError(f"{checkpoint!r} names no weights that open_clip knows; of {name} it has: {tags}.")
    path = _fetched(checkpoint, described) if weights is None else _local(Path(weights).expanduser())
    try:
        model = open_clip.create_model(
            name, pretrained=path, force_quick_gelu=described.get("quick_gelu", False), force_preprocess_cfg=described
        )
    except Exception as error:  # a file of something else fails in as many ways as there are files
        raise WeightsError(f"{path} does not hold both towers of {name} ({type(error).__name__}: {error}).") from error
    try:
        tokenizer = open_clip.get_tokenizer(name)
    except Exception as error:  # SigLIP's comes from the hub
        raise WeightsError(f"the tokenizer of {name} cannot be had here ({type(error).__name__}: {error}).") from error
    return _OpenClip(model, tokenizer)


class _OpenClip:
    """The towers of an open_clip model, on the first GPU if there is one."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        import torch
        from open_clip.transform import PreprocessCfg, image_transform_v2

        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        self._model, self._tokenize = model.eval().to(self._device), tokenizer
        self._view = image_transform_v2(PreprocessCfg(**model.visual.preprocess_cfg), is_train=False)
        self.scale = float(model.logit_scale.detach().exp())

    def pictures(self, images: Sequence[Image.Image]) -> np.ndarray:
        import torch

        return self._encoded(images, lambda some: torch.stack([self._view(image) for image in some]), "encode_image")

    def words(self, texts: Sequence[str]) -> np.ndarray:
        return self._encoded(texts, self._tokenize, "encode_text")

    def _encoded(self, things: Sequence[Any], prepare: Any, tower: str) -> np.ndarray:
        import torch

        encode, parts = getattr(self._model, tower), []
        with torch.inference_mode():
            for at in range(0, len(things), _BATCH):
                rows = encode(prepare(list(things[at : at + _BATCH])).to(self._device), normalize=True)
                parts.append(rows.float().cpu().numpy())
        return np.concatenate(parts)


def _local(path: Path) -> str:
    if not path.is_file():
        raise WeightsError(f"there is no weight file {path}.")
    return str(path)


def _fetched(checkpoint: str, described: dict[str, Any]) -> str:
    import open_clip

    try:
        return str(open_clip.download_pretrained(described))
    except Exception as error:  # as in newfound.weights: no network, no such file, no right to it
        raise WeightsError(
            f"the weights {checkpoint} cannot be had here ({type(error).__name__}). Give a file that holds both towers "
            "with weights=PATH (--weights), or connect to the model hub (Hugging Face)."
        ) from error
