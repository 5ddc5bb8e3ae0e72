"""How this run decides: a feature goes to the nearest prototype, or founds a category of its own."""

import json
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
SET = json.loads((HERE / "settings.json").read_text(encoding="utf-8"))
KNOWN = dict(np.load(HERE / "known.npz"))
TAUGHT = len(SET["classes"])
prototypes = list(KNOWN["prototypes"].astype(np.float64))
sums = prototypes.copy()


def decide(feature):
    """The category of the next feature of the stream; the score is its cosine with the nearest prototype."""
    x = feature - KNOWN.get("centre", 0)
    x = (x / np.linalg.norm(x)).astype(np.float16).astype(np.float64)  # as the journal keeps it
    x /= np.linalg.norm(x)
    scores = np.array(prototypes) @ x
    best, score = int(scores.argmax()), float(scores.max())
    is_new = score < SET["threshold"]
    if is_new:
        best = len(prototypes)
        sums.append(x)
        prototypes.append(x)
    elif best >= TAUGHT and SET["update"] == "running":  # known prototypes stay
        sums[best] = sums[best] + x
        prototypes[best] = sums[best] / np.linalg.norm(sums[best])
    name = SET["classes"][best] if best < TAUGHT else f"new-{best - TAUGHT + 1}"
    return {"category": best, "name": name, "is_new": is_new, "score": score}
