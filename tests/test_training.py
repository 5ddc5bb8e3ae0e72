"""Promises of the training loop: the same seed gives the same training, and one that was stopped goes on as if not."""

from __future__ import annotations

import math
import os

import numpy as np
import pytest
import timm
import torch
from hypothesis import given
from hypothesis import strategies as st
from lightning_fabric import Fabric
from safetensors import SafetensorError

from newfound import _view_pairs
from newfound import backbone as backbones
from newfound.cache import TokenCache
from newfound.checkpoints import Checkpoint
from newfound.errors import ImageError, MissingFileError, NewfoundError, RunError
from newfound.features import Encoder
from newfound.method import get_method
from newfound.teaching import build_method
from newfound.training import blend_tail, deal, learn, learning_rate
from newfound.views import Views

pytestmark = pytest.mark.usefixtures("one_thread")

# A small training in which everything happens: creation in every step, a threshold that moves, several batches.
BUSY = {
    "epochs": 4, "batch_size": 6, "lr": 3e-3, "warmup_epochs": 1, "views": 3, "cached": True, "space": "tokens",
    "p_gen": 1.0, "beta": 0.1, "creation_from_epoch": 1,
}  # fmt: skip


class Stopped(Exception):
    """Somebody pulled the plug."""


class Trainer:
    """Trains a tiny backbone on three kinds of pictures, from scratch each time."""

    def __init__(self, make_backbone, pictures, folder) -> None:
        self.make_backbone, self.cache = make_backbone, TokenCache(folder)
        self.images, labels = pictures(kinds=3, each=4)
        self.targets = np.array([int(label[-1]) for label in labels])

    def __call__(self, *, method="ltc", seed=0, backbone=None, items=None, learn_options=None, **settings):
        cls = get_method(method)
        values = {key: value for key, value in (BUSY | settings).items() if hasattr(cls.settings_class(), key)}
        backbone = backbone or self.make_backbone()
        encoder = Encoder(backbone, Views(backbone.spec), cache=self.cache)
        method = build_method(encoder, self.images, self.targets, cls, cls.settings_class(**values), seed)
        fabric = Fabric(accelerator="cpu", devices=1)
        items = self.images if items is None else items
        trained = learn(encoder, items, self.targets, method, seed=seed, fabric=fabric, **(learn_options or {}))
        return backbone, trained


@pytest.fixture
def train(tiny_backbone, pictures, tmp_path) -> Trainer:
    return Trainer(tiny_backbone, pictures, tmp_path / "tokens")


def everything(backbone, trained) -> dict:
    """All that training leaves behind, ready to be compared bit by bit."""
    tensors = backbone.model.state_dict() | {f"method.{k}": v for k, v in trained.method.state_dict().items()}
    return {
        "tensors": {key: value.numpy().tobytes() for key, value in tensors.items()},
        "log": trained.log,
        "tau": trained.method.tau,
        "path": trained.threshold_path,
    }


