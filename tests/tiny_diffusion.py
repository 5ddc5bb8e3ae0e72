"""A Stable Diffusion pipeline of the true classes, small enough for tests and with random weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SIZE = 16  # of its images; its latents are 8 x 8


def tiny_pipeline(folder: Path) -> Any:
    """An image-to-image pipeline; `folder` keeps the tokenizer's vocabulary. The same weights every time."""
    import torch
    from diffusers import AutoencoderKL, DDIMScheduler, StableDiffusionImg2ImgPipeline, UNet2DConditionModel
    from transformers import CLIPTextConfig, CLIPTextModel

    tokenizer = _tokenizer(folder)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        unet = UNet2DConditionModel(
            sample_size=SIZE // 2, in_channels=4, out_channels=4, layers_per_block=1, block_out_channels=(8, 16),
            down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"), cross_attention_dim=16, attention_head_dim=4,
            up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"), norm_num_groups=4,
        )  # fmt: skip
        vae = AutoencoderKL(
            in_channels=3, out_channels=3, latent_channels=4, block_out_channels=(8, 8), norm_num_groups=4,
            down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2, sample_size=SIZE,
        )  # fmt: skip
        text_encoder = CLIPTextModel(
            CLIPTextConfig(
                vocab_size=len(tokenizer), hidden_size=16, intermediate_size=32, num_hidden_layers=1,
                num_attention_heads=2, max_position_embeddings=8, bos_token_id=tokenizer.bos_token_id,
                eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
            )
        )  # fmt: skip
    scheduler = DDIMScheduler(beta_schedule="scaled_linear", clip_sample=False, set_alpha_to_one=False, steps_offset=1)
    pipe = StableDiffusionImg2ImgPipeline(
        vae=vae.eval(), text_encoder=text_encoder.eval(), tokenizer=tokenizer, unet=unet.eval(),
        scheduler=scheduler, safety_checker=None, feature_extractor=None, requires_safety_checker=False,
    )  # fmt: skip
    pipe.set_progress_bar_config(disable=True)
    return pipe


def _tokenizer(folder: Path) -> Any:
    """CLIP's own tokenizer over a vocabulary of single letters."""
    from transformers import CLIPTokenizer

    letters = "abcdefghijklmnopqrstuvwxyz"
    words = [*letters, *(f"{letter}</w>" for letter in letters), "<|startoftext|>", "<|endoftext|>"]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.json").write_text(json.dumps({word: i for i, word in enumerate(words)}))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    return CLIPTokenizer.from_pretrained(folder, model_max_length=8)
