"""Promises of `newfound.fit`: what it takes, what it refuses and why, and what it leaves behind."""

from __future__ import annotations

import csv
import inspect
import json
import re
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from PIL import Image

import newfound as nf
from newfound import fitting
from newfound.errors import DataError, MissingFileError, NewfoundError, RunError, SettingsError, WeightsError
from newfound.logs import TensorBoardLog
from newfound.method import get_method
from newfound.progress import Reporter
from newfound.rehearsal import rehearse

pytestmark = pytest.mark.usefixtures("one_thread")


class Listener(Reporter):
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.stages: dict[str, tuple[int | None, int]] = {}
        self.lines: list[str] = []

    @contextmanager
    def stage(self, title, total=None):
        done = []
        yield done.append
        self.stages[title] = (total, sum(done))

    def say(self, message):
        self.lines.append(message)


class Stopped(Exception):
    """Somebody pulled the plug."""


def stop_after(monkeypatch, epoch: int) -> None:
    """Interrupt `fit` once this epoch is done."""
    write = TensorBoardLog.write

    def stop(self, row):
        write(self, row)
        if row["epoch"] == epoch:
            raise Stopped

    monkeypatch.setattr(TensorBoardLog, "write", stop)


def contents(run) -> dict:
    head = {f"head.{key}": value for key, value in run.method.state_dict().items()}
    tensors = run.encoder.backbone.model.state_dict() | head
    return {
        "tensors": {key: value.numpy().tobytes() for key, value in tensors.items()},
        "prototypes": run.known["prototypes"].tobytes(),
        "threshold": run.threshold,
        "log": run.log,
        "path": run.threshold_path,
    }


def test_a_folder_a_csv_and_arrays_give_the_same_run(fit_tiny, write_folder, pictures, tmp_path):
    root = write_folder(tmp_path / "data", kinds=2, each=3)
    rows = [f"data/kind{k}/{n}.png,kind{k}" for k in range(2) for n in range(3)]
    (tmp_path / "list.csv").write_text("path,label\n" + "\n".join(rows))
    runs = [fit_tiny(source, p_gen=1.0) for source in (root, str(root), tmp_path / "list.csv")]
    assert all(run.classes == ["kind0", "kind1"] for run in runs)
    assert contents(runs[0]) == contents(runs[1]) == contents(runs[2])
    arrays = fit_tiny(pictures(kinds=2, each=3))
    assert arrays.classes == ["kind0", "kind1"]


@pytest.mark.parametrize("method", nf.methods())
@pytest.mark.parametrize("preset", ["paper", "released", "default"])
def test_every_method_fits_under_every_preset(fit_tiny, pictures, method, preset):
    options = {"creator": "mixup"} if get_method(method).creates else {}
    options["epochs"] = None if method == "frozen" else 1
    run = fit_tiny(pictures(kinds=4, each=4), method=method, preset=preset, **options)
    assert run.label == f"{method}, {preset} (short)"
    assert run.dictionary().known == 4
    assert run.dictionary().dimension == run.encoder.dimension
    weighs = run.config["settings"].get("dictionary") == "bayesian"
    assert np.isfinite(run.threshold) if weighs else -1 <= run.threshold <= 1
    assert run.config["threshold"]["rule"]
    assert len(run.log) == (0 if method == "frozen" else 1)


def test_the_full_form_trains_from_fresh_views_in_pixel_space(fit_tiny, pictures):
    run = fit_tiny(pictures(kinds=2, each=3), short=False, p_gen=1.0)
    assert run.label == "ltc, paper"
    assert run.config["settings"]["space"] == "pixels"
    assert not run.config["settings"]["cached"]
    assert run.log[1]["created"] == 6


def test_the_same_seed_gives_the_same_run_and_another_another(fit_tiny, pictures):
    data = pictures(kinds=3, each=3)
    torch.manual_seed(1)
    first = contents(fit_tiny(data, seed=5, p_gen=1.0))
    torch.manual_seed(2)
    assert contents(fit_tiny(data, seed=5, p_gen=1.0)) == first
    assert contents(fit_tiny(data, seed=6, p_gen=1.0))["tensors"] != first["tensors"]


