"""Promises of a cell: its key is what it depends on and nothing else, its figures are a run's own, and traceable."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from hypothesis import example, given
from hypothesis import settings as examples
from hypothesis import strategies as st
from typer.testing import CliRunner

import newfound as nf
from newfound import presets
from newfound.benchmarks import cells
from newfound.benchmarks.cells import Cell, Setup, Variant
from newfound.cli import app
from newfound.datasets import write_csv
from newfound.errors import DataError, MissingFileError, SettingsError, WeightsError
from newfound.progress import Reporter

QUICK = {"epochs": 1, "batch_size": 16, "views": 2}
LTC = Variant("ltc", "paper", QUICK | {"creation_from_epoch": 0, "p_gen": 1.0})


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    """As conftest's one_thread, for the cell that is measured once for all tests too."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def kept(bench, tmp_path_factory) -> tuple[Cell, Path, dict]:
    """A measured cell of LTC, the folder with its run, and its result. Shared: do not change them."""
    cell, keep = Cell(LTC, 0, bench), tmp_path_factory.mktemp("kept")
    return cell, keep, cell.measure(keep)


def key(setup: Setup, method: str = "ltc", preset: str = "default", seed: int = 0, **settings) -> str:
    return Cell(Variant(method, preset, settings), seed, setup).key


# What a cell is


@given(st.data())
@examples(max_examples=30)
def test_to_name_a_presets_own_values_changes_nothing(bench, data):
    method = data.draw(st.sampled_from(["ltc", "smile", "frozen"]))
    preset = data.draw(st.sampled_from(["default", "paper"]))
    own = dataclasses.asdict(presets.resolve(method, preset, short=True, overrides={}))
    named = data.draw(st.lists(st.sampled_from(sorted(own)), unique=True, max_size=8))
    assert key(bench, method, preset, **{name: own[name] for name in named}) == key(bench, method, preset)


SOME = st.fixed_dictionaries(
    {},
    optional={
        "epochs": st.integers(0, 200),
        "batch_size": st.integers(1, 512),
        "lr": st.floats(1e-9, 1.0) | st.sampled_from([1e-4, 1e-3]),
        "flip": st.booleans(),
        "threshold": st.sampled_from([-0.5, 0.0, 0.7]) | st.sampled_from(["rehearsed", "adaptive"]),
        "creator": st.sampled_from([None, "mkee", "mixup", "cutmix"]),
        "dictionary": st.just("prototypes"),
        "share": st.sampled_from(["rehearsed", 1.0]),
    },
)


@given(SOME, SOME)
@examples(max_examples=40)
@example({"dictionary": "prototypes"}, {"dictionary": "prototypes", "lr": 1e-4})
@example({"dictionary": "prototypes"}, {"dictionary": "prototypes", "lr": 1e-3})
def test_cells_that_learn_with_other_settings_are_other_cells(bench, one, other):
    resolved = [presets.resolve("ltc", "default", short=True, overrides=settings) for settings in (one, other)]
    assert (key(bench, **one) == key(bench, **other)) == (resolved[0] == resolved[1])
    for settings, expected in zip((one, other), resolved, strict=True):
        told = Cell(Variant("ltc", "default", settings), 0, bench).settings
        assert presets.resolve("ltc", "default", short=True, overrides=told) == expected, "what it is trained with"


def test_a_local_pipeline_is_for_the_cells_that_create_by_diffusion_and_no_other(bench, monkeypatch, tmp_path):
    weights = tmp_path / "here" / "sd" / "unet" / "model.safetensors"
    weights.parent.mkdir(parents=True)
    weights.write_bytes(b"weights")
    local = dataclasses.replace(bench, pipeline=str(tmp_path / "here" / "sd"))
    by_diffusion, by_mixup = Variant("diffgre-smile"), Variant("diffgre-smile", settings={"creator": "mixup"})
    monkeypatch.setattr(cells, "fit", lambda data, **options: options.get("pipeline"))
    assert Cell(by_diffusion, 0, local).train() == local.pipeline
    for variant in (by_mixup, Variant("smile"), Variant("ltc")):
        assert Cell(variant, 0, local).train() is None
        assert Cell(variant, 0, local).key == Cell(variant, 0, bench).key
    told = Cell(by_diffusion, 0, local)
    assert told.key != Cell(by_diffusion, 0, bench).key
    assert told.command.endswith("--set pipeline=sd")
    assert str(tmp_path) not in json.dumps(told.identity), "results say nothing of the folders of a machine"
    shutil.move(tmp_path / "here", tmp_path / "there")
    moved = dataclasses.replace(bench, pipeline=str(tmp_path / "there" / "sd"))
    assert Cell(by_diffusion, 0, moved).key == told.key
    (tmp_path / "there" / "sd" / "unet" / "model.safetensors").write_bytes(b"other weights")
    assert Cell(by_diffusion, 0, dataclasses.replace(moved)).key != told.key


