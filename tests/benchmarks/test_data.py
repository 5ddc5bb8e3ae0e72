"""The benchmarks' data sets: small archives in the official layouts, and the real ones where they are here."""

from __future__ import annotations

import hashlib
import os
import pickle
import shutil
import tarfile
import threading
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.io import savemat

from newfound.benchmarks import _catalogue
from newfound.benchmarks.data import (
    check_sizes,
    data_sets,
    download,
    find,
    load,
    own_split,
    protocol_split,
    statistics,
    statistics_table,
)
from newfound.benchmarks.splits import known_classes, protocols
from newfound.datasets import LabelledImages, split_protocol
from newfound.errors import DataError, MissingFileError, SettingsError
from newfound.images import open_image

SIZE = 32 * 32  # pixels of a CIFAR image


def write(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


# Archives with four images a class in the protocol's split, and others beside them that are not in it.


def make_cub(folder: Path) -> None:
    classes = [f"{n:03d}.Bird_{n}" for n in range(1, 201)]
    kinds = ("test", "train")
    images = [(name, f"{name}/{kind}_{k}.jpg", kind) for name in classes for kind in kinds for k in range(4)]
    for _, path, _kind in images:
        write(folder / "images" / path)
    numbered = list(enumerate(images, start=1))
    write(folder / "classes.txt", "\n".join(f"{n} {name}" for n, name in enumerate(classes, start=1)))
    write(folder / "images.txt", "\n".join(f"{n} {path}" for n, (_, path, _kind) in numbered))
    labels = (f"{n} {classes.index(name) + 1}" for n, (name, *_) in numbered)
    write(folder / "image_class_labels.txt", "\n".join(labels))
    write(folder / "train_test_split.txt", "\n".join(f"{n} {int(kind == 'train')}" for n, (*_, kind) in numbered))


def make_cars(folder: Path) -> None:
    names = ["Ram C/V Cargo Van 2012", *(f"Make Model {n}" for n in range(2, 197))]
    kinds = [("class", "O"), ("fname", "O")]
    rows = np.array([(k % 196 + 1, f"{k:05d}.jpg") for k in range(784)], dtype=kinds)
    (folder / "devkit").mkdir(parents=True)
    savemat(folder / "devkit" / "cars_train_annos.mat", {"annotations": rows})
    savemat(folder / "devkit" / "cars_meta.mat", {"class_names": np.array(names, dtype=object)})
    for row in rows:
        write(folder / "cars_train" / row["fname"])
    write(folder / "cars_test" / "test_1.jpg")


def make_pets(folder: Path) -> None:
    names = [f"{'Cat' if n % 3 else 'dog'}_of_kind_{n}" for n in range(1, 38)]
    lines = [f"{name}_{k} {n} 1 1" for n, name in enumerate(names, start=1) for k in (8, 9, 10, 11)]
    write(folder / "annotations" / "trainval.txt", "\n".join(lines))
    for line in lines:
        write(folder / "images" / f"{line.split()[0]}.jpg")
    write(folder / "images" / "test_12.jpg")


def make_food(folder: Path) -> None:
    images = [f"dish_{n:03d}/{k}" for n in range(101) for k in range(4)]
    write(folder / "meta" / "train.txt", "\n".join(images))
    for image in [*images, "dish_000/test"]:
        write(folder / "images" / f"{image}.jpg")


def make_cifar10(folder: Path) -> None:
    names = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
    write(folder / "batches.meta.txt", "\n".join(names) + "\n\n")
    for batch in range(1, 6):
        records = np.zeros((8, 1 + 3 * SIZE), dtype=np.uint8)
        records[:, 0] = [(8 * batch + k) % 10 for k in range(8)]  # 40 labels in all: four of each
        records.tofile(folder / f"data_batch_{batch}.bin")
    np.zeros((3, 1 + 3 * SIZE), dtype=np.uint8).tofile(folder / "test_batch.bin")


def make_cifar100(folder: Path) -> None:
    write(folder / "fine_label_names.txt", "\n".join(f"thing_{n:02d}" for n in range(100)))
    records = np.zeros((400, 2 + 3 * SIZE), dtype=np.uint8)
    records[:, 0], records[:, 1] = 7, np.arange(400) % 100  # the coarse label comes first
    records.tofile(folder / "train.bin")


def synsets(count: int) -> list[str]:
    return [f"n{n:08d}" for n in range(count)]


def make_imagenet(folder: Path) -> None:
    for name in synsets(120):
        for k in range(4):
            write(folder / "train" / name / f"{name}_{k}.JPEG")
        write(folder / "val" / name / f"test_{name}.JPEG")
    write(folder / "synsets.txt", "\n".join(synsets(120)[20:]))


def make_inaturalist(folder: Path) -> None:
    for group, count in (("Animalia", 77), ("Arachnida", 56), ("Fungi", 121), ("Mollusca", 93), ("Aves", 3)):
        for species in range(count):
            for k in range(4):
                write(folder / "train_val_images" / group / f"{group} species {species:03d}" / f"{k}.jpg")


ARCHIVES = {
    "cub": ("CUB_200_2011", make_cub),
    "cars": ("stanford_cars", make_cars),
    "pets": ("oxford-iiit-pet", make_pets),
    "food101": ("food-101", make_food),
    "cifar10": ("cifar-10-batches-bin", make_cifar10),
    "cifar100": ("cifar-100-binary", make_cifar100),
    "imagenet100": ("imagenet", make_imagenet),
} | {f"inat2017_{group}": ("inat2017", make_inaturalist) for group in ("animalia", "arachnida", "fungi", "mollusca")}


def make(name: str, root: Path) -> Path:
    folder, maker = ARCHIVES[name]
    maker(root / folder)
    return root / folder


def as_class_folders(data: LabelledImages, folder: Path) -> Path:
    for path, label in zip(data.items, data.labels, strict=True):
        write(folder / label / Path(path).name)
    return folder


def sized(labelled: int, stream: int) -> tuple[LabelledImages, LabelledImages]:
    return LabelledImages(range(labelled), ["known"] * labelled), LabelledImages(range(stream), ["new"] * stream)


def names_of(data: LabelledImages) -> list[tuple[str, str]]:
    return [(Path(path).name, label) for path, label in zip(data.items, data.labels, strict=True)]


def test_every_protocol_has_a_data_set_and_every_archive_layout_a_test():
    assert set(data_sets()) == set(protocols()) == set(ARCHIVES)


@pytest.mark.parametrize("name", ARCHIVES)
def test_the_official_layout_gives_the_protocols_images_and_classes(name, tmp_path):
    folder = make(name, tmp_path)
    assert find(name, tmp_path) == find(name, folder) == folder
    data = load(name, tmp_path)
    assert set(data.counts().values()) == {4}
    assert len(data.classes) == data_sets()[name].classes
    assert len(known_classes(name, data.classes)) == data_sets()[name].known
    assert not any("test" in str(Path(item).name) for item in data.items if isinstance(item, Path))
    labelled, stream = protocol_split(name, tmp_path, check=False)
    assert len(labelled) == 2 * data_sets()[name].known  # half of a known class
    assert len(labelled) + len(stream) == 4 * data_sets()[name].classes


def test_class_names_start_with_the_official_number_where_their_order_needs_it(tmp_path):
    make("cars", tmp_path)
    make("pets", tmp_path)
    assert load("cars", tmp_path).classes[:2] == ["001.Ram C-V Cargo Van 2012", "002.Make Model 2"]
    assert load("pets", tmp_path).classes[:3] == ["01.Cat_of_kind_1", "02.Cat_of_kind_2", "03.dog_of_kind_3"]
    # Official class ids 1 to 19, whatever the letters' case.
    assert known_classes("pets", load("pets", tmp_path).classes)[-1].startswith("19.")


@pytest.mark.parametrize("name", ["cub", "pets"])
def test_the_same_images_are_labelled_from_the_archive_and_from_class_folders(name, tmp_path):
    make(name, tmp_path / "archive")
    as_class_folders(load(name, tmp_path / "archive"), tmp_path / "plain" / name)
    for class_seed in (None, 3):
        official = protocol_split(name, tmp_path / "archive", class_seed, check=False)
        plain = protocol_split(name, tmp_path / "plain", class_seed, check=False)
        assert [names_of(part) for part in official] == [names_of(part) for part in plain]


def test_an_archive_may_lie_in_a_folder_of_its_own_below_the_data_sets_name(tmp_path):
    inside = make("cub", tmp_path / "cub")
    assert find("cub", tmp_path) == inside


def test_cars_may_lie_in_the_folders_of_its_two_archives(tmp_path):
    folder = make("cars", tmp_path)
    (folder / "cars_train").rename(folder / "images")
    (folder / "cars_train").mkdir()
    (folder / "images").rename(folder / "cars_train" / "cars_train")
    (folder / "car_devkit").mkdir()
    (folder / "devkit").rename(folder / "car_devkit" / "devkit")
    assert len(load("cars", tmp_path)) == 784


def test_the_variable_names_the_folder_that_holds_the_data_sets(tmp_path, monkeypatch):
    monkeypatch.delenv("NEWFOUND_DATA", raising=False)
    with pytest.raises(MissingFileError, match=r"NEWFOUND_DATA .* not set.*food-101\.tar\.gz.*NEWFOUND_DATA/food101"):
        find("food101")
    folder = make("food101", tmp_path)
    monkeypatch.setenv("NEWFOUND_DATA", str(tmp_path))
    assert find("food101") == folder


@pytest.mark.parametrize("name", ARCHIVES)
def test_a_missing_data_set_says_where_to_get_it_and_where_to_put_it(name, tmp_path):
    about = data_sets()[name]
    with pytest.raises(MissingFileError) as caught:
        load(name, tmp_path)
    for part in (about.title, about.files, about.home, f"{tmp_path}/{about.folders[0]}", f"{tmp_path}/{name}"):
        assert part in str(caught.value)
    command = f"`newfound bench data --download {name} --root {tmp_path}` fetches it"
    assert (command in str(caught.value)) == bool(about.archives), "if a program can"


def test_an_incomplete_folder_tells_how_many_classes_are_there(tmp_path):
    for n in range(36):
        write(tmp_path / "pets" / f"{n:02d}.pet" / "1.jpg")
    with pytest.raises(MissingFileError, match=r"each of 37 classes \(folders there: 36\)"):
        load("pets", tmp_path)


def test_a_name_that_is_no_data_set_is_told_with_those_that_are():
    with pytest.raises(SettingsError, match=r"'birds'.*cub, cars, pets"):
        find("birds")


def test_ten_folders_of_data_sets_are_not_ten_classes(tmp_path):
    for name in [*"abcdefgh", "pets", "cub"]:
        write(tmp_path / name / "1.jpg")
    with pytest.raises(MissingFileError, match="CIFAR-10"):
        find("cifar10", tmp_path)


def test_an_image_that_is_listed_but_not_there_is_named(tmp_path):
    folder = make("pets", tmp_path)
    (folder / "images" / "Cat_of_kind_1_9.jpg").unlink()
    with pytest.raises(MissingFileError, match=r"lacks 1 of the 148 images it lists, such as .*Cat_of_kind_1_9\.jpg"):
        load("pets", tmp_path)


@pytest.mark.parametrize(
    ("name", "file", "text"),
    [
        ("cub", "classes.txt", "1 001.Bird_1"),  # the other 199 are gone
        ("cub", "images.txt", "1"),
        ("pets", "annotations/trainval.txt", "Cat_1 one 1 1"),
        ("cars", "devkit/cars_train_annos.mat", "not a MATLAB file"),
        ("cifar10", "data_batch_3.bin", "cut off"),
        ("cifar100", "fine_label_names.txt", "apple\npear"),
    ],
)
def test_a_damaged_archive_is_a_data_error_that_names_its_folder(name, file, text, tmp_path):
    folder = make(name, tmp_path)
    write(folder / file, text)
    with pytest.raises(DataError, match=folder.name):
        load(name, tmp_path)


@pytest.mark.parametrize(("name", "file"), [("cub", "classes.txt"), ("cifar10", "data_batch_5.bin")])
def test_a_missing_part_of_an_archive_is_named(name, file, tmp_path):
    (make(name, tmp_path) / file).unlink()
    with pytest.raises(MissingFileError, match=file):
        load(name, tmp_path)


def test_cifar_images_have_their_colours_and_rows_in_place(tmp_path):
    folder = make("cifar10", tmp_path)
    record = np.zeros(1 + 3 * SIZE, dtype=np.uint8)
    record[0] = 9
    record[1 + 2 * SIZE + 32 * 5 + 3] = 200  # third plane, row 5, column 3
    record.tofile(folder / "data_batch_1.bin")
    data = load("cifar10", tmp_path)
    assert data.labels[0] == "truck"
    assert open_image(data.items[0]).getpixel((3, 5)) == (0, 0, 200)
    assert np.count_nonzero(data.items[0]) == 1


class Trap:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_the_pickles_of_cifar_are_never_opened(tmp_path):
    trapped = tmp_path / "cifar-10-batches-py"
    trapped.mkdir()
    for name in ("data_batch_1", "batches.meta"):
        (trapped / name).write_bytes(pickle.dumps(Trap(tmp_path / "sprung")))
    with pytest.raises(MissingFileError, match=r"cifar-10-binary\.tar\.gz \(the binary version.*pickles"):
        load("cifar10", tmp_path)
    assert not (tmp_path / "sprung").exists()


def test_which_synsets_are_the_hundred_must_be_said_when_there_are_more(tmp_path):
    folder = make("imagenet100", tmp_path)
    assert load("imagenet100", tmp_path).classes == synsets(120)[20:]
    (folder / "synsets.txt").unlink()
    with pytest.raises(DataError, match=r"120 synsets.*does not say which.*synsets\.txt"):
        load("imagenet100", tmp_path)
    write(folder / "synsets.txt", "\n".join([*synsets(99), "n99999999"]))
    with pytest.raises(MissingFileError, match="n99999999"):
        load("imagenet100", tmp_path)
    for name in synsets(120)[100:]:
        shutil.rmtree(folder / "train" / name)
    (folder / "synsets.txt").unlink()
    assert load("imagenet100", tmp_path).classes == synsets(100)


def test_a_training_set_in_several_folders_is_one(tmp_path):
    for position, name in enumerate(synsets(100)):
        write(tmp_path / "imagenet100" / f"train.X{position % 4 + 1}" / name / "1.JPEG")
    assert load("imagenet100", tmp_path).classes == synsets(100)


def test_another_draw_of_the_known_classes_is_that_of_its_seed(tmp_path):
    make("food101", tmp_path)
    data = load("food101", tmp_path)
    for seed in (0, 1):
        asked, expected = protocol_split("food101", tmp_path, seed, check=False), split_protocol(data, seed=seed)
        assert [names_of(part) for part in asked] == [names_of(part) for part in expected]
    official, _ = protocol_split("food101", tmp_path, check=False)
    assert official.classes == data.classes[:51] != expected[0].classes


# |Y_Q|, |Y_S|, |D_S|, |D_Q| of the paper's table, with the true 37 for its 38.
PAPER = {
    "cub": (200, 100, 1.5, 4.5), "cars": (196, 98, 2.0, 6.1), "pets": (37, 19, 0.9, 2.7),
    "food101": (101, 51, 19.1, 56.6), "cifar10": (10, 5, 12.5, 37.5), "cifar100": (100, 50, 12.5, 37.5),
    "imagenet100": (100, 50, 32.5, 97.5),
}  # fmt: skip


def test_the_figures_are_those_of_the_papers_table():
    found = {name: (d.classes, d.known, *d.paper) for name, d in data_sets().items() if d.paper is not None}
    assert found == PAPER


@pytest.mark.parametrize("name", [name for name, about in data_sets().items() if about.paper and about.images])
def test_the_papers_sizes_add_up_to_the_official_split(name):
    about = data_sets()[name]
    assert abs(about.images - 1000 * sum(about.paper)) <= 100  # both sizes are rounded to 50


@pytest.mark.parametrize(
    ("name", "labelled", "stream"),
    [
        ("food101", 19_125, 56_625),  # 51 * 750 / 2, 101 * 750 - 19,125
        ("cifar10", 12_500, 37_500),  # 5 * 5,000 / 2
        ("cifar100", 12_500, 37_500),  # 50 * 500 / 2
        ("imagenet100", 32_500, 97_500),  # 50 * 1,300 / 2
        ("imagenet100", 31_900, 95_300),  # another draw of 100 classes, some with fewer than 1,300
        ("inat2017_fungi", 1_800, 5_806),  # the paper has no sizes; all 7,606 are there
    ],
)
def test_the_sizes_of_the_official_split_are_accepted(name, labelled, stream):
    check_sizes(name, *sized(labelled, stream))


@pytest.mark.parametrize(
    ("name", "labelled", "stream", "said"),
    [
        ("cifar100", 20_000, 30_000, r"12\.5K images in the paper, but this one has 20,000"),  # 80 known classes
        ("cub", 2_947, 8_841, "5,994, but these are 11,788"),  # training and test images together
        ("imagenet100", 33_000, 97_500, "33,000"),  # no class has more than 1,300
        ("imagenet100", 25_000, 75_000, "25,000"),  # 1,000 a class: a reduced copy
        ("inat2017_fungi", 1_800, 5_000, "7,606, but these are 6,800"),
    ],
)
def test_other_sizes_are_refused_with_what_was_found_and_expected(name, labelled, stream, said):
    with pytest.raises(DataError, match=said):
        check_sizes(name, *sized(labelled, stream))


@given(st.integers(0, 3_680))
def test_pets_labelled_set_may_be_anything_that_rounds_to_the_papers_sizes(labelled):
    # 0.9K is 850 to 950 and 2.7K is 2,650 to 2,750 of 3,680 images, which leaves 930 to 950 for the labelled set.
    parts = sized(labelled, 3_680 - labelled)
    if 930 <= labelled <= 950:
        check_sizes("pets", *parts)
    else:
        with pytest.raises(DataError, match="in the paper"):
            check_sizes("pets", *parts)


def test_a_split_of_wrong_size_is_not_given_out_unasked(tmp_path):
    make("pets", tmp_path)
    for class_seed in (None, 1):
        with pytest.raises(DataError, match="3,680, but these are 148"):
            protocol_split("pets", tmp_path, class_seed)


def make_own(root: Path) -> Path:
    for name in ("heron", "owl", "wren"):
        for k in range(4):
            write(root / "birds" / name / f"{k}.jpg")
    return root / "birds"


@pytest.mark.parametrize(
    ("file", "text"), [("split.json", '{"known": ["owl", "heron"]}'), ("split.txt", "\ufeffowl\n\n heron \n")]
)
def test_a_folder_and_a_split_file_of_ones_own_give_the_same_pair(file, text, tmp_path):
    folder = make_own(tmp_path)
    labelled, stream = own_split(folder, write(tmp_path / file, text))
    assert labelled.classes == ["heron", "owl"]
    assert (len(labelled), len(stream)) == (4, 8)  # half of eight, and the rest of twelve
    assert stream.classes == ["heron", "owl", "wren"]


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("split.json", '{"old": ["owl"]}', "known"),
        ("split.json", '{"known": "owl"}', "not a list"),
        ("split.json", "owl", "cannot be read"),
        ("split.txt", "owll", "near: 'owl'"),
        ("split.txt", "\n", "name at least one"),
        ("split.txt", "owl\n", r"split.txt names one class only \(owl\): at least 2"),
    ],
)
def test_a_split_file_that_says_nothing_useful_is_a_data_error(file, text, said, tmp_path):
    with pytest.raises(DataError, match=said):
        own_split(make_own(tmp_path), write(tmp_path / file, text))


