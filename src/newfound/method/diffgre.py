"""DiffGRE: generate, refine, encode (Liu et al., ICCV 2025), on SMILE and on PHE.

Before its host learns, images are created from pairs of known images, those that may stand for new classes are kept,
and each gets a known or a virtual class. The host then learns from the labelled and the created images alike.

What differs from the paper, and why:

- Generation. The paper interpolates two images in the latent space of a diffusion model. So does `creator="diffusion"`,
  with the latents of the pipeline's own encoder, one prompt for all images and no captions or fine-tuning. Any other
  creator can be taken: `creator="mixup"` needs no weights of Stable Diffusion.
- Refinement. The paper keeps what differs from known classes. Here quantiles of the created images' similarity to known
  classes say what that is, so that one setting holds for all backbones; what looks like nothing known is dropped too.
- Encoding. The paper's semi-supervised leader encoding brings the created classes into the model. Here a clustering in
  which known classes are fixed centres names the classes, and the host's own loss learns them as it learns all others.
- At test time the dictionary knows the real classes only: nobody could be shown the name of a virtual one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from newfound.creation import Model, PixelScale
from newfound.creation.virtual import VirtualImages, known_similarity, label, refine
from newfound.errors import DataError, SettingsError
from newfound.features import Encoder, unit
from newfound.images import contents_hash, open_image
from newfound.method._base import Method, Settings, class_means
from newfound.method._creating import CreatorChoice
from newfound.method.phe import PHE, PHESettings
from newfound.method.smile import SMILE, SMILESettings
from newfound.weights import tensors_hash

_SCALE = 20.0  # of cosines to class means as logits: where the cosine head starts


@dataclass(frozen=True)
class VirtualSettings(CreatorChoice):
    """virtual_images: how many images are made before any is dropped; None for half as many as are labelled.
    clusters: how many virtual classes are looked for; None for as many as are known.
    similarity_low, similarity_high: quantiles of similarity to known classes between which created images are kept.
    """

    creator: str | None = "diffusion"
    min_lambda: float = 0.3
    virtual_images: int | None = None
    clusters: int | None = None
    similarity_low: float = 0.05
    similarity_high: float = 0.75

    def check_virtual(self) -> None:
        """Raise SettingsError for values that cannot be."""
        if self.make_creator() is None:
            raise SettingsError("DiffGRE needs a creator; for its host alone take the method smile or phe.")
        if self.virtual_images is not None and self.virtual_images < 0:
            raise SettingsError(f"virtual_images={self.virtual_images}: it cannot be negative.")
        if self.clusters is not None and self.clusters < 1:
            raise SettingsError(f"clusters={self.clusters}: at least 1 virtual class is looked for.")
        if not 0 <= self.similarity_low <= self.similarity_high <= 1:
            raise SettingsError(
                f"similarity_low={self.similarity_low}, similarity_high={self.similarity_high}: they are quantiles, "
                f"with 0 <= similarity_low <= similarity_high <= 1."
            )


class CreatingHost(Method):
    """A method that also learns from images created before it starts; another method in its bases says how."""

    creates = True
    shares_batches = False  # creation before training may take hours, in which others would wait or do it once more
    fixed: ClassVar[dict[str, Any]] = {"across_classes": True, "per_sample": True}  # LTC's released code mixes within

    @classmethod
    def more_images(
        cls, encoder: Encoder, items: Sequence, targets: np.ndarray, settings: Settings, *, seed: int,
        folder: Path | None = None,
    ) -> tuple[list, np.ndarray]:  # fmt: skip
        """Created images as arrays [H, W, 3] and their classes: known ones, then virtual ones from K on.

        With a folder, they are kept in its subfolder "virtual", and taken from there as long as nothing that they
        depend on has changed: creation may take hours, and need not be repeated when training was interrupted.

        Raises:
            DataError: there are no two classes to create between.
            SettingsError, WeightsError: the creator cannot be used here.
            RunError: the folder cannot be written.
        """
        assert isinstance(settings, VirtualSettings), "the settings of a method that creates"
        if settings.virtual_images == 0 or settings.epochs == 0:  # nothing to make, or nobody to learn from it
            return [], np.zeros(0, np.int64)
        place = folder / "virtual" if folder is not None else None
        made_from = _fingerprint(encoder, items, targets, settings, seed) if place is not None else {}
        made = VirtualImages.load(place, made_from) if place is not None else None
        if made is None:
            made = _make(encoder, items, targets, settings, seed)
            if place is not None:
                made.save(place, made_from)
        return made.images, made.classes


def _make(
    encoder: Encoder, items: Sequence, targets: np.ndarray, settings: VirtualSettings, seed: int
) -> VirtualImages:
    features = torch.from_numpy(encoder.features(items))
    labels = torch.from_numpy(np.asarray(targets, np.int64))
    classes = int(labels.max()) + 1
    prototypes = class_means(features, labels, classes)
    images = _create(encoder, items, labels, features, prototypes, settings, seed)
    created, known = encoder.features(images), prototypes.numpy()
    kept = refine(created, known, settings.similarity_low, settings.similarity_high)
    named = label(created[kept], known, settings.clusters or classes, np.random.default_rng((seed, 1)))
    kept, named = kept[named >= 0], named[named >= 0]
    return VirtualImages([images[i] for i in kept], named, known_similarity(created[kept], known))


def _create(
    encoder: Encoder, items: Sequence, labels: Tensor, features: Tensor, prototypes: Tensor,
    settings: VirtualSettings, seed: int,
) -> list[np.ndarray]:  # fmt: skip
    """As many created images as the settings ask for, from random batches of labelled ones."""
    if len(labels.unique()) < 2:
        raise DataError("images are created between classes, and here is only one: give at least two classes.")
    creator, device, spec = settings.make_creator(), encoder.device, encoder.backbone.spec
    assert creator is not None, "the settings have seen to it"
    scale, means = PixelScale(spec.mean, spec.std), prototypes.to(device)
    model = Model(encode=lambda x: unit(encoder.backbone(x)), classify=lambda f: _SCALE * f @ means.T, pixels=scale)
    wanted = _wanted(settings, len(items))
    images: list[np.ndarray] = []
    rng = np.random.default_rng((seed, 0))
    while len(images) < wanted:
        picks = _pick(labels.numpy(), min(encoder.batch, max(wanted - len(images), 2)), rng)
        pixels = torch.stack([encoder.views.centre(open_image(items[i])) for i in picks]).to(device)
        created = creator(pixels, labels[picks].to(device), model, features[picks].to(device), rng)
        eight_bits = (scale.to_images(created.float()) * 255).round().byte()
        images.extend(eight_bits.permute(0, 2, 3, 1).cpu().numpy())
    return images[:wanted]


def _pick(labels: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Positions of a random batch in which at least two classes meet."""
    picks = rng.permutation(len(labels))[:size]
    if len(set(labels[picks])) < 2:
        picks[-1] = rng.choice(np.flatnonzero(labels != labels[picks[0]]))
    return picks


