"""Promises of a run on disk: what was saved is what is loaded, and whatever does not fit is named."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.numpy import load_file as load_arrays
from safetensors.numpy import save_file as save_arrays
from safetensors.torch import load_file, save_file

import newfound as nf
from newfound import loading
from newfound.cache import TokenCache
from newfound.errors import JournalError, MissingFileError, NewfoundError, RunError, SettingsError, WeightsError
from newfound.run_files import FORMAT, file_hash

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def stream(picture):
    """Images of the known kinds and of two new ones, none of which was trained on."""
    return [picture(kind, number) for number in range(30, 33) for kind in range(5)]


class Answers(list):
    """Sightings that are equal if they decide the same; scores may differ in a last bit of the trunk's tokens."""

    def __eq__(self, other) -> bool:
        decisions = [[(s.category, s.name, s.is_new) for s in sightings] for sightings in (self, other)]
        scores = [[s.score for s in sightings] for sightings in (self, other)]
        return decisions[0] == decisions[1] and scores[0] == pytest.approx(scores[1], abs=1e-3)


def answers(run, images) -> Answers:
    return Answers(run.discoverer().observe(images))


def edit_config(folder, change) -> None:
    path = folder / "config.json"
    config = json.loads(path.read_text())
    change(config)
    path.write_text(json.dumps(config))


def vouch_for(folder, name) -> None:
    """Make the config agree with a file that was changed, as a careful forger would."""
    edit_config(folder, lambda config: config["files"].__setitem__(name, file_hash(folder / name)))


# ---------------------------------------------------------------- saving and loading


def test_a_loaded_run_gives_the_answers_of_the_one_that_was_saved(tiny_run, run_folder, stream):
    loaded = nf.load(run_folder)
    assert answers(loaded, stream) == answers(tiny_run, stream)
    assert loaded.classes == tiny_run.classes
    assert loaded.threshold == tiny_run.threshold
    assert loaded.log == tiny_run.log
    assert loaded.threshold_path == tiny_run.threshold_path
    assert np.array_equal(loaded.known["prototypes"], tiny_run.known["prototypes"])
    assert set(loaded.method.state_dict()) == set(tiny_run.method.state_dict())
    assert loaded.label == tiny_run.label == "ltc, paper (short)"
    assert loaded.folder == run_folder


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("closed", {}), ("frozen", {"preset": "default"}), ("ltc", {"preset": "released"}),
        ("baseline", {"head": "linear"}), ("frozen", {"preset": "default", "dictionary": "bayesian", "power": 0.5}),
    ],
)  # fmt: skip
def test_runs_of_all_methods_survive_the_disk(fit_tiny, pictures, tmp_path, stream, method, options):
    run = fit_tiny(pictures(kinds=3, each=3), method=method, out=tmp_path / "run", **options)
    assert answers(nf.load(tmp_path / "run"), stream) == answers(run, stream)


def test_a_run_saved_again_is_the_same_run(run_folder, tmp_path, stream):
    first = nf.load(run_folder)
    first.save(tmp_path / "copy")
    assert answers(nf.load(tmp_path / "copy"), stream) == answers(first, stream)


def test_features_are_the_same_with_a_cache_and_without(run_folder, tmp_path, stream):
    cached = nf.load(run_folder, cache=TokenCache(tmp_path / "tokens"))
    assert answers(cached, stream) == answers(nf.load(run_folder), stream)
    assert answers(cached, stream) == answers(nf.load(run_folder), stream), "now read from the cache"


def test_no_file_of_a_run_is_a_pickle(run_folder):
    for path in run_folder.iterdir():
        if path.name == "tensorboard":
            continue
        assert path.suffix in (".json", ".csv", ".safetensors"), path.name
        if path.suffix == ".safetensors":
            with safe_open(path, "np") as file:
                assert file.keys()
        elif path.suffix == ".json":
            json.loads(path.read_text())
        else:
            path.read_text()


def test_loading_never_unpickles(run_folder, monkeypatch):
    import pickle

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, lambda *a, **k: pytest.fail("something was unpickled"))
    assert nf.load(run_folder).folder == run_folder


