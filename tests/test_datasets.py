"""Promises of newfound.datasets: one door for labelled data, one for unlabelled sources, and the protocol's split."""

from __future__ import annotations

import itertools
import json
import os
import string
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from PIL import Image

from newfound.datasets import (
    LabelledImages,
    check_trainable,
    drop_unreadable,
    is_finite,
    item_name,
    iter_source,
    load_dataset,
    split_protocol,
    write_csv,
)
from newfound.errors import DataError, MissingFileError
from newfound.images import open_image


def plant(root: Path, *names: str) -> None:
    """Make empty files, for what only looks at names."""
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()


def named(root: Path, data: LabelledImages) -> list[tuple[str, str]]:
    return [(item.relative_to(root).as_posix(), label) for item, label in zip(data.items, data.labels, strict=True)]


def numbered(*labels: str) -> LabelledImages:
    return LabelledImages(list(range(len(labels))), list(labels))


@pytest.fixture
def table(tmp_path):
    """Write a table beside three images, and load it."""
    plant(tmp_path, "a.jpg", "b.jpg", "sub/c.png")

    def write(text: str | bytes, name: str = "list.csv") -> LabelledImages:
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return load_dataset(tmp_path / name)

    return write


# --- labelled images


def test_classes_targets_and_counts_follow_from_the_labels():
    data = numbered("owl", "cat", "owl")
    assert data.classes == ["cat", "owl"]
    assert data.targets.tolist() == [1, 0, 1]
    assert data.targets.dtype == np.int64
    assert data.counts() == {"cat": 1, "owl": 2}
    assert len(data) == 3
    assert LabelledImages([1], ["a"], ["a"], "here").source == "here"


def test_items_labels_and_classes_that_do_not_fit_are_refused():
    with pytest.raises(DataError, match="2 images but 1 labels"):
        LabelledImages([1, 2], ["a"])
    with pytest.raises(DataError, match="distinct labels"):
        LabelledImages([1, 2], ["a", "b"], ["b", "a"])


def test_subsets_are_taken_by_index_mask_and_class():
    data = numbered("owl", "cat", "owl", "emu")
    assert data.subset([2, 0]).items == [2, 0]
    assert data.subset(np.array([True, False, False, True])).labels == ["owl", "emu"]
    assert data.subset([]).classes == []
    assert data.of_classes(["owl"]).items == data.of_classes("owl").items == [0, 2]
    assert data.without_classes(["owl"]).classes == ["cat", "emu"]
    assert data.subset([1]).source == data.source
    for method in (data.of_classes, data.without_classes):
        with pytest.raises(DataError, match="'oll' \\(near: 'owl'\\)"):
            method(["cat", "oll"])


# --- folders


def test_the_class_is_the_first_folder_however_deep_the_image_lies(tmp_path):
    plant(tmp_path, "cat/1.JPG", "cat/deep/er/2.png", "Dog/3.webp", "Dog/notes.txt", ".hidden/4.jpg", "cat/.5.jpg")
    data = load_dataset(str(tmp_path))
    assert named(tmp_path, data) == [("Dog/3.webp", "Dog"), ("cat/1.JPG", "cat"), ("cat/deep/er/2.png", "cat")]
    assert data.classes == ["Dog", "cat"]
    assert data.source == str(tmp_path)


def test_empty_class_folders_and_stray_images_are_left_out_but_told(tmp_path):
    plant(tmp_path, "cat/1.jpg", "dog/readme.md", "stray.jpg", "other.PNG", "list.txt")
    data = load_dataset(tmp_path)
    assert data.classes == ["cat"]
    assert data.empty_classes == ("dog",)
    assert data.stray_images == 2


def test_a_class_folder_whose_name_is_no_text_is_named(tmp_path):
    plant(tmp_path, "heron/1.png")
    os.rename(tmp_path / "heron", os.fsencode(tmp_path) + b"/caf\xe9")
    with pytest.raises(DataError, match=r"caf\\udce9.*rename"):
        load_dataset(tmp_path)


