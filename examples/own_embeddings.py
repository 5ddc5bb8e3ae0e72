"""Discover categories among embeddings of your own: no images, no PyTorch, only NumPy.

    python examples/own_embeddings.py                                    # on made-up embeddings
    python examples/own_embeddings.py --labelled known.npz --stream new.npy

known.npz holds `features` [n, D] and `labels` [n]; new.npy holds [m, D], in the order in which they came. Two
dictionaries read the same stream: prototypes, which compare cosines with class means, and evidence, which asks whether
a category seen before or a new one explains a sample better. Each gets the threshold that would have been best at
discovering classes that are known but were hidden for a rehearsal.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

import numpy as np

from newfound.discovery import BayesianDictionary, Decisions, PrototypeDictionary, TwoCovariance, class_sums
from newfound.evaluation import score

Answer = Callable[[np.ndarray, np.ndarray, np.ndarray, float], Decisions]


def main(arguments: Sequence[str] | None = None) -> dict[str, Decisions]:
    """Read the stream with both dictionaries, and return what each decided."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labelled", metavar="FILE.npz", help="features and labels of known classes")
    parser.add_argument("--stream", metavar="FILE.npy", help="features without labels")
    asked = parser.parse_args(arguments)
    if (asked.labelled is None) != (asked.stream is None):
        parser.error("give both --labelled and --stream, or neither")

    if asked.labelled:
        with np.load(asked.labelled) as known:
            features, labels = known["features"], known["labels"]
        stream = np.load(asked.stream)
    else:
        features, labels, stream = made_up()
    names, targets = np.unique(labels, return_inverse=True)
    if len(names) < 4 or np.bincount(targets).min() < 4:
        parser.error("half of the classes are hidden for a rehearsal: give at least 4 classes of 4 samples")

    found = {}
    for kind, answer, cuts in (
        ("prototypes", by_prototypes, np.arange(0.1, 0.96, 0.1)),
        ("evidence", by_evidence, np.arange(-10.0, 31.0, 5.0)),
    ):
        cut = rehearsed(answer, features, targets, cuts)
        found[kind] = out = answer(features, targets, stream, cut)
        new = out.category >= len(names)
        print(f"{kind}: threshold {cut:.2f}; {len(stream)} samples, {np.sum(~new)} of known classes, {np.sum(new)} of "
              f"{len(set(out.category[new].tolist()))} discovered categories")  # fmt: skip
        for sample in np.flatnonzero(out.created)[:5]:
            print(f"  sample {sample} founded category {out.category[sample]} (score {out.score[sample]:.2f})")
    return found


def by_prototypes(features: np.ndarray, targets: np.ndarray, stream: np.ndarray, cut: float) -> Decisions:
    """Cosines with class means. Seen from the labelled mean, directions of different classes lie further apart."""
    centre = features.mean(axis=0)
    means = np.stack([features[targets == k].mean(axis=0) for k in range(targets.max() + 1)])
    return PrototypeDictionary(means - centre, threshold=cut, update="running").observe(stream - centre)


def by_evidence(features: np.ndarray, targets: np.ndarray, stream: np.ndarray, cut: float) -> Decisions:
    """Log ratios under the two-covariance model; a lone doubtful sample waits for a second one."""
    model = TwoCovariance.fit(features, targets)
    sums, counts = class_sums(model.read(features), targets)
    dictionary = BayesianDictionary(model.spread, sums, counts, threshold=cut, alone=min(cut, -20.0))
    return dictionary.observe(model.read(stream))


def rehearsed(answer: Answer, features: np.ndarray, targets: np.ndarray, cuts: np.ndarray) -> float:
    """The cut at which classes that were hidden are discovered best, over two draws of half of the classes."""
    total = np.zeros(len(cuts))
    for draw in range(2):
        rng = np.random.default_rng(draw)
        shown = np.sort(rng.permutation(targets.max() + 1)[: (targets.max() + 1) // 2])
        taught = np.zeros(len(targets), bool)
        for k in shown:  # half of each, so that none is without a sample
            of_class = rng.permutation(np.flatnonzero(targets == k))
            taught[of_class[: len(of_class) // 2]] = True
        order = rng.permutation(np.flatnonzero(~taught))  # the rest is the rehearsal's stream
        classes = np.searchsorted(shown, targets[taught])
        for n, cut in enumerate(cuts):
            given = answer(features[taught], classes, features[order], float(cut)).category
            known = given < len(shown)
            named = np.where(known, shown[np.minimum(given, len(shown) - 1)], -1 - given)  # labels, or negative ids
            scores = score(targets[order], named, known=shown, discovered=~known)
            total[n] += scores.strict.all + scores.named.all
    return float(cuts[total.argmax()])


def made_up() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Twenty known classes with twenty samples each, and a stream of these and of ten others."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(30, 64))
    labels = np.repeat(np.arange(20), 20)
    streamed = rng.integers(0, 30, 400)
    return embed(rng, centres[labels]), labels, embed(rng, centres[streamed])


def embed(rng: np.random.Generator, centres: np.ndarray) -> np.ndarray:
    return centres + 0.7 * rng.normal(size=centres.shape)


if __name__ == "__main__":
    main()