def test_a_run_holds_the_tail_and_the_head_and_only_a_bundle_the_trunk(fit_tiny, pictures, tmp_path):
    run = fit_tiny(pictures(kinds=2, each=2), epochs=1)
    run.save(tmp_path / "light")
    run.save(tmp_path / "bundled", bundle=True)
    light, bundled = (load_file(tmp_path / name / "model.safetensors") for name in ("light", "bundled"))
    assert {key.split(".")[0] for key in light} == {"tail", "head"}
    assert {key.split(".")[0] for key in bundled} == {"tail", "head", "trunk"}


def test_a_bundle_needs_no_other_source_of_weights(fit_tiny, pictures, tmp_path, stream, tiny_weights):
    moved = tmp_path / "weights.safetensors"
    shutil.copy(tiny_weights(), moved)
    run = fit_tiny(pictures(kinds=2, each=3), weights=str(moved), out=tmp_path / "run", bundle=True)
    moved.unlink()
    assert answers(nf.load(tmp_path / "run"), stream) == answers(run, stream)


def test_random_weights_are_bundled_without_being_asked(fit_tiny, pictures, tmp_path, stream):
    run = fit_tiny(pictures(kinds=2, each=3), weights="random", out=tmp_path / "run")
    assert run.config["bundle"]
    assert answers(nf.load(tmp_path / "run"), stream) == answers(run, stream)
    nf.load(tmp_path / "run").save(tmp_path / "again")
    assert answers(nf.load(tmp_path / "again"), stream) == answers(run, stream)


def test_the_default_backbone_needs_no_bundle(picture, tmp_path):
    images = [picture(kind, number) for kind in range(2) for number in range(2)]
    run = nf.fit((images, ["a", "a", "b", "b"]), method="frozen", image_size=32, threshold=0.5, out=tmp_path / "run")
    assert not run.config["bundle"]
    assert answers(nf.load(tmp_path / "run"), images) == answers(run, images)


# ---------------------------------------------------------------- what does not fit


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(MissingFileError, match="nowhere"):
        nf.load(tmp_path / "nowhere")


def test_a_folder_that_is_no_run_says_what_a_run_is(tmp_path):
    with pytest.raises(MissingFileError, match=r"no finished run.*newfound train"):
        nf.load(tmp_path)


@pytest.mark.parametrize("name", ["classes.json", "model.safetensors", "known.safetensors"])
def test_a_missing_file_is_named(run_folder, name):
    (run_folder / name).unlink()
    with pytest.raises(RunError, match=f"incomplete.*{name}"):
        nf.load(run_folder)


@pytest.mark.parametrize("name", ["classes.json", "model.safetensors", "known.safetensors"])
def test_a_changed_file_is_named(run_folder, name):
    content = bytearray((run_folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (run_folder / name).write_bytes(bytes(content))
    with pytest.raises(RunError, match=f"{name} has changed"):
        nf.load(run_folder)


@pytest.mark.parametrize("name", ["classes.json", "model.safetensors", "known.safetensors"])
def test_a_damaged_file_that_the_config_vouches_for_is_still_refused(run_folder, name):
    (run_folder / name).write_bytes(b"\x80\x04damaged")
    vouch_for(run_folder, name)
    with pytest.raises(RunError):
        nf.load(run_folder)


@pytest.mark.parametrize("content", [b"", b"{", b"[1, 2]", b"null", b"\xff\xfe\x00", b'{"format": 1}'])
def test_a_damaged_config_is_named(run_folder, content):
    (run_folder / "config.json").write_bytes(content)
    with pytest.raises(RunError, match=r"config\.json"):
        nf.load(run_folder)


@pytest.mark.parametrize("name", ["format", "method", "preset", "settings", "backbone", "threshold", "bundle", "files"])
def test_a_config_that_lacks_something_says_what(run_folder, name):
    edit_config(run_folder, lambda config: config.pop(name))
    with pytest.raises(RunError, match=name):
        nf.load(run_folder)


@pytest.mark.parametrize(
    ("where", "value"),
    [
        ("threshold", "high"), ("threshold", {}), ("threshold", {"value": 1.5}), ("threshold", {"value": None}),
        ("backbone", "resnet"), ("backbone", {"name": "test_vit"}), ("settings", []), ("files", []), ("files", {}),
        ("format", "1"), ("format", None),
    ],
    ids=str,
)  # fmt: skip
def test_a_config_with_a_value_that_cannot_be_is_refused_as_such(run_folder, where, value):
    edit_config(run_folder, lambda config: config.__setitem__(where, value))
    with pytest.raises(RunError, match=run_folder.name):
        nf.load(run_folder)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("image_size", "64"), ("image_size", True), ("crop_pct", "whole"), ("crop_pct", float("nan")),
        ("tune_blocks", None), ("weights", 3), ("trunk_hash", None), ("name", ["resnet10t"]),
    ],
    ids=str,
)  # fmt: skip
def test_what_a_config_says_of_the_backbone_and_cannot_be_is_named_with_its_file(run_folder, name, value):
    edit_config(run_folder, lambda config: config["backbone"].__setitem__(name, value))
    with pytest.raises(RunError, match=rf"config\.json is damaged: the '{name}' of its backbone is"):
        nf.load(run_folder)