def test_class_folders_that_differ_in_a_space_at_the_end_are_named(tmp_path):
    plant(tmp_path, "owl/1.jpg", "heron/1.jpg", "heron /1.jpg")
    with pytest.raises(DataError, match=r"the labels 'heron' and 'heron ' differ, .*rename"):
        load_dataset(tmp_path)


def test_loops_of_links_neither_hang_nor_mix_classes(tmp_path):
    root = tmp_path / "data"
    plant(root, "cat/1.jpg", "dog/2.jpg", "stray.jpg")
    plant(tmp_path, "far/3.jpg", "beside.jpg")
    (root / "loop").symlink_to(root)
    (root / "up").symlink_to(tmp_path)
    (root / "cat" / "all").symlink_to(root)
    (root / "cat" / "self").symlink_to("self")
    (root / "dog" / "friend").symlink_to(root / "cat")
    (root / "linked").symlink_to(tmp_path / "far")
    (root / "gone").symlink_to(tmp_path / "nowhere")
    data = load_dataset(root)
    assert named(root, data) == [("cat/1.jpg", "cat"), ("dog/2.jpg", "dog"), ("linked/3.jpg", "linked")]
    assert data.empty_classes == ()
    assert data.dead_links == ("gone",)


def test_a_folder_of_links_that_lead_nowhere_says_so(tmp_path):
    (tmp_path / "cat").symlink_to(tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"no images \(cat: a link that leads nowhere\); give every class a folder"):
        load_dataset(tmp_path)


def test_dead_links_are_images_that_cannot_be_read_in_a_folder_as_in_a_table(tmp_path):
    plant(tmp_path, "cat/1.jpg", "dog/2.jpg")
    (tmp_path / "cat" / "gone.jpg").symlink_to(tmp_path / "nowhere.jpg")
    (tmp_path / "stray.jpg").symlink_to(tmp_path / "nowhere.jpg")
    data = load_dataset(tmp_path)
    assert named(tmp_path, data) == [("cat/1.jpg", "cat"), ("cat/gone.jpg", "cat"), ("dog/2.jpg", "dog")]
    assert data.stray_images == 1
    write_csv(data, tmp_path / "list.csv")
    assert load_dataset(tmp_path / "list.csv").items == data.items
    _, dropped = drop_unreadable(data)
    assert "it is a link to" in dict(dropped)[str(tmp_path / "cat" / "gone.jpg")]


def test_a_folder_without_class_folders_explains_the_layout(tmp_path):
    with pytest.raises(DataError, match="no images; give every class a folder"):
        load_dataset(tmp_path)
    plant(tmp_path, "1.jpg", "empty/readme.md")
    with pytest.raises(DataError, match="1 image but none in a class folder"):
        load_dataset(tmp_path)
    plant(tmp_path, "2.jpg")
    with pytest.raises(DataError, match="2 images but none in a class folder; give every class a folder"):
        load_dataset(tmp_path)


def test_what_is_not_there_or_no_data_set_is_named(tmp_path):
    with pytest.raises(MissingFileError, match="nowhere"):
        load_dataset(tmp_path / "nowhere")
    plant(tmp_path, "a.jpg")
    with pytest.raises(DataError, match=r"a\.jpg is neither a folder nor a \.csv"):
        load_dataset(tmp_path / "a.jpg")
    for thing in (None, 7, [1, 2]):
        with pytest.raises(DataError, match="without labels"):
            load_dataset(thing)


# --- tables


@pytest.mark.parametrize(
    "text",
    [
        "a.jpg,owl\nsub/c.png,emu\n",
        "path,label\na.jpg,owl\nsub/c.png,emu",
        "Label , FILENAME,split\r\nowl,a.jpg,train\r\nemu,sub/c.png,test\r\n",
        "\ufeffimage,category\na.jpg,owl\n\n , \nsub/c.png,emu\n",
        "id,class,file\n1,owl,a.jpg\n2,emu,sub/c.png\n",
        "a.jpg, owl \n sub/c.png ,emu\n",
        '"a.jpg","owl"\n"sub/c.png","emu"\n',
        "path;label\r\na.jpg;owl\r\nsub\\c.png;emu\r\n",  # as a spreadsheet in Europe, on Windows, writes it
    ],
)
def test_a_table_is_read_with_or_without_a_header(text, table, tmp_path):
    assert named(tmp_path, table(text)) == [("a.jpg", "owl"), ("sub/c.png", "emu")]