def test_a_split_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(MissingFileError, match="nowhere"):
        own_split(make_own(tmp_path), tmp_path / "nowhere.txt")


def test_the_statistics_tell_what_the_paper_says_and_what_is_here(tmp_path):
    make("pets", tmp_path)
    make("cub", tmp_path)
    write(tmp_path / "CUB_200_2011" / "classes.txt", "1 001.Bird_1")
    rows = {row.data_set.name: row for row in statistics(tmp_path)}
    assert list(rows) == list(data_sets())
    pets = rows["pets"]
    assert (pets.labelled, pets.stream) == (38, 110)  # 19 * 4 / 2, 37 * 4 - 38
    assert "3,680, but these are 148" in pets.note
    assert pets.cells()[:7] == ["Oxford-IIIT Pet", "37 (paper: 38, a misprint)", "19", "0.9K", "2.7K", "38", "110"]
    assert rows["cub"].labelled is None
    assert "unpack it again" in rows["cub"].note
    assert rows["inat2017_fungi"].cells()[1:7] == ["121", "61", "-", "-", "-", "-"]
    assert "80" in rows["cifar100"].note
    table = statistics_table(list(rows.values()))
    assert {len(line) for line in table} == {len(table[0])}


@pytest.fixture
def packed_cifar(tmp_path, monkeypatch):
    """CIFAR-10 in small, as an archive that a server on this machine gives out."""
    make("cifar10", tmp_path / "made")
    archive = tmp_path / "cifar-10-binary.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(tmp_path / "made" / "cifar-10-batches-bin", "cifar-10-batches-bin")
    digest = hashlib.md5(archive.read_bytes()).hexdigest()
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=tmp_path)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/{archive.name}"
        small = replace(data_sets()["cifar10"], archives=(_catalogue.Archive(url, digest),))
        monkeypatch.setitem(_catalogue.DATA_SETS, "cifar10", small)
        yield archive
        server.shutdown()


