"""How a CNN's activations become one feature."""

from __future__ import annotations

import itertools
import json
import shutil

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from timm.layers import SelectAdaptivePool2d

from newfound import backbone, fit, fitting, load
from newfound._identity import Identity
from newfound.distributed import check_agreement
from newfound.errors import JournalError, SettingsError
from newfound.pooling import GeneralizedMean, set_pooling

RECTIFIED = "resnet10t"  # small, and its last activation is a ReLU


def maps(seed: int = 0) -> torch.Tensor:
    return torch.rand(3, 5, 4, 4, generator=torch.Generator().manual_seed(seed))


def made(pooling: float, name: str = RECTIFIED) -> backbone.Backbone:
    return backbone.create(name, weights="random", image_size=64, pooling=pooling)


def test_a_power_of_one_is_the_mean_and_a_high_one_is_near_the_maximum():
    activations = maps()
    torch.testing.assert_close(GeneralizedMean(1)(activations)[..., 0, 0], activations.mean(dim=(2, 3)))
    high = GeneralizedMean(100)(activations)[..., 0, 0]
    assert (high / activations.amax(dim=(2, 3)) - 1).abs().max() < 0.05


@given(low=st.floats(1, 20), more=st.floats(0.1, 20), seed=st.integers(0, 99))
def test_the_larger_the_power_the_more_the_largest_activations_count(low, more, seed):
    activations = maps(seed)
    assert (GeneralizedMean(low + more)(activations) >= GeneralizedMean(low)(activations) - 1e-5).all()


@given(
    values=st.lists(st.one_of(st.just(0.0), st.floats(2**-10, 40, width=32)), min_size=9, max_size=9),
    low=st.floats(1, 100),
    high=st.floats(1, 100),
)
def test_a_generalised_mean_lies_between_mean_and_maximum_grows_with_its_power_and_can_be_learnt_from(
    values, low, high
):
    low, high = sorted((low, high))
    activations = torch.tensor(values).reshape(1, 1, 3, 3).requires_grad_()
    less, more = GeneralizedMean(low)(activations), GeneralizedMean(high)(activations)
    rising = [activations.mean(), less, more, activations.max() + 1e-6]  # a map of zeros gives 1e-6
    assert all(a.item() <= b.item() * (1 + 1e-5) for a, b in itertools.pairwise(rising))
    (less + more).sum().backward()
    assert torch.isfinite(activations.grad).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("power", [1.0, 3.0, 8.0, 100.0])
@pytest.mark.parametrize("largest", [0.0, 1e-7, 1e-3, 6.0, 1e4])
def test_no_power_overflows_or_vanishes_whatever_the_activations_and_the_precision(largest, power, dtype):
    activations = torch.zeros(1, 3, 4, 4)
    activations[0, 1, 0, 0] = largest  # one alone, among zeros
    activations[0, 2] = largest
    activations = activations.to(dtype).requires_grad_()
    with torch.autocast("cpu", torch.bfloat16, enabled=dtype != torch.float32):
        pooled = GeneralizedMean(power)(activations)
    pooled.float().sum().backward()
    assert pooled.dtype == dtype
    assert torch.isfinite(pooled).all()
    assert torch.isfinite(activations.grad).all()
    torch.testing.assert_close(pooled[0, 2].item(), max(activations.max().item(), 1e-6), rtol=0.01, atol=1e-7)


def test_the_gradient_is_that_of_the_mean_as_it_is_defined():
    activations = maps().double().requires_grad_()
    assert torch.autograd.gradcheck(GeneralizedMean(3), activations)


def test_the_power_3_gives_what_results_were_measured_with():
    activations = 6 * maps(1)
    before = activations.clamp(min=1e-6).pow(3).mean(dim=(2, 3), keepdim=True).pow(1 / 3)
    torch.testing.assert_close(GeneralizedMean(3)(activations), before, rtol=1e-6, atol=0)
    assert GeneralizedMean(3)(torch.zeros(1, 1, 4, 4)).item() == pytest.approx(1e-6)


