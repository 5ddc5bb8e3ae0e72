"""Names for what was discovered, proposed by CLIP from a list of words.

A category is the mean of its pictures in CLIP's space, a word the mean of some sentences with it. What is nearest is
proposed; it becomes the category's name only where someone asks for that, and never in place of a name.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from newfound._words import counted
from newfound.clip import Towers, checkpoint_of, load_towers
from newfound.errors import DataError, MissingFileError, NewfoundError, SettingsError
from newfound.images import open_image
from newfound.journal import editing
from newfound.journal.book import Book
from newfound.journal.rows import as_path
from newfound.progress import Reporter
from newfound.remote_files import find_remote, is_url
from newfound.sightings import Category

if TYPE_CHECKING:
    from PIL import Image

    from newfound.curator import Curator

ACTOR = "newfound-naming"  # who gives the names, in the journal
BAR = 0.5  # the probability from which a name is given
TEMPLATES = (
    "a photo of a {}.",
    "a close-up photo of a {}.",
    "a photo of a {} in the distance.",
    "a blurry photo of a {}.",
    "a dark photo of a {}.",
    "a photo of several {}.",
)
_AT_ONCE = 8  # pictures in memory
_LOOKED_THROUGH = 4  # times as many sightings as pictures wanted, for those whose files are gone


@dataclass(frozen=True)
class Suggestion:
    """A name, how probable it is among the words that were given, and its cosine with the category."""

    name: str
    probability: float
    cosine: float


@dataclass(frozen=True)
class Proposal:
    """Names for a category, the best first; none if no picture of it can be read.

    Attributes:
        category: Its id.
        called: What it is called now.
        count: How many images it has.
        images: How many of them were looked at.
        named: Whether it was given a name, which is never replaced.
    """

    category: int
    called: str
    count: int
    images: int
    named: bool
    suggestions: tuple[Suggestion, ...]

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return asdict(self)


def read_vocabulary(vocabulary: str | os.PathLike[str] | Iterable[str]) -> list[str]:
    """The names in a file, one a line, or in a list; empty lines and repetitions are left out.

    Raises:
        MissingFileError: there is no such file.
        DataError: it is no text, or holds fewer than two names: a single one would always be certain.
    """
    where = "the vocabulary"
    if isinstance(vocabulary, (str, os.PathLike)):
        where = os.fspath(vocabulary)
        try:
            lines: Iterable[str] = Path(vocabulary).read_text(encoding="utf-8-sig").splitlines()
        except FileNotFoundError:
            raise MissingFileError(f"there is no vocabulary {where}.") from None
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"{where} cannot be read as text with one name a line: {error}.") from error
    else:
        lines = list(vocabulary) if isinstance(vocabulary, Iterable) else [vocabulary]
        if wrong := [name for name in lines if not isinstance(name, str)]:
            raise DataError(f"{wrong[0]!r} is no name: give a file with one a line, or a list of texts.")
    names = list(dict.fromkeys(name.strip() for name in lines if name.strip()))
    if len(names) < 2:
        raise DataError(f"{where} holds {counted(len(names), 'name')}; at least two are needed to choose among.")
    return names


def propose(
    curator: Curator,
    vocabulary: str | os.PathLike[str] | Iterable[str],
    categories: Iterable[int] | None = None,
    *,
    top: int = 5,
    images: int = 32,
    at_least: int = 1,
    templates: Sequence[str] = TEMPLATES,
    clip: str | None = None,
    weights: str | os.PathLike[str] | None = None,
    towers: Towers | None = None,
    reporter: Reporter | None = None,
) -> list[Proposal]:
    """Propose names for categories. Changes nothing.

    Args:
        curator: a `Curator`, or a `Discoverer`, which is one.
        vocabulary: a file with one name a line, or the names.
        categories: ids; without them all discovered ones that nobody named and nobody ignores.
        top: how many names of each.
        images: look at so many pictures of each at most, the oldest that can be read.
        at_least: leave out categories with fewer images than this.
        templates: sentences with {} for the name; their mean is compared.
        clip: open_clip's MODEL/TAG, such as ViT-B-16/openai; without it, that of the run's backbone.
        weights: a local file with both towers of it.
        towers: what compares pictures with words in place of open_clip.

    Raises:
        SettingsError: the run's backbone has no text tower, open_clip is not installed, or a setting is wrong.
        WeightsError: the weights of CLIP cannot be had here.
        DataError: the vocabulary cannot be used.
    """
    words = read_vocabulary(vocabulary)
    for name, value in (("top", top), ("images", images), ("at_least", at_least)):
        if value < 1:
            raise SettingsError(f"{name}={value}: it must be 1 or more.")
    if not templates:
        raise SettingsError("there is no template: give one sentence at least, with {} where the name goes.")
    for template in templates:
        if "{}" not in template:
            raise SettingsError(f"the template {template!r} has no {{}} where the name goes.")
    chosen = _chosen(curator, categories, at_least)
    if not chosen:
        return []
    towers = towers or load_towers(clip or _own_checkpoint(curator), weights)
    text = _word_vectors(towers, words, templates)
    proposals = []
    with (reporter or Reporter()).stage("looking at categories", len(chosen)) as progress:
        for category, named in chosen:
            rows = _picture_vectors(towers, _pictures(curator, category.id, images))
            suggestions = _suggestions(towers.scale, rows, text, words, top) if len(rows) else ()
            proposals.append(
                Proposal(category.id, category.name, category.count, len(rows), named, suggestions)
            )  # fmt: skip
            progress(1)
    return proposals


def give_names(
    curator: Curator, proposals: Iterable[Proposal], *, bar: float = BAR, actor: str = ACTOR
) -> dict[int, str]:
    """Name categories as was proposed, the surest first, each an event of the journal; returns the names by category.

    A name is given where its probability reaches the bar, the category has none yet, and no other category is called
    so: two that look like the same word are for a person to merge.

    Args:
        actor: who gives the names, as the journal tells.
    """
    from newfound.curator import Curator

    if not 0 <= bar <= 1:
        raise SettingsError(f"bar={bar}: it is a probability, from 0 to 1.")
    giver = Curator(curator.keeper.journal, actor=actor)
    given: dict[int, str] = {}
    sure = [p for p in proposals if p.suggestions and p.suggestions[0].probability >= bar]
    for proposal in sorted(sure, key=lambda p: -p.suggestions[0].probability):
        category, name = proposal.category, proposal.suggestions[0].name

        def make(book: Book, _: Any, category: int = category, name: str = name) -> editing.Edit:
            # Asked under the journal's lock: a person may have been faster.
            entries, home = book.catalogue.entries, book.catalogue.resolve(category)
            taken = any(entry.name == name for entry in entries.values() if entry.under is None)
            if entries[home].name is not None or taken:
                return "renamed", {"changes": []}
            return editing.rename(book.catalogue, home, name)

        if giver.keeper.edit(make).details["changes"]:
            given[category] = name
    return given


def _chosen(curator: Curator, categories: Iterable[int] | None, at_least: int) -> list[tuple[Category, bool]]:
    """The categories to look at, and whether each was named already."""
    with curator.keeper.still() as book:
        entries = book.catalogue.entries
        wanted = None if categories is None else {book.catalogue.resolve(category) for category in categories}
        found = [(category, entries[category.id].name is not None) for category in curator.categories()]
    if wanted is not None:
        return [(category, named) for category, named in found if category.id in wanted]
    return [(c, named) for c, named in found if not named and not c.ignored and c.count >= at_least]


def _own_checkpoint(curator: Curator) -> str:
    backbone = curator.keeper.journal.model().about.get("backbone", "unknown")
    checkpoint = checkpoint_of(backbone)
    if checkpoint is None:
        raise SettingsError(
            f"the backbone {backbone} has no text tower to take names from. Name a CLIP model of open_clip that shall "
            "look at the images, as in --clip ViT-B-16/openai (clip=), or train with a CLIP backbone, such as "
            "vit_base_patch16_clip_quickgelu_224.openai."
        )
    return checkpoint


def _word_vectors(towers: Towers, words: Sequence[str], templates: Sequence[str]) -> np.ndarray:
    """Unit rows, one a word: the mean of its sentences."""
    sentences = [template.replace("{}", word) for word in words for template in templates]
    rows = towers.words(sentences).reshape(len(words), len(templates), -1)
    return _unit(rows.mean(axis=1))


def _picture_vectors(towers: Towers, pictures: Iterator[Image.Image]) -> np.ndarray:
    """Unit rows, one a picture, of which a few are in memory: photos are large."""
    parts = []
    while some := list(islice(pictures, _AT_ONCE)):
        parts.append(towers.pictures(some))
    return np.concatenate(parts) if parts else np.zeros((0, 0), np.float32)


def _pictures(curator: Curator, category: int, wanted: int) -> Iterator[Image.Image]:
    for sighting in curator.sightings(category, limit=_LOOKED_THROUGH * wanted):
        image = sighting.image
        if image is None:
            continue
        if isinstance(image, str) and not is_url(image):
            image = as_path(image)
        try:
            picture = open_image(find_remote(image)[0] if is_url(image) else image)
        except (NewfoundError, IndexError):
            continue  # gone since, a frame of a video, or not to be reached from here
        yield picture
        if (wanted := wanted - 1) == 0:
            return


def _suggestions(
    scale: float, pictures: np.ndarray, text: np.ndarray, words: Sequence[str], top: int
) -> tuple[Suggestion, ...]:
    centre = _unit(pictures.mean(axis=0))
    cosines = text.astype(np.float64) @ centre.astype(np.float64)
    weights = np.exp(scale * (cosines - cosines.max()))
    probabilities = weights / weights.sum()
    best = np.argsort(-cosines, kind="stable")[:top]
    return tuple(Suggestion(words[i], float(probabilities[i]), float(cosines[i])) for i in best)


def _unit(rows: np.ndarray) -> np.ndarray:
    unit: np.ndarray = rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-12)
    return unit
