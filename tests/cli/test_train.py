"""`newfound train`: runs, refusals, and a training that is killed and goes on."""

from __future__ import annotations

import csv
import functools
import json
import re
import shutil
import signal
import time

import numpy as np
import pytest

import newfound
from newfound.errors import DataError

EPOCHS = 12


def test_the_end_of_training_says_what_was_learnt_and_what_to_do_next(invoke, quick, labelled, tmp_path):
    data = tmp_path / "with a bad one"
    shutil.copytree(labelled, data)
    (data / "red" / "bad.png").write_bytes((data / "red" / "0.png").read_bytes()[:300])
    out = tmp_path / "a run"
    result = invoke("train", data, "--out", out, *quick, "--method", "frozen", "--epochs", "0")
    assert result.exit_code == 0, result.stderr
    assert "3 classes from 12 images, 1 left out" in result.stdout
    assert "0.60, fixed by setting; nothing is rehearsed" in result.stdout
    assert f"newfound discover '{out}' FOLDER" in result.stdout
    assert "bad.png" in result.stderr
    assert "bad.png" in (out / "skipped.csv").read_text()


def test_training_rehearses_by_itself_and_says_what_it_chose_and_how_flat_the_optimum_is(
    invoke, write_folder, tiny_weights, tmp_path
):
    data, weights = write_folder(tmp_path / "labelled", kinds=4, each=4), tiny_weights("test_efficientnet")
    words = ("--method", "frozen", "--backbone", "test_efficientnet", "--weights", weights, "--image-size", "32")
    result = invoke("train", data, "--out", tmp_path / "run", *words)
    assert result.exit_code == 0, result.stderr
    chosen = json.loads((tmp_path / "run" / "config.json").read_text())["threshold"]
    assert f"threshold {chosen['value']:.2f}" in chosen["rule"]
    flat = r"on 8 draws of hidden classes \(score [\d.]+; within a point of it from \S+ to \S+\)"
    assert re.search(flat, chosen["rule"])
    assert chosen["rule"] in " ".join(result.stdout.split())


@pytest.mark.parametrize("inside", [".", "runs/first"])
def test_a_run_is_not_put_among_the_folders_of_the_classes(invoke, quick, labelled, inside):
    before = sorted(labelled.rglob("*"))
    result = invoke("train", labelled, "--out", labelled / inside, *quick, "--method", "frozen", "--epochs", "0")
    assert result.exit_code == 2
    assert f"lies in {labelled}, whose folders are the classes" in result.stderr
    assert sorted(labelled.rglob("*")) == before


def test_json_is_one_object_that_describes_the_run(invoke, quick, labelled, tmp_path):
    result = invoke("train", labelled, "--out", tmp_path / "run", *quick, "--json", "--seed", "3", "--set", "p_gen=0.5")
    told = json.loads(result.stdout)
    assert told["classes"] == ["blue", "green", "red"]
    assert (told["images"], told["skipped"], told["seed"]) == (12, [], 3)
    assert told["label"] == "ltc, default (short)"
    assert told["threshold"]["value"] == 0.6
    assert told["last_epoch"]["epoch"] == 1
    loaded = newfound.load(told["run"])
    assert (loaded.threshold, loaded.config["settings"]["p_gen"]) == (0.6, 0.5)


def test_a_run_finds_its_weight_file_from_any_folder(invoke, quick, labelled, tiny_weights, tmp_path, monkeypatch):
    shutil.copy(tiny_weights("test_efficientnet"), tmp_path / "w.safetensors")
    monkeypatch.chdir(tmp_path)
    words = ("--method", "frozen", "--backbone", "test_efficientnet", "--weights", "w.safetensors")
    result = invoke("train", labelled, "--out", "run", *quick, "--epochs", "0", *words)
    assert result.exit_code == 0, result.stderr
    monkeypatch.chdir(labelled)
    assert newfound.load(tmp_path / "run").classes == ["blue", "green", "red"]


