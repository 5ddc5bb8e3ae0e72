"""How large images are shown to a backbone."""

from __future__ import annotations

from newfound.backbone import DEFAULT, check_name

_BEST = {DEFAULT: 320}  # pixels; measured, see docs/discovery.md
_USUAL = 224  # what timm takes where a model does not say


def best_input(name: str, image_size: int | None = None) -> tuple[int, float | None]:
    """The input size and the crop, for `create`, that serve a backbone best; with a size given, the crop for it.

    What is scaled above the size that a model was trained at is shown whole: training crops have made things look
    larger to it than they look in whole images (Touvron et al., Fixing the train-test resolution discrepancy, 2019).
    """
    size = image_size or _BEST.get(name.split(".")[0]) or own_size(name)
    return size, 1.0 if size > own_size(name) else None


def own_size(name: str) -> int:
    """The input size that a model was trained at, by its timm name."""
    import timm

    check_name(name)
    config = timm.get_pretrained_cfg(name)
    return int(config.input_size[1]) if config else _USUAL
