"""python discover.py IMAGE...: a category for each image, in order, as `newfound discover` gives it; the category
that explains it best, or a new one. It needs onnxruntime, numpy and Pillow, and the files beside it."""

import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime
from PIL import Image, ImageOps

HERE = Path(__file__).parent
SET = json.loads((HERE / "settings.json").read_text(encoding="utf-8"))
KNOWN = np.load(HERE / "known.npz")
ENCODER = onnxruntime.InferenceSession(str(HERE / "encoder.onnx"), providers=["CPUExecutionProvider"])


def centre(image, width, height):
    left, top = round((image.width - width) / 2), round((image.height - height) / 2)
    return image.crop((left, top, left + width, top + height))


def feature(path):
    image = ImageOps.exif_transpose(Image.open(path))
    if image.has_transparency_data:
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image.convert("RGBA"))
    short = min(image.size)  # of a long thin image the ends are never seen
    image = centre(image.convert("RGB"), min(image.width, 4 * short), min(image.height, 4 * short))
    size = [int(SET["resize"] * side / short) for side in image.size]
    image = centre(image.resize(size, Image.Resampling[SET["interpolation"]]), SET["size"], SET["size"])
    pixels = (np.asarray(image, np.float32) / 255 - np.float32(SET["mean"])) / np.float32(SET["std"])
    return ENCODER.run(None, {"pixels": pixels.transpose(2, 0, 1)[None]})[0][0].astype(np.float64)


def kept(x):
    return x.astype(np.float16).astype(np.float64)  # as the journal keeps it


def log_ratios(x, sums, counts):
    """How much better categories with these members explain x than one that was never seen does."""
    level = np.minimum(counts, SET["cap"])[:, None]
    pull = SPREAD / (level * SPREAD + 1)
    mean, variance = sums * (level / np.maximum(counts, 1)[:, None]) * pull, 1 + pull
    densities = np.log((1 + SPREAD) / variance) + x**2 / (1 + SPREAD) - (x - mean) ** 2 / variance
    return np.where(counts > 0, 0.5 * densities.sum(axis=1), -np.inf)


def second_thoughts():
    """Remembered images move to where they fit best by now; all are judged before any is moved."""
    open_to = (np.arange(len(counts)) < TAUGHT) | (counts > 1)
    moves = []
    for i in range(max(0, len(seen) - SET["memory"]), len(seen)):
        x, own, waits = seen[i]
        scores = np.where(open_to, log_ratios(x, sums, counts), -np.inf)
        to_beat = -np.inf
        if not waits:  # its own category is judged without it
            learnt = own >= TAUGHT
            to_beat = log_ratios(x, sums[[own]] - learnt * x, counts[[own]] - learnt)[0]
            scores[own] = -np.inf
        if scores.max() >= SET["reconsider_at"] and scores.max() > to_beat:
            moves.append((i, int(scores.argmax())))
    for i, target in moves:
        x, own, waits = seen[i]
        for row, by in ((own, 0 if waits else -1), (target, 1)):
            if row >= TAUGHT:  # known categories stay
                counts[row] += by
                sums[row] += by * x
        seen[i] = [x, target, False]
    for i in range(max(0, len(seen) - SET["memory"])):
        seen[i][2] = False  # it has waited long enough


SPREAD, TAUGHT = KNOWN["spread"], len(SET["classes"])
sums, counts = KNOWN["sums"].copy(), KNOWN["counts"].copy()
seen: list = []  # [what was read off an image, its category, whether it waits for a second one of its kind]
for path in sys.argv[1:]:
    x = feature(path)
    x = np.sign(x) * np.abs(x) ** KNOWN["power"]
    x = (x / np.linalg.norm(x) - KNOWN["mean"]) @ KNOWN["basis"]
    x = kept((x / max(np.linalg.norm(x), 1e-12) - KNOWN["centre"]) @ KNOWN["axes"])
    scores, partner, fits = log_ratios(x, sums, counts), [], -np.inf
    best, score = int(scores.argmax()), float(scores.max())
    waiting = [one for one in seen if one[2]]
    if waiting:
        others = log_ratios(x, np.array([one[0] for one in waiting]), np.ones(len(waiting)))
        partner, fits = waiting[others.argmax()], others.max()
    paired = fits > score and fits >= SET["threshold"]
    joins = not paired and score >= SET["threshold"]
    is_new = bool(paired or (not joins and (SET["alone"] is None or score < SET["alone"])))
    if is_new:
        best = len(counts)
        sums, counts = np.vstack([sums, x]), np.append(counts, 1)
        if paired:
            sums[best], counts[best] = sums[best] + partner[0], 2
            partner[1:] = best, False
    elif joins and best >= TAUGHT:
        sums[best], counts[best] = sums[best] + x, counts[best] + 1
    seen.append([x, best, not (is_new or joins)])
    name = (SET["classes"] + [f"new-{best - TAUGHT + 1}"])[min(best, TAUGHT)]
    print(json.dumps({"image": path, "category": best, "name": name, "is_new": is_new, "score": score}), flush=True)
    if SET["reconsider_every"] and len(seen) % SET["reconsider_every"] == 0:
        second_thoughts()