def test_a_run_made_by_a_newer_version_says_so(run_folder):
    edit_config(run_folder, lambda config: config.update(format=FORMAT + 1, newfound="9.0.0"))
    with pytest.raises(RunError, match=rf"newfound 9\.0\.0 in format {FORMAT + 1}.*Update newfound"):
        nf.load(run_folder)


def test_another_trunk_than_the_one_trained_on_is_refused(run_folder, tiny_weights, tmp_path):
    state = load_file(tiny_weights())
    state["conv_stem.weight"] = state["conv_stem.weight"] + 0.01
    save_file(state, tmp_path / "other.safetensors")
    with pytest.raises(RunError, match=r"another trunk.*weights=PATH.*bundle"):
        nf.load(run_folder, weights=str(tmp_path / "other.safetensors"))


def test_weights_that_have_moved_can_be_pointed_at(run_folder, tiny_weights, tmp_path, tiny_run, stream):
    moved = tmp_path / "moved.safetensors"
    shutil.copy(tiny_weights(), moved)
    edit_config(run_folder, lambda config: config["backbone"].update(weights="gone.safetensors"))
    with pytest.raises(WeightsError, match=r"gone\.safetensors"):
        nf.load(run_folder)
    assert answers(nf.load(run_folder, weights=str(moved)), stream) == answers(tiny_run, stream)


def test_classes_and_prototypes_that_do_not_fit_together_are_counted(run_folder):
    (run_folder / "classes.json").write_text('["kind0", "kind1"]')
    vouch_for(run_folder, "classes.json")
    with pytest.raises(RunError, match=r"2 classes.*a dictionary of 3 classes"):
        nf.load(run_folder)


def test_prototypes_that_are_not_numbers_are_refused(run_folder):
    path = run_folder / "known.safetensors"
    arrays = load_arrays(path)
    arrays["prototypes"] = np.full_like(arrays["prototypes"], np.nan)
    save_arrays(arrays, path)
    vouch_for(run_folder, path.name)
    with pytest.raises(NewfoundError, match=r"NaN|nan|finite"):
        nf.load(run_folder)


def test_a_centre_of_another_dimension_is_refused(run_folder):
    path = run_folder / "known.safetensors"
    arrays = load_arrays(path)
    assert "centre" in arrays
    save_arrays(arrays | {"centre": np.zeros(7, np.float32)}, path)
    vouch_for(run_folder, path.name)
    with pytest.raises(RunError, match=r"known classes .* are damaged"):
        nf.load(run_folder)


def test_a_run_of_format_1_gives_the_same_answers(run_folder, tiny_run, picture):
    (run_folder / "known.safetensors").rename(run_folder / "prototypes.safetensors")

    def as_it_was(config):
        config["format"] = 1
        config["files"]["prototypes.safetensors"] = config["files"].pop("known.safetensors")
        del config["trained_classes"]
        for name in ("optimizer", "momentum", "head_lr", "head_weight_decay"):
            del config["settings"][name]

    edit_config(run_folder, as_it_was)
    images = [picture(kind, 9) for kind in range(5)]
    answers = [(s.category, s.score) for s in nf.load(run_folder).discoverer().observe(images)]
    assert answers == [(s.category, s.score) for s in tiny_run.discoverer().observe(images)]


