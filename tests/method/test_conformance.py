"""What every method promises, whoever wrote it. A method that `newfound.methods()` lists is tested here."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import newfound as nf
from newfound._scenes import with_settings
from newfound.checkpoints import Checkpoint
from newfound.datasets import load_dataset
from newfound.discovery import BayesianDictionary
from newfound.errors import DataError, FeatureError, SettingsError
from newfound.evaluation import score
from newfound.method import get_method
from newfound.report import tell, write_report

METHODS = list(nf.methods())
CNN, VIT = "test_efficientnet", "test_vit"
KNOWN, EACH = 2, 6  # two small classes; the other kinds of pictures are new

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="session")
def teach(fit_tiny, pictures, tiny_pipeline_folder, tmp_path_factory):
    """teach(method, backbone, cached, **options): a run that knows two classes.

    Tokens that others have cached were computed in other batches and may differ from one's own in their last bit.
    """
    cache = tmp_path_factory.mktemp("conformance-cache")

    def train(name: str, backbone: str = CNN, *, cached: bool = True, data=None, **options):
        has = {field.name for field in dataclasses.fields(get_method(name).settings_class)}
        wanted = {"pipeline": tiny_pipeline_folder, "steps": 2, "cached": cached, "lr": 3e-4, "head_lr": 1e-3}
        if not cached:
            wanted["space"] = "pixels"
        if learns(name):
            options = {"epochs": 6, "batch_size": 6} | options
        chosen = {key: value for key, value in wanted.items() if key in has}
        data = pictures(KNOWN, EACH) if data is None else data
        return fit_tiny(data, method=name, backbone=backbone, preset="default", **{"cache": cache} | chosen | options)

    return train


@pytest.fixture(scope="session")
def taught(teach):
    """The same for all tests that only ask: trained once for each method, backbone and source. Do not change it."""
    runs: dict[tuple, nf.Run] = {}

    def get(*key, cached: bool = True):
        if (*key, cached) not in runs:
            runs[(*key, cached)] = teach(*key, cached=cached)
        return runs[(*key, cached)]

    return get


@pytest.fixture(scope="session")
def stream(picture):
    """Five kinds of pictures, mixed; the first two kinds are known."""
    return [picture(kind, 20 + number) for number in range(4) for kind in range(5)]


def learns(name: str) -> bool:
    return get_method(name).fixed.get("epochs") != 0


def without_doubt(run: nf.Run) -> nf.Run:
    """The run with a dictionary that founds a category at once where it would else wait for a second image."""
    if getattr(run.method.settings, "alone", None) is None:
        return run
    return dataclasses.replace(run, method=with_settings(run.method, {"alone": None}))


def scale(run) -> tuple[float, float, float]:
    """A threshold that every image reaches, one between, and one that only a perfect score reaches."""
    weighs = isinstance(run.dictionary(), BayesianDictionary)  # log ratios know no bounds, similarities lie in [-1, 1]
    return (-1e9, 5.0, 1e9) if weighs else (-1.0, 0.5, 1.0)


def same(one: dict, other: dict) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[key], other[key]) for key in one)


def seen(discoverer) -> list[tuple]:
    return [(c.id, c.name, c.count, len(c.exemplars), c.merged_into) for c in discoverer.categories(merged=True)]


def answers(out) -> list[np.ndarray]:
    return [out.category, out.score, out.created, out.runners_up_category, out.runners_up_score]


@pytest.mark.parametrize("cached", [True, False], ids=["from cache", "from pixels"])
@pytest.mark.parametrize("backbone", [CNN, VIT])
@pytest.mark.parametrize("name", METHODS)
def test_it_learns_two_small_classes_and_its_loss_falls(taught, pictures, name, backbone, cached):
    run = taught(name, backbone, cached=cached)
    if learns(name):
        loss = [row["loss"] for row in run.log]
        assert len(loss) == 6
        assert np.mean(loss[-2:]) < loss[0]
    images, labels = pictures(KNOWN, EACH)
    answers = [s.name for s in run.discoverer().observe(images)]
    assert score(labels, answers, known=run.classes).strict.all > 0.7, "it tells apart what it was taught"
    assert set(answers) & set(run.classes), "and calls it by its name"


@pytest.mark.parametrize("name", METHODS)
def test_the_same_seed_gives_the_same_run(teach, taught, stream, name):
    one, other = taught(name, CNN), teach(name)
    assert same(one.known, other.known)
    assert one.config["threshold"] == other.config["threshold"]
    assert one.log == other.log
    features = one.encoder.features(stream)
    assert np.array_equal(features, other.encoder.features(stream))
    assert np.array_equal(one.dictionary().observe(features).category, other.dictionary().observe(features).category)


@pytest.mark.parametrize("backbone", [CNN, VIT])
@pytest.mark.parametrize("name", METHODS)
def test_it_answers_the_same_after_saving_and_loading(taught, stream, tmp_path, name, backbone):
    run = taught(name, backbone)
    dataclasses.replace(run, config=dict(run.config)).save(tmp_path / "run")
    loaded = nf.load(tmp_path / "run")
    mine, theirs = run.discoverer().observe(stream), loaded.discoverer().observe(stream)
    assert [(s.category, s.score, s.name, s.is_new, s.runners_up) for s in mine] == [
        (s.category, s.score, s.name, s.is_new, s.runners_up) for s in theirs
    ]
    assert loaded.threshold == run.threshold


@pytest.mark.parametrize("name", METHODS)
def test_a_training_that_was_stopped_ends_as_if_it_had_not_been(teach, taught, tmp_path, monkeypatch, name):
    if not learns(name):
        pytest.skip("it has no training to be stopped")
    save = Checkpoint.save

    def save_and_stop(self, learner, optimizer, trained):
        save(self, learner, optimizer, trained)
        if len(trained.log) == 3:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "save", save_and_stop)
        with pytest.raises(KeyboardInterrupt):
            teach(name, out=tmp_path / "run")
    resumed, whole = teach(name, out=tmp_path / "run"), taught(name, CNN)
    assert resumed.log == whole.log
    assert same(resumed.known, whole.known)


@pytest.mark.parametrize("size", [1, 3, 7])
@pytest.mark.parametrize("name", METHODS)
def test_a_batch_is_answered_as_one_by_one(taught, stream, name, size):
    run = taught(name, CNN)
    features = run.encoder.features(stream)
    whole = run.dictionary()
    expected = answers(whole.observe(features, runners_up=2))
    parts = run.dictionary()
    given = [answers(parts.observe(features[i : i + size], runners_up=2)) for i in range(0, len(features), size)]
    for mine, theirs in zip(expected, zip(*given, strict=True), strict=True):
        assert np.array_equal(mine, np.concatenate(theirs))
    assert same(whole.state(), parts.state())


@pytest.mark.parametrize("name", METHODS)
def test_images_one_by_one_get_the_categories_that_a_list_gets(taught, stream, name):
    run = taught(name, CNN)
    together, alone = run.discoverer(), run.discoverer()
    assert [s.category for s in together.observe(stream)] == [s.category for s in alone.observe(iter(stream))]


@pytest.mark.parametrize("name", METHODS)
def test_predict_changes_nothing(taught, stream, name):
    discoverer = taught(name, CNN).discoverer()
    discoverer.observe(stream[:8])
    before, categories = discoverer.dictionary.state(), seen(discoverer)
    first = discoverer.predict(stream)
    assert same(discoverer.dictionary.state(), before)
    assert seen(discoverer) == categories
    assert [(s.category, s.score) for s in discoverer.predict(stream)] == [(s.category, s.score) for s in first]


@pytest.mark.parametrize("name", METHODS)
def test_known_ids_come_first_and_discovered_ones_follow_without_gaps(taught, stream, name):
    run = taught(name, CNN)
    discoverer = run.discoverer()
    sightings = discoverer.observe(stream)
    founded = [s.category for s in sightings if s.is_new]
    assert founded == list(range(KNOWN, KNOWN + len(founded)))
    assert all(s.name == run.classes[s.category] for s in sightings if s.category < KNOWN)
    assert all(s.score < s.cut for s in sightings if s.is_new)
    if not get_method(name).discovers:
        assert not founded


@pytest.mark.parametrize("name", METHODS)
def test_without_doubt_every_image_below_the_cut_founds_a_category_and_no_other_does(taught, stream, name):
    sightings = without_doubt(taught(name, CNN)).discoverer().observe(stream)
    assert all((s.score < s.cut) == s.is_new for s in sightings)
    founded = [s.category for s in sightings if s.is_new]
    assert founded == list(range(KNOWN, KNOWN + len(founded)))


@pytest.mark.parametrize("name", METHODS)
def test_a_dictionary_goes_on_from_its_state_as_if_it_had_not_stopped(taught, stream, name):
    run = taught(name, CNN)
    features = run.encoder.features(stream)
    whole, first = run.dictionary(), run.dictionary()
    expected = answers(whole.observe(features))
    first.observe(features[:9])
    second = type(first).from_state(first.state())
    for mine, theirs in zip(expected, answers(second.observe(features[9:])), strict=True):
        assert np.array_equal(mine[9:], theirs)
    assert same(whole.state(), second.state())


@pytest.mark.parametrize("name", METHODS)
def test_merged_categories_live_on_under_one_id(taught, stream, name):
    run = without_doubt(taught(name, CNN))
    dictionary = run.dictionary(threshold=scale(run)[-1])
    out = dictionary.observe(run.encoder.features(stream))
    new = sorted(set(out.category[out.created].tolist()))
    if len(new) < 2:
        pytest.skip("this stream founds fewer than two categories")
    size = len(dictionary)
    assert dictionary.merge(new[:2]) == new[0]
    assert len(dictionary) == size - 1
    assert dictionary.resolve(new[1]) == new[0]
    assert new[1] not in dictionary.ids.tolist()


@pytest.mark.parametrize("name", METHODS)
def test_bad_features_are_refused_alike_and_change_nothing(taught, stream, name):
    run = taught(name, CNN)
    dictionary = run.dictionary()
    good = run.encoder.features(stream[:3])
    dictionary.observe(good)
    before = dictionary.state()
    bad = np.array(good)
    bad[1, 0] = np.nan
    dimension = good.shape[1]
    for wrong in (bad, np.full_like(good, np.inf), good[:, :-1], np.ones((2, 2, dimension)), [["a"] * dimension]):
        for ask in (dictionary.observe, dictionary.predict):
            with pytest.raises(FeatureError):
                ask(wrong)
    assert same(dictionary.state(), before)


@pytest.mark.parametrize("name", METHODS)
def test_an_image_that_cannot_be_read_gets_its_error_and_the_stream_goes_on(taught, stream, tmp_path, name):
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"not an image")
    discoverer = taught(name, CNN).discoverer()
    first, second, third = discoverer.observe([stream[0], broken, stream[1]])
    assert "broken.png" in second.error
    assert second.category is None
    assert first.category is not None
    assert third.category is not None
    assert discoverer.dictionary.seen == 2


@pytest.mark.parametrize("name", METHODS)
def test_data_and_settings_that_cannot_be_are_refused_alike(teach, fit_tiny, pictures, name):
    with pytest.raises(DataError):
        teach(name, data=([], []))
    with pytest.raises(SettingsError, match=f"{name} has no setting 'telepathy'"):
        fit_tiny(pictures(KNOWN, EACH), method=name, telepathy=True)
    for bad in ({"threshold": 2.0}, {"threshold": "by magic"}, {"lr": -1.0}, {"batch_size": 0}):
        with pytest.raises(SettingsError, match=next(iter(bad))):
            fit_tiny(pictures(KNOWN, EACH), method=name, **bad)


@pytest.mark.parametrize("name", METHODS)
def test_its_threshold_can_be_given_and_is_the_cut_of_every_sighting(taught, stream, name):
    run = without_doubt(taught(name, CNN))
    for threshold in scale(run):
        sightings = run.discoverer(threshold=threshold).observe(stream)
        assert {s.cut for s in sightings} == {threshold}
        assert all((s.score < threshold) == s.is_new for s in sightings)
    assert not any(s.is_new for s in run.discoverer(threshold=scale(run)[0]).observe(stream))


@pytest.mark.parametrize("name", METHODS)
def test_a_labelled_stream_is_scored_under_all_protocols(taught, pictures, name):
    result = taught(name, CNN).evaluate(pictures(5, 4), orders=2)
    for protocol in ("strict", "greedy", "named"):
        assert all(0 <= result.mean[protocol][kind] <= 1 for kind in ("all", "old", "new"))
    assert result.mean["auroc"] is not None
    if not get_method(name).discovers:
        assert result.mean["named"]["new"] == 0
        assert result.mean["discovered"] == 0


@pytest.mark.parametrize("name", METHODS)
def test_a_report_is_written_for_it(taught, pictures, tmp_path, name):
    run = taught(name, CNN)
    stream = load_dataset(pictures(4, 3))
    story = tell(run, stream, title="four kinds", table=[(run.label, run.evaluate(stream, orders=1))])
    page = write_report(tmp_path / "report.html", story).read_text(encoding="utf-8")
    assert run.label in page
    assert all(group.name in page for group in story.groups)


@pytest.mark.parametrize("name", METHODS)
def test_its_page_in_the_documentation_says_what_it_is(name):
    page = (Path(__file__).parents[2] / "docs" / "methods.md").read_text(encoding="utf-8")
    assert f"`{name}`" in page
    own = {f.name for f in dataclasses.fields(get_method(name).settings_class)}
    missing = [setting for setting in own if f"`{setting}`" not in page]
    assert not missing, f"docs/methods.md does not explain {missing}"
