"""Promises of the hub: what is published is what is loaded, nothing private goes up, and failures are told in words."""

from __future__ import annotations

import json
import socket
from dataclasses import replace

import numpy as np
import pytest
from fake_hub import TOKEN, serving

import newfound as nf
from newfound import hub
from newfound.errors import HubError, MissingFileError, SettingsError

huggingface_hub = pytest.importorskip("huggingface_hub")
pytestmark = pytest.mark.usefixtures("one_thread")


def point_at(url: str, monkeypatch) -> None:
    """What HF_ENDPOINT does to a process that starts with it."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", url)
    template = url + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)


@pytest.fixture
def online(tmp_path, monkeypatch):
    """A hub of our own, an empty cache for what is fetched, and no token of whoever runs the tests."""
    from huggingface_hub import constants

    with serving() as server:
        point_at(server.url, monkeypatch)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "fetched"))
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.chdir(tmp_path)
        yield server


def decisions(run, images) -> list:
    return [(s.category, s.name, s.is_new) for s in run.discoverer().observe(images)]


def test_a_run_from_the_hub_decides_as_the_one_that_was_published(online, tiny_run, picture):
    page = tiny_run.push_to_hub("anna/birds", token=TOKEN)
    assert page == f"{online.url}/anna/birds"
    loaded = nf.load("anna/birds")
    stream = [picture(kind, number) for number in range(30, 33) for kind in range(5)]
    assert decisions(loaded, stream) == decisions(tiny_run, stream)
    assert loaded.fingerprint() == tiny_run.fingerprint()
    assert loaded.classes == tiny_run.classes


def test_only_the_run_goes_up_in_one_commit_and_no_path_with_it(online, tiny_run, tmp_path):
    before = json.dumps(tiny_run.config), tiny_run.folder
    tiny_run.push_to_hub("anna/birds", token=TOKEN)
    (files,) = online.repos["anna/birds"]
    assert set(files) == {
        "config.json", "classes.json", "model.safetensors", "known.safetensors", "log.csv", "threshold.csv", "README.md"
    }  # fmt: skip
    config = json.loads(files["config.json"])
    weights = tiny_run.config["backbone"]["weights"]
    assert "/" in weights, "the tiny backbone's weights are a file of this machine"
    assert config["backbone"]["weights"] == weights.rsplit("/", 1)[1]
    assert config["bundle"], "nobody else has that file"
    assert not any(b"/tmp" in content or str(tmp_path).encode() in content for content in files.values())
    assert (json.dumps(tiny_run.config), tiny_run.folder) == before


def test_a_diffusion_pipeline_of_this_machine_goes_up_without_its_path(online, tiny_run, tmp_path):
    settings = tiny_run.config["settings"] | {"pipeline": str(tmp_path / "sd15")}
    replace(tiny_run, config=tiny_run.config | {"settings": settings}).push_to_hub("anna/birds", token=TOKEN)
    (files,) = online.repos["anna/birds"]
    assert json.loads(files["config.json"])["settings"]["pipeline"] == "sd15"
    tiny_run.push_to_hub("anna/birds", token=TOKEN)
    *_, files = online.repos["anna/birds"]
    assert json.loads(files["config.json"])["settings"]["pipeline"] == tiny_run.config["settings"]["pipeline"]


def test_a_folder_comes_before_the_hub_and_a_path_is_never_a_name(online, run_folder, tmp_path, monkeypatch):
    (tmp_path / "anna").mkdir()
    (tmp_path / "anna" / "birds").symlink_to(run_folder)
    assert nf.load("anna/birds").folder is not None
    with pytest.raises(MissingFileError, match="there is no run folder"):
        nf.load(tmp_path / "anna" / "owls")
    assert online.sent == []
    with pytest.raises(SettingsError, match="is a folder"):
        nf.load("anna/birds", revision="v1")


def test_an_older_revision_can_be_asked_for(online, tiny_run):
    tiny_run.push_to_hub("anna/birds", token=TOKEN)
    first = online.sha("anna/birds")
    tiny_run.push_to_hub("anna/birds", token=TOKEN, scores={"mean": {"strict": {"all": 0.5}}})
    assert len(online.repos["anna/birds"]) == 2
    assert nf.load("anna/birds", revision=first).folder.name == first
    assert nf.load("anna/birds").folder.name == online.sha("anna/birds")
    with pytest.raises(MissingFileError, match="no branch, tag or commit 'v9'"):
        nf.load("anna/birds", revision="v9")


def test_what_was_fetched_once_can_be_loaded_without_a_connection(online, tiny_run, monkeypatch):
    tiny_run.push_to_hub("anna/birds", token=TOKEN)
    here = nf.load("anna/birds").folder
    unplug(monkeypatch)
    assert nf.load("anna/birds").folder == here
    with pytest.raises(HubError, match=r"cannot be reached for anna/owls, and it is no folder here"):
        nf.load("anna/owls")
    with pytest.raises(HubError, match="cannot be reached for anna/owls:"):
        tiny_run.push_to_hub("anna/owls", token=TOKEN)


def unplug(monkeypatch) -> None:
    """Nobody listens where the hub was."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        point_at(f"http://127.0.0.1:{free.getsockname()[1]}", monkeypatch)