def test_a_tsv_is_read_and_absolute_paths_are_taken_as_they_are(table, tmp_path):
    text = f"label\tpath\nowl, or so\t{tmp_path / 'b.jpg'}\n"
    assert named(tmp_path, table(text, "list.TSV")) == [("b.jpg", "owl, or so")]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("path,label\na.jpg,owl\n,emu\n", "line 3: the path is empty"),
        ("path,label\na.jpg,owl\nb.jpg, \n", "line 3: the label is empty"),
        ("a.jpg,owl\nb.jpg\n", "line 2: a path and a label are needed"),
        ("a.jpg|owl\nb.jpg|emu\n", "line 1: a path and a label are needed"),
        ('path,label\n"a.jpg","two\nlines"\nno.jpg,owl\n', r"line 4: there is no file .*no\.jpg"),
        ("picture,breed\na.jpg,owl\n", "line 1: .*a header must name the columns"),
        ('a.jpg,owl\nb.jpg,"emu\n', "line 2: unexpected end of data"),
        ("sub,owl\n", "line 1: there is no file"),
        ("path,label\nelsewhere/a.jpg,owl\n", r"line 2: .*; paths start from the folder of list\.csv$"),
        ("path,label\n/nowhere/a.jpg,owl\n", r"line 2: there is no file /nowhere/a\.jpg$"),
        ("", "lists no images"),
        ("path,label\n\n", "lists no images"),
        ("a.jpg,hibou grand-duc d'été\n".encode("latin-1"), "not UTF-8"),
        ("path,label\n".encode("utf-16"), "not UTF-8"),
    ],
)
def test_a_bad_table_is_told_by_its_line(text, reason, table):
    with pytest.raises(DataError, match=rf"list\.csv.*{reason}"):
        table(text)


def test_a_path_that_a_table_lists_and_nobody_has_is_a_missing_file(table):
    with pytest.raises(MissingFileError, match="line 1"):
        table("no.jpg,owl\n")


odd_text = st.text(
    st.characters(exclude_characters="/\0", exclude_categories=("Cs",)), min_size=1, max_size=12
).filter(lambda text: text.strip() and text not in (".", ".."))


@settings(max_examples=60, deadline=None)
@given(rows=st.dictionaries(odd_text, odd_text, min_size=1, max_size=5), suffix=st.sampled_from([".csv", ".tsv"]))
@example(rows={'a,"b"\n;\t\r.jpg': ' "x",\r\ny ', " lead.jpg": "path", "path": "label"}, suffix=".csv")
def test_a_table_that_was_written_reads_back_the_same(rows, suffix):
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "images").mkdir()
        try:
            for name in rows:
                (root / "images" / name).touch()
        except OSError:
            assume(False)  # longer than a file name may be
        paths = [root / "images" / name for name in rows]
        data = LabelledImages(paths, [label.strip() for label in rows.values()])
        write_csv(data, root / f"list{suffix}")
        again = load_dataset(root / f"list{suffix}")
        assert again.items == data.items
        assert again.labels == data.labels


def test_paths_below_the_table_are_written_relative_so_that_the_folder_can_move(tmp_path):
    plant(tmp_path, "set/cat/1.jpg", "set/dog/2.jpg", "far.jpg")
    data = load_dataset(tmp_path / "set")
    write_csv(data, tmp_path / "set" / "list.csv")
    (tmp_path / "set").rename(tmp_path / "moved")
    assert load_dataset(tmp_path / "moved" / "list.csv").labels == data.labels
    write_csv(LabelledImages([str(tmp_path / "far.jpg")], ["far"]), tmp_path / "moved" / "far.csv")
    assert load_dataset(tmp_path / "moved" / "far.csv").items == [tmp_path / "far.jpg"]


