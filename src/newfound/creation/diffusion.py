"""Diffusion as a creator: two known images, blended between their latents, come back as one new image.

This is the generator of DiffGRE (ICCV 2025). It needs `diffusers` and the weights of a Stable Diffusion pipeline.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from newfound.creation._base import Model, PixelScale
from newfound.creation.mixup import Mixup
from newfound.errors import SettingsError, WeightsError

STABLE_DIFFUSION = "stable-diffusion-v1-5/stable-diffusion-v1-5"
_TOGETHER = 8  # images that go through the pipeline at once
_LATENT_CHANNELS = 4  # by which an image-to-image pipeline tells latents from pixels


@dataclass(frozen=True)
class Diffusion(Mixup):
    """Pairs of different classes: encode both, interpolate their latents, let the pipeline make an image of the blend.

    Latents are interpolated on the sphere (slerp) with Mixup's lambda: a straight blend of two is shorter than either,
    and a pipeline paints short latents grey. Noise of `strength` is added to the blend and taken away in the
    pipeline's own way, which turns the overlay of two pictures into one picture.

    Args:
        pipeline: an image-to-image pipeline of diffusers, or text: a local folder or an id of the model hub, loaded
            when first used, without its safety checker and only from safetensors files.
        prompt: what the images shall be of; for narrow data, name it ("a photo of a bird").
        strength: how much of the blend is made anew, in (0, 1].
        steps: of the pipeline's schedule; strength * steps of them are taken.
        guidance: how closely the prompt is followed; 1 does without, at half the cost.
        size: of the images inside the pipeline; None for its own.
    """

    spaces: ClassVar[tuple[str, ...]] = ("pixels",)
    min_lambda: float = 0.3
    pipeline: Any = STABLE_DIFFUSION
    prompt: str = "a photo"
    strength: float = 0.5
    steps: int = 30
    guidance: float = 7.5
    size: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.strength <= 1:
            raise SettingsError(f"strength={self.strength}: it must lie in (0, 1].")
        if int(self.steps * self.strength) < 1:
            raise SettingsError(
                f"steps={self.steps} with strength={self.strength} leaves no step to take: their product must be at "
                f"least 1."
            )
        if self.size is not None and self.size < 8:
            raise SettingsError(f"size={self.size}: a pipeline's images are at least 8 pixels wide.")

    @torch.no_grad()
    def __call__(
        self, inputs: Tensor, targets: Tensor, model: Model, reference: Tensor, rng: np.random.Generator
    ) -> Tensor:
        """New images of the inputs' size and normalisation; [0, ...] if no pair can be made.

        Raises:
            SettingsError: the inputs are no pixels, a package is missing, or the pipeline is of another kind.
            WeightsError: the pipeline cannot be had.
        """
        if model.pixels is None:
            raise SettingsError(
                "the creator diffusion works on pixels; take space=pixels and cached=False, or the methods diffgre-*, "
                "which create before training."
            )
        first, second, shares = self.draw(targets, rng)
        if not len(first):
            return inputs[:0].detach()
        pipe = self._ready(inputs.device)
        latents = self._encode(pipe, model.pixels.to_images(inputs.float()))
        blends = slerp(latents[first], latents[second], torch.from_numpy(shares).float())
        # On the CPU whatever the pipeline's device: its numbers are the same everywhere.
        generator = torch.Generator().manual_seed(int(rng.integers(2**63)))
        images = torch.cat([self._paint(pipe, part, generator) for part in blends.split(_TOGETHER)])
        return self._to_inputs(images, inputs, model.pixels)

    def _ready(self, device: torch.device) -> Any:
        pipe = _load(self.pipeline).to(device) if isinstance(self.pipeline, str) else self.pipeline
        channels = getattr(getattr(pipe, "vae", None), "config", {}).get("latent_channels")
        if channels != _LATENT_CHANNELS:
            raise SettingsError(
                f"the creator diffusion needs an image-to-image pipeline of Stable Diffusion, whose latents have "
                f"{_LATENT_CHANNELS} channels; {type(pipe).__name__} has {channels or 'none'}."
            )
        return pipe

    def ready(self) -> None:
        """Load the pipeline, if it is given by name."""
        if isinstance(self.pipeline, str):
            _load(self.pipeline)

    def _encode(self, pipe: Any, images: Tensor) -> Tensor:
        """Latents of images in [0, 1], as the pipeline's own encoding would give them but without its noise."""
        size = self.size or pipe.unet.config.sample_size * pipe.vae_scale_factor
        parts = []
        for part in images.split(_TOGETHER):
            scaled = _resize(part, (size, size)).to(pipe.device, pipe.vae.dtype) * 2 - 1
            parts.append(pipe.vae.encode(scaled).latent_dist.mode().float().cpu())
        return torch.cat(parts) * pipe.vae.config.scaling_factor

    def _paint(self, pipe: Any, latents: Tensor, generator: torch.Generator) -> Tensor:
        made = pipe(
            prompt=[self.prompt] * len(latents), image=latents, strength=self.strength, num_inference_steps=self.steps,
            guidance_scale=self.guidance, generator=generator, output_type="pt",
        )  # fmt: skip
        return made.images.float().cpu()

    @staticmethod
    def _to_inputs(images: Tensor, inputs: Tensor, scale: PixelScale) -> Tensor:
        height, width = inputs.shape[2:]
        return scale.to_inputs(_resize(images, (height, width))).to(inputs)