def test_another_number_of_stream_orders_is_the_same_training(bench):
    one, other = Cell(LTC, 0, bench), Cell(LTC, 0, dataclasses.replace(bench, orders=7))
    assert one.key != other.key
    assert one.training == other.training != Cell(LTC, 1, bench).training


def test_a_number_may_be_spelled_in_several_ways(bench):
    assert key(bench, "ltc", alpha=1) == key(bench, "ltc", alpha=1.0) != key(bench, "ltc", alpha=2)
    assert key(bench, "ltc", alpha=0.0) == key(bench, "ltc", alpha=-0.0) == key(bench, "ltc", alpha=0)


def test_settings_that_contradict_each_other_are_refused_though_one_is_the_presets(bench):
    with pytest.raises(SettingsError, match="plain cosines"):
        key(bench, threshold="adaptive", centre=True)


def test_whatever_else_a_result_depends_on_makes_another_cell(bench, write_folder, tmp_path):
    other_weights = tmp_path / Path(bench.weights).name
    other_weights.write_bytes(b"not the same, under the same name")
    changes = [
        {"orders": 1}, {"class_seed": 0}, {"class_seed": 3}, {"backbone": "test_vit"}, {"short": False},
        {"weights": str(other_weights)}, {"weights": "random"}, {"weights": None},
        {"data": str(write_folder(tmp_path / "fewer", kinds=10, each=3))},
    ]  # fmt: skip
    keys = [key(dataclasses.replace(bench, **change)) for change in ({}, *changes)]
    keys += [key(bench, seed=1), key(bench, preset="paper"), key(bench, "baseline"), key(bench, "smile")]
    assert len(set(keys)) == len(keys)


def test_a_key_does_not_depend_on_where_the_data_and_the_weights_are(bench, tmp_path):
    data, weights = tmp_path / "another name", tmp_path / "elsewhere" / Path(bench.weights).name
    shutil.copytree(bench.data, data)
    weights.parent.mkdir()
    shutil.copy(bench.weights, weights)
    moved = dataclasses.replace(bench, data=str(data), weights=str(weights))
    assert key(moved) == key(bench)


def test_keys_stay_what_they_are_or_results_that_took_days_would_be_lost(bench):
    """Also whatever the hash seed of Python is: pytest has another one every time."""
    known = dataclasses.replace(bench, weights="random", class_seed=1)
    assert key(known, "frozen", "paper", 7, threshold=0.25) == "c88fe5b34595e7f7"


def test_another_draw_of_the_known_classes_has_other_known_classes(bench):
    other = dataclasses.replace(bench, class_seed=3)
    assert bench.split[0].classes != other.split[0].classes
    assert other.about["class_seed"] == 3


def test_a_seed_never_changes_the_split(bench):
    first, second = (Cell(Variant("frozen"), seed, bench) for seed in (0, 1))
    assert first.setup.split is second.setup.split
    assert first.identity | {"seed": 1} == second.identity


# What a cell measures


def test_a_result_tells_where_it_comes_from(kept):
    cell, _, result = kept
    assert re.fullmatch("[0-9a-f]{16}", result["data"]["hash"])
    assert {name: value for name, value in result["data"].items() if name != "hash"} == {
        "protocol": "cifar10", "class_seed": None, "labelled": 10, "stream": 30, "known": 5, "classes": 10,
    }  # fmt: skip
    assert (result["method"], result["preset"]) == ("ltc", "paper (short)")
    assert result["settings"] == LTC.settings
    assert (result["key"], result["seed"], result["orders"], result["backbone"]) == (
        cell.key, 0, 2, "test_efficientnet",
    )  # fmt: skip
    assert re.fullmatch(r"test_efficientnet\.safetensors \([0-9a-f]{16}\)", result["weights"])
    assert result["threshold"]["rule"].startswith("adaptive")
    assert result["cost"]["train"] > 0
    assert result["cost"]["threads"] == 1
    assert result["creation"]["samples"] == 128
    assert result["commit"]
    assert result["newfound"] == nf.__version__
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", result["time"])


