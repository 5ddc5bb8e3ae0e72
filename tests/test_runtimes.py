"""What another runtime promises: the same features but for their last bits, and the same journal."""

from __future__ import annotations

import numpy as np
import pytest

import newfound as nf
from newfound import runtimes
from newfound.errors import SettingsError

pytest.importorskip("onnx", reason="newfound[onnx] is not installed")
INSTALLED = [name for name, here in runtimes.available().items() if here and name != "torch"]


@pytest.mark.parametrize("runtime", INSTALLED)
@pytest.mark.parametrize("backbone", ["test_efficientnet", "test_vit"])
def test_features_are_those_of_pytorch(runtime, backbone, tiny_backbone, pictures):
    from newfound.features import Encoder
    from newfound.views import Views

    model = tiny_backbone(backbone)
    encoder = Encoder(model, Views(model.spec))
    other = runtimes.faster(encoder, runtime)
    images, _ = pictures(kinds=4, each=5)  # more than are encoded at a time
    ours, theirs = encoder.features(images), other.features(images)
    assert (ours * theirs).sum(axis=1).min() > 1 - 1e-5
    assert other.runtime == runtime
    assert np.array_equal(other.features(images), theirs)


@pytest.mark.parametrize("runtime", INSTALLED)
def test_a_journal_goes_on_under_another_runtime(runtime, run_folder, picture, tmp_path):
    first, second = [[picture(kind, 50 + n) for kind in range(5)] for n in range(2)]
    alone = nf.load(run_folder).discoverer()
    expected = [s.category for s in [*alone.observe(first), *alone.observe(second)]]
    with nf.load(run_folder).discoverer(tmp_path / "journal.db") as discoverer:
        found = [s.category for s in discoverer.observe(first)]
    with nf.load(run_folder, runtime=runtime).discoverer(tmp_path / "journal.db") as discoverer:
        found += [s.category for s in discoverer.observe(second)]
        assert discoverer.keeper.journal.model().about["runtime"] == "torch"  # what it was begun with
    assert found == expected


def test_a_runtime_that_is_not_there_is_refused_with_those_that_are(run_folder):
    with pytest.raises(SettingsError, match="no runtime 'cuda'; choose torch, onnx, openvino, auto"):
        nf.load(run_folder, runtime="cuda")


def test_an_export_of_another_run_is_refused(run_folder, fit_tiny, pictures, tmp_path):
    fit_tiny(pictures(kinds=3), lr=1e-3, centre=True, threshold=0.6).export(tmp_path)
    with pytest.raises(SettingsError, match="another run"):
        nf.load(run_folder, runtime=tmp_path)


def test_auto_takes_the_fastest_that_is_installed(run_folder):
    fastest = next((name for name in ("openvino", "onnx") if name in INSTALLED), "torch")
    assert nf.load(run_folder, runtime="auto").encoder.runtime == fastest


def test_a_missing_package_says_which_extra_has_it(run_folder, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "openvino", None)
    with pytest.raises(SettingsError, match=r"needs openvino.*newfound\[openvino\]"):
        nf.load(run_folder, runtime="openvino")


def test_an_image_that_cannot_be_read_has_its_error_on_every_runtime(run_folder, picture):
    encoder = nf.load(run_folder, runtime="auto").encoder
    (block,) = encoder.stream([picture(0, 1), b"no image", picture(1, 1)])
    assert block.rows == [0, None, 1]
    assert "cannot read" in str(block.errors[1])


def test_the_export_is_written_once_and_found_again(run_folder, monkeypatch, tmp_path):
    monkeypatch.setenv("NEWFOUND_CACHE", str(tmp_path))
    nf.load(run_folder, runtime="onnx")
    (file,) = (tmp_path / "onnx").iterdir()
    written = file.stat().st_ino
    nf.load(run_folder, runtime="onnx")
    assert [path.stat().st_ino for path in (tmp_path / "onnx").iterdir()] == [written]