def test_what_cannot_be_written_as_a_table_is_named_and_leaves_no_file(tmp_path):
    with pytest.raises(DataError, match=r"image 1 .* in memory"):
        write_csv(LabelledImages(["a.jpg", np.zeros((2, 2))], ["a", "b"]), tmp_path / "x.csv")
    with pytest.raises(DataError, match="Unicode"):
        write_csv(LabelledImages([os.fsdecode(b"\xff.jpg")], ["a"]), tmp_path / "x.csv")
    with pytest.raises(DataError, match=r"must end in \.csv"):
        write_csv(LabelledImages(["a.jpg"], ["a"]), tmp_path / "x.txt")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(DataError, match="cannot write"):
        write_csv(LabelledImages(["a.jpg"], ["a"]), tmp_path / "nowhere" / "x.csv")


# --- arrays


def test_images_in_memory_take_labels_of_any_hashable_kind():
    images = np.zeros((3, 4, 4, 3), np.uint8)
    for labels in ([1, 0, 1], np.array([1, 0, 1]), (1, 0, 1)):
        assert load_dataset((images, labels)).labels == ["1", "0", "1"]
        assert load_dataset(images, labels=labels).classes == ["0", "1"]
    assert load_dataset(images, labels=[("a", 1), True, "b "]).labels == ["('a', 1)", "True", "b"]
    data = load_dataset(images, labels=["a", "b", "a"])
    assert open_image(data.items[2]).size == (4, 4)
    assert load_dataset(data) is data


def test_tensors_take_labels_too():
    torch = pytest.importorskip("torch")
    data = load_dataset((torch.zeros(2, 3, 4, 6), torch.tensor([5, 7])))
    assert data.labels == ["5", "7"]
    assert open_image(data.items[0]).size == (6, 4)


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        (["a"], "2 images but 1 labels"),
        (["a", ""], "image 1 has an empty label"),
        (["a", None], "image 1 has an empty label"),
        (["a", float("nan")], "image 1 has an empty label"),
        (np.array([1.0, np.nan]), "image 1 has an empty label"),
        (["a", "caf\udce9"], r"'caf\\udce9' has a name that is no valid Unicode; rename"),
        ([1, "1"], "the labels 1 and '1' differ, but not as text"),
        ([["a"], ["b"]], "hashable"),
        ([np.zeros(2), np.zeros(2)], "hashable"),
    ],
)
def test_labels_that_do_not_fit_are_named(labels, reason):
    images = [np.zeros((2, 2))] * 2
    for load in (lambda: load_dataset((images, labels)), lambda: load_dataset(images, labels=labels)):
        with pytest.raises(DataError, match=reason):
            load()


def test_labels_beside_a_path_are_refused(tmp_path):
    with pytest.raises(DataError, match="labels= is for images in memory"):
        load_dataset(tmp_path, labels=["a"])


# --- fit to learn from


def test_one_class_only_and_classes_of_one_image_are_refused_with_their_names():
    check_trainable(numbered("a", "b", "a", "b"))
    with pytest.raises(DataError, match=r"one class only \(owl\).*at least 2 are needed; give every class"):
        check_trainable(numbered("owl", "owl"))
    with pytest.raises(DataError, match="no classes"):
        check_trainable(numbered())
    with pytest.raises(DataError, match="these classes have one image: cat, emu; give each at least 2"):
        check_trainable(numbered("owl", "cat", "owl", "emu"))
    with pytest.raises(DataError, match="fewer than 3 images: a, b"):
        check_trainable(numbered("a", "b", "a"), min_per_class=3)
    check_trainable(numbered("a"), min_classes=1, min_per_class=1)
    with pytest.raises(DataError, match=r"one image: 100, 101, .*109 and 890 more; give"):
        check_trainable(numbered(*(str(number) for number in range(100, 1000))))