def test_a_backbone_pools_with_the_power_it_is_given_and_is_still_cut_in_two():
    plain, pooled = made(1), made(3)
    assert (plain.pooling, pooled.pooling, pooled.split, pooled.dim) == (1, 3, "cut", plain.dim)
    assert str(pooled.identity()) == str(made(3.0).identity())
    pixels = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        activations = plain.model.forward_features(pixels)
        torch.testing.assert_close(pooled(pixels), activations.clamp(min=1e-6).pow(3).mean(dim=(2, 3)).pow(1 / 3))
        torch.testing.assert_close(plain(pixels), activations.mean(dim=(2, 3)))


def test_what_the_trunk_gives_does_not_depend_on_the_pooling_so_its_cache_serves_both():
    assert made(1).trunk_hash() == made(3).trunk_hash()


def test_a_backbone_that_flattens_while_it_pools_gives_one_feature_an_image_too():
    plain, pooled = made(1, "tresnet_m"), made(3, "tresnet_m")
    assert pooled.dim == plain.dim == 2048
    assert (pooled.split, pooled(torch.zeros(2, 3, 64, 64)).shape) == (plain.split, (2, 2048))


def test_a_backbone_that_takes_the_maximum_is_refused():
    model = made(1).model
    model.global_pool = SelectAdaptivePool2d(pool_type="max", flatten=True)
    with pytest.raises(SettingsError, match="takes no mean"):
        set_pooling(model, 3, 64, "a maximum")


@pytest.mark.parametrize("name", ["test_vit", "test_efficientnet"])  # no map to pool; activations below zero
def test_a_backbone_that_takes_no_mean_of_rectified_activations_is_refused_with_what_to_do(name):
    with pytest.raises(SettingsError, match=f"{name} takes no mean.*leave pooling out"):
        made(3, name)


@pytest.mark.parametrize("pooling", ["3", True, [3], 0.5, -3.0, 101.0, float("nan")])
def test_what_is_no_power_of_a_mean_is_refused_before_anything_is_read_and_by_every_door_alike(pooling):
    with pytest.raises(SettingsError, match=r"pooling is .*from 1 .*to 100") as by_fit:
        fit("nowhere", method="frozen", backbone=RECTIFIED, weights="random", pooling=pooling)
    with pytest.raises(SettingsError) as by_create:
        made(pooling)
    assert str(by_fit.value) == str(by_create.value)


def learnt(pictures, pooling: float, **options):
    how = {"method": "frozen", "backbone": RECTIFIED, "weights": "random", "image_size": 64}
    return fit(pictures(kinds=3, each=3), pooling=pooling, **how | options)


@pytest.fixture(scope="module")
def runs(pictures, tmp_path_factory):
    """Folders of two runs that differ in their pooling only, by it."""
    folders = {pooling: tmp_path_factory.mktemp("runs") / str(pooling) for pooling in (1, 3)}
    for pooling, folder in folders.items():
        learnt(pictures, pooling, out=folder, threshold=0.9, dictionary="prototypes")
    return folders


def test_models_that_differ_in_pooling_only_have_other_fingerprints_and_one_that_pools_as_before_has_that_of_before(
    pictures, monkeypatch
):
    plain, pooled = learnt(pictures, 1), learnt(pictures, 3)
    pooled.known = plain.known  # nothing but the pooling differs
    assert pooled.fingerprint() != plain.fingerprint()
    monkeypatch.setattr(Identity, "of_features", lambda _: ())  # what there was before pooling could be chosen
    assert pooled.fingerprint() == plain.fingerprint()


def test_a_journal_is_not_gone_on_with_by_a_model_that_differs_in_pooling_only(runs, picture, tmp_path):
    with load(runs[3]).discoverer(tmp_path / "journal.db") as finder:
        finder.observe([picture(0, 9)])
    with pytest.raises(JournalError, match="model"):
        load(runs[1]).discoverer(tmp_path / "journal.db")