def test_a_second_training_does_not_replace_the_first_unasked(invoke, quick, labelled, run):
    before = (run / "config.json").read_bytes()
    result = invoke("train", labelled, "--out", run, *quick)
    assert result.exit_code == 1
    assert "already holds a run" in result.stderr
    assert "--overwrite" in result.stderr
    assert (run / "config.json").read_bytes() == before


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (["--method", "lct"], 2, "there is no method 'lct'; choose one of ltc"),
        (["--preset", "papers"], 2, "there is no preset 'papers'"),
        (["--set", "learning_rate=1"], 2, "no setting 'learning_rate'"),
        (["--set", "lr=fast"], 2, "lr must be a number"),
        (["--set", "threshold=1.5", "--set", "dictionary=prototypes"], 2, "a similarity lies in"),
        (["--set", "within=1.5"], 2, "within and between lie in [0, 1]"),
        (["--set", "seed=1"], 2, "an option of `newfound train`"),
        (["--backbone", "no_such_net"], 2, "timm has no model named 'no_such_net'"),
        (["--weights", "nowhere.safetensors"], 1, "there is no weight file nowhere.safetensors"),
        (["--backbone", "vit_base_patch16_224.dino"], 1, "--weights"),
        (["--epochs", "-1"], 2, "--epochs"),
    ],
)
def test_a_wrong_option_says_what_is_wrong_and_leaves_no_run(invoke, labelled, tmp_path, args, code, says):
    result = invoke("train", labelled, "--out", tmp_path / "run", *args)
    assert result.exit_code == code
    assert says in result.stderr
    assert "Traceback" not in result.output
    assert not (tmp_path / "run" / "config.json").exists()


def test_data_that_cannot_be_learnt_from_says_what_to_do(invoke, paint, tmp_path):
    paint(tmp_path / "data" / "only", (9, 9, 9), 3)
    result = invoke("train", tmp_path / "data", "--out", tmp_path / "run")
    assert result.exit_code == 1
    assert "one class only (only), but at least 2 are needed" in result.stderr
    assert invoke("train", tmp_path / "nowhere", "--out", tmp_path / "run").exit_code == 1


def test_folders_that_may_not_be_the_classes_are_told_before_anything_is_learnt(invoke, paint, tmp_path):
    for part, colour in (("train", (9, 9, 9)), ("val", (99, 9, 9))):
        paint(tmp_path / "data" / part / "cat", colour, 2)
        paint(tmp_path / "data" / part / "dog", colour, 2, seed=1)
    result = invoke("train", tmp_path / "data", "--out", tmp_path / "run", "--weights", tmp_path / "none.pth")
    assert result.exit_code == 1
    assert "warning: the classes are the first folders" in result.stderr
    assert "train/cat, train/dog, val/cat, ..." in result.stderr


@pytest.fixture(scope="module")
def small(invoke, labelled, tmp_path_factory):
    """A run of a backbone that is shown small images, and of which two blocks learn."""
    out = tmp_path_factory.mktemp("small") / "run"
    words = ("--method", "frozen", "--backbone", "resnet10t", "--weights", "random", "--set", "threshold=0")
    result = invoke("train", labelled, "--out", out, *words, "--image-size", "64", "--tune-blocks", "2")
    assert result.exit_code == 0, result.stderr
    return out


BEFORE = {"method": "frozen", "preset": "default", "backbone": "resnet10t"}
BEFORE |= {"tune_blocks": 2, "image_size": 64}
ANEW = {"image_size": None}  # as what suits the backbone under the preset


@pytest.mark.parametrize(
    ("words", "changes"),
    [
        ("", {}),
        ("--image-size 96 --tune-blocks 3", {"image_size": 96, "tune_blocks": 3}),
        ("--backbone resnet10t --preset default", {}),
        ("--backbone test_vit", {"backbone": "test_vit", "tune_blocks": 1} | ANEW),
        ("--backbone test_vit --image-size 96", {"backbone": "test_vit", "tune_blocks": 1} | ANEW | {"image_size": 96}),
        ("--preset paper", {"preset": "paper"} | ANEW),
        ("--preset paper --image-size 96", {"preset": "paper", "image_size": 96}),
        ("--method ltc", {"method": "ltc"}),
    ],
)
def test_a_run_is_continued_as_it_was_but_for_what_belongs_to_another_backbone_or_preset(
    invoke, labelled, small, tmp_path, monkeypatch, words, changes
):
    asked = {}

    @functools.wraps(newfound.fit)
    def fit(_, **given):
        asked.update(given)
        raise DataError("that is enough")

    monkeypatch.setattr("newfound.fitting.fit", fit)
    monkeypatch.setattr("newfound.cli.train._with_promoted", lambda data, *_: data)
    result = invoke("train", labelled, "--out", tmp_path / "run", "--continue", small, *words.split())
    assert "that is enough" in result.stderr
    assert {name: asked[name] for name in BEFORE} == BEFORE | changes