def test_a_private_run_needs_a_token_to_be_seen(online, tiny_run):
    tiny_run.push_to_hub("anna/birds", token=TOKEN, private=True)
    with pytest.raises(MissingFileError, match=r"no anna/birds on the hub, or it is private .*no folder here"):
        nf.load("anna/birds")
    assert nf.load("anna/birds", token=TOKEN).classes == tiny_run.classes


def test_publishing_without_a_token_says_how_to_get_one_before_anything_is_sent(online, tiny_run):
    with pytest.raises(HubError, match="hf auth login"):
        tiny_run.push_to_hub("anna/birds")
    assert online.sent == []
    for repo, token in (("anna/birds", "hf_wrong"), ("others/birds", TOKEN)):
        with pytest.raises(HubError, match=f"does not let this token do that with {repo}"):
            tiny_run.push_to_hub(repo, token=token)


def test_the_models_of_others_are_told_apart_before_they_are_fetched(online):
    online.repos |= {"org/bert": [], "org/empty": []}
    online.commit("org/bert", {"config.json": b'{"model_type": "bert"}', "model.safetensors": b"x" * 1000})
    online.commit("org/empty", {"README.md": b"soon"})
    for repo in ("org/bert", "org/empty"):
        with pytest.raises(HubError, match=f"{repo} is on the hub, but .*no .*model of newfound's"):
            nf.load(repo)
    assert not any("safetensors" in request for request in online.sent)


def test_files_that_were_damaged_on_the_way_are_refused(online, tiny_run):
    tiny_run.push_to_hub("anna/birds", token=TOKEN)
    online.commit("anna/birds", {"classes.json": b'["a"]'})
    with pytest.raises(nf.NewfoundError, match=r"classes\.json has changed"):
        nf.load("anna/birds")


def test_a_page_that_somebody_wrote_can_be_left_as_it_is(online, tiny_run):
    tiny_run.push_to_hub("anna/birds", token=TOKEN)
    online.commit("anna/birds", {"README.md": b"my own words"})
    tiny_run.push_to_hub("anna/birds", token=TOKEN, card=False)
    assert online.repos["anna/birds"][-1]["README.md"] == b"my own words"


def test_names_that_cannot_be_on_the_hub_are_refused(online, tiny_run):
    with pytest.raises(SettingsError, match="cannot be the name"):
        tiny_run.push_to_hub("anna/bi rds", token=TOKEN)
    for name in ("a/b/c", "/abs/path", "./runs", "runs", "../x", "a/"):
        assert not hub.is_hub_id(name), name
    assert hub.is_hub_id("org/na.me-1_x")


