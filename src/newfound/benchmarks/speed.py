"""`newfound bench speed`: every stage against a named baseline, measured in the same run.

Machines differ and are shared, so a row is a ratio: ours and the baseline are timed in turn, several times, and the
median of the ratios is shown with its range. Nothing here is asserted; the targets stand beside the figures.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from newfound.benchmarks import cache_speed, code_speed, journal_speed, score_speed, training_speed
from newfound.benchmarks._plain import prototype_loop
from newfound.benchmarks._timing import SpeedRow, in_turn, spread, timed
from newfound.errors import SettingsError
from newfound.progress import Reporter


def run_speed(
    only: list[str] | None = None,
    reporter: Reporter | None = None,
    keep: Callable[[SpeedRow], object] | None = None,
) -> list[SpeedRow]:
    """Measure the stages, all or those named in `only`; those on request only if named. `keep` gets each at once.

    Raises SettingsError if one that is named does not exist, or cannot be measured here.
    """
    import torch

    torch.set_num_threads(min(2, torch.get_num_threads()))
    stages = STAGES | ON_REQUEST
    unknown = set(only or ()) - set(stages)
    if unknown:
        raise SettingsError(f"there is no stage {', '.join(sorted(unknown))}; choose from {', '.join(stages)}.")
    rows = []
    reporter = reporter or Reporter()
    with reporter.stage("measuring", len(only or STAGES)) as progress:
        for name in only or STAGES:
            try:
                rows.append(stages[name]())
                if keep:
                    keep(rows[-1])
            except SettingsError as error:
                if only:
                    raise
                reporter.say(f"{name} cannot be measured here: {error}")
            progress(1)
    return rows


def observe_speed(samples: int = 20_000, repeats: int = 3) -> SpeedRow:
    """`observe` against the bare matrix product and maximum of the same growing sizes, and the plain loop's ids."""
    from newfound.discovery import PrototypeDictionary

    rng = np.random.default_rng(0)
    features = _unit(rng.standard_normal((samples, 512), dtype=np.float32))
    known = _unit(rng.standard_normal((100, 512), dtype=np.float32))
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
        "observe", samples / fast, samples / slow, "samples/s", *spread(ratios), "at least 0.5 of the bare product",
        f"100 known growing to {100 + int(reference[1].sum())}; ids equal to the plain loop: {same}; "
        f"the plain loop: {samples / plain_seconds:.0f} samples/s",
    )  # fmt: skip


STAGES: dict[str, Callable[[], SpeedRow]] = {
    "observe": observe_speed,
    "codes": code_speed.exact_codes,
    "codes-near": code_speed.near_codes,
    "score": score_speed.scoring,
    "score-large": score_speed.scoring_large,
    "cache-bytes": cache_speed.cache_size,
    "cache-read": cache_speed.cache_reading,
    "cached-epoch": training_speed.cached_epoch,
    "mkee-tokens": training_speed.creation_in_tokens,
    "mkee-pixels": training_speed.creation_in_pixels,
    "journal": journal_speed.prototype_entering,
    "journal-evidence": journal_speed.evidence_entering,
    "journal-open": journal_speed.opening,
    "journal-writers": journal_speed.writers,
}
ON_REQUEST: dict[str, Callable[[], SpeedRow]] = {
    "cached-epoch-vit": training_speed.cached_epoch_vit,
    "journal-open-full": journal_speed.opening_with_features,
}


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)
