"""How fast an encoder runs on a processor: the runtimes of `newfound.runtimes` against the eager float32 timm model."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from newfound.benchmarks._timing import SpeedRow, in_turn, spread
from newfound.errors import SettingsError

_TARGET = "at least 1.5 times the eager model"
_VIT = "vit_base_patch16_224"


def onnx_encoder(repeats: int = 5) -> SpeedRow:
    """The default backbone on ONNX Runtime, batches of 64 and single images."""
    return _on_runtime("encoder-onnx", "onnx", repeats)


def openvino_encoder(repeats: int = 5) -> SpeedRow:
    """The same on OpenVINO."""
    return _on_runtime("encoder-openvino", "openvino", repeats)


def onnx_vit(repeats: int = 3) -> SpeedRow:
    """A ViT-B/16 with random weights on ONNX Runtime, batches of 8."""
    return _on_runtime("encoder-onnx-vit", "onnx", repeats, backbone=_VIT, batch=8)


def openvino_vit(repeats: int = 3) -> SpeedRow:
    """The same on OpenVINO."""
    return _on_runtime("encoder-openvino-vit", "openvino", repeats, backbone=_VIT, batch=8)


def int8_encoder(repeats: int = 5) -> SpeedRow:
    """The default backbone in 8-bit integers on ONNX Runtime, measured and timed on noisy patterns."""
    from newfound.backbone import create
    from newfound.export.onnx import quantise, write_encoder
    from newfound.runtimes import open_session

    model = create()
    pixels = _patterns(64, model.spec.size)
    with tempfile.TemporaryDirectory() as folder:
        plain, small = Path(folder) / "plain.onnx", Path(folder) / "int8.onnx"
        write_encoder(model, plain)
        quantise(plain, small, [pixels[:16], pixels[16:32]])
        smaller = plain.stat().st_size / small.stat().st_size
        more = f"; the file {smaller:.1f} times smaller"
        return _against_eager("encoder-int8", model, open_session("onnx", small), pixels, repeats, more)


def int8_cost(orders: int = 3) -> SpeedRow:
    """What 8-bit integers cost in accuracy: Strict All on pets with frozen features, against float32.

    Raises SettingsError if the data set is not here.
    """
    from newfound.benchmarks.data import protocol_split
    from newfound.errors import DataError
    from newfound.fitting import fit
    from newfound.runtimes import faster

    try:
        labelled, stream = protocol_split("pets")
    except DataError as error:
        raise SettingsError(f"the data set pets is not here: {error}") from error
    run = fit(labelled, method="frozen")
    exact = run.evaluate(stream, orders=orders)
    with tempfile.TemporaryDirectory() as folder:
        run.export(folder, int8=labelled.items)
        small = replace(run, encoder=faster(run.encoder, folder)).evaluate(stream, orders=orders)
    scores = [[100 * score.strict.all for score in result.scores] for result in (small, exact)]
    ratios = [a / b for a, b in zip(*scores, strict=True)]
    named = [100 * result.mean["named"]["all"] for result in (small, exact)]
    return SpeedRow(
        "encoder-int8-pets", float(np.mean(scores[0])), float(np.mean(scores[1])), "% Strict All", *spread(ratios),
        "at least 0.98 of float32",
        f"{len(stream)} images of pets in {orders} orders, frozen features taught in float32; Named All {named[0]:.1f} "
        f"with int8, {named[1]:.1f} with float32",
    )  # fmt: skip


def _on_runtime(stage: str, runtime: str, repeats: int, backbone: str | None = None, batch: int = 64) -> SpeedRow:
    from newfound.backbone import create
    from newfound.export.onnx import write_encoder
    from newfound.runtimes import open_session

    model = create() if backbone is None else create(backbone, weights="random")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "encoder.onnx"
        write_encoder(model, path)
        return _against_eager(stage, model, open_session(runtime, path), _patterns(batch, model.spec.size), repeats)


def _against_eager(stage: str, model, session: Callable, pixels: np.ndarray, repeats: int, more: str = "") -> SpeedRow:
    """A session in chunks as an encoder runs it, against the timm model on whole batches."""
    import torch

    from newfound._memory import keep_large_allocations
    from newfound.runtimes import in_chunks

    keep_large_allocations()  # for both sides
    torch.set_num_threads(min(2, torch.get_num_threads()))
    found: dict[str, np.ndarray] = {}

    def eager(some: np.ndarray) -> None:
        with torch.inference_mode():
            found["eager"] = model.model.forward_head(model.model.forward_features(torch.from_numpy(some))).numpy()

    def ours(some: np.ndarray) -> None:
        found["ours"] = in_chunks(session, some)

    for work in (ours, eager):  # the first pass allocates and compiles
        work(pixels[:1])
        work(pixels)
    length = np.linalg.norm(found["eager"], axis=1)
    least = float(((found["ours"] * found["eager"]).sum(axis=1) / length).min())
    fast, slow, ratios = in_turn(lambda: ours(pixels), lambda: eager(pixels), repeats)
    _, _, single = in_turn(lambda: ours(pixels[:1]), lambda: eager(pixels[:1]), 4 * repeats)
    return SpeedRow(
        stage, len(pixels) / fast, len(pixels) / slow, "images/s", *spread(ratios), _TARGET,
        f"{model.name}, {torch.get_num_threads()} threads, batches of {len(pixels)}; single images "
        f"{spread(single)[0]:.2f} times as fast; least cosine to the eager features {least:.6f}{more}",
    )  # fmt: skip


def _patterns(count: int, size: int) -> np.ndarray:
    """Normalised pixels with some structure: noise at several scales."""
    rng = np.random.default_rng(0)
    pixels = rng.standard_normal((count, 3, size, size), dtype=np.float32) * np.float32(0.3)
    for cells in (4, 16):
        coarse = rng.standard_normal((count, 3, cells, cells), dtype=np.float32)
        step = -(-size // cells)
        pixels += np.kron(coarse, np.ones((step, step), np.float32))[..., :size, :size]
    return pixels