@lru_cache(maxsize=1)  # a pipeline takes gigabytes, and is asked for at every rehearsal
def _load(name: str) -> Any:
    try:
        from diffusers import StableDiffusionImg2ImgPipeline

        pipe = StableDiffusionImg2ImgPipeline.from_pretrained(
            name, safety_checker=None, requires_safety_checker=False, use_safetensors=True,
            low_cpu_mem_usage=find_spec("accelerate") is not None,  # without it, diffusers would warn and do the same
        )  # fmt: skip
    except ImportError as error:
        raise SettingsError(
            f"the creator diffusion needs the packages diffusers and transformers: "
            f"pip install 'newfound[diffusion]' ({error})."
        ) from error
    except Exception as error:  # no network, no such id, no right to it, a file missing or damaged: many kinds
        raise WeightsError(
            f"the diffusion pipeline {name!r} cannot be had here ({type(error).__name__}). Needed are all parts of a "
            f"Stable Diffusion pipeline (model_index.json, vae, text_encoder, tokenizer, unet and scheduler, weights "
            f"as safetensors): give a local folder that holds them with pipeline=PATH (--set pipeline=PATH), or "
            f"connect to the model hub (Hugging Face). Other creators, such as creator=mixup, need none."
        ) from error
    pipe.set_progress_bar_config(disable=True)
    return pipe


def slerp(first: Tensor, second: Tensor, share: Tensor) -> Tensor:
    """Spherical interpolation, row by row: `share` of the angle is the first's; nearly parallel rows blend straight."""
    shape = (-1, *[1] * (first.ndim - 1))
    cosine = F.cosine_similarity(first.flatten(1), second.flatten(1)).clamp(-1, 1)
    angle = torch.acos(cosine)
    flat = torch.sin(angle) < 1e-4
    sine = torch.where(flat, 1.0, torch.sin(angle))
    a = torch.where(flat, share, torch.sin(share * angle) / sine)
    b = torch.where(flat, 1 - share, torch.sin((1 - share) * angle) / sine)
    return a.reshape(shape) * first + b.reshape(shape) * second


def _resize(images: Tensor, size: tuple[int, int]) -> Tensor:
    if images.shape[2:] == size:
        return images
    return F.interpolate(images, size=size, mode="bicubic", antialias=True).clamp(0, 1)
