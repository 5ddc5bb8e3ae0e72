"""What a backbone had seen before it was taught anything here.

A class that is new in a stream may be an old acquaintance of the backbone. Whoever shows a result says so.
"""

from __future__ import annotations

from newfound.benchmarks.splits import protocols

_OWN, _RANDOM = (None, "pretrained"), "random"  # as results name weights
_UNKNOWN = "Not known here."
# What the parts of timm's tags stand for: a sentence's part, and how it meets the benchmarks' data (a key of _MEETS).
_SOURCES = {
    "in1k": ("ImageNet's 1,000 classes with labels, among them many pet breeds and some birds", "labels"),
    "in12k": ("some 12,000 classes of ImageNet-21k with labels", "many labels"),
    "in21k": ("ImageNet-21k, some 21,000 classes with labels", "many labels"),
    "in22k": ("ImageNet-22k, some 22,000 classes with labels", "many labels"),
    "dino": ("ImageNet's 1.28 million images, without their labels", "images"),
    "mae": ("ImageNet's 1.28 million images, without their labels", "images"),
    "lvd142m": (
        "142 million web images, without labels, that were picked for being like those of ImageNet and of several "
        "fine-grained data sets",
        "picked",
    ),
    "openai": ("CLIP's 400 million images from the web with their texts", "texts"),
    "laion400m": ("LAION's 400 million images from the web with their texts", "texts"),
    "laion2b": ("LAION's 2 billion images from the web with their texts", "texts"),
    "datacompxl": ("DataComp's 1.4 billion images from the web with their texts", "texts"),
    "dfn2b": ("2 billion images from the web with their texts, chosen by a filter network", "texts"),
    "webli": ("WebLI's billions of images from the web with their texts", "texts"),
}
# Parts of tags that name a recipe or who trained, and no data.
_RECIPES = frozenset({
    "ft", "augreg", "augreg2", "orig", "a1", "a1h", "a2", "a3", "ra", "ra2", "ra3", "tv", "tv2", "sw", "fb", "ms", "bt",
    "gluon", "v2", "i18n", "e32",
})  # fmt: skip
_MEETS = {  # by data set; "" for all others
    "labels": {
        "imagenet100": "All its classes, and its images, were learnt with labels.",
        "pets": "22 of its 25 dog breeds and 3 of its 12 cat breeds are classes of ImageNet, learnt with labels.",
        "cub": "A few of its species are classes of ImageNet, learnt with labels, and some of its images are in it.",
        "cars": "ImageNet has kinds of cars (convertible, minivan), but no makes and models.",
        "food101": "A few of its dishes (pizza, hot dog, guacamole) are classes of ImageNet, learnt with labels.",
        "cifar10": "Most of its classes are in ImageNet under the same or narrower names, learnt with labels.",
        "cifar100": "Many of its classes are in ImageNet under the same or narrower names, learnt with labels.",
        "": "Which of its classes ImageNet has is not known here.",
    },
    "many labels": {
        "imagenet100": "Nearly all its classes were learnt with labels.",
        "": "ImageNet-21k has many classes, so that more of these were learnt with labels than in ImageNet's 1,000.",
    },
    "images": {
        "imagenet100": "Its images were learnt from without labels.",
        "": "Of the classes that it shares with ImageNet, images were seen without labels.",
    },
    "picked": {
        "imagenet100": "Its images, or images like them, were learnt from without labels.",
        **dict.fromkeys(
            ("cub", "cars", "pets", "food101"),
            "Images like its own were picked from the web to learn from, without labels.",
        ),
        "": "Not known: web images without labels.",
    },
    "texts": {"": "Images of its classes with their names are likely among those of the web; which, is not known."},
}


def pretrained_on(backbone: str, weights: str | None = None) -> str:
    """A sentence about what the weights of a timm backbone have seen.

    Args:
        backbone: timm's name, with or without the tag of its weights.
        weights: as results name them: None or "pretrained" for the backbone's own, "random", or a file.
    """
    if weights == _RANDOM:
        return "trained on nothing: its weights are random."
    if weights not in _OWN:
        return f"what the weights in {weights} were trained on is not known here."
    stages = _stages(backbone)
    if not stages:
        return "what its weights were trained on is not known here."
    sentence = "trained on " + ", then on ".join(_SOURCES[stage][0] for stage in stages)
    if "in1k" in stages:
        sentence += ": what is new in a stream may not be new to the backbone"
    return sentence + "."


def overlap(backbone: str, protocol: str, weights: str | None = None) -> str:
    """What a backbone had seen of a benchmark's data set, in a sentence or two; the arguments are as above."""
    if weights == _RANDOM:
        return "Nothing: the backbone's weights are random."
    stages = _stages(backbone) if weights in _OWN else []
    kinds = dict.fromkeys(_SOURCES[stage][1] for stage in stages)
    return " ".join(_MEETS[kind].get(protocol, _MEETS[kind][""]) for kind in kinds) or _UNKNOWN


def in_words(backbone: str, protocol: str, weights: str | None = None) -> str:
    """For captions: what a backbone has seen and, where something is known of it, what of a benchmark's data set."""
    said, met = f"{backbone}: {pretrained_on(backbone, weights)}", overlap(backbone, protocol, weights)
    silent = weights == _RANDOM or met == _UNKNOWN or protocol not in protocols()
    return said if silent else f"{said} {protocol}: {met}"


def _stages(backbone: str) -> list[str]:
    """The data that a backbone was trained on, first to last; nothing if any part of its tag is not known."""
    tag = backbone.partition(".")[2] or _default_tag(backbone)
    parts = [part for part in tag.split("_") if part not in _RECIPES]
    return list(dict.fromkeys(parts)) if all(part in _SOURCES for part in parts) else []


def _default_tag(backbone: str) -> str:
    from timm.models import get_pretrained_cfg  # which takes seconds, and a name with its tag does not need

    return getattr(get_pretrained_cfg(backbone.partition(".")[0]), "tag", None) or ""
