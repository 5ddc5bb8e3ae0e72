"""`newfound bench speed`: every stage against a named baseline, measured in the same run.

Machines differ and are shared, so a row is a ratio: ours and the baseline are timed in turn, several times, and the
median of the ratios is shown with its range. Nothing here is asserted; the targets stand beside the figures.
"""

from __future__ import annotations

from collections.abc import Callable

from newfound.benchmarks import (
    cache_speed,
    code_speed,
    encoder_speed,
    evidence_speed,
    journal_speed,
    pipeline_speed,
    score_speed,
    search_speed,
    service_pages,
    service_speed,
    startup_speed,
    training_speed,
)
from newfound.benchmarks._timing import SpeedRow
from newfound.discovery import _compiled
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
    _compiled.load()  # what a long stream would have loaded by itself
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


STAGES: dict[str, Callable[[], SpeedRow]] = {
    "observe": search_speed.observe_speed,
    "observe-clustered": search_speed.observe_clustered_speed,
    "observe-one": search_speed.observe_one_speed,
    "observe-random-large": search_speed.observe_random_large_speed,
    "dictionary-memory": search_speed.dictionary_memory,
    "evidence": evidence_speed.evidence,
    "evidence-clustered": evidence_speed.evidence_clustered,
    "codes": code_speed.exact_codes,
    "codes-near": code_speed.near_codes,
    "score": score_speed.scoring,
    "score-large": score_speed.scoring_large,
    "cache-bytes": cache_speed.cache_size,
    "cache-read": cache_speed.cache_reading,
    "cache-disk": cache_speed.cache_from_disk,
    "cache-views": cache_speed.cache_views,
    "cached-epoch": training_speed.cached_epoch,
    "mkee-tokens": training_speed.creation_in_tokens,
    "mkee-pixels": training_speed.creation_in_pixels,
    "decoder": pipeline_speed.decoder,
    "encoder-onnx": encoder_speed.onnx_encoder,
    "encoder-openvino": encoder_speed.openvino_encoder,
    "encoder-int8": encoder_speed.int8_encoder,
    "allocator": startup_speed.allocator,
    "one-image": pipeline_speed.one_image,
    "one-image-observe": pipeline_speed.one_image_observed,
    "pipeline": pipeline_speed.pipeline,
    "serve": service_speed.serving,
    "import": startup_speed.importing,
    "help": startup_speed.helping,
    "journal": journal_speed.prototype_entering,
    "journal-evidence": journal_speed.evidence_entering,
    "journal-open": journal_speed.opening,
    "journal-writers": journal_speed.writers,
}
ON_REQUEST: dict[str, Callable[[], SpeedRow]] = {
    "observe-real": search_speed.observe_real_speed,
    "observe-clustered-million": search_speed.observe_clustered_million_speed,
    "observe-one-million": search_speed.observe_one_million_speed,
    "cached-epoch-vit": training_speed.cached_epoch_vit,
    "encoder-onnx-vit": encoder_speed.onnx_vit,
    "encoder-openvino-vit": encoder_speed.openvino_vit,
    "encoder-int8-pets": encoder_speed.int8_cost,
    "serve-pages": service_pages.first_pages,
    "start": startup_speed.starting,
    "journal-open-full": journal_speed.opening_with_features,
}