def test_the_same_seed_gives_the_same_run_on_random_weights_too(fit_tiny, pictures):
    data = pictures(kinds=2, each=3)
    torch.manual_seed(1)
    first = contents(fit_tiny(data, seed=5, weights="random"))
    torch.manual_seed(2)
    assert contents(fit_tiny(data, seed=5, weights="random")) == first


@pytest.mark.parametrize("threshold", [0.35, -1, 1])
def test_a_threshold_can_be_given(fit_tiny, pictures, threshold):
    run = fit_tiny(pictures(kinds=2, each=2), threshold=threshold, epochs=1)
    assert run.threshold == threshold
    assert "setting" in run.config["threshold"]["rule"]


def test_where_the_threshold_comes_from_is_recorded(fit_tiny, pictures):
    data = pictures(kinds=4, each=4)
    rules = {
        "adaptive": fit_tiny(data, epochs=1),
        "tau_init": fit_tiny(data, method="baseline", epochs=1),
        "closed": fit_tiny(data, method="closed", epochs=1),
        "rehearsed": fit_tiny(data, method="frozen", preset="default"),
        "not rehearsed": fit_tiny(pictures(kinds=2, each=3), method="frozen", preset="default"),
    }
    for word, run in rules.items():
        assert word in run.config["threshold"]["rule"], word
    assert rules["closed"].threshold == -1
    rehearsed = rules["rehearsed"].config["threshold"]
    assert min(rehearsed["grid"]) <= rehearsed["value"] <= max(rehearsed["grid"])
    assert len(rehearsed["grid"]) == len(rehearsed["scores"])


def test_a_share_of_nothing_is_the_frozen_backbone_and_the_share_is_recorded(fit_tiny, pictures):
    data, options = pictures(kinds=2, each=3), {"threshold": 0.5, "lr": 1e-2}
    nothing, half, all_of_it = (fit_tiny(data, share=share, **options) for share in (0.0, 0.5, 1.0))
    frozen = fit_tiny(data, method="frozen", threshold=0.5)
    assert np.array_equal(nothing.known["prototypes"], frozen.known["prototypes"])
    assert not np.allclose(all_of_it.known["prototypes"], frozen.known["prototypes"], atol=1e-3)
    states = [run.encoder.backbone.tail_state()["conv_head.weight"] for run in (nothing, half, all_of_it)]
    torch.testing.assert_close(states[1], (states[0] + states[2]) / 2)
    assert [run.config["share"] for run in (nothing, half, all_of_it)] == [0.0, 0.5, 1.0]


def test_a_threshold_learnt_on_plain_features_is_not_taken_for_centred_ones(fit_tiny, pictures):
    """Eq. 11 and 12 measure cosines of plain features; seen from the mean, cosines mean something else."""
    with pytest.raises(SettingsError, match="centre"):
        fit_tiny(pictures(kinds=2, each=2), threshold="adaptive", centre=True, epochs=1)


def test_a_small_data_set_is_still_recognised_under_the_default_preset(fit_tiny, pictures, picture):
    """Too few classes to rehearse: the fallback must not make strangers of the known classes' own images."""
    run = fit_tiny(pictures(kinds=3, each=5), preset="default")
    seen = run.discoverer().predict([picture(kind, number) for kind in range(3) for number in range(20, 24)])
    assert [s.name for s in seen] == [f"kind{kind}" for kind in range(3) for _ in range(4)]


def test_what_a_rehearsal_chose_is_recorded_and_used(fit_tiny, pictures):
    run = fit_tiny(pictures(kinds=4, each=5), method="baseline", preset="default", reconsider_at="rehearsed")
    chosen = run.config["rehearsed"]
    assert set(chosen) == {"reconsider_at", "inflate", "evidence_temperature", "new_slope", "new_shift"}
    assert {name: getattr(run.method.settings, name) for name in chosen} == chosen
    assert run.method.settings.temperature == 0.07, "a loss's temperature is none of its business"
    state = run.dictionary().state()
    assert state["reconsider_at"] == min(chosen["reconsider_at"], run.threshold)
    assert state["temperature"] == chosen["evidence_temperature"]
    assert (state["new_slope"], state["new_shift"]) == (chosen["new_slope"], chosen["new_shift"])
    assert [name for trial in run.config["threshold"]["trials"] for name in trial].count("score") == 4
    assert run.config["settings"]["reconsider_at"] == "rehearsed", "what was asked for stays on record"


