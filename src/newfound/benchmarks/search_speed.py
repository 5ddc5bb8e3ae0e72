"""Finding the nearest prototype, against the bare float32 product with all of them, and the memory it takes.

Large dictionaries are warm when they are timed: they have seen enough to be searched as they will be from then on. What
that took is told beside the figure.
"""

from __future__ import annotations

import os

import numpy as np

from newfound.benchmarks._plain import prototype_loop
from newfound.benchmarks._timing import SpeedRow, in_turn, spread, timed
from newfound.discovery import PrototypeDictionary

_DIMENSION = 512
_WARM = 2560  # samples before anything is timed
_SPREAD = 0.5  # of categories around their cluster's centre, and of samples around their category


def observe_speed(samples: int = 20_000, repeats: int = 3) -> SpeedRow:
    """`observe` against the bare matrix product and maximum of the same growing sizes, and the plain loop's ids."""
    rng = np.random.default_rng(0)
    features, known = _random(rng, samples), _random(rng, 100)
    threshold, block = 0.1485, 256  # random features found about 6,000 categories at this cut
    reference, plain_seconds = timed(lambda: prototype_loop(known, features, threshold))
    sizes = [100 + int(n) for n in np.cumsum(reference[1])[::block]]
    prototypes = np.concatenate([known, features[reference[1]]])

    def bare() -> None:
        for start, size in zip(range(0, samples, block), sizes, strict=True):
            (features[start : start + block] @ prototypes[:size].T).max(axis=1)

    def ours() -> np.ndarray:
        return PrototypeDictionary(known, threshold=threshold).observe(features).category

    same = bool(np.array_equal(ours(), reference[0]))
    fast, slow, ratios = in_turn(ours, bare, repeats)
    return SpeedRow(
        "observe", samples / fast, samples / slow, "samples/s", *spread(ratios), "at least 0.8 of the bare product",
        f"100 known growing to {100 + int(reference[1].sum())}; ids equal to the plain loop: {same}; "
        f"the plain loop: {samples / plain_seconds:.0f} samples/s",
    )  # fmt: skip


def observe_clustered_speed(
    categories: int = 100_000, repeats: int = 3, stage: str = "observe-clustered"
) -> SpeedRow:  # fmt: skip
    """Blocks of 256 against categories in clusters of 100 around random directions."""
    prototypes, samples = clustered(categories)
    return _large(stage, prototypes, samples, 256, repeats, "at least 3 times the bare product")


def observe_clustered_million_speed() -> SpeedRow:
    """The same with 10^6 categories: 2 GB, and as much again for the bare product."""
    return observe_clustered_speed(1_000_000, repeats=1, stage="observe-clustered-million")


def observe_one_speed(categories: int = 100_000, repeats: int = 3, stage: str = "observe-one") -> SpeedRow:
    """Single images against categories in clusters."""
    prototypes, samples = clustered(categories)
    return _large(stage, prototypes, samples, 1, repeats, "at least 3 times the bare product")


def observe_one_million_speed() -> SpeedRow:
    """The same with 10^6 categories."""
    return observe_one_speed(1_000_000, repeats=1, stage="observe-one-million")


def observe_random_large_speed(categories: int = 100_000, repeats: int = 3) -> SpeedRow:
    """Blocks of 256 against random directions, of which nothing can be ruled out."""
    rng = np.random.default_rng(0)
    prototypes, samples = _random(rng, categories), _random(rng, _WARM + 512)
    return _large("observe-random-large", prototypes, samples, 256, repeats, "at least 1 of the bare product")


def observe_real_speed(categories: int = 100_000, images: int = 600, repeats: int = 3) -> SpeedRow:
    """Blocks of 256 against real features, multiplied by adding differences of others."""
    features, whose = real_features(images)
    prototypes, samples = perturbed(features, categories)
    row = _large("observe-real", prototypes, samples, 256, repeats, "at least twice the bare product")
    return SpeedRow(**{**row.as_dict(), "detail": f"{whose}; {row.detail}"})


def dictionary_memory(categories: int = 60_000, known: int = 9_000) -> SpeedRow:
    """The memory of a dictionary that grows, against categories x dimensions x 4 bytes: the most at any time."""
    prototypes, samples = clustered(categories)
    dictionary = PrototypeDictionary(prototypes[:known], threshold=0.999)
    dictionary.observe(samples[:_WARM])
    ratios = []
    for start in range(known, categories, 512):
        dictionary.observe(prototypes[start : start + 512])
        ratios.append(dictionary.nbytes / (len(dictionary) * _DIMENSION * 4))
    bare = len(dictionary) * _DIMENSION * 4 / 1e6
    return SpeedRow(
        "dictionary-memory", dictionary.nbytes / 1e6, bare, "MB", max(ratios), min(ratios), max(ratios),
        "at most 1.6 times", f"{known} known growing to {len(dictionary)} categories of {_DIMENSION} dimensions; what "
        "is reserved for more and what makes the search fast included; the ratio is the largest on the way",
    )  # fmt: skip