def test_unreadable_images_are_dropped_with_their_reason(tmp_path):
    good, cut = tmp_path / "good.png", tmp_path / "cut.png"
    Image.effect_noise((32, 32), 50).save(good)
    cut.write_bytes(good.read_bytes()[:300])
    items = [good, cut, tmp_path / "gone.jpg", np.zeros((3, 3)), np.full((3, 3), np.nan)]
    seen = []
    kept, dropped = drop_unreadable(LabelledImages(items, list("abcde")), progress=seen.append)
    assert kept.labels == ["a", "d"]
    assert [name for name, _ in dropped] == [str(cut), str(tmp_path / "gone.jpg"), "image 4"]
    assert ["cut off" in dropped[0][1], "no file" in dropped[1][1], "[0, 1]" in dropped[2][1]] == [True] * 3
    assert seen == [1] * 5
    clean = LabelledImages([good], ["a"])
    assert drop_unreadable(clean) == (clean, [])


def test_an_image_is_called_by_its_path_or_its_number():
    assert item_name(Path("x") / "a.jpg", 3) == str(Path("x") / "a.jpg")
    assert item_name("a.jpg", 3) == "a.jpg"
    assert item_name(np.zeros((2, 2)), 17) == "image 17"


# --- unlabelled sources


def test_a_source_of_any_kind_is_flattened_to_single_images(tmp_path):
    plant(tmp_path, "in/b.jpg", "in/a/c.png", "in/notes.txt", "alone.jpg")
    picture, array = Image.new("RGB", (2, 2)), np.zeros((5, 6, 3), np.uint8)
    folder = [tmp_path / "in/a/c.png", tmp_path / "in/b.jpg"]
    assert list(iter_source(tmp_path / "in")) == folder
    assert list(iter_source(str(tmp_path / "alone.jpg"))) == [str(tmp_path / "alone.jpg")]
    assert list(iter_source("nowhere.jpg")) == ["nowhere.jpg"]
    mixed = [str(tmp_path / "in"), picture, array, b"bytes", (name for name in ["x.jpg", "y.jpg"])]
    found = list(iter_source(mixed))
    assert found[:2] == folder
    assert found[2] is picture
    assert found[3] is array
    assert found[4:] == [b"bytes", "x.jpg", "y.jpg"]
    assert list(iter_source(np.array(["a.jpg", "b.jpg"]))) == ["a.jpg", "b.jpg"]
    assert list(iter_source(numbered("a", "b"))) == [0, 1]
    with (tmp_path / "alone.jpg").open("rb") as file:
        assert list(iter_source(file)) == [file]


@pytest.mark.parametrize(
    ("shape", "images"),
    [((5, 6), 1), ((5, 6, 3), 1), ((5, 6, 4), 1), ((7, 5, 6, 3), 7), ((7, 5, 6), 7), ((7, 5, 6, 1), 7), ((3, 5, 6), 3)],
)
def test_an_array_is_one_image_or_many_by_its_shape(shape, images):
    found = list(iter_source(np.zeros(shape, np.uint8)))
    assert len(found) == images
    assert {open_image(item).size for item in found} == {(6, 5)}


@pytest.mark.parametrize(("shape", "images"), [((5, 6), 1), ((3, 5, 6), 1), ((5, 6, 3), 1), ((7, 3, 5, 6), 7)])
def test_a_tensor_is_one_image_or_many_by_its_shape(shape, images):
    torch = pytest.importorskip("torch")
    found = list(iter_source(torch.zeros(shape)))
    assert len(found) == images
    assert {open_image(item).size for item in found} == {(6, 5)}


def test_a_source_is_read_no_further_than_it_is_asked():
    endless = (f"{number}.jpg" for number in itertools.count())
    assert list(itertools.islice(iter_source([["first.jpg"], endless]), 3)) == ["first.jpg", "0.jpg", "1.jpg"]
    assert next(endless) == "2.jpg"


def test_a_source_that_holds_no_image_is_named():
    for thing in (None, 7, [1, 2]):
        with pytest.raises(DataError, match="is not an image"):
            list(iter_source(thing))