def test_a_result_is_plain_json_without_a_path_of_the_machine(bench, kept):
    _, keep, result = kept
    text = json.dumps(result, allow_nan=False)
    for path in (bench.data, str(keep), str(Path(bench.weights).parent), str(Path.home()), str(Path.cwd())):
        assert path not in text


def test_its_figures_are_those_of_the_runs_own_evaluation(bench, kept):
    cell, keep, result = kept
    run, stream = nf.load(keep / cell.training), bench.split[1]
    assert result["scores"] == [scores.as_dict() for scores in run.evaluate(stream, orders=2).scores]
    assert result["class_order"] == run.evaluate(stream, class_order=True).scores[0].as_dict()
    assert result["threshold"]["value"] == run.threshold
    assert [tuple(point) for point in result["threshold_path"]] == run.threshold_path


def test_a_stream_is_read_once_for_all_orders_and_cuts(bench, kept):
    cell, keep, _ = kept
    run, stream = nf.load(keep / cell.training), bench.split[1]
    features, labels = run.read_stream(stream)
    assert labels == stream.labels
    for options in ({"orders": 3, "seed": 5}, {"class_order": True}, {"threshold": 0.9}, {"max_clusters": 3}):
        assert run.score_stream(features, labels, **options) == run.evaluate(stream, **options)


def test_a_kept_run_is_scored_again_and_not_trained(kept, monkeypatch):
    cell, keep, result = kept
    monkeypatch.setattr(cells, "fit", lambda *a, **k: pytest.fail("trained again"))
    again = cell.measure(keep)
    differing = {"cost", "creation", "time", "commit"}
    assert result["cost"]["train_cpu"] > 0
    assert again["cost"] is None, "what a training costs is not told by scoring it"
    stored = json.loads(json.dumps([result, again]))
    assert {k: v for k, v in stored[0].items() if k not in differing} == {
        k: v for k, v in stored[1].items() if k not in differing
    }


class StopsAfter(Reporter):
    """Counts the samples that were learnt, and stops the training after some of them."""

    def __init__(self, samples: int | None = None) -> None:
        self.samples, self.learnt = samples, 0
        self.said: list[str] = []

    def say(self, message: str) -> None:
        self.said.append(message)

    @contextmanager
    def stage(self, title, total=None):
        def learnt(done: int) -> None:
            self.learnt += done
            if self.learnt == self.samples:
                raise KeyboardInterrupt

        yield learnt if title == "learning" else lambda done: None


def test_a_training_that_was_killed_halfway_goes_on_from_its_last_epoch(bench, tmp_path):
    cell = Cell(Variant("baseline", "paper", QUICK | {"epochs": 3}), 0, bench)
    with pytest.raises(KeyboardInterrupt):
        cell.measure(tmp_path, StopsAfter(20))  # in the second of three epochs, of ten samples each
    assert (tmp_path / cell.training / "checkpoint.safetensors").is_file()
    resumed, whole = StopsAfter(), StopsAfter()
    result = cell.measure(tmp_path, resumed)
    assert result["scores"] == cell.measure(None, whole)["scores"]
    assert (resumed.learnt, whole.learnt) == (20, 30)


@pytest.mark.parametrize("fault", ["an earlier format", "damage"])
def test_an_unfinished_training_that_cannot_go_on_is_begun_anew_and_that_is_said(bench, tmp_path, monkeypatch, fault):
    cell = Cell(Variant("baseline", "paper", QUICK | {"epochs": 2}), 0, bench)
    with monkeypatch.context() as earlier:
        earlier.setattr("newfound.fitting.FORMAT", 3)
        with pytest.raises(KeyboardInterrupt):
            cell.train(tmp_path, StopsAfter(20))
    folder = tmp_path / cell.training
    if fault == "damage":
        (folder / "checkpoint.safetensors").write_bytes(b"half of it")
    again = StopsAfter()
    assert cell.train(tmp_path, again).config["format"] > 3
    assert again.learnt == 20, "both epochs, of ten samples each"
    assert again.said == [f"the unfinished training in {folder} cannot go on: starting afresh"]