def clustered(categories: int, samples: int = _WARM + 512) -> tuple[np.ndarray, np.ndarray]:
    """Categories in clusters of 100 around random directions, and samples around categories."""
    rng = np.random.default_rng(0)
    centres = _random(rng, max(1, categories // 100))
    prototypes = centres[rng.integers(0, len(centres), categories)]
    for start in range(0, categories, 10_000):
        part = prototypes[start : start + 10_000]
        part[:] = _unit(part + _SPREAD * _random(rng, len(part)))
    chosen = prototypes[rng.integers(0, categories, samples)]
    return prototypes, _unit(chosen + _SPREAD * _random(rng, samples))


def perturbed(features: np.ndarray, categories: int, samples: int = _WARM + 512) -> tuple[np.ndarray, np.ndarray]:
    """So many prototypes, and samples: a feature plus 0.3 of the difference of two others.

    Samples come from the last third of the features and prototypes from the others: a sample that had
    copies of its own image among the prototypes would be easier to find than any in a stream.
    """
    rng = np.random.default_rng(0)
    seen, held_out = np.split(features, [2 * len(features) // 3])
    return _mixed(rng, seen, categories), _mixed(rng, held_out, samples)


def _mixed(rng: np.random.Generator, features: np.ndarray, count: int) -> np.ndarray:
    rows = np.empty((count, features.shape[1]), np.float32)
    for start in range(0, count, 10_000):
        part = rows[start : start + 10_000]
        a, b, c = features[rng.integers(0, len(features), (3, len(part)))]
        part[:] = _unit(a + np.float32(0.3) * (b - c))
    return rows


def real_features(images: int) -> tuple[np.ndarray, str]:
    """Unit features of the default backbone, frozen, and whose they are: pets and cub, or scikit-learn's digits."""
    from newfound import backbone
    from newfound.benchmarks import data
    from newfound.features import Encoder
    from newfound.views import Views

    rng = np.random.default_rng(0)
    if os.environ.get(data.VARIABLE):
        items = [item for name in ("pets", "cub") for item in data.load(name).items]
        whose = "images of pets and cub"
    else:
        from sklearn.datasets import load_digits

        items = list((load_digits().images / 16 * 255).astype(np.uint8))
        whose = "digits"
    chosen = [items[i] for i in rng.permutation(len(items))[:images].tolist()]
    model = backbone.create()
    return Encoder(model, Views(model.spec)).features(chosen), f"features of {len(chosen)} {whose}, perturbed"


def _large(
    stage: str, prototypes: np.ndarray, samples: np.ndarray, block: int, repeats: int, target: str
) -> SpeedRow:  # fmt: skip
    dictionary = PrototypeDictionary(prototypes, threshold=-1.0)  # nothing is new: sizes stay what they are
    warm, some = samples[:_WARM], samples[_WARM:][: 512 if block > 1 else 32]
    _, seconds = timed(lambda: [dictionary.observe(warm[start : start + 256]) for start in range(0, len(warm), 256)])
    parts = [some[start : start + block] for start in range(0, len(some), block)]

    def ours() -> np.ndarray:
        return np.concatenate([dictionary.observe(part).category for part in parts])

    def bare() -> None:
        for part in parts:
            (part @ prototypes.T).max(axis=1)

    expected = PrototypeDictionary(prototypes, threshold=-1.0).predict(some).category  # fresh: searched in full
    same = bool(np.array_equal(ours(), expected))
    fast, slow, ratios = in_turn(ours, bare, repeats)
    return SpeedRow(
        stage, len(some) / fast, len(some) / slow, "samples/s", *spread(ratios), target,
        f"{len(prototypes)} categories of {prototypes.shape[1]} dimensions, {block} at a time; ids equal to a search "
        f"of all: {same}; warm after {len(warm)} samples in {seconds:.1f} s",
    )  # fmt: skip


def _random(rng: np.random.Generator, count: int) -> np.ndarray:
    return _unit(rng.standard_normal((count, _DIMENSION), dtype=np.float32))


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)
