"""Promises of DiffGRE: what is created before its host learns, which classes it has, and that it is made once."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

import newfound as nf
from newfound.creation import creators
from newfound.creation.mixup import Mixup
from newfound.errors import DataError, SettingsError, WeightsError
from newfound.features import Encoder
from newfound.method.diffgre import DiffGREPhe, DiffGRESmile
from newfound.method.phe import PHE
from newfound.method.smile import SMILE
from newfound.views import Views

pytestmark = pytest.mark.usefixtures("one_thread")

METHODS = [DiffGRESmile, DiffGREPhe]
TARGETS = np.repeat([0, 1, 2], 4)


@pytest.fixture(scope="module")
def encoder(tiny_backbone) -> Encoder:
    backbone = tiny_backbone()
    return Encoder(backbone, Views(backbone.spec))


@pytest.fixture(scope="module")
def items(pictures) -> list[np.ndarray]:
    return pictures(kinds=3, each=4)[0]


@pytest.fixture
def count_creations(monkeypatch):
    """A list that grows by one whenever a creator is called."""
    calls, original = [], Mixup.__call__
    monkeypatch.setattr(Mixup, "__call__", lambda *args: calls.append(1) or original(*args))
    return calls


def more(encoder, items, method=DiffGRESmile, seed=0, folder=None, targets=TARGETS, **settings):
    chosen = method.settings_class(**({"creator": "mixup", "virtual_images": 20} | settings))
    return method.more_images(encoder, items, targets, chosen, seed=seed, folder=folder)


def same(first, second) -> bool:
    (images, classes), (others, names) = first, second
    return np.array_equal(classes, names) and np.array_equal(np.stack(images), np.stack(others))


@pytest.mark.parametrize("method", METHODS)
def test_images_come_with_known_classes_and_virtual_ones_without_gaps(encoder, items, method):
    images, classes = more(encoder, items, method, clusters=4)
    assert len(images) == len(classes) > 5
    for image in images:
        assert (image.shape, image.dtype) == ((32, 32, 3), np.uint8)
    virtual = sorted(set(classes[classes >= 3].tolist()))
    assert virtual == list(range(3, 3 + len(virtual)))
    assert 1 <= len(virtual) <= 4
    assert classes.min() >= 0


def test_created_images_are_blends_of_two_known_ones_of_different_classes(encoder):
    colours = [np.full((32, 32, 3), colour, np.uint8) for colour in ([250, 0, 0], [0, 250, 0])]
    images, _ = more(encoder, colours * 3, targets=np.array([0, 1] * 3), similarity_low=0.0, similarity_high=1.0)
    for image in images:
        red, green, blue = image.reshape(-1, 3).mean(axis=0)
        assert red + green == pytest.approx(250, abs=2)
        assert min(red, green) >= 0.3 * 250 - 2  # min_lambda
        assert blue == 0


def test_as_many_are_made_as_asked_for_and_half_as_many_as_labelled_by_default(encoder, items):
    everything = {"similarity_low": 0.0, "similarity_high": 1.0, "clusters": 1}
    assert len(more(encoder, items, virtual_images=7, **everything)[0]) in (6, 7)  # a group of one is dropped
    assert len(more(encoder, items, virtual_images=None, **everything)[0]) in (5, 6)
    assert len(more(encoder, items, virtual_images=70, **everything)[0]) in (69, 70)  # more than a batch
    assert more(encoder, items, virtual_images=0)[0] == []


def test_refinement_keeps_the_share_between_the_quantiles(encoder, items):
    wide = more(encoder, items, similarity_low=0.0, similarity_high=1.0, clusters=1)[0]
    narrow = more(encoder, items, similarity_low=0.4, similarity_high=0.6, clusters=1)[0]
    assert len(wide) >= 19
    assert 2 <= len(narrow) <= 5  # a fifth of 20, and perhaps one at the edge


def test_the_same_seed_makes_the_same_images_and_no_global_state_is_read(encoder, items):
    first = more(encoder, items, seed=1)
    np.random.seed(5)
    torch.manual_seed(5)
    assert same(first, more(encoder, items, seed=1))
    other, _ = more(encoder, items, seed=2)
    assert not np.array_equal(first[0][0], other[0])


def test_training_that_was_interrupted_finds_its_images_again(encoder, items, tmp_path, count_creations):
    first = more(encoder, items, folder=tmp_path)
    made = len(count_creations)
    assert made > 0
    assert same(first, more(encoder, items, folder=tmp_path))
    assert len(count_creations) == made
    assert same(first, more(encoder, items))  # what a folder keeps is what would be made
    assert (tmp_path / "virtual" / "00000.png").is_file()


@pytest.mark.parametrize(
    "change",
    [{"seed": 1}, {"min_lambda": 0.4}, {"creator": "cutmix"}, {"virtual_images": 19}, {"clusters": 2},
     {"similarity_high": 0.8}, {"targets": np.array([0] * 5 + [1] * 4 + [2] * 3)}],
    ids=lambda change: next(iter(change)),
)  # fmt: skip
def test_images_are_made_again_when_what_they_depend_on_has_changed(encoder, items, tmp_path, count_creations, change):
    more(encoder, items, folder=tmp_path)
    made = len(count_creations)
    again = more(encoder, items, folder=tmp_path, **change)
    assert len(count_creations) > made
    assert same(again, more(encoder, items, **change))


def test_settings_that_the_images_do_not_depend_on_do_not_make_them_again(encoder, items, tmp_path, count_creations):
    first = more(encoder, items, folder=tmp_path)
    made = len(count_creations)
    again = more(encoder, items, DiffGREPhe, folder=tmp_path, epochs=3, prompt="not used by mixup")
    assert len(count_creations) == made
    assert same(first, again)


def test_other_images_or_another_backbone_make_them_again(encoder, items, tiny_backbone, tmp_path, count_creations):
    more(encoder, items, folder=tmp_path)
    made = len(count_creations)
    more(encoder, [items[0][::-1], *items[1:]], folder=tmp_path)
    assert len(count_creations) > made
    made, backbone = len(count_creations), tiny_backbone("test_vit")
    more(Encoder(backbone, Views(backbone.spec)), [items[0][::-1], *items[1:]], folder=tmp_path)
    assert len(count_creations) > made


def test_a_damaged_folder_is_made_again(encoder, items, tmp_path):
    first = more(encoder, items, folder=tmp_path)
    (tmp_path / "virtual" / "00001.png").write_bytes(b"half a pict")
    assert same(first, more(encoder, items, folder=tmp_path))
    assert same(first, more(encoder, items, folder=tmp_path))


@pytest.mark.parametrize("name", [name for name in creators() if name != "diffusion"])
def test_every_creator_can_make_them(encoder, items, name):
    images, classes = more(encoder, items, creator=name, virtual_images=12)
    assert len(images) == len(classes) > 2


def test_diffusion_makes_them_with_the_pipeline_of_a_folder(encoder, items, tiny_pipeline_folder, tmp_path):
    options = {"creator": "diffusion", "pipeline": tiny_pipeline_folder, "steps": 4, "virtual_images": 10}
    images, classes = more(encoder, items, folder=tmp_path, **options)
    assert len(images) == len(classes) > 2
    assert len({image.tobytes() for image in images}) == len(images)
    assert same((images, classes), more(encoder, items, **options))


def test_diffusion_is_the_default_and_missing_weights_are_named(encoder, items):
    settings = DiffGRESmile.settings_class()
    assert (settings.creator, settings.min_lambda) == ("diffusion", 0.3)
    with pytest.raises(WeightsError, match=r"no-such-folder.*pipeline=PATH"):
        more(encoder, items, creator="diffusion", pipeline="./no-such-folder")


def test_nothing_is_made_where_nothing_is_learnt(encoder, items):
    assert more(encoder, items, creator="diffusion", pipeline="./no-such-folder", epochs=0)[0] == []


def test_one_class_alone_cannot_be_created_from(encoder, items):
    with pytest.raises(DataError, match="at least two classes"):
        more(encoder, items[:4], targets=np.zeros(4, np.int64))


@pytest.mark.parametrize(("method", "host"), [(DiffGRESmile, SMILE), (DiffGREPhe, PHE)])
def test_all_else_is_its_hosts(method, host):
    assert issubclass(method, host)
    assert method.creates
    assert (method.loss, method.teach, method.dictionary) == (host.loss, host.teach, host.dictionary)
    assert method.presets == host.presets
    own = {field.name: field.default for field in dataclasses.fields(method.settings_class)}
    for field in dataclasses.fields(host.settings_class):
        assert own[field.name] == field.default, field.name


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ({"virtual_images": -1}, "virtual_images=-1"),
        ({"clusters": 0}, "clusters=0"),
        ({"similarity_low": 0.8}, "similarity_low=0.8"),
        ({"similarity_high": 1.2}, "similarity_high=1.2"),
        ({"creator": None}, "needs a creator; .*smile or phe"),
        ({"creator": "difusion"}, "no creator 'difusion'"),
        ({"strength": 0.0}, "strength=0.0"),
        ({"bits": 0}, "bits=0"),
    ],
)
def test_values_that_cannot_be_are_refused_at_once(method, bad, says):
    with pytest.raises(SettingsError, match=says):
        method.settings_class(**bad)


@pytest.mark.parametrize("method", METHODS)
def test_a_run_learns_virtual_classes_and_knows_only_the_real_ones(fit_tiny, pictures, tmp_path, method):
    options = {"method": method.name, "creator": "mixup", "virtual_images": 12, "hidden": 32, "out": tmp_path / "run"}
    run = fit_tiny(pictures(kinds=3), **options)
    assert list(run.classes) == ["kind0", "kind1", "kind2"]
    for one in (run, nf.load(tmp_path / "run")):
        discoverer = one.discoverer()
        assert discoverer.dictionary.known == 3
        new = [s.category for s in discoverer.observe(pictures(kinds=5)[0]) if s.is_new]
        assert new == list(range(3, 3 + len(new)))  # ids of virtual classes are nobody's
    if method is DiffGREPhe:
        assert len(run.method.prototypes) > 3  # which were learnt all the same
    assert (tmp_path / "run" / "virtual" / "virtual.csv").is_file()


def test_a_training_does_not_go_on_from_other_created_images(fit_tiny, pictures, tmp_path, monkeypatch):
    import shutil

    import newfound.method.diffgre as module
    from newfound.checkpoints import Checkpoint
    from newfound.errors import RunError

    save, make = Checkpoint.save, module._make

    def save_and_stop(self, learner, optimizer, trained):
        save(self, learner, optimizer, trained)
        raise KeyboardInterrupt

    def train(**options):
        fit_tiny(pictures(2, 6), method="diffgre-smile", creator="mixup", out=tmp_path / "run", epochs=2, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "save", save_and_stop)
        with pytest.raises(KeyboardInterrupt):
            train()
    shutil.rmtree(tmp_path / "run" / "virtual")
    with monkeypatch.context() as patch:
        patch.setattr(module, "_make", lambda *args: make(*args[:-1], 99))  # as another machine might
        with pytest.raises(RunError, match="differs in created images"):
            train()
    train(overwrite=True)


def test_a_rehearsal_keeps_its_images_until_the_run_is_finished(fit_tiny, pictures, tmp_path, monkeypatch):
    import newfound.method.diffgre as module

    made, make = [], module._make
    monkeypatch.setattr(module, "_make", lambda *args: made.append(1) or make(*args))

    class Stop(Exception):
        pass

    def stop(*args, **options):
        raise Stop

    def train():
        return fit_tiny(
            pictures(4, 6), method="diffgre-smile", creator="mixup", threshold="rehearsed", out=tmp_path / "run"
        )

    with monkeypatch.context() as patch:
        patch.setattr("newfound.fitting.train", stop)
        with pytest.raises(Stop):
            train()
    assert len(made) == 2
    assert train().config["threshold"]["grid"]
    assert len(made) == 3, "the draws' images were there"
    assert not (tmp_path / "run" / "rehearsal").exists()


def test_new_files_in_a_local_pipeline_make_new_images(tmp_path):
    from newfound.method.diffgre import _files

    (tmp_path / "unet").mkdir()
    (tmp_path / "unet" / "weights.safetensors").write_bytes(b"one")
    before = _files(str(tmp_path))
    assert [entry[:2] for entry in before] == [["unet/weights.safetensors", 3]]
    (tmp_path / "unet" / "weights.safetensors").write_bytes(b"other")
    assert _files(str(tmp_path)) != before
    assert _files("an/id-of-the-hub") == []


def test_a_refused_training_keeps_the_images_of_the_unfinished_one(fit_tiny, pictures, tmp_path, monkeypatch):
    from newfound.checkpoints import Checkpoint
    from newfound.errors import RunError

    save = Checkpoint.save

    def save_and_stop(self, learner, optimizer, trained):
        save(self, learner, optimizer, trained)
        raise KeyboardInterrupt

    def train(**options):
        return fit_tiny(pictures(2, 6), method="diffgre-smile", creator="mixup", out=tmp_path / "run", **options)

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "save", save_and_stop)
        with pytest.raises(KeyboardInterrupt):
            train()
    before = {path.name: path.read_bytes() for path in (tmp_path / "run" / "virtual").iterdir()}
    with pytest.raises(RunError, match="differs in seed"):
        train(seed=3)
    assert {path.name: path.read_bytes() for path in (tmp_path / "run" / "virtual").iterdir()} == before
    assert train().config["created"]["images"] > 0


@pytest.mark.parametrize(("method", "options"), [("diffgre-smile", {}), ("ltc", {"cached": False, "space": "pixels"})])
def test_missing_diffusion_weights_are_said_before_any_work(fit_tiny, pictures, tmp_path, monkeypatch, method, options):
    from newfound.errors import WeightsError

    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("newfound.fitting.load_dataset", lambda data: pytest.fail("work had begun"))
    with pytest.raises(WeightsError, match=r"creator=mixup"):
        fit_tiny(
            pictures(2, 4), method=method, creator="diffusion", pipeline=str(tmp_path), out=tmp_path / "run", **options
        )
    assert not (tmp_path / "run").exists()
