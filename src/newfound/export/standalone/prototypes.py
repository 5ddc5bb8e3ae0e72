"""python discover.py IMAGE...: a category for each image, in order, as `newfound discover` gives it; the nearest
prototype, or a new one. It needs onnxruntime, numpy and Pillow, and the files beside it."""

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


prototypes = list(KNOWN["prototypes"].astype(np.float64))
sums = prototypes.copy()
for path in sys.argv[1:]:
    x = feature(path) - KNOWN.get("centre", 0)
    x = kept(x / np.linalg.norm(x))
    x /= np.linalg.norm(x)
    scores = np.array(prototypes) @ x
    best, score = int(scores.argmax()), float(scores.max())
    is_new = score < SET["threshold"]
    if is_new:
        best = len(prototypes)
        sums.append(x)
        prototypes.append(x)
    elif best >= len(SET["classes"]) and SET["update"] == "running":  # known prototypes stay
        sums[best] = sums[best] + x
        prototypes[best] = sums[best] / np.linalg.norm(sums[best])
    name = (SET["classes"] + [f"new-{best - len(SET['classes']) + 1}"])[min(best, len(SET["classes"]))]
    print(json.dumps({"image": path, "category": best, "name": name, "is_new": is_new, "score": score}), flush=True)