def test_the_command_publishes_with_scores(online, run_folder, tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from newfound.cli import app

    monkeypatch.setenv("HF_TOKEN", TOKEN)
    (tmp_path / "scores.json").write_text(json.dumps({"mean": {"strict": {"all": 0.5, "old": 0.75, "new": 0.25}}}))
    scores = str(tmp_path / "scores.json")
    words = ["push", str(run_folder), "anna/birds", "--scores", scores, "--license", "mit", "--json"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["page"] == f"{online.url}/anna/birds"
    page = online.repos["anna/birds"][-1]["README.md"].decode()
    assert "| Strict | 50.0 | 75.0 | 25.0 |" in page
    assert 'license: "mit"' in page
    (tmp_path / "scores.json").write_text("{")
    assert CliRunner().invoke(app, words).exit_code == 1


@pytest.fixture
def dataset(pictures):
    """make(**features): a `datasets.Dataset` of four kinds of pictures."""
    datasets = pytest.importorskip("datasets")
    from PIL import Image

    images, labels = pictures(4, 5)
    names = sorted(set(labels))

    def make(image="image", label="label", numbers=None):
        features = datasets.Features({image: datasets.Image(), label: datasets.ClassLabel(names=names)})
        numbers = [names.index(name) for name in labels] if numbers is None else numbers
        rows = {image: [Image.fromarray(each) for each in images], label: numbers}
        return datasets.Dataset.from_dict(rows, features=features)

    return make


def test_a_hub_data_set_is_learnt_as_its_images_and_names_are(dataset, fit_tiny, pictures):
    from newfound.datasets import load_dataset
    from newfound.images import open_image

    data = load_dataset(dataset())
    images, labels = pictures(4, 5)
    assert data.labels == labels
    assert all(np.array_equal(np.asarray(open_image(a)), b) for a, b in zip(data.items, images, strict=True))
    assert fit_tiny(dataset()).classes == ["kind0", "kind1", "kind2", "kind3"]


def test_a_stream_of_rows_is_read_one_at_a_time(dataset, tiny_run, pictures):
    from datasets import IterableDataset

    rows, pulled = dataset(), []

    def one_by_one():
        for index, row in enumerate(rows):
            pulled.append(index)
            yield row

    stream = IterableDataset.from_generator(one_by_one, features=rows.features)
    sightings = tiny_run.discoverer().observe(stream)
    assert pulled == []
    first = next(sightings)
    assert first.image.index == 0
    assert len(pulled) < 20, "the rest of the stream has not been looked at"
    answers = [first.category, *(s.category for s in sightings)]
    plain = tiny_run.discoverer().observe(pictures(4, 5)[0])
    assert answers == [s.category for s in plain] == [s.category for s in tiny_run.discoverer().observe(rows)]
    unnamed = IterableDataset.from_generator(one_by_one)
    assert answers == [s.category for s in tiny_run.discoverer().observe(unnamed)], "the first row shows its columns"


def test_columns_are_found_or_named_and_what_is_missing_is_told(dataset):
    from newfound.datasets import load_dataset
    from newfound.errors import DataError
    from newfound.hf_datasets import columns

    odd = dataset("photo", "species").add_column("place", ["here"] * 20)
    assert load_dataset(odd).classes == ["kind0", "kind1", "kind2", "kind3"]
    assert columns(odd, label="place").classes == ["here"]
    for act, says in [
        (lambda: columns(odd, image="place"), "no column 'place' that is an Image"),
        (lambda: columns(odd, label="nothing"), "no column 'nothing'"),
        (lambda: load_dataset(odd.remove_columns("photo")), "no column that is an Image"),
        (lambda: load_dataset(dataset(numbers=[0, 1, -1] + [0] * 17)), "row 2 has no label"),
        (lambda: load_dataset(dataset().to_iterable_dataset()), "streaming"),
        (lambda: load_dataset(dataset().train_test_split(0.5)), r"dataset\['train'\]"),
    ]:
        with pytest.raises(DataError, match=says):
            act()
