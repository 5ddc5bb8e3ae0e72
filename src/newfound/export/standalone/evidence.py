"""How this run decides: a feature goes to the category that explains it best, or founds one of its own."""

import json
from itertools import count
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
SET = json.loads((HERE / "settings.json").read_text(encoding="utf-8"))
KNOWN = dict(np.load(HERE / "known.npz"))
TAUGHT, NONE = len(SET["classes"]), -1
sums, counts = list(KNOWN["sums"]), list(KNOWN["counts"])  # of what categories have learnt from
seen: list = []  # pairs of a reading and its category, NONE while it waits for a second one of its kind
turn = count(1)


def decide(feature):
    """The category of the next feature of the stream; the score is a log ratio against a category never seen."""
    x = np.sign(feature) * np.abs(feature) ** KNOWN.get("power", 1)  # older runs have none
    x = (x / np.linalg.norm(x) - KNOWN["mean"]) @ KNOWN["basis"]
    x = (x / max(np.linalg.norm(x), 1e-12) - KNOWN["centre"]) @ KNOWN["axes"]
    x = x.astype(np.float16).astype(np.float64)  # as the journal keeps it
    scores = log_ratios(x, sums, counts)
    best, score = int(scores.argmax()), float(scores.max())
    waiting = [one for one in seen if one[1] == NONE]
    pairs = log_ratios(x, [one[0] for one in waiting], [1] * len(waiting)) if waiting else np.array([-np.inf])
    paired = pairs.max() > score and pairs.max() >= SET["threshold"]
    is_new = bool(paired or score < SET["alone"])
    if is_new:
        best = len(sums)
        sums.append(np.zeros_like(x))
        counts.append(0)
    seen.append([x, NONE])
    if paired:
        move(waiting[pairs.argmax()], best)
    if is_new or score >= SET["threshold"]:
        move(seen[-1], best)
    if next(turn) % (SET["reconsider_every"] or np.inf) == 0:
        second_thoughts()
    name = SET["classes"][best] if best < TAUGHT else f"new-{best - TAUGHT + 1}"
    return {"category": best, "name": name, "is_new": is_new, "score": score}


def log_ratios(x, sums, counts):
    """How much better categories with these members explain x than one that was never seen does."""
    counts, spread = np.array(counts)[:, None], KNOWN["spread"]
    level = np.minimum(counts, SET["cap"])
    pull = spread / (level * spread + 1)
    mean, variance = sums * (level / np.maximum(counts, 1)) * pull, 1 + pull
    densities = np.log((1 + spread) / variance) + x**2 / (1 + spread) - (x - mean) ** 2 / variance
    return np.where(counts[:, 0] > 0, 0.5 * densities.sum(axis=1), -np.inf)


def move(one, target):
    """To another category, or NONE; those that were taught stay as they are."""
    for category, by in ((one[1], -1), (target, 1)):
        if category >= TAUGHT:
            sums[category] = sums[category] + by * one[0]
            counts[category] += by
    one[1] = target


def second_thoughts():
    """What is remembered moves to where it fits best by now; all is judged before any is moved."""
    del seen[: -SET["memory"]]
    open_to = np.array([category < TAUGHT or count > 1 for category, count in enumerate(counts)])
    moves = []
    for one in seen:
        own = one[1]
        move(one, NONE)  # its own category is judged without it
        fits = log_ratios(one[0], sums, counts)
        move(one, own)
        stays = -np.inf if own == NONE else fits[own]
        fits[~open_to] = -np.inf
        if fits.max() > stays and fits.max() >= SET["reconsider_at"]:
            moves.append((one, int(fits.argmax())))
    for one, target in moves:
        move(one, target)