def test_images_that_cannot_be_read_are_left_out_and_do_not_lose_the_cell(bench, write_folder, tmp_path):
    setup = dataclasses.replace(bench, data=str(write_folder(tmp_path, kinds=10, each=6)))
    labelled, stream = setup.split
    largest = max(labelled.classes, key=labelled.counts().get)  # 15 images of 5 classes: it has 3 and can spare one
    for item in (labelled.items[labelled.labels.index(largest)], stream.items[0]):
        Path(item).write_bytes(b"no picture")
    result = Cell(LTC, 0, setup).measure()
    assert [scores["samples"] for scores in result["scores"]] == [len(stream) - 1] * 2
    assert result["unread"] == {"labelled": 1, "stream": 1}
    assert result["creation"]["samples"] == 128


def test_data_of_ones_own_is_measured_under_its_name(bench, write_folder, tmp_path):
    data = write_folder(tmp_path / "stripes", kinds=5, each=4)
    (tmp_path / "known.txt").write_text("kind0\nkind1\nkind2\n")
    own = dataclasses.replace(bench, protocol="own", data=str(data), known=str(tmp_path / "known.txt"))
    result = Cell(Variant("frozen", settings={"threshold": 0.5}), 0, own).measure()
    assert result["data"] | {"hash": ""} == {
        "protocol": "own stripes", "class_seed": None, "labelled": 6, "stream": 14, "known": 3, "classes": 5,
        "hash": "",
    }  # fmt: skip
    assert str(tmp_path) not in json.dumps(result)
    (tmp_path / "known.txt").write_text("kind0\nkind1\nkind3\n")
    assert key(dataclasses.replace(own), "frozen", threshold=0.5) != result["key"]


@given(st.integers(0, 10**5))
def test_a_threshold_path_of_any_length_is_shown_by_both_ends_and_a_few_between(count):
    shown = cells._few(count)
    assert shown == sorted(set(shown))
    assert len(shown) == min(count, 21)
    assert shown[:1] + shown[-1:] == ([0, count - 1] if count else [])


# By hand




@pytest.mark.parametrize(
    "variant",
    [
        Variant("frozen", settings={"threshold": 0.5, "centre": False}),
        Variant("ltc", "paper", {"creator": None, "head": "cosine", "batch_size": 16, "views": 2}),
        (Variant("ltc", "paper", QUICK)),
        (Variant("ltc", "paper", QUICK | {"prompt": "a photo of a bird"})),
    ],
)
def test_the_command_in_a_result_trains_the_same(bench, tmp_path, monkeypatch, variant):
    cell = Cell(variant, 3, bench)
    program, *arguments = shlex.split(cell.command)
    assert program == "newfound"
    monkeypatch.chdir(tmp_path)
    labelled, stream = bench.split
    write_csv(labelled, tmp_path / "labelled.csv")
    shutil.copy(bench.weights, tmp_path)
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    run, result = nf.load(tmp_path / "RUN"), cell.measure()
    assert result["command"] == cell.command
    assert [scores.as_dict() for scores in run.evaluate(stream, orders=2).scores] == result["scores"]
    assert run.threshold == result["threshold"]["value"]


# What cannot work


def test_a_setup_that_contradicts_itself_is_refused(tmp_path):
    with pytest.raises(SettingsError, match="goes with data of one's own"):
        Setup("pets", str(tmp_path), known="known.txt")
    with pytest.raises(SettingsError, match="goes with data of one's own"):
        Setup("own", str(tmp_path))
    with pytest.raises(SettingsError, match="say where the data is"):
        Setup("own", known="known.txt")
    with pytest.raises(SettingsError, match="orders=0"):
        Setup("pets", orders=0)


def test_what_does_not_exist_is_told_without_training(bench, tmp_path, monkeypatch):
    monkeypatch.setattr(cells, "fit", lambda *a, **k: pytest.fail("training had begun"))
    with pytest.raises(SettingsError, match="telepathy"):
        key(bench, "telepathy")
    with pytest.raises(SettingsError, match="has no setting 'epoch'"):
        key(bench, epoch=3)
    with pytest.raises(SettingsError, match="must be a whole number"):
        key(bench, epochs="many")
    with pytest.raises(SettingsError, match="no preset 'best'"):
        key(bench, preset="best")
    with pytest.raises(SettingsError, match="no data set 'horses'"):
        key(Setup("horses", bench.data))
    with pytest.raises(MissingFileError, match="37 classes"):
        key(Setup("pets", bench.data))
    with pytest.raises(DataError, match="50,000"):
        key(dataclasses.replace(bench, check=True))
    with pytest.raises(WeightsError, match=r"gone\.pth"):
        key(dataclasses.replace(bench, weights=str(tmp_path / "gone.pth")))
