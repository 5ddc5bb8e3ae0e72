"""What is of a wrong type is refused as what it is, by newfound's own errors and before anything is done with it."""

from __future__ import annotations

import numpy as np
import pytest

import newfound as nf
from newfound.datasets import load_dataset
from newfound.discovery import PrototypeDictionary
from newfound.errors import DataError, NewfoundError, SettingsError
from newfound.evaluation import evaluate_stream, score, stream_order
from newfound.naming import read_vocabulary
from newfound.sklearn import OnTheFlyClassifier

ROWS = np.random.default_rng(0).normal(size=(24, 6))
CLASSES = np.repeat(["a", "b", "c", "d"], 6)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda d: d.undo("x"), "there is no event 'x'"),
        (lambda d: d.undo(True), "there is no event True"),
        (lambda d: d.sightings(limit="x"), "limit is 'x'; give a whole number from 0 up"),
        (lambda d: d.sightings(0, limit=2.5), "limit is 2.5"),
        (lambda d: d.sightings(offset=None), "offset is None"),
        (lambda d: d.sightings(offset=10**30), "offset is 1000"),
        (lambda d: d.events(limit="x"), "limit is 'x'"),
        (lambda d: list(d.stream(chunk="x")), "chunk is 'x'"),
        (lambda d: d.observe([], block=2.5), "block is 2.5; give a whole number from 1 up"),
        (lambda d: d.predict([], block="x"), "block is 'x'"),
        (lambda d: d.standing(["a.png"]), "'a.png' is no sighting"),
        (lambda d: d.standing(7), "7 is no sighting"),
    ],
)
def test_a_discoverer_says_what_it_cannot_take(tiny_run, call, told):
    with tiny_run.discoverer() as discoverer, pytest.raises(SettingsError, match=told):
        call(discoverer)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda c: c.merge(7), r"several categories, such as \[7, 9\], not 7"),
        (lambda c: c.merge("79"), "several categories"),
        (lambda c: c.undo("x"), "there is no event 'x'"),
        (lambda c: c.rename(0, 7), "a category's name is text, not 7"),
        (lambda c: c.sightings(limit="x"), "limit is 'x'"),
        (lambda c: c.observe([], block="x"), "block is 'x'"),
        (lambda c: nf.Client(7), "7 is no address of a service"),
    ],
)
def test_a_client_says_what_it_cannot_take_without_asking_the_service(call, told):
    pytest.importorskip("httpx", reason="newfound[serve] is not installed")
    with nf.Client("http://127.0.0.1:1") as client, pytest.raises(SettingsError, match=told):
        call(client)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda run: run.discoverer(7), "7 is no place for a journal"),
        (lambda run: run.discoverer(actor=7), "actor is 7"),
        (lambda run: run.save(7), "folder is 7; give a path"),
        (lambda run: nf.load(7), "folder is 7; give a path"),
    ],
)
def test_a_run_says_what_it_cannot_take(tiny_run, call, told):
    with pytest.raises(NewfoundError, match=told):
        call(tiny_run)


@pytest.mark.parametrize("given", [b"journal.db", "journal.db"])
def test_a_journal_may_be_named_in_bytes_as_files_are(tiny_run, tmp_path, monkeypatch, given):
    monkeypatch.chdir(tmp_path)
    tiny_run.discoverer(given).close()
    assert (tmp_path / "journal.db").is_file()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"seed": "x"}, "seed is 'x'"),
        ({"seed": -1}, "seed is -1; give a whole number from 0 up"),
        ({"tune_blocks": None}, "tune_blocks is None; give a whole number from 1 up"),
        ({"image_size": "x"}, "image_size is 'x'"),
        ({"out": 7}, "out is 7; give a path"),
        ({"cache": 7}, "cache is 7; give a path"),
        ({"backbone": None, "weights": "random"}, "backbone is None; give the name of a timm model"),
        ({"method": ["ltc"]}, r"there is no method \['ltc'\]"),
    ],
)
def test_a_training_says_what_it_cannot_take(fit_tiny, pictures, options, told):
    with pytest.raises(SettingsError, match=told):
        fit_tiny(pictures(kinds=2, each=2), **options)


@pytest.mark.parametrize(
    ("error", "call", "told"),
    [
        (DataError, lambda: load_dataset([ROWS], labels=7), "the labels are 7"),
        (DataError, lambda: read_vocabulary(7), "7 is no name"),
        (DataError, lambda: read_vocabulary(["owl", None]), "None is no name"),
        (DataError, lambda: score([1, 2], [1, 2], [1], discovered=[[True], []]), "one value for each sample"),
        (SettingsError, lambda: evaluate_stream(None, CLASSES, ["a"], orders="x"), "orders is 'x'"),
        (SettingsError, lambda: stream_order(3, "x", 0), "seed is 'x'"),
        (SettingsError, lambda: PrototypeDictionary(ROWS, 0.5).predict(ROWS, runners_up="x"), "runners_up is 'x'"),
        (SettingsError, lambda: OnTheFlyClassifier(dimensions="x").fit(ROWS, CLASSES), "dimensions is 'x'"),
        (DataError, lambda: OnTheFlyClassifier().fit_predict(ROWS, 7), "the labels are 7"),
    ],
)
def test_functions_say_what_they_cannot_take(error, call, told):
    with pytest.raises(error, match=told):
        call()