FORMS = {
    "cached": {},
    "fresh, tokens": {"cached": False},
    "fresh, pixels": {"cached": False, "space": "pixels"},
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_the_same_seed_gives_the_same_weights_threshold_and_log(train, form):
    torch.manual_seed(1)
    np.random.seed(1)
    first = everything(*train(seed=3, **form))
    torch.manual_seed(2)
    np.random.seed(2)
    assert everything(*train(seed=3, **form)) == first
    other = everything(*train(seed=4, **form))
    assert other["tensors"] != first["tensors"]
    assert other["log"] != first["log"]


def test_a_tail_with_drop_path_trains_the_same_from_the_same_seed(train):
    def make():
        with torch.random.fork_rng():
            torch.manual_seed(0)
            model = timm.create_model("test_vit", img_size=32, num_classes=0, drop_path_rate=0.5, proj_drop_rate=0.2)
        spec = backbones.InputSpec(32, (0.5,) * 3, (0.5,) * 3, "bicubic", 0.9)
        return backbones.Backbone("test_vit", model, spec, tune_blocks=1, weights="random")

    torch.manual_seed(1)
    first = everything(*train(backbone=make()))
    torch.manual_seed(2)
    assert everything(*train(backbone=make())) == first


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("stop", ["after an epoch", "within an epoch"])
def test_a_training_that_was_stopped_ends_as_if_it_had_not_been(train, tmp_path, form, stop):
    whole = everything(*train(**form))
    checkpoint = Checkpoint(tmp_path / "run", {"seed": 0})

    def after_epoch(row):
        if stop == "after an epoch" and row["epoch"] == 2:
            raise Stopped

    done = []

    def within_epoch(samples):
        done.append(samples)
        if stop == "within an epoch" and sum(done) > 30:  # in the third epoch of twelve samples
            raise Stopped

    options = {"checkpoint": checkpoint, "on_epoch": after_epoch, "progress": within_epoch}
    with pytest.raises(Stopped):
        train(learn_options=options, **form)
    assert (tmp_path / "run" / "checkpoint.safetensors").is_file()
    rows = []
    options = {"checkpoint": Checkpoint(tmp_path / "run", {"seed": 0}), "on_epoch": rows.append}
    assert everything(*train(learn_options=options, **form)) == whole
    assert [row["epoch"] for row in rows] == [3, 4], "only what was left was trained"


@pytest.mark.parametrize("method", ["baseline", "known-hinge", "closed"])
def test_other_methods_resume_too(train, tmp_path, method):
    whole = everything(*train(method=method))

    def stop(row):
        if row["epoch"] == 1:
            raise Stopped

    with pytest.raises(Stopped):
        train(method=method, learn_options={"checkpoint": Checkpoint(tmp_path, {}), "on_epoch": stop})
    assert everything(*train(method=method, learn_options={"checkpoint": Checkpoint(tmp_path, {})})) == whole


def test_the_checkpoint_of_another_training_is_refused_and_named(train, tmp_path):
    train(epochs=1, learn_options={"checkpoint": Checkpoint(tmp_path, {"seed": 0, "lr": 0.1})})
    with pytest.raises(RunError, match=r"differs in lr.*overwrite") as caught:
        train(epochs=1, learn_options={"checkpoint": Checkpoint(tmp_path, {"seed": 0, "lr": 0.2})})
    assert "seed" not in str(caught.value)


@pytest.mark.parametrize("damage", [b"", b"not a checkpoint", None])
def test_a_damaged_checkpoint_says_what_to_do(train, tmp_path, damage):
    train(epochs=1, learn_options={"checkpoint": Checkpoint(tmp_path, {})})
    path = tmp_path / "checkpoint.safetensors"
    path.write_bytes(path.read_bytes()[:-100] if damage is None else damage)
    with pytest.raises(RunError, match=r"damaged.*overwrite"):
        train(epochs=1, learn_options={"checkpoint": Checkpoint(tmp_path, {})})


def test_a_crash_while_saving_leaves_the_last_checkpoint(train, tmp_path, monkeypatch):
    import newfound.checkpoints as module

    checkpoint = Checkpoint(tmp_path, {})
    train(epochs=1, learn_options={"checkpoint": checkpoint})
    before = checkpoint.path.read_bytes()

    def half(tensors, path, metadata):
        path.write_bytes(b"half")
        raise Stopped

    monkeypatch.setattr(module, "save_file", half)
    with pytest.raises(Stopped):
        train(epochs=2, learn_options={"checkpoint": Checkpoint(tmp_path, {})})
    assert checkpoint.path.read_bytes() == before


def test_a_full_disk_is_named_and_half_a_checkpoint_takes_no_room_on_it(train, tmp_path, monkeypatch):
    import newfound.checkpoints as module

    def full(tensors, path, metadata):
        path.write_bytes(b"half")
        raise SafetensorError("I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(module, "save_file", full)
    with pytest.raises(RunError, match=r"No space left.*make room"):
        train(epochs=1, learn_options={"checkpoint": Checkpoint(tmp_path / "run", {})})
    assert list((tmp_path / "run").iterdir()) == []


def test_a_step_leaves_the_random_numbers_of_other_devices_alone(train, monkeypatch):
    asked, real = [], torch.random.fork_rng

    def fork(devices=None, *args, **kwargs):
        asked.append(devices)
        return real(devices, *args, **kwargs)

    monkeypatch.setattr(torch.random, "fork_rng", fork)
    train(epochs=1)
    assert asked
    assert all(devices == [] for devices in asked), "None would be all that the machine has"


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("method", ["ltc", "baseline"])
def test_the_loss_falls_on_easy_classes(train, form, method):
    _, trained = train(method=method, epochs=6, warmup_epochs=0, lr=2e-3, p_gen=0.3, gamma_mm=0.05, **form)
    losses = [row["loss"] for row in trained.log]
    assert losses[-1] < 0.8 * losses[0]


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_only_the_tail_and_the_head_learn(train, tiny_backbone, form):
    backbone, _ = train(**form)
    before, after = tiny_backbone().model.state_dict(), backbone.model.state_dict()
    tail = set(backbone.tail_state())
    for key, value in after.items():
        if key not in tail:
            assert torch.equal(value, before[key]), f"{key} is not in the tail"
    assert any(not torch.equal(after[key], before[key]) for key in tail)
    assert backbone.trunk_hash() == tiny_backbone().trunk_hash()
    assert not backbone.training


def test_the_log_has_a_row_for_every_epoch_and_tells_the_parts_of_the_loss(train):
    _, trained = train()
    assert [row["epoch"] for row in trained.log] == [1, 2, 3, 4]
    assert set(trained.log[0]) == {"epoch", "lr", "loss", "sup", "ce", "pos", "neg", "created", "tau"}
    assert [row["created"] for row in trained.log] == [0, 12, 12, 12]
    last = trained.log[-1]
    parts = last["ce"] + 0.3 * last["sup"] + 0.05 * (last["pos"] + last["neg"])
    assert last["loss"] == pytest.approx(parts, rel=1e-5)


def test_the_thresholds_path_has_a_point_whenever_it_moved(train):
    _, trained = train()
    steps = [step for step, _ in trained.threshold_path]
    assert steps == [2, 3, 4, 5, 6, 7], "two steps an epoch, from the second epoch on"
    assert trained.threshold_path[-1][1] == trained.method.tau == trained.log[-1]["tau"]


def test_no_epochs_learn_nothing(train, tiny_backbone):
    backbone, trained = train(epochs=0)
    assert trained.log == []
    assert torch.equal(backbone.model.conv_head.weight, tiny_backbone().model.conv_head.weight)


def test_progress_counts_every_sample_of_every_epoch(train):
    told = []
    train(learn_options={"progress": told.append})
    assert sum(told) == 4 * 12


def test_two_views_of_an_image_differ_and_change_from_epoch_to_epoch(train, monkeypatch):
    from newfound.method.baseline import Baseline

    seen = []
    original = Baseline.loss

    def spy(self, batch):
        seen.append((batch.epoch, batch.first.clone(), batch.second.clone()))
        return original(self, batch)

    monkeypatch.setattr(Baseline, "loss", spy)
    for form in ({"cached": True}, {"cached": False}):
        seen.clear()
        train(method="baseline", epochs=2, batch_size=12, **form)
        assert all((first != second).flatten(1).any(1).all() for _, first, second in seen)
        rows = [{row.numpy().tobytes() for row in first} for _, first, _ in seen]
        assert len(rows[0] & rows[1]) < 12


def test_every_step_has_randomness_of_its_own(train, monkeypatch):
    from newfound.method.baseline import Baseline

    draws = []
    original = Baseline.loss

    def spy(self, batch):
        draws.append(batch.rng.random())
        return original(self, batch)

    monkeypatch.setattr(Baseline, "loss", spy)
    train(method="baseline", epochs=3)
    assert len(draws) == len(set(draws)) == 6


def test_the_rate_follows_its_schedule_step_by_step(train):
    _, trained = train(method="baseline", warmup_lr=1e-5)
    steps = 2
    expected = [learning_rate(trained.method.settings, epoch + (steps - 1) / steps) for epoch in range(4)]
    assert [row["lr"] for row in trained.log] == pytest.approx(expected)


def test_cached_training_is_close_to_training_on_the_same_views_computed_afresh(train):
    """What the cache rounds away does not decide anything: losses of the first epoch agree."""
    cached = train(method="baseline", epochs=1, batch_size=12)[1].log[0]["loss"]
    fresh = train(method="baseline", epochs=1, batch_size=12, cached=False)[1].log[0]["loss"]
    assert cached == pytest.approx(fresh, rel=0.25)


@pytest.mark.filterwarnings("error")
def test_more_images_than_a_process_may_have_open_files_are_learnt_the_same(train):
    resource = pytest.importorskip("resource")
    first = everything(*train())
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    open_now = len(os.listdir("/dev/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_now + 10, before[1]))  # as 1,024 are few for 2,000 images
    try:
        again = everything(*train())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert again == first


def test_maps_leave_half_of_the_files_that_a_process_may_still_open(monkeypatch):
    resource = pytest.importorskip("resource")
    free = 1024 - len(os.listdir("/dev/fd"))
    for limit, most in ((1024, free // 2), (10**6, 20_000), (resource.RLIM_INFINITY, 20_000)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, limit=limit: (limit, limit))
        assert _view_pairs._most_maps() == most


def test_a_training_that_diverges_says_so_and_what_to_try(train):
    with pytest.raises(NewfoundError, match=r"loss became .* in epoch 1 at learning rate .*lr="):
        train(lr=1e30, warmup_epochs=0)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_an_image_that_vanishes_while_training_is_named(train, tmp_path, form):
    items = [*train.images[:-1], tmp_path / "gone.png"]
    with pytest.raises((ImageError, MissingFileError), match=r"gone\.png"):
        train(items=items, **form)


@pytest.mark.parametrize("batch_size", [1, 5, 11, 100])
def test_any_batch_size_works(train, batch_size):
    _, trained = train(epochs=2, batch_size=batch_size)
    assert math.isfinite(trained.log[-1]["loss"])


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_a_share_of_what_was_learnt_lies_that_far_from_the_pretrained_weights(tiny_backbone, share):
    backbone = tiny_backbone()
    before = {key: value.clone() for key, value in backbone.tail_state().items()}
    frozen = {key: value.clone() for key, value in backbone.trunk_state().items()}
    with torch.no_grad():
        for value in backbone.tail_state().values():
            value.add_(4.0)
    blend_tail(backbone, before, share)
    for key, value in backbone.tail_state().items():
        torch.testing.assert_close(value, before[key] + 4 * share)
    assert all(torch.equal(value, frozen[key]) for key, value in backbone.trunk_state().items())


rates = st.fixed_dictionaries(
    {
        "lr": st.floats(1e-6, 1.0),
        "warmup_lr": st.floats(1e-6, 1.0),
        "final_lr": st.floats(1e-7, 1.0),
        "warmup_epochs": st.integers(0, 10),
        "epochs": st.integers(1, 50),
    }
)


@given(rates)
def test_the_rate_rises_to_its_peak_then_falls_and_is_never_above_it(values):
    settings = get_method("baseline").settings_class(**values)
    times = np.linspace(0, values["epochs"], 101)
    curve = np.array([learning_rate(settings, t) for t in times])
    assert (curve <= values["lr"] * (1 + 1e-9)).all()
    assert (curve > 0).all()
    rising, falling = curve[times < values["warmup_epochs"]], curve[times >= values["warmup_epochs"]]
    assert (np.diff(rising) >= -1e-12).all()
    assert (np.diff(falling) <= 1e-12).all()


def test_the_released_schedule_starts_at_1e_4_peaks_after_five_epochs_and_ends_at_1e_5():
    settings = get_method("baseline").settings_class(lr=1e-2)
    assert learning_rate(settings, 0) == pytest.approx(1e-4)
    assert learning_rate(settings, 2.5) == pytest.approx((1e-4 + 1e-2) / 2)
    assert learning_rate(settings, 5) == pytest.approx(1e-2)
    assert learning_rate(settings, 52.5) == pytest.approx((1e-2 + 1e-5) / 2)
    assert learning_rate(settings, 100) == pytest.approx(1e-5)


@given(st.integers(1, 400), st.integers(1, 64), st.integers(1, 40))
def test_no_batch_is_too_small_for_a_batch_norm_and_every_sample_is_in_one(samples, size, smallest):
    order = np.random.default_rng(0).permutation(samples)
    batches = deal(order, size, smallest)
    assert np.array_equal(np.concatenate(batches), order)
    assert len(batches) == -(-samples // size), "as many steps as the schedule counts"
    assert all(len(batch) <= size for batch in batches)
    if samples >= size:
        assert min(map(len, batches)) >= min(smallest, size, samples // len(batches))
    if smallest == 1:
        assert all(len(batch) == size for batch in batches[:-1])