def test_a_run_to_continue_that_is_damaged_or_not_there_is_named(invoke, labelled, small, tmp_path):
    config = json.loads((small / "config.json").read_text())
    config["backbone"]["image_size"] = "64"
    (tmp_path / "config.json").write_text(json.dumps(config))
    damaged = "config.json is damaged: the 'image_size'"
    for folder, says in ((tmp_path, damaged), (tmp_path / "none", "there is no run")):
        result = invoke("train", labelled, "--out", tmp_path / "run", "--continue", folder)
        assert result.exit_code == 1
        assert says in result.stderr


@pytest.fixture(scope="module")
def killed_and_whole(labelled, quick, start, tmp_path_factory):
    """A training that was killed (SIGKILL) after its first checkpoints and started again, beside one that was not.

    A mark is left in the dead training's checkpoint, where neither weights nor log depend on it: whoever starts over
    instead of going on loses it.
    """
    root = tmp_path_factory.mktemp("killed")

    def train(folder):
        settings = [*quick, "--epochs", EPOCHS, "--set", "p_gen=0.7", "--set", "threshold=adaptive"]
        return start("--threads", "1", "train", labelled, "--out", folder, *settings, "--json")

    whole, dying = train(root / "whole"), train(root / "killed")
    checkpoint = root / "killed" / "checkpoint.safetensors"
    deadline = time.monotonic() + 240
    while not checkpoint.exists() and dying.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    dying.send_signal(signal.SIGKILL)
    dying.communicate()
    epochs_before = _mark(checkpoint)
    again = train(root / "killed")
    out, err = again.communicate(timeout=240)
    assert again.returncode == 0, err
    _, whole_err = whole.communicate(timeout=240)
    assert whole.returncode == 0, whole_err
    return root, epochs_before, json.loads(out), err


def _mark(checkpoint) -> int:
    """Leave the mark; returns how many epochs the checkpoint holds."""
    from safetensors import safe_open
    from safetensors.torch import load_file, save_file

    with safe_open(checkpoint, "pt") as file:
        info = json.loads(file.metadata()["info"])
    info["threshold_path"].insert(0, [-1, 0.123])
    save_file(load_file(checkpoint), checkpoint, {"info": json.dumps(info)})
    return len(info["log"])


def test_a_killed_training_goes_on_where_it_stopped(killed_and_whole):
    root, epochs_before, told, err = killed_and_whole
    assert 1 <= epochs_before < EPOCHS
    assert "going on from its last epoch" in err
    assert told["last_epoch"]["epoch"] == EPOCHS
    with (root / "killed" / "threshold.csv").open(newline="") as file:
        steps = [row["step"] for row in csv.DictReader(file)]
    assert steps[0] == "-1"
    assert not (root / "killed" / "checkpoint.safetensors").exists()
    assert not (root / "killed" / "training.lock").exists()


def test_a_killed_training_ends_with_the_weights_and_log_of_one_that_was_not(killed_and_whole):
    from safetensors.numpy import load_file

    root = killed_and_whole[0]
    killed, whole = (load_file(root / name / "model.safetensors") for name in ("killed", "whole"))
    assert killed.keys() == whole.keys()
    assert all(np.array_equal(killed[name], whole[name]) for name in whole)
    assert (root / "killed" / "log.csv").read_bytes() == (root / "whole" / "log.csv").read_bytes()
    prototypes = [(root / name / "known.safetensors").read_bytes() for name in ("killed", "whole")]
    assert prototypes[0] == prototypes[1]
    thresholds = [newfound.load(root / name).threshold for name in ("killed", "whole")]
    assert thresholds[0] == thresholds[1] != 0.7