def test_a_run_of_format_3_whose_features_were_not_rooted_gives_the_same_answers(fit_tiny, pictures, tmp_path, stream):
    run = fit_tiny(
        pictures(kinds=3, each=3), method="frozen", preset="default", dictionary="bayesian", power=1.0,
        threshold=0.0, out=tmp_path / "run",
    )  # fmt: skip
    path = tmp_path / "run" / "known.safetensors"
    save_arrays({name: values for name, values in load_arrays(path).items() if name != "power"}, path)
    vouch_for(tmp_path / "run", path.name)

    def as_it_was(config):
        config["format"] = 3
        del config["settings"]["power"]

    edit_config(tmp_path / "run", as_it_was)
    assert answers(nf.load(tmp_path / "run"), stream) == answers(run, stream)


def test_a_head_of_another_shape_is_refused(run_folder):
    path = run_folder / "model.safetensors"
    tensors = load_file(path)
    name = next(key for key in tensors if key.startswith("head."))
    save_file(tensors | {name: tensors[name][:1].clone()}, path)
    vouch_for(run_folder, path.name)
    with pytest.raises(RunError, match=r"head in .* damaged"):
        nf.load(run_folder)


def test_a_run_of_a_method_that_does_not_exist_is_refused(run_folder):
    edit_config(run_folder, lambda config: config.update(method="telepathy"))
    with pytest.raises(RunError, match="telepathy"):
        nf.load(run_folder)


def test_a_tail_that_lacks_tensors_is_refused(run_folder):
    path = run_folder / "model.safetensors"
    tensors = load_file(path)
    tensors.pop("tail.conv_head.weight")
    save_file(tensors, path)
    vouch_for(run_folder, path.name)
    with pytest.raises(RunError, match="1 tensor is missing"):
        nf.load(run_folder)


def test_a_tail_of_another_shape_is_refused(run_folder):
    path = run_folder / "model.safetensors"
    save_file(load_file(path) | {"tail.conv_head.weight": torch.zeros(2, 2)}, path)
    vouch_for(run_folder, path.name)
    with pytest.raises(RunError, match="do not fit"):
        nf.load(run_folder)


@pytest.mark.parametrize("name", ["log.csv", "threshold.csv"])
@pytest.mark.parametrize("content", ["step,tau,loss\n1", "step,tau\nx,y\n", "\x00"])
def test_a_damaged_log_is_named(run_folder, name, content):
    (run_folder / name).write_text(content)
    with pytest.raises(RunError, match=name):
        nf.load(run_folder)