def test_a_run_of_before_odds_had_a_place_of_their_own_gives_the_probabilities_it_gave(fit_tiny, pictures, tmp_path):
    run = fit_tiny(pictures(kinds=4, each=5), method="frozen", preset="default", out=tmp_path / "run")
    assert run.dictionary().state()["even_at"] == 0.0
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    del config["settings"]["even_at"]
    (tmp_path / "run" / "config.json").write_text(json.dumps(config))
    assert nf.load(tmp_path / "run").dictionary().state()["even_at"] is None, "at the threshold"


def test_a_run_folder_holds_json_csv_and_safetensors_and_a_board(fit_tiny, pictures, tmp_path):
    run = fit_tiny(pictures(kinds=2, each=3), out=tmp_path / "deep" / "run", p_gen=1.0)
    folder = tmp_path / "deep" / "run"
    assert run.folder == folder
    names = {path.name for path in folder.iterdir()}
    assert names == {
        "config.json", "classes.json", "model.safetensors", "known.safetensors", "log.csv", "threshold.csv",
        "tensorboard",
    }  # fmt: skip
    assert list((folder / "tensorboard").glob("events*"))
    with (folder / "log.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["loss"]) for row in rows] == [row["loss"] for row in run.log]
    with (folder / "threshold.csv").open() as file:
        assert [float(row["tau"]) for row in csv.DictReader(file)] == [tau for _, tau in run.threshold_path]
    config = json.loads((folder / "config.json").read_text())
    assert config["newfound"] == nf.__version__
    assert config["preset"] == "paper (short)"
    assert config["seed"] == 0


def test_without_tensorboard_training_goes_on(fit_tiny, pictures, tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    fit_tiny(pictures(kinds=2, each=2), out=tmp_path / "run", epochs=1)
    assert not (tmp_path / "run" / "tensorboard").exists()
    assert (tmp_path / "run" / "log.csv").exists()


def test_the_board_of_a_training_that_fails_is_closed(fit_tiny, pictures, tmp_path, monkeypatch):
    closed = []
    monkeypatch.setattr(TensorBoardLog, "close", lambda board: closed.append(board))
    stop_after(monkeypatch, epoch=1)
    with pytest.raises(Stopped):
        fit_tiny(pictures(kinds=2, each=3), out=tmp_path / "run", epochs=2)
    assert len(closed) == 1


def test_an_interrupted_fit_goes_on_and_ends_as_if_it_had_not_been(fit_tiny, pictures, tmp_path, monkeypatch):
    data, options = pictures(kinds=3, each=3), {"epochs": 4, "p_gen": 1.0, "beta": 0.1}
    whole = contents(fit_tiny(data, **options))
    with monkeypatch.context() as patch:
        stop_after(patch, epoch=2)
        with pytest.raises(Stopped):
            fit_tiny(data, out=tmp_path / "run", **options)
    with pytest.raises(MissingFileError, match="interrupted"):
        nf.load(tmp_path / "run")
    assert len((tmp_path / "run" / "log.csv").read_text().splitlines()) == 3, "the log is written as training goes"
    assert contents(fit_tiny(data, out=tmp_path / "run", **options)) == whole
    assert not (tmp_path / "run" / "checkpoint.safetensors").exists()
    assert contents(nf.load(tmp_path / "run")) == whole


def test_what_was_rehearsed_before_an_interruption_is_not_rehearsed_again(fit_tiny, pictures, tmp_path, monkeypatch):
    played = []
    monkeypatch.setattr(fitting, "rehearse", lambda *given, **how: played.append(1) or rehearse(*given, **how))
    data, folder = pictures(kinds=4, each=4), tmp_path / "run"
    options = {"threshold": "rehearsed", "p_gen": 0.0}
    whole = fit_tiny(data, **options)
    with monkeypatch.context() as patch:
        stop_after(patch, epoch=1)
        with pytest.raises(Stopped):
            fit_tiny(data, out=folder, **options)
    assert len(played) == 2
    resumed = fit_tiny(data, out=folder, **options)
    assert len(played) == 2
    assert contents(resumed) == contents(whole)
    for name in ("threshold", "share", "rehearsed", "settings"):
        assert resumed.config.get(name) == whole.config.get(name)
    assert not (folder / "rehearsal").exists()


@pytest.mark.parametrize(
    ("change", "named"), [({"lr": 1e-4}, "settings"), ({"seed": 9}, "seed"), ({"tune_blocks": 2}, "backbone")]
)
def test_an_unfinished_training_with_other_settings_is_refused_unless_overwritten(
    fit_tiny, pictures, tmp_path, monkeypatch, change, named
):
    data = pictures(kinds=2, each=3)
    with monkeypatch.context() as patch:
        stop_after(patch, epoch=1)
        with pytest.raises(Stopped):
            fit_tiny(data, out=tmp_path / "run")
    with pytest.raises(RunError, match=named):
        fit_tiny(data, out=tmp_path / "run", **change)
    fit_tiny(data, out=tmp_path / "run", overwrite=True, **change)


def test_an_unfinished_training_on_other_images_is_refused(fit_tiny, pictures, tmp_path, monkeypatch):
    images, labels = pictures(kinds=2, each=3)
    with monkeypatch.context() as patch:
        stop_after(patch, epoch=1)
        with pytest.raises(Stopped):
            fit_tiny((images, labels), out=tmp_path / "run")
    changed = [images[0] // 2, *images[1:]]
    with pytest.raises(RunError, match="data"):
        fit_tiny((changed, labels), out=tmp_path / "run")


def test_a_folder_that_holds_a_run_is_refused_unless_overwritten(fit_tiny, pictures, tmp_path):
    data = pictures(kinds=2, each=2)
    fit_tiny(data, out=tmp_path / "run", epochs=1)
    with pytest.raises(RunError, match=r"already holds a run.*overwrite"):
        fit_tiny(data, out=tmp_path / "run", epochs=1)
    fit_tiny(data, out=tmp_path / "run", epochs=1, seed=4, overwrite=True)
    assert nf.load(tmp_path / "run").config["seed"] == 4


def test_a_run_is_not_overwritten_by_a_training_that_cannot_begin(fit_tiny, pictures, tmp_path):
    fit_tiny(pictures(kinds=2, each=2), out=tmp_path / "run", epochs=1, seed=4)
    for data, options in ((tmp_path / "typo", {}), (pictures(kinds=2, each=2), {"weights": "typo.safetensors"})):
        with pytest.raises(NewfoundError):
            fit_tiny(data, out=tmp_path / "run", overwrite=True, **options)
        assert nf.load(tmp_path / "run").config["seed"] == 4


def test_overwriting_leaves_nothing_of_the_run_before(fit_tiny, write_folder, tmp_path):
    root = write_folder(tmp_path / "data", kinds=2, each=3)
    (root / "kind0" / "bad.png").write_bytes(b"not a picture")
    assert fit_tiny(root, out=tmp_path / "run", epochs=1).skipped
    (root / "kind0" / "bad.png").unlink()
    fit_tiny(root, out=tmp_path / "run", epochs=1, overwrite=True)
    assert nf.load(tmp_path / "run").skipped == []


def full(*_, **__):
    raise OSError(28, "No space left on device")


def test_a_full_disk_is_told_of_before_anything_is_learnt_by_the_folder_and_what_to_do(
    fit_tiny, pictures, tmp_path, monkeypatch
):
    monkeypatch.setattr("newfound.run_files.os.fsync", full)
    monkeypatch.setattr(fitting, "_train", lambda *a, **k: pytest.fail("it was trained"))
    where = re.escape(str(tmp_path / "run"))
    with pytest.raises(RunError, match=f"{where}: No space left on device; make room, or choose another folder"):
        fit_tiny(pictures(kinds=2, each=3), out=tmp_path / "run")
    assert list((tmp_path / "run").iterdir()) == []


@pytest.mark.parametrize("when", ["SummaryWriter.__init__", "SummaryWriter.add_scalar"])
def test_a_disk_that_is_full_for_tensorboard_is_told_of_by_its_folder(fit_tiny, pictures, tmp_path, monkeypatch, when):
    pytest.importorskip("torch.utils.tensorboard", reason="tensorboard is not installed")
    monkeypatch.setattr(f"torch.utils.tensorboard.{when}", full)
    monkeypatch.setattr("torch.utils.tensorboard.SummaryWriter.close", full)
    where = re.escape(str(tmp_path / "run" / "tensorboard"))
    with pytest.raises(RunError, match=f"{where}: No space left on device; make room, or choose another folder"):
        fit_tiny(pictures(kinds=2, each=3), out=tmp_path / "run")


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_training_into_the_folder_of_one_under_way_is_refused_and_disturbs_nothing(
    fit_tiny, pictures, tmp_path, monkeypatch, overwrite
):
    data, folder, refused, write = pictures(kinds=2, each=3), tmp_path / "run", [], TensorBoardLog.write

    def second(self, row):
        write(self, row)
        with pytest.raises(RunError, match=r"another training is writing to .*run\. Wait until it ends"):
            fit_tiny(data, out=folder, seed=1, overwrite=overwrite)
        refused.append(row["epoch"])

    monkeypatch.setattr(TensorBoardLog, "write", second)
    first = fit_tiny(data, out=folder)
    assert refused == [1, 2]
    assert contents(nf.load(folder)) == contents(first)
    assert not (folder / "training.lock").exists()


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_file_where_the_run_should_go_is_refused(fit_tiny, pictures, tmp_path, overwrite):
    (tmp_path / "run").write_text("mine")
    with pytest.raises(RunError, match="run"):
        fit_tiny(pictures(kinds=2, each=2), out=tmp_path / "run", overwrite=overwrite)
    assert (tmp_path / "run").read_text() == "mine"


# ---------------------------------------------------------------- bad input


def test_an_empty_folder_is_refused(fit_tiny, tmp_path):
    with pytest.raises(DataError, match="no images"):
        fit_tiny(tmp_path)


def test_a_folder_that_is_not_there_is_named(fit_tiny, tmp_path):
    with pytest.raises(MissingFileError, match="nowhere"):
        fit_tiny(tmp_path / "nowhere")


def test_one_class_only_is_refused(fit_tiny, pictures):
    with pytest.raises(DataError, match="one class only"):
        fit_tiny(pictures(kinds=1, each=4))


def test_a_class_with_one_image_is_named(fit_tiny, pictures):
    images, labels = pictures(kinds=2, each=3)
    with pytest.raises(DataError, match=r"one image.*lonely"):
        fit_tiny(([*images, images[0]], [*labels, "lonely"]))


def test_a_data_set_of_images_that_cannot_be_used_says_why_and_not_that_it_has_no_classes(
    fit_tiny, write_folder, tmp_path
):
    root = write_folder(tmp_path / "data", kinds=2, each=2)
    (root / "kind1" / "1.png").write_bytes(b"")
    listener = Listener()
    with pytest.raises(DataError, match=r"without.*\(1 of 4, the first: .*1\.png.*empty.*one image: kind1"):
        fit_tiny(root, reporter=listener)
    assert any(line.startswith("1 image cannot be read and is left out") for line in listener.lines)
    for path in root.glob("*/*.png"):
        path.write_bytes(b"")
    with pytest.raises(DataError, match=r"none of the 4 images of .*data can be used; .*0\.png.*empty"):
        fit_tiny(root)


def test_unreadable_images_are_skipped_and_listed(fit_tiny, write_folder, tmp_path):
    root = write_folder(tmp_path / "data", kinds=2, each=4)
    whole = (root / "kind0" / "0.png").read_bytes()
    (root / "kind0" / "truncated.png").write_bytes(whole[: len(whole) // 2])
    (root / "kind1" / "empty.jpg").write_bytes(b"")
    listener = Listener()
    run = fit_tiny(root, out=tmp_path / "run", reporter=listener)
    names = [name for name, _ in run.skipped]
    assert sorted(name.rsplit("/", 1)[1] for name in names) == ["empty.jpg", "truncated.png"]
    assert all(reason for _, reason in run.skipped)
    assert any("2 images cannot be read" in line for line in listener.lines)
    assert nf.load(tmp_path / "run").skipped == run.skipped
    assert run.config["data"]["skipped"] == 2
    assert run.config["data"]["images"] == 8


def test_the_run_is_that_of_the_readable_images_alone(fit_tiny, write_folder, tmp_path):
    root = write_folder(tmp_path / "data", kinds=2, each=4)
    clean = contents(fit_tiny(root))
    (root / "kind0" / "2a.png").write_bytes(b"noise")
    assert contents(fit_tiny(root)) == clean


def test_a_class_with_too_few_readable_images_is_named(fit_tiny, write_folder, tmp_path):
    root = write_folder(tmp_path / "data", kinds=2, each=2)
    (root / "kind1" / "0.png").write_bytes(b"noise")
    with pytest.raises(DataError, match="kind1"):
        fit_tiny(root)


def test_a_folder_without_a_single_readable_image_is_refused(fit_tiny, write_folder, tmp_path):
    root = write_folder(tmp_path / "data", kinds=2, each=2)
    for path in root.rglob("*.png"):
        path.write_bytes(b"noise")
    with pytest.raises(DataError):
        fit_tiny(root)


def test_missing_weights_are_said_to_be_missing(pictures, tmp_path):
    with pytest.raises(WeightsError, match="no weight file"):
        nf.fit(pictures(kinds=2, each=2), backbone="test_vit", weights=str(tmp_path / "gone.pth"), image_size=32)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"lrr": 1e-3}, "Did you mean 'lr'"),
        ({"threshold": 1.5}, "threshold=1.5"),
        ({"preset": "best"}, "no preset 'best'"),
        ({"method": "magic"}, "no method 'magic'"),
        ({"backbone": "vit_tyni", "weights": "random"}, "no model named 'vit_tyni'"),
        ({"tune_blocks": 99}, "tune_blocks=99"),
        ({"creator": "gan"}, "no creator 'gan'"),
        ({"epochs": -1}, "epochs=-1"),
        ({"merge_every": 0}, "merge_every"),
        ({"head": "round"}, "head"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_settings_that_cannot_be_are_refused_before_any_training(fit_tiny, pictures, monkeypatch, bad, words):
    monkeypatch.setattr("newfound.teaching.learn", lambda *a, **k: pytest.fail("training had begun"))
    with pytest.raises(SettingsError, match=words):
        fit_tiny(pictures(kinds=2, each=2), **bad)


def test_epochs_for_the_frozen_backbone_are_refused_before_its_rehearsal(fit_tiny, pictures, monkeypatch):
    monkeypatch.setattr("newfound.fitting.rehearse", lambda *a, **k: pytest.fail("the rehearsal had begun"))
    with pytest.raises(SettingsError, match=r"epochs=2: frozen has nothing to learn; leave epochs out"):
        fit_tiny(pictures(kinds=2, each=2), method="frozen", epochs=2)


def test_a_refused_setting_leaves_no_folder_behind(fit_tiny, pictures, tmp_path):
    with pytest.raises(NewfoundError):
        fit_tiny(pictures(kinds=2, each=2), out=tmp_path / "run", lrr=1)
    assert not (tmp_path / "run").exists()


# ---------------------------------------------------------------- the rest


@pytest.mark.parametrize("precision", ["bf16-true", "64-true"])
def test_precisions_that_would_change_the_frozen_trunk_are_refused(fit_tiny, pictures, precision):
    with pytest.raises(SettingsError, match="bf16-mixed"):
        fit_tiny(pictures(kinds=2, each=3), precision=precision)


def test_several_devices_are_refused_where_the_program_cannot_be_run_again(fit_tiny, pictures):
    with pytest.raises(SettingsError, match="not one to run again"):
        fit_tiny(pictures(kinds=2, each=3), accelerator="cpu", devices=2)


def test_mixed_precision_works_and_the_run_can_be_loaded(fit_tiny, pictures, tmp_path, picture):
    run = fit_tiny(pictures(kinds=2, each=3), out=tmp_path / "run", precision="bf16-mixed", p_gen=1.0)
    assert run.log[-1]["created"] > 0
    loaded = nf.load(tmp_path / "run")
    again = loaded.discoverer().predict([picture(0, 30)])[0]
    assert again.score == pytest.approx(run.discoverer().predict([picture(0, 30)])[0].score, abs=1e-2)


def test_progress_adds_up_to_what_was_announced(fit_tiny, pictures):
    listener = Listener()
    fit_tiny(pictures(kinds=4, each=4), preset="default", epochs=2, reporter=listener)
    assert {"reading images", "caching views", "rehearsing discovery", "learning"} <= set(listener.stages)
    for title, (total, done) in listener.stages.items():
        assert total is None or done == total, title
    assert any(line.startswith("threshold") for line in listener.lines)


@pytest.mark.parametrize("dictionary", ["bayesian", "prototypes"])
def test_progress_of_what_does_not_learn_has_a_total_and_gets_there(fit_tiny, pictures, dictionary):
    listener = Listener()
    fit_tiny(
        pictures(kinds=4, each=4), method="frozen", preset="default", epochs=0, dictionary=dictionary, reporter=listener
    )
    assert set(listener.stages) == {"reading images", "rehearsing discovery"}
    total, done = listener.stages["rehearsing discovery"]
    assert total == done >= 16  # eight draws, each encoded and played


def test_the_cache_goes_where_it_is_told_and_is_trimmed(fit_tiny, pictures, tmp_path, monkeypatch):
    fit_tiny(pictures(kinds=2, each=2), cache=tmp_path / "tokens", epochs=1)
    assert list((tmp_path / "tokens").rglob("*.tokens"))
    monkeypatch.setenv("NEWFOUND_CACHE_GIB", "0")
    fit_tiny(pictures(kinds=2, each=2), cache=tmp_path / "small", epochs=1)
    assert not list((tmp_path / "small").rglob("*.tokens"))


def test_pictures_of_all_kinds_can_be_learnt_from(fit_tiny, picture, tmp_path):
    Image.fromarray(picture(0, 1)).save(tmp_path / "a.jpg")
    images = [picture(0, 0), tmp_path / "a.jpg", Image.fromarray(picture(1, 0)), (tmp_path / "a.jpg").read_bytes()]
    assert fit_tiny((images, ["a", "a", "b", "b"]), epochs=1).classes == ["a", "b"]


def test_the_signature_is_the_designs():
    parameters = inspect.signature(nf.fit).parameters
    assert next(iter(parameters)) == "data"
    defaults = {"method": "ltc", "out": None, "epochs": None, "seed": 0}
    assert {name: parameters[name].default for name in defaults} == defaults
    assert "backbone" in parameters


def test_where_nothing_can_be_rehearsed_the_trained_method_says_its_own_cut(fit_tiny, pictures):
    run = fit_tiny(pictures(kinds=2, each=4), threshold="rehearsed", p_gen=1.0, beta=0.5, epochs=3)
    assert run.threshold == run.method.tau != 0.7, "the threshold as learnt, not as it started"
    assert "not rehearsed: 2 classes" in run.config["threshold"]["rule"]


def test_a_last_step_that_breaks_the_weights_is_not_blamed_on_an_image(fit_tiny, pictures):
    with pytest.raises(NewfoundError, match=r"diverged.*lower rate"):
        fit_tiny(pictures(kinds=2, each=4), method="smile", preset="default", lr=1e30, epochs=1, warmup_epochs=0)
