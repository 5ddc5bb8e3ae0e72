"""`newfound split`, and the known classes of the benchmarks that it can take."""

from __future__ import annotations

import json
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newfound.benchmarks.splits import known_classes, labelled_fraction, protocols
from newfound.datasets import load_dataset
from newfound.errors import DataError, SettingsError


def test_the_two_parts_are_the_whole_and_known_classes_are_in_both(invoke, labelled, tmp_path):
    result = invoke("split", labelled, "--out", tmp_path / "s", "--known", "blue,red")
    assert result.exit_code == 0, result.stderr
    taught = load_dataset(tmp_path / "s" / "labelled.csv")
    stream = load_dataset(tmp_path / "s" / "stream.csv")
    assert taught.classes == ["blue", "red"]
    assert stream.classes == ["blue", "green", "red"]
    assert len(taught) == 4
    assert sorted(map(str, [*taught.items, *stream.items])) == sorted(map(str, load_dataset(labelled).items))
    assert f"newfound train {tmp_path}/s/labelled.csv --out RUN" in result.stdout
    assert f"newfound evaluate RUN {tmp_path}/s/stream.csv" in result.stdout


@pytest.mark.parametrize(("file", "text"), [("a.txt", "green\n\nred\n"), ("a.json", '{"known": ["green", "red"]}')])
def test_known_classes_can_be_a_file_of_names(invoke, labelled, tmp_path, file, text):
    (tmp_path / file).write_text(text, encoding="utf-8")
    result = invoke("split", labelled, "--out", tmp_path, "--known", tmp_path / file, "--json")
    assert json.loads(result.stdout)["known"] == ["green", "red"]


def test_images_that_will_not_be_used_are_told(invoke, paint, tmp_path):
    for name, colour in (("red", (220, 40, 30)), ("blue", (30, 40, 220))):
        paint(tmp_path / "data" / name, colour, 4)
    paint(tmp_path / "data", (9, 9, 9), 1)
    result = invoke("split", tmp_path / "data", "--out", tmp_path / "split")
    assert result.exit_code == 0
    assert "warning: 1 image lies in" in result.stderr


def test_images_on_both_sides_of_a_split_are_told(invoke, paint, tmp_path):
    for name, colour in (("red", (220, 40, 30)), ("blue", (30, 40, 220))):
        paint(tmp_path / "data" / name, colour, 4)
    assert "equal" not in invoke("split", tmp_path / "data", "--out", tmp_path / "a", "--known", "red").stderr
    for image in sorted((tmp_path / "data" / "red").iterdir()):
        shutil.copy(image, image.with_name(f"again-{image.name}"))
    told = invoke("split", tmp_path / "data", "--out", tmp_path / "b", "--known", "red")
    assert told.exit_code == 0
    assert "of the stream are equal to a labelled one, such as" in told.stderr


def test_the_same_seed_gives_the_same_split(invoke, labelled, tmp_path):
    for name, seed in (("a", 5), ("b", 5), ("c", 6)):
        assert invoke("split", labelled, "--out", tmp_path / name, "--seed", seed).exit_code == 0
    a, b, c = ((tmp_path / name / "labelled.csv").read_bytes() for name in "abc")
    assert a == b
    assert a != c


@pytest.mark.parametrize("name", ["labelled.csv", "stream.csv"])
def test_a_split_that_is_there_is_replaced_only_when_that_is_asked_for(invoke, labelled, tmp_path, name):
    (tmp_path / name).write_text("mine", encoding="utf-8")
    refused = invoke("split", labelled, "--out", tmp_path)
    assert refused.exit_code == 1
    assert f"{tmp_path / name} is there already: --overwrite replaces the split in {tmp_path}" in refused.stderr
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(name, "mine")]
    assert invoke("split", labelled, "--out", tmp_path, "--overwrite").exit_code == 0
    assert len(load_dataset(tmp_path / "labelled.csv")) + len(load_dataset(tmp_path / "stream.csv")) == 12


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (["--known", "blue", "--protocol", "pets"], 2, "either --known or --protocol"),
        (["--known", "nowhere.txt"], 1, "there is no file nowhere.txt to read the names of the known classes from"),
        (["--known", "bleu,red"], 1, "no class named 'bleu' (near: 'blue')"),
        (["--protocol", "pest"], 2, "there is no protocol 'pest'; choose one of cub, cars, pets"),
        (["--protocol", "pets"], 1, "pets has 37 classes, but this data set has 3"),
        (["--fraction", "0"], 1, "fraction"),
        (["--fraction", "1", "--known", "blue,green,red"], 1, "nothing is left to stream"),
    ],
)
def test_a_split_that_cannot_be_made_says_why(invoke, labelled, tmp_path, args, code, says):
    result = invoke("split", labelled, "--out", tmp_path / "s", *args)
    assert result.exit_code == code
    assert says in result.stderr
    assert not (tmp_path / "s").exists()


def test_every_protocol_has_different_known_classes_within_its_range():
    assert labelled_fraction() == 0.5
    assert {"cub": 200, "cars": 196, "pets": 37, "food101": 101}.items() <= protocols().items()
    for name, classes in protocols().items():
        numbered = [f"{i:03}" for i in range(classes)]
        known = known_classes(name, numbered)
        assert len(known) == len(set(known)) == (98 if name == "cars" else (classes + 1) // 2)


@given(st.permutations(range(37)), st.sampled_from(["{:03}.x", "{}_b.c", "{:02}-k 1", "{}"]), st.sampled_from([0, 1]))
def test_an_official_number_before_the_name_decides_in_any_order_and_from_0_or_1(order, form, base):
    names = [form.format(i + base) for i in range(37)]
    assert known_classes("pets", [names[i] for i in order]) == names[:19]


def test_pets_without_numbers_are_ordered_alphabetically_ignoring_case():
    names = [f"{'aB'[i % 2]}{i:02}" for i in range(37)]
    assert known_classes("pets", names) == sorted(names, key=str.casefold)[:19]


@pytest.mark.parametrize("protocol", ["cub", "cars", "imagenet100"])
def test_names_that_do_not_tell_the_official_order_are_refused(protocol):
    names = [f"bird {i}" for i in range(protocols()[protocol])]
    with pytest.raises(DataError, match=r"official number, as in 001\.bird 0"):
        known_classes(protocol, names)


def test_synset_ids_tell_the_official_order():
    names = [f"n{i:08}" for i in range(100)]
    assert known_classes("imagenet100", names)[:8] == [f"n{i:08}" for i in (0, 1, 2, 3, 4, 5, 6, 8)]


@pytest.mark.parametrize("numbers", [[*range(36), 40], [0, *range(36)], [n + 2 for n in range(37)]])
def test_numbers_that_are_not_the_official_ones_are_refused(numbers):
    names = [f"{n}.{letter}" for letter, n in enumerate(numbers)]
    with pytest.raises(DataError, match="official class numbers once"):
        known_classes("pets", names)


def test_an_unknown_protocol_lists_those_that_there_are():
    with pytest.raises(SettingsError, match="cub, cars, pets, food101"):
        known_classes("birds", [])