def test_every_runtime_has_the_features_of_the_run_whatever_other_pooling_was_exported_before(
    runs, picture, tmp_path, monkeypatch
):
    pytest.importorskip("onnxruntime", reason="newfound[onnx] is not installed")
    monkeypatch.setenv("NEWFOUND_CACHE", str(tmp_path))  # none is exported yet
    images = [picture(kind, 9) for kind in range(3)]
    for runtime in ("onnx", "auto"):
        for folder in runs.values():
            ours, theirs = (load(folder, runtime=name).encoder.features(images) for name in ("torch", runtime))
            np.testing.assert_allclose(theirs, ours, atol=1e-4)


def test_an_export_is_for_the_pooling_it_was_made_with_and_no_other(runs, picture, tmp_path):
    pytest.importorskip("onnxruntime", reason="newfound[onnx] is not installed")
    images = [picture(kind, 9) for kind in range(3)]
    pooled = load(runs[3])
    pooled.export(tmp_path / "exported")
    again = load(runs[3], runtime=tmp_path / "exported")
    np.testing.assert_allclose(again.encoder.features(images), pooled.encoder.features(images), atol=1e-4)
    with pytest.raises(SettingsError, match="another run"):
        load(runs[1], runtime=tmp_path / "exported")


def test_an_export_in_8_bits_pools_images_of_which_nothing_is_active_too(runs, picture, tmp_path):
    pytest.importorskip("onnxruntime", reason="newfound[onnx] is not installed")
    images = [picture(kind, number) for kind in range(3) for number in range(3)]
    pooled = load(runs[3])
    pooled.export(tmp_path, int8=images)
    cosines = _features(load(runs[3], runtime=tmp_path), images) * _features(pooled, images)
    assert cosines.sum(axis=1).min() > 0.9


def test_processes_that_pool_or_see_differently_do_not_train_together(monkeypatch, pictures):
    class First:
        """What the first process of a training has told."""

        global_rank = 1

        def broadcast(self, _):
            return told

    shared = []
    monkeypatch.setattr(fitting, "check_agreement", lambda values, _: shared.append(values))
    for options in ({}, {"pooling": 1}, {"image_size": 96}):
        learnt(pictures, **{"pooling": 3} | options)
    told, *others = shared
    check_agreement(dict(told), First())
    for other in others:
        with pytest.raises(SettingsError, match="differs from the first one in backbone"):
            check_agreement(other, First())


def test_processes_agree_whose_weights_lie_in_different_places(tiny_weights, pictures, monkeypatch, tmp_path):
    shared = []
    monkeypatch.setattr(fitting, "check_agreement", lambda values, _: shared.append(values))
    there = shutil.copy(tiny_weights(RECTIFIED), tmp_path / "there.safetensors")
    for weights in (tiny_weights(RECTIFIED), str(there)):
        learnt(pictures, 3, weights=weights)
    assert shared[0]["backbone"] == shared[1]["backbone"]


def _features(run, images) -> np.ndarray:
    run.encoder.read_with(None)
    return run.encoder.features(images)


def test_a_run_keeps_its_pooling_and_one_of_before_has_the_backbones_own(pictures, picture, tmp_path):
    folder, images = tmp_path / "run", [picture(kind, 9) for kind in range(3)]
    how = {"method": "frozen", "backbone": RECTIFIED, "weights": "random", "image_size": 64, "pooling": 3}
    run = fit(pictures(kinds=3, each=3), out=folder, **how)
    assert np.array_equal(load(folder).encoder.features(images), run.encoder.features(images))
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert config["backbone"].pop("pooling") == 3
    (folder / "config.json").write_text(json.dumps(config | {"format": 5}), encoding="utf-8")
    assert load(folder).encoder.backbone.pooling == 1