def test_iterators_are_not_known_to_end(tmp_path):
    with (tmp_path / "a.jpg").open("wb") as file:
        for source in ("a.jpg", tmp_path, b"", file, Image.new("L", (1, 1)), np.zeros((2, 2)), [], ("a", ["b"])):
            assert is_finite(source)
    for source in (iter([]), (x for x in "ab"), ["a.jpg", iter(["b.jpg"])], map(str, "ab"), itertools.count()):
        assert not is_finite(source)


# --- the protocol


datasets = st.lists(st.sampled_from(string.ascii_lowercase[:8]), min_size=1, max_size=80).map(lambda x: numbered(*x))


@settings(max_examples=150, deadline=None)
@given(data=datasets, fraction=st.floats(0.01, 1), seed=st.integers(0, 2**32), choose=st.randoms())
def test_the_split_is_a_partition_that_keeps_every_known_class(data, fraction, seed, choose):
    known = choose.sample(data.classes, choose.randint(1, len(data.classes)))
    labelled, stream = split_protocol(data, known, fraction=fraction, seed=seed)
    assert sorted([*labelled.items, *stream.items]) == data.items
    assert labelled.items == sorted(labelled.items)
    assert stream.items == sorted(stream.items)
    counts = data.of_classes(known).counts()
    assert set(labelled.classes) <= set(known)
    assert all(Counter(labelled.labels)[name] >= min(2, count) for name, count in counts.items())
    asked = int(fraction * sum(counts.values()) + 1e-9)
    least = sum(min(2, count) for count in counts.values())
    assert len(labelled) == asked or asked < len(labelled) <= least
    again = split_protocol(data, list(reversed(known)), fraction=fraction, seed=seed)
    assert again[0].items == labelled.items


def test_the_split_draws_over_all_known_samples_and_not_class_by_class():
    data = numbered(*("a" * 50 + "b" * 50 + "c" * 50))
    draws = [split_protocol(data, ["a", "b"], seed=seed)[0] for seed in range(8)]
    assert {len(draw) for draw in draws} == {50}
    assert len({draw.counts()["a"] for draw in draws}) > 1
    assert len({tuple(draw.items) for draw in draws}) == 8


def test_the_labelled_fraction_is_not_cut_short_by_rounding_errors():
    assert 0.29 * 100 < 29
    assert len(split_protocol(numbered(*("a" * 50 + "b" * 50)), ["a", "b"], fraction=0.29)[0]) == 29


def test_half_of_the_classes_rounded_up_are_known_unless_said():
    data = numbered(*("abcde" * 6))
    chosen = {tuple(split_protocol(data, seed=seed)[0].classes) for seed in range(10)}
    assert {len(classes) for classes in chosen} == {3}
    assert len(chosen) > 1
    labelled, stream = split_protocol(data)
    assert (len(labelled), len(stream)) == (9, 21)
    assert stream.classes == data.classes


def test_a_known_class_that_does_not_exist_is_told_with_its_neighbours():
    data = numbered("heron", "egret", "stork")
    with pytest.raises(DataError, match="'hern' \\(near: 'heron'\\)"):
        split_protocol(data, ["egret", "hern"])
    with pytest.raises(DataError, match="name at least one"):
        split_protocol(data, [])
    for fraction in (0, -0.1, 1.1, float("nan")):
        with pytest.raises(DataError, match="fraction"):
            split_protocol(data, fraction=fraction)


@pytest.mark.parametrize(("name", "labelled", "stream"), [("pets", 942, 2738), ("cub", 1498, 4496)])
def test_the_benchmarks_have_the_sizes_of_the_paper(name, labelled, stream):
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    root = Path(os.environ.get("NEWFOUND_DATA", beside))
    if not (root / name).is_dir():
        pytest.skip(f"no {name} in {root}; NEWFOUND_DATA can name another folder")
    known = json.loads((root / "splits.json").read_text())[name]["known"]
    data = load_dataset(root / name)
    by_id = {int(folder.split(".")[0]) - 1: folder for folder in data.classes}
    found = split_protocol(data, [by_id[index] for index in known])
    assert tuple(map(len, found)) == (labelled, stream)