def _wanted(settings: VirtualSettings, labelled: int) -> int:
    return settings.virtual_images if settings.virtual_images is not None else (labelled + 1) // 2


def _fingerprint(
    encoder: Encoder, items: Sequence, targets: np.ndarray, settings: VirtualSettings, seed: int
) -> dict[str, Any]:
    """All that created images depend on."""
    creator: Any = settings.make_creator()
    return {
        "creator": settings.creator,
        "pipeline": _files(settings.pipeline),
        "creation": {field.name: getattr(creator, field.name) for field in fields(creator)},
        "virtual_images": _wanted(settings, len(items)),
        "clusters": settings.clusters,
        "similarity": [settings.similarity_low, settings.similarity_high],
        "seed": seed,
        "data": contents_hash(items, targets),
        "backbone": tensors_hash(sorted(encoder.backbone.model.state_dict().items())),
        "input": asdict(encoder.backbone.spec),
    }


def _files(pipeline: str) -> list[list[Any]]:
    """Names, sizes and times of a local pipeline's files; nothing for one of the model hub."""
    folder = Path(pipeline)
    files = sorted(path for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else []
    return [[str(path.relative_to(folder)), path.stat().st_size, path.stat().st_mtime_ns] for path in files]


@dataclass(frozen=True)
class DiffGRESmileSettings(VirtualSettings, SMILESettings):
    """SMILE's settings and those of the created images."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_virtual()


class DiffGRESmile(CreatingHost, SMILE):
    """SMILE, which also learns from created images."""

    name = "diffgre-smile"
    about = "DiffGRE (ICCV 2025) on SMILE: also learns from virtual classes made of pairs of known images"
    settings_class = DiffGRESmileSettings


@dataclass(frozen=True)
class DiffGREPheSettings(VirtualSettings, PHESettings):
    """PHE's settings and those of the created images."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_virtual()


class DiffGREPhe(CreatingHost, PHE):
    """PHE, which also learns from created images."""

    name = "diffgre-phe"
    about = "DiffGRE (ICCV 2025) on PHE: also learns from virtual classes made of pairs of known images"
    settings_class = DiffGREPheSettings
