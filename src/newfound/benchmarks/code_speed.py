"""How fast hash codes are looked up, against lists that are searched as in released code."""

from __future__ import annotations

import numpy as np

from newfound.benchmarks._plain import code_loop
from newfound.benchmarks._timing import SpeedRow, in_turn, spread


def exact_codes(samples: int = 20_000, repeats: int = 3) -> SpeedRow:
    """Codes of 12 bits that must match exactly, against a list that is searched with `in` and `index`."""
    return _codes("codes", 0, samples, repeats)


def near_codes(samples: int = 20_000, repeats: int = 3) -> SpeedRow:
    """Codes of 12 bits of which one may differ, against a list of Hamming distances for every sample."""
    return _codes("codes-near", 1, samples, repeats)


def _codes(stage: str, radius: int, samples: int, repeats: int, length: int = 12) -> SpeedRow:
    from newfound.discovery import CodeDictionary, SignCode

    rng = np.random.default_rng(0)
    readings = rng.standard_normal((samples, length), dtype=np.float32)
    known = rng.permutation(2**length)[:100, None] >> np.arange(length) & 1
    codes, ids = (readings > 0).astype(int).tolist(), {}

    def ours() -> None:
        dictionary = CodeDictionary(known, range(100), 100, SignCode(length), threshold=1 - radius / length)
        ids["ours"] = dictionary.observe(readings).category.tolist()

    def plain() -> None:
        ids["plain"] = code_loop(known.tolist(), codes, radius)

    fast, slow, ratios = in_turn(ours, plain, repeats)
    return SpeedRow(
        stage, samples / fast, samples / slow, "samples/s", *spread(ratios), "at least 50 times the list",
        f"{samples:,} codes of {length} bits, radius {radius}, 100 known growing to {max(ids['plain']) + 1:,}; "
        f"ids equal to the plain loop: {ids['ours'] == ids['plain']}",
    )  # fmt: skip
