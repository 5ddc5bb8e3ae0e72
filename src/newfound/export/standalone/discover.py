"""python discover.py IMAGE_OR_FOLDER...

Prints a line of JSON for each image, in order, with the category that `newfound discover` gives it.
Needs onnxruntime, numpy and Pillow, and the files beside it."""

import glob
import json
import os
import signal
import sys

import numpy as np
from onnxruntime import InferenceSession
from PIL import Image, ImageOps
from rule import HERE, SET, decide

if not sys.argv[1:]:
    sys.exit(__doc__)
if hasattr(signal, "SIGPIPE"):
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # ends quietly when nobody reads on, as in `| head`
ENDINGS = tuple(SET["endings"])
ENCODER = InferenceSession(str(HERE / "encoder.onnx"), providers=["CPUExecutionProvider"])


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


unreadable = 0
for place in sys.argv[1:]:
    inside = [name for name in glob.glob("**", root_dir=place, recursive=True) if name.lower().endswith(ENDINGS)]
    for path in [os.path.join(place, name) for name in sorted(inside)] or [place]:
        try:
            answer = decide(feature(path))
        except Exception as error:  # damaged images raise almost anything
            print(f"skipped {path}: {error}", file=sys.stderr)
            unreadable += 1
        else:
            print(json.dumps({"image": path, **answer}), flush=True)
sys.exit(unreadable > 0)