def test_a_folder_that_cannot_be_written_to_is_named(tiny_run, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(RunError, match="file"):
        tiny_run.save(tmp_path / "file" / "run")


def test_a_run_is_saved_whatever_the_bytes_of_file_names_are(tiny_run, tmp_path):
    odd = os.fsdecode(b"caf\xe9.jpg")
    run = dataclasses.replace(
        tiny_run, skipped=[(odd, "empty")], config=tiny_run.config | {"data": tiny_run.config["data"] | {"source": odd}}
    )
    run.save(tmp_path / "run")
    loaded = nf.load(tmp_path / "run")
    assert loaded.skipped == [(r"caf\udce9.jpg", "empty")]
    assert loaded.config["data"]["source"] == odd


def test_a_run_that_finds_the_disk_full_leaves_no_half_file(tiny_run, tmp_path, monkeypatch):
    def full(path, content):
        with path.open("wb") as file:
            file.write(content[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(RunError, match="No space left"):
        tiny_run.save(tmp_path / "run")
    assert list((tmp_path / "run").iterdir()) == []


@pytest.mark.parametrize(("runtime", "gpu", "device"), [
    ("torch", True, "cuda"), ("auto", True, "cuda"), ("onnx", True, "cpu"), ("torch", False, "cpu"),
])  # fmt: skip
def test_pytorch_takes_the_gpu_where_there_is_one(monkeypatch, runtime, gpu, device):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu)
    assert loading.usual_device(runtime) == device


def test_a_run_is_loaded_onto_the_device_that_is_asked_for(fit_tiny, pictures, tmp_path):
    fit_tiny(pictures(kinds=3), method="smile", out=tmp_path / "run")
    run = nf.load(tmp_path / "run", device="meta")  # a device that every machine has
    assert run.encoder.device.type == "meta"
    assert {value.device.type for value in run.method.state_dict().values()} == {"meta"}


def test_a_run_is_loaded_onto_the_usual_device_if_that_is_left_open(run_folder):
    assert nf.load(run_folder, device="auto").encoder.device == nf.load(run_folder).encoder.device


@pytest.mark.parametrize("device", ["cuda:17", "warp"])
def test_a_device_that_is_not_here_is_named(run_folder, device):
    with pytest.raises(SettingsError, match=device):
        nf.load(run_folder, device=device)


def test_only_pytorch_runs_on_another_device_than_the_processor(run_folder):
    with pytest.raises(SettingsError, match="device='meta' is for PyTorch"):
        nf.load(run_folder, runtime="onnx", device="meta")


# ---------------------------------------------------------------- using it


def test_the_threshold_can_be_changed_after_training(tiny_run, stream):
    strict = tiny_run.discoverer(threshold=1.0).observe(stream)
    closed = tiny_run.discoverer(threshold=-1.0).observe(stream)
    assert sum(s.is_new for s in strict) == len(stream)
    assert not any(s.is_new for s in closed)
    with pytest.raises(SettingsError, match=r"1\.5"):
        tiny_run.discoverer(threshold=1.5)


def test_a_journal_is_continued_by_the_run_it_was_written_with_and_refused_to_others(
    tiny_run, fit_tiny, pictures, picture, tmp_path
):
    where = tmp_path / "deep" / "journal.db"
    with tiny_run.discoverer(where) as first:
        first.observe([picture(3, 30)])
    with tiny_run.discoverer(where) as again:
        assert [c.name for c in again.categories()] == ["kind0", "kind1", "kind2", "new-1"]
        assert again.observe([picture(3, 31)])[0].category == 3
    other = fit_tiny(pictures(kinds=3), method="frozen", threshold=0.9)
    with pytest.raises(JournalError, match="reencode"):
        other.discoverer(where)


def test_discoverers_of_a_run_do_not_share_what_they_find(tiny_run, picture):
    first, second = tiny_run.discoverer(), tiny_run.discoverer()
    first.observe([picture(3, 30)])
    assert len(first.categories()) == 4
    assert len(second.categories()) == 3


def test_evaluation_scores_a_labelled_stream_in_several_orders(tiny_run, picture):
    images = [picture(kind, number) for kind in range(5) for number in range(30, 34)]
    labels = [f"kind{kind}" for kind in range(5) for _ in range(4)]
    result = tiny_run.evaluate((images, labels), orders=2)
    assert result.orders == 2
    mean = result.mean
    for protocol in ("strict", "greedy", "named"):
        assert mean[protocol]["all"] == 1.0, protocol
        assert mean[protocol]["old"] == 1.0
        assert mean[protocol]["new"] == 1.0
    assert mean["categories"] == 5
    assert tiny_run.evaluate((images, labels), orders=1, threshold=-1.0).mean["named"]["new"] == 0


def test_evaluation_leaves_unreadable_images_out(tiny_run, write_folder, tmp_path):
    root = write_folder(tmp_path / "stream", kinds=4, each=3)
    clean = tiny_run.evaluate(root, orders=1).mean
    (root / "kind0" / "1b.png").write_bytes(b"noise")
    assert tiny_run.evaluate(root, orders=1).mean == clean


def test_novelty_is_higher_for_new_kinds(tiny_run, picture):
    known, new = (tiny_run.novelty(tiny_run.encoder.features([picture(kind, 30)]))[0] for kind in (0, 3))
    assert new > known