def test_a_download_is_unpacked_where_it_is_looked_for_and_not_fetched_again(packed_cifar, tmp_path):
    root = tmp_path / "data"
    assert download("cifar10", root) == find("cifar10", root) == root / "cifar-10-batches-bin"
    assert len(load("cifar10", root)) == 40
    packed_cifar.unlink()
    assert download("cifar10", root) == root / "cifar-10-batches-bin"


def test_a_download_with_other_bytes_is_refused(packed_cifar, tmp_path):
    packed_cifar.write_bytes(packed_cifar.read_bytes() + b"\0")
    with pytest.raises(DataError, match=r"could not be fetched.*corrupted.*Get cifar-10-binary"):
        download("cifar10", tmp_path / "data")


def test_a_download_that_fails_says_where_to_get_the_data_by_hand(packed_cifar, tmp_path):
    packed_cifar.unlink()
    with pytest.raises(DataError, match=r"could not be fetched.*Get cifar-10-binary\.tar\.gz.*data/cifar10 holds"):
        download("cifar10", tmp_path / "data")


def test_what_a_program_cannot_fetch_says_where_a_person_can(tmp_path):
    with pytest.raises(MissingFileError, match=r"cannot be fetched.*original host.*is gone.*cars_train_annos\.mat"):
        download("cars", tmp_path)


@pytest.mark.parametrize(("name", "labelled", "stream"), [("pets", 942, 2738), ("cub", 1498, 4496)])
def test_the_real_data_has_the_sizes_of_the_papers_table(name, labelled, stream):
    root = Path(os.environ.get("NEWFOUND_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data")
    try:
        find(name, root)
    except MissingFileError:
        pytest.skip(f"no {name} in {root}; NEWFOUND_DATA can name another folder")
    assert tuple(map(len, protocol_split(name, root))) == (labelled, stream)
    row = next(row for row in statistics(root) if row.data_set.name == name)
    assert (row.labelled, row.stream, row.note) == (labelled, stream, "")
